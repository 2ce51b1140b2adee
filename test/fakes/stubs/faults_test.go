//go:build cgo

package stubs

import (
	"os"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func TestReturnCodes(t *testing.T) {
	n := NewNode(t, 2)
	library := open(t, n)
	one, other := gpu(t, library, 0), gpu(t, library, 1)
	for value, want := range map[string]nvml.Return{
		"NO_DATA": nvml.ERROR_NO_DATA, "NVML_ERROR_RESET_REQUIRED": nvml.ERROR_RESET_REQUIRED, "999": nvml.ERROR_UNKNOWN, "UNKNOWN": nvml.ERROR_UNKNOWN,
	} {
		n.Set(0, "return.nvmlDeviceGetPowerUsage", value)
		_, ret := one.GetPowerUsage()
		expect(t, value, ret, want)
		_, ret = other.GetPowerUsage()
		expect(t, "the other GPU", ret, nvml.SUCCESS)
		_, ret = one.GetTemperature(nvml.TEMPERATURE_GPU)
		expect(t, "another function", ret, nvml.SUCCESS)
	}
	n.SetNode("return.nvmlDeviceGetTemperature", "NOT_READY")
	_, ret := other.GetTemperature(nvml.TEMPERATURE_GPU)
	expect(t, "a function that fails on the whole node", ret, nvml.ERROR_NOT_READY)
	n.Set(0, "return.field.82", "NO_PERMISSION")
	expect(t, "a field", nvml.Return(ask(t, one, nvml.FI_DEV_MEMORY_TEMP, 0).NvmlReturn), nvml.ERROR_NO_PERMISSION)
	expect(t, "an unknown field", nvml.Return(ask(t, one, 5000, 0).NvmlReturn), nvml.ERROR_INVALID_ARGUMENT)
}

// A call hangs for as long as it is scripted to, and others do not.
func TestHang(t *testing.T) {
	n := NewNode(t, 2)
	library := open(t, n)
	one, other := gpu(t, library, 0), gpu(t, library, 1)
	n.Set(0, "hang.nvmlDeviceGetPowerUsage", "1")
	done := make(chan nvml.Return)
	go func() {
		_, ret := one.GetPowerUsage()
		done <- ret
	}()
	_, ret := other.GetPowerUsage()
	expect(t, "the other GPU", ret, nvml.SUCCESS)
	_, ret = one.GetTemperature(nvml.TEMPERATURE_GPU)
	expect(t, "another function", ret, nvml.SUCCESS)
	select {
	case ret := <-done:
		t.Fatalf("the call has come back: %v", ret)
	case <-time.After(100 * time.Millisecond):
	}
	n.Unset(0, "hang.nvmlDeviceGetPowerUsage")
	expect(t, "the call that hung", <-done, nvml.SUCCESS)
}

func TestLost(t *testing.T) {
	n := NewNode(t, 2)
	library := open(t, n)
	device := gpu(t, library, 0)
	n.Set(0, "lost", "1")
	_, ret := device.GetPowerUsage()
	expect(t, "a lost GPU's power", ret, nvml.ERROR_GPU_IS_LOST)
	_, ret = library.DeviceGetHandleByIndex(0)
	expect(t, "a lost GPU's handle", ret, nvml.ERROR_GPU_IS_LOST)
	if count, ret := library.DeviceGetCount(); ret != nvml.SUCCESS || count != 2 {
		t.Errorf("%d GPUs (%v): a lost one is still counted", count, ret)
	}
	n.Unset(0, "lost")
	_, ret = device.GetPowerUsage()
	expect(t, "a GPU that is back", ret, nvml.SUCCESS)
}

// Which GPUs there are is decided when the library is initialized.
func TestAbsent(t *testing.T) {
	n := NewNode(t, 3)
	library := open(t, n)
	device, third := gpu(t, library, 0), gpu(t, library, 2)
	n.Set(0, "absent", "1")
	_, ret := device.GetPowerUsage()
	expect(t, "a GPU that was taken away", ret, nvml.ERROR_GPU_IS_LOST)
	must(t, library.Shutdown())
	must(t, library.Init())
	if count, ret := library.DeviceGetCount(); ret != nvml.SUCCESS || count != 2 {
		t.Errorf("%d GPUs (%v) without the one that was taken away", count, ret)
	}
	_, ret = device.GetPowerUsage()
	expect(t, "a handle from before", ret, nvml.ERROR_INVALID_ARGUMENT)
	if index, ret := third.GetIndex(); ret != nvml.SUCCESS || index != 1 {
		t.Errorf("the last GPU has index %d (%v)", index, ret)
	}
	n.Unset(0, "absent")
	if count, _ := library.DeviceGetCount(); count != 2 {
		t.Errorf("%d GPUs: one appears before the library is initialized again", count)
	}
	must(t, library.Shutdown())
	must(t, library.Init())
	if count, _ := library.DeviceGetCount(); count != 3 {
		t.Errorf("%d GPUs with the one that is back", count)
	}
}

func TestInitialization(t *testing.T) {
	n := NewNode(t, 1)
	library := load(t, n)
	n.SetNode("return.nvmlInit_v2", "DRIVER_NOT_LOADED")
	expect(t, "Init", library.Init(), nvml.ERROR_DRIVER_NOT_LOADED)
	n.UnsetNode("return.nvmlInit_v2")
	must(t, library.Init())
	must(t, library.Init())
	device := gpu(t, library, 0)
	must(t, library.Shutdown())
	_, ret := device.GetPowerUsage()
	expect(t, "a library with one user left", ret, nvml.SUCCESS)
	if live := n.Live(); live.Sessions != 1 {
		t.Errorf("%d initializations are open", live.Sessions)
	}
	must(t, library.Shutdown())
	_, ret = device.GetPowerUsage()
	expect(t, "a library without users", ret, nvml.ERROR_UNINITIALIZED)
	_, ret = device.GetVgpuMetadata()
	expect(t, "an unsupported function of a library without users", ret, nvml.ERROR_UNINITIALIZED)

	n.SetNode("gpus", "0")
	expect(t, "a node without GPUs", library.Init(), nvml.ERROR_GPU_NOT_FOUND)
	must(t, library.InitWithFlags(nvml.INIT_FLAG_NO_GPUS))
	must(t, library.Shutdown())
	t.Setenv("DRA_STUB_HARDWARE", "")
	expect(t, "nothing scripted", library.Init(), nvml.ERROR_DRIVER_NOT_LOADED)
}

func TestArguments(t *testing.T) {
	library := open(t, NewNode(t, 1))
	device := gpu(t, library, 0)
	_, ret := device.GetTemperature(7)
	expect(t, "an unknown sensor", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = device.GetClockInfo(99)
	expect(t, "an unknown clock", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = device.GetGpuInstanceProfileInfo(nvml.GPU_INSTANCE_PROFILE_COUNT)
	expect(t, "an unknown profile", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = device.GetGpuInstanceProfileInfo(nvml.GPU_INSTANCE_PROFILE_8_SLICE)
	expect(t, "a profile of others", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = library.DeviceGetHandleByUUID("")
	expect(t, "no UUID", ret, nvml.ERROR_NOT_FOUND)
	_, ret = device.GetVgpuMetadata()
	expect(t, "an unsupported function", ret, nvml.ERROR_NOT_SUPPORTED)
	if _, ret := device.GetGpuFabricInfoV().V2(); ret != nvml.SUCCESS {
		t.Errorf("fabric information of version 2: %v", ret)
	}
	if info, ret := device.GetGpuFabricInfoV().V3(); ret != nvml.SUCCESS || info.State != nvml.GPU_FABRIC_STATE_COMPLETED {
		t.Errorf("fabric information of version 3: %+v, %v", info, ret)
	}
}

// What is set by one program is what others see; who only looks sets nothing.
func TestSettings(t *testing.T) {
	n := NewNode(t, 1)
	device := gpu(t, open(t, n), 0)
	if mode, ret := device.GetComputeMode(); ret != nvml.SUCCESS || mode != nvml.COMPUTEMODE_DEFAULT {
		t.Errorf("compute mode %d (%v)", mode, ret)
	}
	if settings := n.Settings(); len(settings) != 0 {
		t.Errorf("%q is set", settings)
	}
	must(t, device.SetComputeMode(nvml.COMPUTEMODE_EXCLUSIVE_PROCESS))
	if mode, ret := device.GetComputeMode(); ret != nvml.SUCCESS || mode != nvml.COMPUTEMODE_EXCLUSIVE_PROCESS {
		t.Errorf("compute mode %d (%v)", mode, ret)
	}
	if settings := n.Settings(); len(settings) != 1 || settings[0] != "gpu.0.compute_mode = 3" {
		t.Errorf("%q is set", settings)
	}
}

func TestNoFilesStayOpen(t *testing.T) {
	n := NewNode(t, 8)
	library := load(t, n)
	round := func() {
		must(t, library.Init())
		device := gpu(t, library, 7)
		if _, ret := device.GetPowerUsage(); ret != nvml.SUCCESS {
			t.Fatalf("the library answers %v", ret)
		}
		set, ret := library.EventSetCreate()
		must(t, ret)
		must(t, device.RegisterEvents(nvml.EventTypeXidCriticalError, set))
		must(t, set.Free())
		must(t, library.Shutdown())
	}
	round()
	before := openFiles(t)
	for range 1000 {
		round()
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files are open, %d more than before", after, after-before)
	}
	if live := n.Live(); live != (Live{}) {
		t.Errorf("%+v is open", live)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
