package simulated

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read is the tree as another library reads it.
func read(t *testing.T, dir string) []Process {
	t.Helper()
	tree, err := procfs.NewFS(dir)
	must(t, err)
	all, err := tree.AllProcs()
	must(t, err)
	var found []Process
	for _, p := range all {
		stat, err := p.Stat()
		must(t, err)
		cgroups, err := p.Cgroups()
		must(t, err)
		if len(cgroups) != 1 || stat.PID != p.PID || stat.NumThreads != 1 || stat.State != "S" {
			t.Errorf("got %v, %+v", cgroups, stat)
		}
		found = append(found, Process{p.PID, stat.Comm, time.Duration(stat.Starttime) * tick, cgroups[0].Path})
	}
	slices.SortFunc(found, func(a, b Process) int { return a.PID - b.PID })
	return found
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "proc")
	first := Process{1, "init", 0, "/init.scope"}
	train := Process{20, "python) S (3", 90 * time.Second, InContainer("0f3c2a51-7d1e-4c6b-9a52-3b8a4d1f6e70", "ab")}
	moved, reused := train, train
	moved.Cgroup, reused.Start = "/system.slice/x.service", 91*time.Second
	for _, step := range []struct{ write, want []Process }{
		{nil, []Process{first}},
		{[]Process{train, {PID: 30}}, []Process{first, train, {30, "process", 0, ""}}},
		{[]Process{train}, []Process{first, train}},
		{[]Process{moved}, []Process{first, moved}},
		{[]Process{reused}, []Process{first, reused}},
		{[]Process{{1, "systemd", tick, "/"}}, []Process{{1, "systemd", tick, "/"}}},
	} {
		must(t, Write(dir, step.write))
		if got := read(t, dir); !slices.Equal(got, step.want) {
			t.Errorf("got %+v, want %+v", got, step.want)
		}
	}
	if want := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f3c2a51_7d1e_4c6b_9a52_3b8a4d1f6e70.slice/cri-containerd-ab.scope"; train.Cgroup != want {
		t.Errorf("got %q, want %q", train.Cgroup, want)
	}
}

// TestWhatStays leaves alone what is as it should be, and what is not its own.
func TestWhatStays(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "uptime"), []byte("1 1\n"), 0o644))
	must(t, os.Mkdir(filepath.Join(dir, making+"left"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, ending+"7"), 0o755))
	must(t, Write(dir, []Process{{PID: 20}}))
	before, err := os.Stat(filepath.Join(dir, "20"))
	must(t, err)
	must(t, Write(dir, []Process{{PID: 20}}))
	after, err := os.Stat(filepath.Join(dir, "20"))
	must(t, err)
	if !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
		t.Error("the files of the process are rewritten")
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 3 {
		t.Errorf("got %v, want two processes and what is not ours", entries)
	}
}

// TestAtOnce has a reader see whole processes only.
func TestAtOnce(t *testing.T) {
	dir := t.TempDir()
	must(t, Write(dir, nil))
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for pid := 20; pid < 25; pid++ {
				path := filepath.Join(dir, strconv.Itoa(pid))
				before, _ := os.Stat(path)
				names, err := os.ReadDir(path)
				after, _ := os.Stat(path)
				if err == nil && before != nil && after != nil && os.SameFile(before, after) && len(names) < 2 {
					t.Errorf("process %d has %v", pid, names)
				}
			}
		}
	}()
	for range 40 {
		must(t, Write(dir, []Process{{PID: 20}, {PID: 22, Cgroup: "/a"}, {PID: 24}}))
		must(t, Write(dir, []Process{{PID: 21}, {PID: 22, Cgroup: "/b"}, {PID: 24, Start: tick}}))
	}
	close(stop)
	<-done
}

func TestCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	if err := Write(file, nil); err == nil {
		t.Error("a file is no folder")
	}
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "20"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "20", "stat"), 0o755))
	if err := Write(dir, []Process{{PID: 20}}); err == nil {
		t.Error("the stat is no file")
	}
}
