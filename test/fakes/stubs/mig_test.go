//go:build cgo

package stubs

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// migDevices returns the MIG devices of a GPU as the library reports them.
func migDevices(t *testing.T, device nvml.Device) (found []nvml.Device, text []string) {
	t.Helper()
	most, ret := device.GetMaxMigDeviceCount()
	must(t, ret)
	for i := range most {
		mig, ret := device.GetMigDeviceHandleByIndex(i)
		if ret == nvml.ERROR_NOT_FOUND {
			continue
		}
		must(t, ret)
		name, ret := mig.GetName()
		must(t, ret)
		gi, ret := mig.GetGpuInstanceId()
		must(t, ret)
		ci, ret := mig.GetComputeInstanceId()
		must(t, ret)
		memory, ret := mig.GetMemoryInfo_v2()
		must(t, ret)
		instance, ret := device.GetGpuInstanceById(gi)
		must(t, ret)
		info, ret := instance.GetInfo()
		must(t, ret)
		found = append(found, mig)
		text = append(text, fmt.Sprintf("%s %d/%d profile %d at %d+%d, %d MiB",
			name, gi, ci, info.ProfileId, info.Placement.Start, info.Placement.Size, memory.Total>>20))
	}
	return found, text
}

func TestMIGDevices(t *testing.T) {
	n := NewNode(t, 2)
	library := open(t, n)
	device := gpu(t, library, 0)
	_, ret := device.GetGpuInstanceById(7)
	expect(t, "an instance of an undivided GPU", ret, nvml.ERROR_NOT_SUPPORTED)
	if most, ret := device.GetMaxMigDeviceCount(); ret != nvml.SUCCESS || most != 0 {
		t.Errorf("an undivided GPU may have %d MIG devices (%v)", most, ret)
	}
	gi, ci := n.CreateMIG(0, "3g.40gb", 4)
	n.CreateMIG(0, "1g.10gb", -1)
	n.CreateMIG(0, "1g.20gb", 2)
	handles, text := migDevices(t, device)
	want := []string{
		"NVIDIA H100 80GB HBM3 MIG 3g.40gb 2/0 profile 9 at 4+4, 40448 MiB",
		"NVIDIA H100 80GB HBM3 MIG 1g.20gb 4/0 profile 15 at 2+2, 20096 MiB",
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb 7/0 profile 19 at 0+1, 9984 MiB",
	}
	if gi != 2 || ci != 0 || !slices.Equal(text, want) {
		t.Errorf("created %d/%d, and the library reports\n%s", gi, ci, strings.Join(text, "\n"))
	}
	uuid, ret := handles[0].GetUUID()
	must(t, ret)
	again, ret := library.DeviceGetHandleByUUID(uuid)
	must(t, ret)
	parent, ret := handles[0].GetDeviceHandleFromMigDeviceHandle()
	must(t, ret)
	if again != handles[0] || parent != device || !strings.HasPrefix(uuid, "MIG-") {
		t.Errorf("%s is found neither by its UUID nor its parent by it", uuid)
	}
	_, ret = handles[0].GetPowerUsage()
	expect(t, "a MIG device's power", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = device.GetUtilizationRates()
	expect(t, "a divided GPU's utilization", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = device.GetGpuInstanceById(3)
	expect(t, "an instance that is not there", ret, nvml.ERROR_NOT_FOUND)

	n.DestroyMIG(0, 2)
	_, ret = handles[0].GetName()
	expect(t, "a MIG device that is gone", ret, nvml.ERROR_INVALID_ARGUMENT)
	n.CreateMIG(0, "3g.40gb", 4)
	if same, ret := handles[0].GetUUID(); ret != nvml.SUCCESS || same != uuid {
		t.Errorf("the same instance has another UUID: %s, before %s (%v)", same, uuid, ret)
	}
}

func TestMIGRoom(t *testing.T) {
	n := NewNode(t, 1)
	device := gpu(t, open(t, n), 0)
	n.SetMIGMode(0, true)
	for _, c := range []struct {
		profile int
		want    nvml.Return
	}{
		{nvml.GPU_INSTANCE_PROFILE_4_SLICE, nvml.SUCCESS},
		{nvml.GPU_INSTANCE_PROFILE_4_SLICE, nvml.ERROR_INSUFFICIENT_RESOURCES},
		{nvml.GPU_INSTANCE_PROFILE_2_SLICE, nvml.SUCCESS},
		{nvml.GPU_INSTANCE_PROFILE_2_SLICE, nvml.ERROR_INSUFFICIENT_RESOURCES},
		{nvml.GPU_INSTANCE_PROFILE_1_SLICE, nvml.SUCCESS},
		{nvml.GPU_INSTANCE_PROFILE_1_SLICE, nvml.ERROR_INSUFFICIENT_RESOURCES},
	} {
		profile, ret := device.GetGpuInstanceProfileInfo(c.profile)
		must(t, ret)
		_, ret = device.CreateGpuInstance(&profile)
		expect(t, fmt.Sprintf("an instance of profile %d", profile.Id), ret, c.want)
	}
	profile, _ := device.GetGpuInstanceProfileInfo(nvml.GPU_INSTANCE_PROFILE_1_SLICE)
	if left, ret := device.GetGpuInstanceRemainingCapacity(&profile); ret != nvml.SUCCESS || left != 0 {
		t.Errorf("%d more fit (%v)", left, ret)
	}
	places, ret := device.GetGpuInstancePossiblePlacements(&profile)
	must(t, ret)
	if len(places) != 7 {
		t.Errorf("%d placements of the smallest profile", len(places))
	}
	wrong := nvml.GpuInstancePlacement{Start: 7, Size: 1}
	_, ret = device.CreateGpuInstanceWithPlacement(&profile, &wrong)
	expect(t, "a placement beyond the last", ret, nvml.ERROR_INVALID_ARGUMENT)
	if activation, ret := device.SetMigMode(nvml.DEVICE_MIG_DISABLE); ret != nvml.SUCCESS || activation != nvml.ERROR_IN_USE {
		t.Errorf("MIG mode of a GPU in use: %v, activation %v", ret, activation)
	}
}

func TestComputeInstances(t *testing.T) {
	n := NewNode(t, 1)
	device := gpu(t, open(t, n), 0)
	n.SetMIGMode(0, true)
	whole, ret := device.GetGpuInstanceProfileInfo(nvml.GPU_INSTANCE_PROFILE_3_SLICE)
	must(t, ret)
	instance, ret := device.CreateGpuInstance(&whole)
	must(t, ret)
	profile, ret := instance.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	must(t, ret)
	_, ret = instance.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_4_SLICE, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	expect(t, "a profile that is too large", ret, nvml.ERROR_NOT_SUPPORTED)
	for range 3 {
		_, ret := instance.CreateComputeInstance(&profile)
		must(t, ret)
	}
	_, ret = instance.CreateComputeInstance(&profile)
	expect(t, "a fourth of three slices", ret, nvml.ERROR_INSUFFICIENT_RESOURCES)
	_, text := migDevices(t, device)
	if len(text) != 3 || !strings.HasPrefix(text[2], "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb 1/2 ") {
		t.Errorf("the MIG devices are\n%s", strings.Join(text, "\n"))
	}
	expect(t, "destroying what is in use", instance.Destroy(), nvml.ERROR_IN_USE)
	for id := range 3 {
		compute, ret := instance.GetComputeInstanceById(id)
		must(t, ret)
		must(t, compute.Destroy())
		expect(t, "destroying what is gone", compute.Destroy(), nvml.ERROR_INVALID_ARGUMENT)
	}
	must(t, instance.Destroy())
	_, ret = instance.GetInfo()
	expect(t, "an instance that is gone", ret, nvml.ERROR_INVALID_ARGUMENT)
}

// A test can divide an instance too.
func TestAddCompute(t *testing.T) {
	n := NewNode(t, 1)
	gi, ci := n.CreateMIG(0, "1c.3g.40gb", 4)
	next := n.AddCompute(0, gi, 2)
	_, text := migDevices(t, gpu(t, open(t, n), 0))
	if ci != 0 || next != 1 || len(text) != 2 || !strings.Contains(text[0], " 1c.3g.40gb 2/0 ") || !strings.Contains(text[1], " 2c.3g.40gb 2/1 ") {
		t.Errorf("instances %d and %d, and the MIG devices are\n%s", ci, next, strings.Join(text, "\n"))
	}
	n.DestroyMIG(0, gi)
	if _, text := migDevices(t, gpu(t, open(t, n), 0)); len(text) != 0 {
		t.Errorf("there are still\n%s", strings.Join(text, "\n"))
	}
}

// MIG devices that one process creates, as a driver does, are visible in
// another.
func TestMIGAcrossProcesses(t *testing.T) {
	n := NewNode(t, 2)
	library := open(t, n)
	device := gpu(t, library, 1)
	other := func(action string) {
		t.Helper()
		command := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$")
		command.Env = append(append(os.Environ(), n.Env()...), "STUBS_TEST_ACTION="+action)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s in another process: %v\n%s", action, err, out)
		}
	}
	other("create")
	waitUntil(t, func() bool { _, text := migDevices(t, device); return len(text) == 1 })
	if _, text := migDevices(t, gpu(t, library, 0)); len(text) != 0 {
		t.Errorf("the other GPU is divided: %s", text)
	}
	other("destroy")
	waitUntil(t, func() bool { found, _ := migDevices(t, device); return len(found) == 0 })
	if current, _, ret := device.GetMigMode(); ret != nvml.SUCCESS || current != nvml.DEVICE_MIG_DISABLE {
		t.Errorf("MIG mode %d (%v)", current, ret)
	}
}

// TestOtherProcess is the other process of TestMIGAcrossProcesses.
func TestOtherProcess(t *testing.T) {
	action := os.Getenv("STUBS_TEST_ACTION")
	if action == "" {
		t.Skip("no other process has asked")
	}
	library := nvml.New(nvml.WithLibraryPath(Build(t).NVML))
	must(t, library.Init())
	defer library.Shutdown()
	device := gpu(t, library, 1)
	if action == "destroy" {
		found, _ := migDevices(t, device)
		gi, ret := found[0].GetGpuInstanceId()
		must(t, ret)
		instance, ret := device.GetGpuInstanceById(gi)
		must(t, ret)
		compute, ret := instance.GetComputeInstanceById(0)
		must(t, ret)
		must(t, compute.Destroy())
		must(t, instance.Destroy())
		activation, ret := device.SetMigMode(nvml.DEVICE_MIG_DISABLE)
		must(t, ret)
		must(t, activation)
		return
	}
	activation, ret := device.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	must(t, ret)
	must(t, activation)
	profile, ret := device.GetGpuInstanceProfileInfo(nvml.GPU_INSTANCE_PROFILE_2_SLICE)
	must(t, ret)
	instance, ret := device.CreateGpuInstanceWithPlacement(&profile, &nvml.GpuInstancePlacement{Start: 2, Size: 2})
	must(t, ret)
	part, ret := instance.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_2_SLICE, 0)
	must(t, ret)
	compute, ret := instance.CreateComputeInstance(&part)
	must(t, ret)
	info, ret := compute.GetInfo()
	must(t, ret)
	_, ret = info.Device.GetUUID()
	must(t, ret)
}
