package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cuda"
)

// How long work takes on the stub, by its documentation.
const (
	launchSeconds = 2e-6
	threadRate    = 4e11 // repetitions of all threads per second
	copyRate      = 5e10 // bytes per second
)

const mebibyte = 1 << 20

// Each kind does the work that it reports: the time that the stub simulates
// for it is the time that the events have measured, and it is the part of the
// periods that was asked for.
func TestKinds(t *testing.T) {
	const duty, period = 0.4, 0.02
	for kind, simulated := range map[string]func(ready, done event) float64{
		"compute": func(ready, done event) float64 {
			perIteration := float64(ready.Blocks) * 256 * 64 * 2
			return done.Kernels*launchSeconds + whole(t, done.FLOPs/perIteration)*float64(ready.Blocks)*256/threadRate
		},
		"tensor": func(ready, done event) float64 {
			perIteration := float64(ready.Blocks) * 256 / 32 * 8 * 2 * 16 * 8 * 16
			return done.Kernels*launchSeconds + whole(t, done.FLOPs/perIteration)*float64(ready.Blocks)*256/threadRate
		},
		"memory": func(_, done event) float64 {
			if done.ReadBytes != done.WrittenBytes {
				t.Errorf("%.0f bytes are read and %.0f written", done.ReadBytes, done.WrittenBytes)
			}
			return done.Kernels*launchSeconds + whole(t, done.ReadBytes/16)/threadRate
		},
		"copy": func(_, done event) float64 {
			if done.CopiedBytes != done.Copies*mebibyte {
				t.Errorf("%.0f copies of 1 MiB are %.0f bytes", done.Copies, done.CopiedBytes)
			}
			return done.CopiedBytes / copyRate
		},
		"idle": nil,
	} {
		t.Run(kind, func(t *testing.T) {
			p := startLoad(t, stubs.NewNode(t, 1), nil, "--kind="+kind, "--duty=40", "--period=20ms", "--memory=64MiB", "--copy-chunk=1MiB")
			ready := p.until("ready", nil)
			if ready.PID != p.command.Process.Pid || ready.HeldBytes != 64*mebibyte || ready.SMCount != 132 || ready.Blocks != 4*132 ||
				ready.PeriodSeconds != period || !strings.HasPrefix(ready.UUID, "GPU-") || ready.CUDAVersion != "13.0" {
				t.Errorf("it begins with %+v", ready)
			}
			p.until("progress", func(e event) bool { return e.Periods >= 10 })
			_ = p.in.Close()
			done := p.until("done", nil)
			p.succeeds()
			if done.Reason != "end of standard input" || done.HeldBytes != 64*mebibyte {
				t.Errorf("it ends with %+v", done)
			}
			if simulated == nil {
				if work := done.Kernels + done.Copies + done.Busy + done.FLOPs + done.ReadBytes + done.WrittenBytes + done.CopiedBytes; work != 0 {
					t.Errorf("idle has done work: %+v", done)
				}
				return
			}
			if want := simulated(ready, done); math.Abs(done.Busy-want) > 1e-4*want {
				t.Errorf("%+v should have taken %f s", done, want)
			}
			// The last period may have been cut short, and its part been made up
			// for by no other.
			want := done.Periods * period * duty
			if math.Abs(done.Busy-want) > period*duty+1e-4 || done.Busy > done.Elapsed {
				t.Errorf("busy for %f s of %.0f periods and %f s, not for %f s", done.Busy, done.Periods, done.Elapsed, want)
			}
		})
	}
}

// whole fails unless a number is whole.
func whole(t *testing.T, number float64) float64 {
	t.Helper()
	if number != math.Trunc(number) || number == 0 {
		t.Errorf("%f is not whole", number)
	}
	return number
}

// Totals never fall from one event to the next.
func TestProgressNeverFalls(t *testing.T) {
	p := startLoad(t, stubs.NewNode(t, 1), nil, "--kind=memory", "--period=10ms", "--memory=64MiB")
	before := p.until("progress", nil)
	for range 10 {
		now := p.until("progress", nil)
		if now.Periods <= before.Periods || now.Kernels <= before.Kernels || now.Busy <= before.Busy || now.ReadBytes <= before.ReadBytes || now.Elapsed <= before.Elapsed {
			t.Errorf("%+v follows %+v", now, before)
		}
		before = now
	}
}

// A kernel that writes to an address that is not allocated is an error of the
// device, which is what the kind is for.
func TestFault(t *testing.T) {
	p := startLoad(t, stubs.NewNode(t, 1), nil, "--kind=fault")
	p.until("ready", nil)
	faulted := p.until("faulted", nil)
	p.succeeds()
	if faulted.Code != 700 || faulted.Name != "CUDA_ERROR_ILLEGAL_ADDRESS" || faulted.Call != "cuStreamSynchronize" || faulted.Kernels != 1 {
		t.Errorf("it ends with %+v", faulted)
	}
}

func TestDurationEndsIt(t *testing.T) {
	p := startLoad(t, stubs.NewNode(t, 1), nil, "--kind=idle", "--duration=30ms")
	done := p.until("done", nil)
	p.succeeds()
	if done.Reason != "duration" || done.Elapsed < 0.03 {
		t.Errorf("it ends with %+v", done)
	}
}

func TestSignalEndsIt(t *testing.T) {
	p := startLoad(t, stubs.NewNode(t, 1), nil, "--kind=compute")
	p.until("progress", nil)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	done := p.until("done", nil)
	p.succeeds()
	if done.Reason != "signal: terminated" || done.Busy == 0 {
		t.Errorf("it ends with %+v", done)
	}
}

// A call of the driver that does not return ends the load with an error that
// names it.
func TestHangingCall(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.SetNode("cuda.hang.cuStreamSynchronize", "1")
	p := startLoad(t, node, nil, "--kind=compute", "--grace=20ms")
	p.until("ready", nil)
	_ = p.in.Close()
	if failure := p.fails(); failure.Error != "cuStreamSynchronize has not returned within 20ms after the end (end of standard input)" {
		t.Errorf("the error is %q", failure.Error)
	}
}

// Devices are chosen by CUDA's index, which CUDA_VISIBLE_DEVICES changes, or by
// UUID.
func TestDevices(t *testing.T) {
	node := stubs.NewNode(t, 3)
	uuids := []string{"GPU-00000000-aaaa-bbbb-cccc-111111111111", "GPU-00000001-aaaa-bbbb-cccc-111111111111", "GPU-00000002-aaaa-bbbb-cccc-111111111111"}
	for i, uuid := range uuids {
		node.Set(i, "uuid", uuid)
	}
	for _, c := range []struct {
		device      string
		environment []string
		uuid        int
		ordinal     int
	}{
		{"0", nil, 0, 0},
		{"2", nil, 2, 2},
		{uuids[1], nil, 1, 0},
		{strings.ToUpper(uuids[1]), nil, 1, 0},
		{strings.ToUpper(uuids[1]), []string{"CUDA_VISIBLE_DEVICES=2,1"}, 1, 1},
		{"0", []string{"CUDA_VISIBLE_DEVICES=" + uuids[2] + "," + uuids[0]}, 2, 0},
	} {
		p := startLoad(t, node, c.environment, "--kind=idle", "--device="+c.device)
		ready := p.until("ready", nil)
		_ = p.in.Close()
		p.until("done", nil)
		p.succeeds()
		if ready.UUID != uuids[c.uuid] || ready.Device != c.ordinal || !strings.HasPrefix(ready.PCIBusID, "0000:") {
			t.Errorf("--device=%s with %v is %+v", c.device, c.environment, ready)
		}
	}
	unknown := "GPU-ffffffff-aaaa-bbbb-cccc-111111111111"
	for _, c := range []struct {
		device      string
		environment []string
		message     string
	}{
		{"3", nil, `--device: no CUDA device "3"; this process may use: ` + strings.Join(uuids, ", ")},
		{unknown, []string{"CUDA_VISIBLE_DEVICES=2,0"}, `--device: no CUDA device "` + unknown + `"; this process may use: ` + uuids[2] + ", " + uuids[0]},
		{unknown, nil, "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"},
		{"-1", nil, "--device=-1: must be an index or a UUID (GPU-… or MIG-…)"},
		{"0x0", nil, "--device=0x0: must be an index or a UUID (GPU-… or MIG-…)"},
	} {
		if failure := startLoad(t, node, c.environment, "--kind=idle", "--device="+c.device).fails(); failure.Error != c.message {
			t.Errorf("--device=%s is %q", c.device, failure.Error)
		}
	}
}

// A MIG device is found by its UUID, which a process has to name before CUDA
// shows it any but the first.
func TestMIGDevices(t *testing.T) {
	node := stubs.NewNode(t, 1)
	ready := func(device string) event {
		p := startLoad(t, node, nil, "--kind=compute", "--memory=16MiB", "--device="+device)
		ready := p.until("ready", nil)
		p.until("progress", nil)
		_ = p.in.Close()
		p.until("done", nil)
		p.succeeds()
		return ready
	}
	first, _ := node.CreateMIG(0, "1g.10gb", 0)
	one := ready("0")
	node.CreateMIG(0, "3g.40gb", -1)
	node.DestroyMIG(0, first)
	three := ready("0")
	node.CreateMIG(0, "1g.10gb", 0)
	if again := ready(three.UUID); again.UUID != three.UUID || again.SMCount != three.SMCount || again.TotalBytes != three.TotalBytes {
		t.Errorf("%s is %+v", three.UUID, again)
	}
	if again := ready(one.UUID); again.UUID != one.UUID || !strings.HasPrefix(again.UUID, "MIG-") || !strings.HasSuffix(again.Name, " MIG 1g.10gb") {
		t.Errorf("%s is %+v", one.UUID, again)
	}
	if one.SMCount >= three.SMCount || one.TotalBytes >= three.TotalBytes || one.UUID == three.UUID {
		t.Errorf("the MIG devices are %+v and %+v", one, three)
	}
}

// At most half of what is free is held.
func TestMemoryBound(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.Set(0, "memory.total", fmt.Sprint(200*mebibyte))
	node.Set(0, "memory.reserved", fmt.Sprint(20*mebibyte))
	node.Set(0, "memory.used", fmt.Sprint(80*mebibyte))
	p := startLoad(t, node, nil, "--kind=idle", "--memory=50MiB")
	if ready := p.until("ready", nil); ready.HeldBytes != 50*mebibyte || ready.FreeBytes != 100*mebibyte || ready.TotalBytes != 200*mebibyte {
		t.Errorf("it begins with %+v", ready)
	}
	failure := startLoad(t, node, nil, "--kind=idle", fmt.Sprintf("--memory=%d", 50*mebibyte+1)).fails()
	if failure.Error != "--memory=52428801: must be at most half of the 104857600 bytes that are free" {
		t.Errorf("the error is %q", failure.Error)
	}
}

func TestWrongFlags(t *testing.T) {
	node := stubs.NewNode(t, 1)
	for flag, message := range map[string]string{
		"--kind=heat":          "--kind=heat: must be one of compute, memory, tensor, copy, idle, fault",
		"--duty=0":             "--duty=0: must be 1 to 100 percent",
		"--duty=101":           "--duty=101: must be 1 to 100 percent",
		"--period=9ms":         "--period=9ms: must be 10ms to 1s",
		"--period=2s":          "--period=2s: must be 10ms to 1s",
		"--memory=1MiB":        "--memory=1048576: must be at least 16777216 bytes",
		"--memory=much":        `invalid value "much" for flag -memory: must be a number of bytes, such as 67108864 or 64MiB`,
		"--memory=9999999TiB":  `invalid value "9999999TiB" for flag -memory: must be less than 8 EiB`,
		"--duration=-1s":       "--duration=-1s: must not be negative",
		"--copy-chunk=0":       "--copy-chunk=0: must be 1 to 1073741824 bytes",
		"--copy-chunk=2GiB":    "--copy-chunk=2147483648: must be 1 to 1073741824 bytes",
		"--blocks-per-sm=33":   "--blocks-per-sm=33: must be 1 to 32",
		"--interval=0s":        "--interval=0s: must be positive",
		"--grace=0s":           "--grace=0s: must be positive",
		"--device=":            "--device=: must be an index or a UUID (GPU-… or MIG-…)",
		"--library=":           "--library: must be a path or a soname",
		"--heat=1":             "flag provided but not defined: -heat",
		"now":                  `unexpected argument "now"`,
		"--library=/no/such.1": "--library=/no/such.1: open the CUDA driver: /no/such.1: cannot open shared object file: No such file or directory",
	} {
		if failure := startLoad(t, node, nil, flag).fails(); failure.Error != message {
			t.Errorf("%s is %q", flag, failure.Error)
		}
	}
	two := startLoad(t, node, nil, "--kind=copy", "--memory=16MiB", "--copy-chunk=32MiB", "--duty=0").fails()
	if two.Error != "--duty=0: must be 1 to 100 percent\n--copy-chunk=33554432: must not be larger than --memory=16777216" {
		t.Errorf("two wrong flags are %q", two.Error)
	}
	small := startLoad(t, node, nil, "--kind=memory", "--memory=16MiB", "--blocks-per-sm=32").fails()
	if small.Error != "--memory=16777216: must be at least 34603008 bytes for a grid of 4224 blocks" {
		t.Errorf("too little memory for a grid is %q", small.Error)
	}
}

// A library that is no libcuda is named with the function that it lacks.
func TestOtherLibrary(t *testing.T) {
	failure := startLoad(t, stubs.NewNode(t, 1), nil, "--library="+stubs.Build(t).NVML).fails()
	if !strings.Contains(failure.Error, "find cuInit in the CUDA driver") {
		t.Errorf("the error is %q", failure.Error)
	}
}

// Tensor cores of the kernel's shape are not in every GPU.
func TestTensorNeedsItsCapability(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.Set(0, "cuda.major", "7")
	node.Set(0, "cuda.minor", "5")
	failure := startLoad(t, node, nil, "--kind=tensor").fails()
	if failure.Error != "--kind=tensor: the device has compute capability 7.5, and the kernel needs 8.0" {
		t.Errorf("the error is %q", failure.Error)
	}
}

// Every call that fails is named with its error.
func TestPlantedErrors(t *testing.T) {
	node := stubs.NewNode(t, 1)
	for _, call := range cuda.Functions() {
		if call == "cuGetErrorName" || call == "cuGetErrorString" {
			continue
		}
		p := startLoad(t, node, []string{"DRA_STUB_CUDA_RETURN=" + call + "=999"}, "--kind=compute", "--memory=16MiB")
		if slices.Contains([]string{"cuMemFree_v2", "cuEventDestroy_v2", "cuStreamDestroy_v2", "cuCtxDestroy_v2"}, call) {
			p.until("progress", nil)
			_ = p.in.Close()
		}
		failure := p.fails()
		if failure.Call != call || failure.Code != 999 || failure.Name != "CUDA_ERROR_UNKNOWN" || failure.Error != call+": CUDA_ERROR_UNKNOWN (999): unknown error" {
			t.Errorf("%s fails with %+v", call, failure)
		}
	}
	for plan, message := range map[string]string{
		"cuModuleLoadDataEx=218":   "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): a PTX JIT compilation failed: ptxas application ptx input, line 1; error: a planted error",
		"cuLaunchKernel=719@3":     "cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure",
		"cuMemAlloc_v2=12345":      "cuMemAlloc_v2: unknown (12345): unknown",
		"cuMemcpyDtoHAsync_v2=700": "cuMemcpyDtoHAsync_v2: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered",
	} {
		if failure := startLoad(t, node, []string{"DRA_STUB_CUDA_RETURN=" + plan}, "--kind=compute").fails(); failure.Error != message {
			t.Errorf("%s is %q", plan, failure.Error)
		}
	}
}

// A kernel that does nothing is an error, and no load.
func TestKernelWithoutAResult(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.Set(0, "cuda.discard", "1")
	for _, kind := range []string{"compute", "tensor", "memory"} {
		failure := startLoad(t, node, nil, "--kind="+kind).fails()
		if failure.Error != "the work "+kind+" has written no result to the device's memory" {
			t.Errorf("the error of %s is %q", kind, failure.Error)
		}
	}
	failure := startLoad(t, node, nil, "--kind=fault").fails()
	if failure.Error != "a kernel wrote to address 16 without an error" {
		t.Errorf("the error of fault is %q", failure.Error)
	}
}

// A machine without a GPU says so.
func TestNoDevice(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.Set(0, "absent", "1")
	if failure := startLoad(t, node, nil).fails(); failure.Name != "CUDA_ERROR_NO_DEVICE" || failure.Call != "cuInit" {
		t.Errorf("it fails with %+v", failure)
	}
}

// The program is built without cgo, unlike this test: it calls the driver
// through another runtime.
func TestWithoutCgo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	path := filepath.Join(t.TempDir(), "gpukit")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	node := stubs.NewNode(t, 2)
	node.Set(1, "uuid", "GPU-00000001-aaaa-bbbb-cccc-111111111111")
	command := program(node, nil, "load", "--library="+stubs.Build(t).CUDA, "--duration=0", "--until-eof", "--device=GPU-00000001-aaaa-bbbb-cccc-111111111111")
	command.Path = path
	p := start(t, command)
	ready := p.until("ready", nil)
	p.until("progress", nil)
	_ = p.in.Close()
	done := p.until("done", nil)
	p.succeeds()
	// The driver has seen the variable that names the device: it is the only one.
	if ready.UUID != "GPU-00000001-aaaa-bbbb-cccc-111111111111" || ready.Device != 0 || done.Busy == 0 {
		t.Errorf("%+v is followed by %+v", ready, done)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]size{"4096": 4096, "64KiB": 65536, "256MiB": 268435456, "3GiB": 3221225472, "1TiB": 1 << 40} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%s is %d (%v)", text, s, err)
		}
	}
	var texts []string
	for _, s := range []size{0, 1000, 4096, 1 << 20, 3 << 30, 1 << 40} {
		texts = append(texts, s.String())
	}
	if want := []string{"0", "1000", "4KiB", "1MiB", "3GiB", "1024GiB"}; !slices.Equal(texts, want) {
		t.Errorf("sizes are written %v", texts)
	}
}

// An error before the work begins is an event, too.
func TestEventsAreLines(t *testing.T) {
	var out, help bytes.Buffer
	err := run(t.Context(), []string{"load", "--duty=0"}, strings.NewReader(""), &out, &help)
	if err == nil || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"event":"error"`) {
		t.Errorf("%v is %q", err, out.String())
	}
}
