package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// origin is when the test's clock began, since boot.
const origin = 1000 * time.Second

// resolverFixture is a resolver over an imitated procfs, on the test's clock.
type resolverFixture struct {
	*resolver
	t   *testing.T
	dir string
	at  time.Duration // elapsed
}

func newResolverFixture(t *testing.T, processes ...simulated.Process) *resolverFixture {
	b := &resolverFixture{t: t, dir: filepath.Join(t.TempDir(), "proc"), at: time.Minute}
	b.resolver = newResolver(b.dir, func() clock.Instant { return clock.Instant{Elapsed: b.at} })
	b.uptime = func() (time.Duration, error) { return origin + b.at, nil }
	b.write(processes...)
	return b
}

func (b *resolverFixture) write(processes ...simulated.Process) {
	b.t.Helper()
	must(b.t, simulated.Write(b.dir, processes))
}

// file replaces a file of a process by hand.
func (b *resolverFixture) file(pid int, name, text string) {
	b.t.Helper()
	must(b.t, os.WriteFile(filepath.Join(b.dir, strconv.Itoa(pid), name), []byte(text), 0o644))
}

// list is those processes, all seen now.
func (b *resolverFixture) list(pids ...int) []Seen {
	var list []Seen
	for _, pid := range pids {
		list = append(list, Seen{PID: pid, At: clock.Instant{Elapsed: b.at}})
	}
	return list
}

func (b *resolverFixture) expect(want map[int]dra.Owner, list []Seen) {
	b.t.Helper()
	if got := b.resolve(list); got.err != nil || got.unreadable || !maps.Equal(got.owners, want) {
		b.t.Errorf("got %+v, want %+v", got, want)
	}
}

func inPod(pid int, uid string) simulated.Process {
	return simulated.Process{PID: pid, Cgroup: simulated.InContainer(uid, box)}
}

var gone = dra.Owner{Gone: true}

func owned(uid string) dra.Owner { return dra.Owner{PodUID: uid, ContainerID: box} }

func TestResolve(t *testing.T) {
	b := newResolverFixture(t, inPod(10, uid), inPod(11, other), simulated.Process{PID: 12, Command: "a) Z (b", Cgroup: "/system.slice/x.service"})
	want := map[int]dra.Owner{10: owned(uid), 11: owned(other), 12: {}, 13: gone, 0: {}, -5: {}}
	for range 3 {
		b.expect(want, b.list(10, 11, 12, 13, 0, -5))
		b.at += time.Second
	}
	b.expect(map[int]dra.Owner{11: owned(other)}, b.list(11, 11))
	if len(b.known) != 1 {
		t.Errorf("%d processes are remembered that are not asked for any more", len(b.known)-1)
	}
	b.expect(map[int]dra.Owner{}, nil)
}

// TestGone has processes end and pids come back.
func TestGone(t *testing.T) {
	b := newResolverFixture(t, inPod(10, uid))
	b.expect(map[int]dra.Owner{10: owned(uid)}, b.list(10))
	b.write()
	b.expect(map[int]dra.Owner{10: gone}, b.list(10))

	// The pid is another's when the list that names it is looked up, ...
	list := b.list(10)
	b.at += 5 * time.Second
	reused := inPod(10, other)
	reused.Start = origin + b.at - time.Second
	b.write(reused)
	b.expect(map[int]dra.Owner{10: gone}, list)
	// ... and when a later list names the other.
	b.expect(map[int]dra.Owner{10: owned(other)}, b.list(10))
	// A device's list that is older counts for the process as a whole.
	b.expect(map[int]dra.Owner{10: gone}, slices.Concat(b.list(10), list))
	b.expect(map[int]dra.Owner{10: gone}, slices.Concat(list, b.list(10)))
}

// TestPIDReusedWhileCached has a pid change hands between two looks at it.
func TestPIDReusedWhileCached(t *testing.T) {
	first, second := inPod(10, uid), inPod(10, other)
	second.Start = origin + time.Minute
	b := newResolverFixture(t, first)
	b.expect(map[int]dra.Owner{10: owned(uid)}, b.list(10))
	b.at += time.Second
	b.write(second)
	b.expect(map[int]dra.Owner{10: owned(other)}, b.list(10))
}

// TestStartedWithinATick: procfs rounds the start time down to a tick.
func TestStartedWithinATick(t *testing.T) {
	b := newResolverFixture(t)
	for after, want := range map[time.Duration]dra.Owner{-time.Second: owned(uid), 0: owned(uid), tick: owned(uid), 2 * tick: gone} {
		p := inPod(10, uid)
		p.Start = origin + b.at + after
		b.write(p)
		b.expect(map[int]dra.Owner{10: want}, b.list(10))
	}
}

func TestZombie(t *testing.T) {
	b := newResolverFixture(t, inPod(10, uid), inPod(11, uid))
	b.file(10, "stat", statFile("x", "Z", "1", "100"))
	b.file(11, "stat", statFile("x", "Z", "5", "100"))
	b.expect(map[int]dra.Owner{10: gone, 11: owned(uid)}, b.list(10, 11))
}

// TestMoved changes a cgroup in a way that its folder does not show, as the
// kernel does: it must be noticed within 30 s, however often it is looked up.
func TestMoved(t *testing.T) {
	var processes []simulated.Process
	var pids []int
	for pid := 10; pid < 40; pid++ {
		processes, pids = append(processes, inPod(pid, uid)), append(pids, pid)
	}
	b := newResolverFixture(t, processes...)
	b.resolve(b.list(pids...))
	for _, pid := range pids {
		b.file(pid, "cgroup", "0::"+inPod(pid, other).Cgroup+"\n")
	}
	b.at += time.Second
	if found := b.resolve(b.list(pids...)); found.owners[10] != owned(uid) {
		t.Fatal("what is remembered is read all the same: this test shows nothing")
	}
	most, moved := 0, 0
	for range 28 {
		b.at += time.Second
		now := 0
		for _, owner := range b.resolve(b.list(pids...)).owners {
			if owner == owned(other) {
				now++
			}
		}
		most, moved = max(most, now-moved), now
	}
	if moved != len(pids) {
		t.Errorf("%d of %d are noticed within 30 s", moved, len(pids))
	}
	if most > len(pids)/5 {
		t.Errorf("%d of %d are read again in one lookup", most, len(pids))
	}
}

// TestUnreadable has what is neither there nor gone: it is left out, and the
// rest is not.
func TestUnreadable(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(b *resolverFixture)
		reason source.Reason
	}{
		"stat of another form":   {func(b *resolverFixture) { b.file(10, "stat", "10 (x)") }, source.ReasonInvalid},
		"cgroup of another form": {func(b *resolverFixture) { b.file(10, "cgroup", "nonsense\n") }, source.ReasonInvalid},
		"cgroup without end":     {func(b *resolverFixture) { b.file(10, "cgroup", strings.Repeat("0::/\n", maxFile)) }, source.ReasonOther},
		"stat is a folder":       {func(b *resolverFixture) { b.replaceFile(10, "stat", os.Mkdir) }, source.ReasonOther},
		"process is a file": {func(b *resolverFixture) {
			b.replaceFile(10, "", func(path string, mode os.FileMode) error { return os.WriteFile(path, nil, mode) })
		}, source.ReasonOther},
		"process is a loop": {func(b *resolverFixture) {
			b.replaceFile(10, "", func(path string, _ os.FileMode) error { return os.Symlink(path, path) })
		}, source.ReasonOther},
	} {
		t.Run(name, func(t *testing.T) {
			b := newResolverFixture(t, inPod(10, uid), inPod(11, other))
			test.spoil(b)
			for range 2 {
				got := b.resolve(b.list(10, 11))
				if !maps.Equal(got.owners, map[int]dra.Owner{11: owned(other)}) || got.unreadable {
					t.Errorf("got %+v", got)
				}
				if source.ReasonOf(got.err) != test.reason || !strings.Contains(got.err.Error(), "look up process 10: ") || !strings.Contains(got.err.Error(), b.dir) {
					t.Errorf("got %q for %v", source.ReasonOf(got.err), got.err)
				}
			}
		})
	}
}

// instead puts something else where a file of a process, or its folder, is.
func (b *resolverFixture) replaceFile(pid int, name string, put func(string, os.FileMode) error) {
	b.t.Helper()
	path := filepath.Join(b.dir, strconv.Itoa(pid), name)
	must(b.t, os.RemoveAll(path))
	must(b.t, put(path, 0o755))
}

// TestFilesRemovedDuringRead has a process end between the look at its folder and its
// files.
func TestFilesRemovedDuringRead(t *testing.T) {
	for _, name := range []string{"stat", "cgroup"} {
		b := newResolverFixture(t, inPod(10, uid))
		must(t, os.Remove(filepath.Join(b.dir, "10", name)))
		b.expect(map[int]dra.Owner{10: gone}, b.list(10))
	}
}

func TestSeveralUnreadable(t *testing.T) {
	b := newResolverFixture(t, inPod(10, uid), inPod(11, uid), inPod(12, uid))
	for _, pid := range []int{12, 11, 10} {
		b.file(pid, "stat", "")
	}
	if got := b.resolve(b.list(12, 11, 10)); !strings.HasPrefix(fmt.Sprint(got.err), "look up process 10, and 2 more: decode ") {
		t.Errorf("got %v", got.err)
	}
}

// TestUnreadableProcfs has procfs not be what it should: that nothing is to be seen does
// not mean that all have ended.
func TestUnreadableProcfs(t *testing.T) {
	b := newResolverFixture(t, inPod(10, uid))
	must(t, os.RemoveAll(filepath.Join(b.dir, "1")))
	if got := b.resolve(b.list(10)); !got.unreadable || source.ReasonOf(got.err) != source.ReasonNotFound || !strings.Contains(got.err.Error(), "hidepid") {
		t.Errorf("got %+v", got)
	}
	b.write(inPod(10, uid))
	b.expect(map[int]dra.Owner{10: owned(uid)}, b.list(10))
	b.replaceFile(1, "cgroup", os.Mkdir) // as with hidepid=1: there, and not to be read
	if got := b.resolve(b.list(10)); !got.unreadable || !strings.Contains(fmt.Sprint(got.err), "process 1") {
		t.Errorf("got %+v", got)
	}
	b.procfs = filepath.Join(b.dir, "10", "stat")
	if got := b.resolve(b.list(10)); !got.unreadable || !errors.Is(got.err, syscall.ENOTDIR) {
		t.Errorf("got %+v", got)
	}
	b.procfs = b.dir
	b.uptime = func() (time.Duration, error) { return 0, errors.New("no clock") }
	if got := b.resolve(b.list(10)); !got.unreadable || got.err == nil {
		t.Errorf("got %+v", got)
	}
}

// TestManyProcesses must not run out of descriptors, nor keep any.
func TestManyProcesses(t *testing.T) {
	var processes []simulated.Process
	want, pids := make(map[int]dra.Owner), []int(nil)
	for pid := 2; pid < 2002; pid++ {
		processes, pids = append(processes, inPod(pid, uid)), append(pids, pid)
		want[pid] = owned(uid)
	}
	b := newResolverFixture(t, processes...)
	before := descriptors(t)
	for range 3 {
		b.expect(want, b.list(pids...))
		b.at += time.Second
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}
