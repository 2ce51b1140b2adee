//go:build cgo && linux

package nvml

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// Processes come through the real binding, and change from one read to the
// next.
func TestStubProcesses(t *testing.T) {
	node, from := stubbed(t, 1, Options{Processes: always})
	r := readers(t, from)[0]
	expect := func(want string) {
		t.Helper()
		if got := processText(r.Read(t.Context(), device.Fast)); got != want {
			t.Errorf("the processes are %s, want %s", got, want)
		}
	}
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	self, child := os.Getpid(), sleep.Process.Pid
	expect("")
	node.SetProcesses(0, stubs.Process{PID: self, Memory: 1000, Utilization: 30},
		stubs.Process{PID: child, Kind: stubs.MPS, Memory: -1, Utilization: 50}, stubs.Process{PID: 1 << 22, Utilization: 9})
	both := []string{fmt.Sprintf("%d:1000:0.3", self), fmt.Sprintf("%d:-1:0.5:proxied", child)}
	if child < self {
		slices.Reverse(both)
	}
	expect(strings.Join(both, " "))
	_ = sleep.Process.Kill()
	_ = sleep.Wait() // says that it was killed
	node.SetProcesses(0, stubs.Process{PID: self, Kind: stubs.Graphics, Memory: 2000})
	time.Sleep(samplePeriod)
	expect(fmt.Sprintf("%d:2000:0", self))
	node.Set(0, "return.nvmlDeviceGetProcessUtilization", "NOT_SUPPORTED")
	expect(fmt.Sprintf("%d:2000:-1", self))
	node.CreateMIG(0, "1g.10gb", -1)
	expect("unknown")
}

// Two thousand processes are listed, from the first read on, and leave nothing
// behind.
func TestStubManyProcesses(t *testing.T) {
	node, from := stubbed(t, 1, Options{Processes: always})
	r := readers(t, from)[0]
	many := make([]stubs.Process, 2000)
	for i := range many {
		many[i] = stubs.Process{PID: os.Getpid(), Memory: int64(i), Utilization: 1}
	}
	node.SetProcesses(0, many...)
	for range 3 {
		observations, err := r.Read(t.Context(), device.Fast)
		if err != nil || len(observations[0].Processes) != 2000 {
			t.Fatalf("listed %d processes, and %v", len(observations[0].Processes), err)
		}
	}
	if kept := len(r.(*reader).processes.utilization.samples); kept != 1 {
		t.Errorf("%d samples are kept of one process", kept)
	}
}

// A call that hangs leaves the other GPUs' processes as they are.
func TestStubHangsListingProcesses(t *testing.T) {
	node, from := stubbed(t, 2, Options{Processes: always})
	found := readers(t, from)
	node.SetProcesses(0, stubs.Process{PID: os.Getpid(), Memory: 1})
	node.SetProcesses(1, stubs.Process{PID: os.Getpid(), Memory: 1})
	node.Set(0, "hang.nvmlDeviceGetMPSComputeRunningProcesses_v3", "1")
	texts := make(chan string)
	for _, r := range found {
		go func() { texts <- processText(r.Read(t.Context(), device.Fast)) }()
	}
	want := fmt.Sprintf("%d:1:0", os.Getpid())
	if got := <-texts; got != want {
		t.Errorf("the GPU that is well says %s", got)
	}
	select {
	case got := <-texts:
		t.Errorf("the call that hangs came back with %s", got)
	case <-time.After(50 * time.Millisecond):
	}
	node.Unset(0, "hang.nvmlDeviceGetMPSComputeRunningProcesses_v3")
	if got := <-texts; got != want {
		t.Errorf("the GPU that hung says %s", got)
	}
}
