package cgroup

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// logBuffer is a log that tests can read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *logBuffer) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *logBuffer) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *logBuffer) count(text string) int { return strings.Count(j.String(), text) }

// readerFixture is a reader of an imitated procfs, its list and its log.
type readerFixture struct {
	*Reader
	t       *testing.T
	dir     string
	log     *logBuffer
	stop    func()
	lookups *logBuffer // a line for each lookup

	mu   sync.Mutex
	list []Seen
}

// run runs a reader that waits longer for its lookups than any test does.
func run(t *testing.T, processes ...simulated.Process) *readerFixture {
	t.Helper()
	r := runFor(t, time.Hour, processes...)
	r.next()
	return r
}

func runFor(t *testing.T, timeout time.Duration, processes ...simulated.Process) *readerFixture {
	t.Helper()
	r := &readerFixture{t: t, dir: filepath.Join(t.TempDir(), "proc"), log: &logBuffer{}, lookups: &logBuffer{}}
	r.write(processes...)
	now := clock.System()
	r.Reader = New(Options{
		Procfs:  r.dir,
		PIDs:    r.pids,
		Log:     slog.New(slog.NewTextHandler(r.log, nil)),
		Clock:   now,
		Observe: func(float64) { _, _ = r.lookups.Write([]byte("lookup\n")) },
	})
	r.timeout = timeout
	for _, p := range processes {
		r.list = append(r.list, Seen{p.PID, now()})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	r.stop = func() { cancel(); <-done }
	t.Cleanup(r.stop)
	return r
}

func (r *readerFixture) write(processes ...simulated.Process) {
	r.t.Helper()
	must(r.t, simulated.Write(r.dir, processes))
}

func (r *readerFixture) pids() []Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list
}

func (r *readerFixture) setPIDs(list ...Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = list
}

// next waits for the next signal.
func (r *readerFixture) next() {
	r.t.Helper()
	select {
	case <-r.Changed():
	case <-time.After(30 * time.Second):
		r.t.Fatal("nothing has changed")
	}
}

// until waits for the status to have a reason, or none.
func (r *readerFixture) until(reason source.Reason) {
	r.t.Helper()
	for r.Latest() == nil || r.Status().Reason != reason {
		r.next()
	}
}

// lookup pokes and waits for what comes of it.
func (r *readerFixture) lookup() {
	r.t.Helper()
	r.Refresh()
	r.next()
}

func (r *readerFixture) expect(owners map[int]dra.Owner, up bool, reason source.Reason) {
	r.t.Helper()
	if got := r.Latest(); !maps.Equal(got, owners) {
		r.t.Errorf("got %v, want %v", got, owners)
	}
	if status := r.Status(); status.Name != "procfs" || status.Up != up || status.Reason != reason || !status.HungSince.IsZero() {
		r.t.Errorf("got %+v, want up %v, reason %q", status, up, reason)
	}
}

func TestRun(t *testing.T) {
	r := run(t, inPod(10, uid), inPod(11, other))
	both := map[int]dra.Owner{10: owned(uid), 11: owned(other)}
	r.expect(both, true, source.ReasonNone)
	r.write(inPod(10, uid))
	r.lookup()
	r.expect(map[int]dra.Owner{10: owned(uid), 11: gone}, true, source.ReasonNone)
	r.setPIDs()
	r.lookup()
	r.expect(map[int]dra.Owner{}, true, source.ReasonNone)
	if r.log.String() != "" {
		t.Errorf("the log says\n%s", r.log)
	}
	if got := r.lookups.count("lookup"); got != 3 {
		t.Errorf("%d lookups, want 3", got)
	}
}

// TestUnchangedOwnersKeepTheMap: if nothing differs, Latest returns the same map,
// and Changed still signals that the list was looked up.
func TestUnchangedOwnersKeepTheMap(t *testing.T) {
	r := run(t, inPod(10, uid))
	first := r.latest.Load()
	r.lookup()
	if r.latest.Load() != first {
		t.Error("the same owners are published as others")
	}
	r.write(inPod(10, other))
	r.lookup()
	if r.latest.Load() == first || (*first)[10] != owned(uid) {
		t.Error("what was published is changed")
	}
}

// TestBeforeTheFirstLookup: there are no owners, and the source is not up.
func TestBeforeTheFirstLookup(t *testing.T) {
	r := New(Options{})
	if r.Latest() != nil || r.Status().Up || r.resolver.procfs != DefaultProcfs || r.timeout != timeout {
		t.Errorf("got %v, %+v", r.Latest(), r.Status())
	}
}

// TestImpaired logs the change of state and no more.
func TestImpaired(t *testing.T) {
	r := run(t, inPod(10, uid), inPod(11, other))
	must(t, os.WriteFile(filepath.Join(r.dir, "12"), nil, 0o644))
	r.setPIDs(append(r.pids(), Seen{12, r.now()})...)
	for range 5 {
		r.lookup()
		r.expect(map[int]dra.Owner{10: owned(uid), 11: owned(other)}, true, source.ReasonOther)
	}
	if got := r.log.count("\n"); got != 1 || r.log.count("process 12") != 1 {
		t.Errorf("the log has %d lines:\n%s", got, r.log)
	}
	must(t, os.Remove(filepath.Join(r.dir, "12")))
	r.lookup()
	r.expect(map[int]dra.Owner{10: owned(uid), 11: owned(other), 12: gone}, true, source.ReasonNone)
	if got := r.log.count("\n"); got != 2 || r.log.count("up again") != 1 {
		t.Errorf("the log has %d lines:\n%s", got, r.log)
	}
}

// TestDown keeps what was known, and recovers by itself.
func TestDown(t *testing.T) {
	r := run(t, inPod(10, uid))
	hidden := r.dir + ".hidden"
	must(t, os.Rename(r.dir, hidden))
	for range 3 {
		r.lookup()
		r.expect(map[int]dra.Owner{10: owned(uid)}, false, source.ReasonNotFound)
	}
	must(t, os.Rename(hidden, r.dir))
	r.lookup()
	r.expect(map[int]dra.Owner{10: owned(uid)}, true, source.ReasonNone)
	if got := r.log.count("\n"); got != 2 {
		t.Errorf("the log has %d lines:\n%s", got, r.log)
	}
}

// hang replaces a process's file by a pipe, which blocks when it is opened. The
// returned function opens and closes the other end, which releases the reader.
func (r *readerFixture) hang(name string) (release func()) {
	path := filepath.Join(r.dir, name)
	must(r.t, os.Remove(path))
	must(r.t, syscall.Mkfifo(path, 0o644))
	return func() {
		pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(r.t, err)
		must(r.t, pipe.Close())
	}
}

// TestHang: while a read hangs, the status reports it, no caller blocks, and no
// other lookup starts. Its late result is applied.
func TestHang(t *testing.T) {
	r := runFor(t, 20*time.Millisecond, inPod(10, uid), inPod(11, other))
	r.until(source.ReasonNone)
	release := r.hang("11/cgroup")
	before := r.now()
	r.Refresh()
	r.until(source.ReasonTimeout)
	status := r.Status()
	if status.Up || status.Reason != source.ReasonTimeout || status.HungSince.Elapsed < before.Elapsed || status.HungFor(r.now()) < r.timeout {
		t.Errorf("got %+v", status)
	}
	if want := (map[int]dra.Owner{10: owned(uid), 11: owned(other)}); !maps.Equal(r.Latest(), want) {
		t.Errorf("got %v while it hangs, want %v", r.Latest(), want)
	}
	for range 10 {
		r.Refresh()
	}
	if got := r.lookups.count("lookup"); got != 1 {
		t.Errorf("%d lookups have come back", got)
	}
	release()
	r.until(source.ReasonNone)
	r.expect(map[int]dra.Owner{10: owned(uid), 11: {}}, true, source.ReasonNone) // the pipe was empty
}

// TestStopsWhileAReadHangs would wait for ever if Run did.
func TestStopsWhileAReadHangs(t *testing.T) {
	r := runFor(t, 20*time.Millisecond, inPod(10, uid))
	r.until(source.ReasonNone)
	release := r.hang("10/stat")
	r.Refresh()
	r.until(source.ReasonTimeout)
	r.stop()
	release() // or its goroutine would be left behind, as it should be
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	r := run(t, inPod(10, uid), inPod(11, other))
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for range 50 {
				r.Refresh()
				for pid, owner := range r.Latest() {
					if owner != owned(uid) && owner != owned(other) {
						t.Errorf("%d is %+v's", pid, owner)
					}
				}
				if !r.Status().Up {
					t.Error("it is down")
				}
				select {
				case <-r.Changed():
				default:
				}
			}
		})
	}
	users.Wait()
}
