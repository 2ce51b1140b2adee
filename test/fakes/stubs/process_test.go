//go:build cgo

package stubs

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// listed writes a list of processes down, in its order.
func listed(list []nvml.ProcessInfo, ret nvml.Return) string {
	var text []string
	for _, p := range list {
		text = append(text, fmt.Sprintf("%d:%d:%d/%d", p.Pid, int64(p.UsedGpuMemory), int32(p.GpuInstanceId), int32(p.ComputeInstanceId)))
	}
	if ret != nvml.SUCCESS {
		text = append(text, ret.String())
	}
	return strings.Join(text, " ")
}

// sampled writes down what processes did since a time.
func sampled(t *testing.T, d nvml.Device, since uint64) (text string, newest uint64) {
	t.Helper()
	samples, ret := d.GetProcessUtilization(since)
	if ret != nvml.SUCCESS {
		return ret.String(), since
	}
	var all []string
	for _, s := range samples {
		if s.TimeStamp <= since || s.TimeStamp > uint64(time.Now().UnixMicro()) {
			t.Errorf("a sample since %d is of %d", since, s.TimeStamp)
		}
		newest = max(newest, s.TimeStamp)
		all = append(all, fmt.Sprintf("%d:%d", s.Pid, s.SmUtil))
	}
	return strings.Join(all, " "), newest
}

// sleeping starts a process that does nothing.
func sleeping(t *testing.T) (pid int, end func()) {
	t.Helper()
	process := exec.Command("sleep", "600")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		_ = process.Process.Kill()
		_ = process.Wait() // returns that it was killed
	}
	t.Cleanup(end)
	return process.Process.Pid, end
}

func TestProcesses(t *testing.T) {
	n := NewNode(t, 2)
	library := open(t, n)
	one, other := gpu(t, library, 0), gpu(t, library, 1)
	self, parent := os.Getpid(), os.Getppid()
	child, end := sleeping(t)
	n.SetProcesses(0,
		Process{PID: self, Memory: 1 << 30, Utilization: 30},
		Process{PID: parent, Kind: Graphics, Memory: -1},
		Process{PID: child, Kind: MPS, Memory: 1 << 20, Utilization: 50},
		Process{PID: self, Kind: Graphics, Memory: 1 << 29, Utilization: 1},
		Process{PID: 1 << 22, Memory: 1, Utilization: 9}, // above every pid
	)
	for what, test := range map[string]struct{ got, want string }{
		"compute":   {listed(one.GetComputeRunningProcesses()), fmt.Sprintf("%d:1073741824:-1/-1", self)},
		"graphics":  {listed(one.GetGraphicsRunningProcesses()), fmt.Sprintf("%d:-1:-1/-1 %d:536870912:-1/-1", parent, self)},
		"mps":       {listed(one.GetMPSComputeRunningProcesses()), fmt.Sprintf("%d:1048576:-1/-1", child)},
		"other GPU": {listed(other.GetComputeRunningProcesses()), ""},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s, want %s", what, test.got, test.want)
		}
	}
	text, newest := sampled(t, one, 0)
	if want := fmt.Sprintf("%d:30 %d:50 %d:1", self, child, self); text != want {
		t.Errorf("samples %s, want %s", text, want)
	}
	if text, _ := sampled(t, one, newest); strings.Count(text, ":") != 3 {
		t.Errorf("later samples %s", text)
	}
	if text, _ := sampled(t, one, uint64(time.Now().Add(time.Hour).UnixMicro())); text != nvml.ERROR_NOT_FOUND.String() {
		t.Errorf("samples of the future: %s", text)
	}
	if text, _ := sampled(t, other, 0); text != nvml.ERROR_NOT_FOUND.String() {
		t.Errorf("samples of the other GPU: %s", text)
	}
	end()
	if got := listed(one.GetMPSComputeRunningProcesses()); got != "" {
		t.Errorf("a process that has ended is listed: %s", got)
	}
	n.SetProcesses(0)
	if got := listed(one.GetComputeRunningProcesses()); got != "" {
		t.Errorf("processes that are not set any more: %s", got)
	}
}

// SetProcesses is atomic: the first and the last of many processes are always
// of the same moment.
func TestProcessesChangeAtOnce(t *testing.T) {
	n := NewNode(t, 1)
	device := gpu(t, open(t, n), 0)
	set := func(memory int64) {
		end := Process{PID: os.Getpid(), Kind: Graphics, Memory: memory}
		between := slices.Repeat([]Process{{PID: os.Getpid()}}, 2000)
		n.SetProcesses(0, append(append([]Process{end}, between...), end)...)
	}
	set(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			list, ret := device.GetGraphicsRunningProcesses()
			if ret != nvml.SUCCESS || len(list) != 2 || list[0] != list[1] {
				t.Errorf("the ends of the list are %v, %v", list, ret)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for memory := range int64(20) {
		set(memory)
	}
	close(stop)
	<-stopped
}

func TestProcessFaults(t *testing.T) {
	n := NewNode(t, 1)
	device := gpu(t, open(t, n), 0)
	n.SetProcesses(0, Process{PID: os.Getpid(), Memory: 1 << 30, Utilization: 30})
	for function, ask := range map[string]func() nvml.Return{
		"nvmlDeviceGetComputeRunningProcesses_v3":    func() nvml.Return { _, ret := device.GetComputeRunningProcesses(); return ret },
		"nvmlDeviceGetGraphicsRunningProcesses_v3":   func() nvml.Return { _, ret := device.GetGraphicsRunningProcesses(); return ret },
		"nvmlDeviceGetMPSComputeRunningProcesses_v3": func() nvml.Return { _, ret := device.GetMPSComputeRunningProcesses(); return ret },
		"nvmlDeviceGetProcessUtilization":            func() nvml.Return { _, ret := device.GetProcessUtilization(0); return ret },
	} {
		n.Set(0, "return."+function, "NO_PERMISSION")
		expect(t, function, ask(), nvml.ERROR_NO_PERMISSION)
		n.Unset(0, "return."+function)
		expect(t, function+" again", ask(), nvml.SUCCESS)
	}
}

// A divided GPU has no utilization of its processes.
func TestProcessesOfDividedGPU(t *testing.T) {
	n := NewNode(t, 1)
	device := gpu(t, open(t, n), 0)
	n.CreateMIG(0, "3g.40gb", 0)
	n.SetProcesses(0, Process{PID: os.Getpid(), Memory: 1 << 30, Utilization: 30})
	if text, _ := sampled(t, device, 0); text != nvml.ERROR_NOT_SUPPORTED.String() {
		t.Errorf("its samples: %s", text)
	}
	part, ret := device.GetMigDeviceHandleByIndex(0)
	must(t, ret)
	if got := listed(part.GetComputeRunningProcesses()); got != "" {
		t.Errorf("the MIG device lists %s", got)
	}
}
