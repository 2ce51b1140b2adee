//go:build linux

package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestMain(m *testing.M) {
	if os.Getenv(sleeper) != "" {
		sleep()
	}
	goleak.VerifyTestMain(m)
}

// sleeper is the variable that makes a process of this test one that only
// sleeps, with as many threads more as it says.
const sleeper = "CGROUP_TEST_SLEEPER"

func sleep() {
	threads, _ := strconv.Atoi(os.Getenv(sleeper))
	for range threads {
		go func() {
			runtime.LockOSThread()
			_ = syscall.Nanosleep(&syscall.Timespec{Sec: 600}, nil)
		}()
	}
	fmt.Println("ready")
	time.Sleep(10 * time.Minute)
	os.Exit(0)
}

// child starts a process that sleeps until the returned function ends it.
func child(t testing.TB, threads int) (pid int, end func()) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", sleeper, threads))
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	ended := false
	end = func() {
		if !ended {
			_ = command.Process.Kill()
			_ = command.Wait()
			ended = true
		}
	}
	t.Cleanup(end)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("start a child: %v", err)
	}
	return command.Process.Pid, end
}

// lookUp resolves one process of the real procfs.
func lookUp(t *testing.T, r *resolver, pid int, at clock.Instant) dra.Owner {
	t.Helper()
	found := r.resolve([]Seen{{pid, at}})
	owner, ok := found.owners[pid]
	if found.err != nil || found.unreadable || !ok {
		t.Fatalf("got %+v", found)
	}
	return owner
}

// here returns the owner of processes that this test starts.
func here(t *testing.T) dra.Owner {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	must(t, err)
	owner, err := decodeOwner(text)
	must(t, err)
	return owner
}

// TestRealProcess looks up a process before it starts, while it runs, and after
// it has ended.
func TestRealProcess(t *testing.T) {
	now := clock.System()
	before := now()
	time.Sleep(5 * tick)
	pid, end := child(t, 3)
	r := newResolver(DefaultProcfs, now)
	if got := lookUp(t, r, pid, before); got != gone {
		t.Errorf("begun after it was seen: %+v", got)
	}
	for range 3 {
		if got := lookUp(t, r, pid, now()); got != here(t) {
			t.Errorf("got %+v, want %+v", got, here(t))
		}
	}
	known := r.known[pid]
	end()
	if got := lookUp(t, r, pid, now()); got != gone {
		t.Errorf("ended: %+v", got)
	}
	if known.start <= 0 || known.ended {
		t.Errorf("got %+v", known)
	}
}

// TestRealThread looks up a thread by its own id.
func TestRealThread(t *testing.T) {
	pid, _ := child(t, 3)
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	must(t, err)
	r := newResolver(DefaultProcfs, clock.System())
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		must(t, err)
		if got := lookUp(t, r, tid, r.now()); got != here(t) {
			t.Errorf("thread %d: got %+v, want %+v", tid, got, here(t))
		}
	}
	if len(tasks) < 4 {
		t.Errorf("only %d threads", len(tasks))
	}
}

// TestRealZombie has ended and not been reaped.
func TestRealZombie(t *testing.T) {
	pid, _ := child(t, 0)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	r := newResolver(DefaultProcfs, clock.System())
	for deadline := time.Now().Add(30 * time.Second); lookUp(t, newResolver(DefaultProcfs, r.now), pid, r.now()) != gone; {
		if time.Now().After(deadline) {
			t.Fatal("it never ends")
		}
	}
}

// TestRealIdentity is what remembering rests on: a process's folder stays the
// same one, and that of the next process with its pid is another.
func TestRealIdentity(t *testing.T) {
	pid, end := child(t, 0)
	folder := fmt.Sprintf("/proc/%d", pid)
	first, err := identify(folder)
	must(t, err)
	for range 100 {
		if again, err := identify(folder); err != nil || again != first {
			t.Fatalf("got %+v, %v after %+v", again, err, first)
		}
	}
	end()
	if _, err := identify(folder); !errors.Is(err, errGone) {
		t.Fatalf("got %v", err)
	}
	if !reuse(t, pid) {
		t.Skip("a pid can only be chosen by who may write to /proc/sys/kernel/ns_last_pid")
	}
	if second, err := identify(folder); err != nil || second == first {
		t.Errorf("another process with the same pid has the identity %+v, %v", second, err)
	}
}

// reuse starts a process with a certain pid, if that is possible.
func reuse(t *testing.T, pid int) bool {
	t.Helper()
	for range 20 {
		if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0) != nil {
			return false
		}
		if got, end := child(t, 0); got == pid {
			return true
		} else if end(); got != pid {
			continue
		}
	}
	return false
}

// TestRealReuse has the kernel give a remembered pid to another process.
func TestRealReuse(t *testing.T) {
	r := newResolver(DefaultProcfs, clock.System())
	pid, end := child(t, 0)
	seen := r.now()
	lookUp(t, r, pid, seen)
	end()
	time.Sleep(5 * tick)
	if !reuse(t, pid) {
		t.Skip("a pid can only be chosen by who may write to /proc/sys/kernel/ns_last_pid")
	}
	if got := lookUp(t, r, pid, seen); got != gone {
		t.Errorf("the pid is another's: got %+v", got)
	}
	if got := lookUp(t, r, pid, r.now()); got != here(t) {
		t.Errorf("got %+v, want %+v", got, here(t))
	}
}

// TestRealCgroup puts a process where the kubelet would.
func TestRealCgroup(t *testing.T) {
	root := ""
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil {
			root = mount
		}
	}
	name := "dra-exporter-test-pod" + sysd + ".slice"
	pod := filepath.Join(root, name)
	container := filepath.Join(pod, "cri-containerd-"+box+".scope")
	if root == "" || os.MkdirAll(container, 0o755) != nil {
		t.Skip("control groups can only be made by root, where version 2 is mounted")
	}
	t.Cleanup(func() { _, _ = syscall.Rmdir(container), syscall.Rmdir(pod) })
	pid, end := child(t, 0)
	t.Cleanup(end)
	r := newResolver(DefaultProcfs, clock.System())
	if got := lookUp(t, r, pid, r.now()); got != here(t) {
		t.Errorf("got %+v, want %+v", got, here(t))
	}
	if err := os.WriteFile(filepath.Join(container, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Skipf("processes cannot be moved here: %v", err)
	}
	if got := lookUp(t, newResolver(DefaultProcfs, r.now), pid, r.now()); got != owned(uid) {
		t.Errorf("got %+v, want %+v", got, owned(uid))
	}
	end()
}
