//go:build linux

package cgroup

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
	"github.com/dra-exporter/dra-exporter/collector/clock"
)

const (
	benchDevices   = 8
	benchProcesses = 32 // on each
)

// BenchmarkResolve measures the lookup after a sample of 8 devices with 32
// processes each: when all are new, and in the steady state. The steady figure
// includes what expires in the cache, because the clock advances by a second.
func BenchmarkResolve(b *testing.B) {
	b.Run("fixture", func(b *testing.B) {
		dir := filepath.Join(b.TempDir(), "proc")
		var processes []simulated.Process
		for i := range benchDevices * benchProcesses {
			processes = append(processes, inPod(1000+i, fmt.Sprintf("%08x%s", i%benchProcesses, uid[8:])))
		}
		must(b, simulated.Write(dir, processes))
		pids := make([]int, len(processes))
		for i, p := range processes {
			pids[i] = p.PID
		}
		benchmark(b, dir, pids)
	})
	b.Run("real", func(b *testing.B) {
		pids := make([]int, benchDevices*benchProcesses)
		for i := range pids {
			sleeper := exec.Command("sleep", "600")
			must(b, sleeper.Start())
			b.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
			pids[i] = sleeper.Process.Pid
		}
		benchmark(b, DefaultProcfs, pids)
	})
}

func benchmark(b *testing.B, procfs string, pids []int) {
	now := clock.System()()
	list := make([]Seen, len(pids))
	ask := func(r *resolver) {
		now = now.Add(time.Second)
		for i, pid := range pids {
			list[i] = Seen{pid, now}
		}
		if found := r.resolve(list); found.err != nil || len(found.owners) != len(pids) || found.owners[pids[0]].Gone {
			b.Fatalf("got %+v", found)
		}
	}
	fresh := func() *resolver {
		r := newResolver(procfs, func() clock.Instant { return now })
		up, err := uptime()
		must(b, err)
		began := now
		r.uptime = func() (time.Duration, error) { return up + now.Since(began), nil }
		return r
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		r := fresh()
		defer processor(b)()
		for b.Loop() {
			clear(r.known)
			ask(r)
		}
	})
	b.Run("steady", func(b *testing.B) {
		b.ReportAllocs()
		r := fresh()
		ask(r)
		defer processor(b)()
		for b.Loop() {
			ask(r)
		}
	})
}

// processor reports the processor time of one lookup, because wall clock time
// depends on what else the machine does.
func processor(b *testing.B) (end func()) {
	used := func() time.Duration {
		var usage syscall.Rusage
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkThreads is why a remembered process is known by its folder: to read
// its stat file costs the more the more threads it has.
func BenchmarkThreads(b *testing.B) {
	for _, threads := range []int{0, 300} {
		pid, end := child(b, threads)
		folder := fmt.Sprintf("/proc/%d", pid)
		b.Run(fmt.Sprintf("look/%d", threads), func(b *testing.B) {
			f := newFiles()
			for b.Loop() {
				if _, err := f.readProcess(folder); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("identify/%d", threads), func(b *testing.B) {
			for b.Loop() {
				if _, err := identify(folder); err != nil {
					b.Fatal(err)
				}
			}
		})
		end()
	}
}
