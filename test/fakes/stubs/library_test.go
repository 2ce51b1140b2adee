//go:build cgo

package stubs

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// open initializes the stub library through the real binding, over a node.
func open(t *testing.T, n *Node) nvml.Interface {
	t.Helper()
	library := load(t, n)
	must(t, library.Init())
	t.Cleanup(func() { must(t, library.Shutdown()) })
	return library
}

func load(t *testing.T, n *Node) nvml.Interface {
	t.Helper()
	name, value, _ := strings.Cut(n.Env()[0], "=")
	t.Setenv(name, value)
	return nvml.New(nvml.WithLibraryPath(Build(t).NVML))
}

func must(t *testing.T, ret nvml.Return) {
	t.Helper()
	if ret != nvml.SUCCESS {
		t.Fatalf("the library answers %v", ret)
	}
}

// expect fails unless a call has answered what it should have.
func expect(t *testing.T, what string, got, want nvml.Return) {
	t.Helper()
	if got != want {
		t.Errorf("%s answers %v, not %v", what, got, want)
	}
}

func gpu(t *testing.T, library nvml.Interface, index int) nvml.Device {
	t.Helper()
	device, ret := library.DeviceGetHandleByIndex(index)
	must(t, ret)
	return device
}

// Every function of the header is there, so that a binding that looks for one
// finds it.
func TestLibraryHasAllFunctions(t *testing.T) {
	libraries := Build(t)
	file, err := elf.Open(libraries.NVML)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, symbol := range symbols {
		if symbol.Section == elf.SHN_UNDEF {
			continue
		}
		there[symbol.Name] = true
		if !strings.HasPrefix(symbol.Name, "nvml") {
			t.Errorf("%s is visible outside the library", symbol.Name)
		}
	}
	for _, function := range declared(t) {
		if !there[function] {
			t.Errorf("%s is missing", function)
		}
	}
}

// declared are the functions of nvml.h.
func declared(t *testing.T) []string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", nvmlHeaders).Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "pkg", "nvml", "nvml.h"))
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	for _, match := range regexp.MustCompile(`(?m)^nvmlReturn_t DECLDIR (nvml\w+)\(`).FindAllSubmatch(text, -1) {
		functions = append(functions, string(match[1]))
	}
	if len(functions) < 300 {
		t.Fatalf("only %d functions are found in the header", len(functions))
	}
	return functions
}

func TestEightGPUs(t *testing.T) {
	library := open(t, NewNode(t, 8))
	count, ret := library.DeviceGetCount()
	must(t, ret)
	if count != 8 {
		t.Fatalf("%d GPUs, not 8", count)
	}
	seen := make(map[string]bool)
	for i := range count {
		device := gpu(t, library, i)
		uuid, ret := device.GetUUID()
		must(t, ret)
		if seen[uuid] || !regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(uuid) {
			t.Errorf("GPU %d has UUID %s", i, uuid)
		}
		seen[uuid] = true
		again, ret := library.DeviceGetHandleByUUID(uuid)
		must(t, ret)
		pci, ret := device.GetPciInfo()
		must(t, ret)
		byAddress, ret := library.DeviceGetHandleByPciBusId(fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device))
		must(t, ret)
		if again != device || byAddress != device {
			t.Errorf("GPU %d has several handles", i)
		}
		index, ret := device.GetIndex()
		must(t, ret)
		minor, ret := device.GetMinorNumber()
		must(t, ret)
		if index != i || minor != i {
			t.Errorf("GPU %d has index %d and minor number %d", i, index, minor)
		}
	}
	_, ret = library.DeviceGetHandleByIndex(8)
	expect(t, "a ninth GPU", ret, nvml.ERROR_INVALID_ARGUMENT)
	_, ret = library.DeviceGetHandleByUUID("GPU-unknown")
	expect(t, "an unknown UUID", ret, nvml.ERROR_NOT_FOUND)
}

func TestModels(t *testing.T) {
	for _, c := range []struct {
		model, name  string
		architecture nvml.DeviceArchitecture
		cuda         string
		links        uint32
		gpm          uint32
		profiles     string
	}{
		{"H100", "NVIDIA H100 80GB HBM3", nvml.DEVICE_ARCH_HOPPER, "9.0", 18, 1,
			"1g.10gb=19 2g.20gb=14 3g.40gb=9 4g.40gb=5 7g.80gb=0 1g.10gb+me=20 1g.20gb=15"},
		{"A100", "NVIDIA A100-SXM4-80GB", nvml.DEVICE_ARCH_AMPERE, "8.0", 12, 0,
			"1g.10gb=19 2g.20gb=14 3g.40gb=9 4g.40gb=5 7g.80gb=0 1g.10gb+me=20 1g.20gb=15"},
		{"B200", "NVIDIA B200", nvml.DEVICE_ARCH_BLACKWELL, "10.0", 18, 1,
			"1g.23gb=19 2g.45gb=14 3g.90gb=9 4g.90gb=5 7g.180gb=0 1g.23gb+me=20 1g.45gb=15"},
	} {
		t.Run(c.model, func(t *testing.T) {
			n := NewNode(t, 1)
			n.SetNode("model", c.model)
			device := gpu(t, open(t, n), 0)
			name, ret := device.GetName()
			must(t, ret)
			architecture, ret := device.GetArchitecture()
			must(t, ret)
			major, minor, ret := device.GetCudaComputeCapability()
			must(t, ret)
			if cuda := fmt.Sprintf("%d.%d", major, minor); name != c.name || architecture != c.architecture || cuda != c.cuda {
				t.Errorf("it is %s, architecture %d, compute capability %s", name, architecture, cuda)
			}
			if value := field(t, device, nvml.FI_DEV_NVLINK_LINK_COUNT, 0); value != uint64(c.links) {
				t.Errorf("it has %d links, not %d", value, c.links)
			}
			support, ret := device.GpmQueryDeviceSupport()
			must(t, ret)
			if support.IsSupportedDevice != c.gpm {
				t.Errorf("GPM: %d, not %d", support.IsSupportedDevice, c.gpm)
			}
			if profiles := profilesOf(t, device); profiles != c.profiles {
				t.Errorf("profiles %s, not %s", profiles, c.profiles)
			}
		})
	}
}

// profilesOf are the names and ids of a GPU's MIG profiles.
func profilesOf(t *testing.T, device nvml.Device) string {
	t.Helper()
	var found []string
	for index := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		plain, ret := device.GetGpuInstanceProfileInfo(index)
		if ret == nvml.ERROR_NOT_SUPPORTED {
			continue
		}
		must(t, ret)
		for _, version := range []string{"v2", "v3"} {
			var name [96]int8
			var id uint32
			if version == "v2" {
				info, ret := device.GetGpuInstanceProfileInfoV(index).V2()
				must(t, ret)
				name, id = info.Name, info.Id
			} else {
				info, ret := device.GetGpuInstanceProfileInfoV(index).V3()
				must(t, ret)
				name, id = info.Name, info.Id
			}
			text := ""
			for i := 0; name[i] != 0; i++ {
				text += string(rune(name[i]))
			}
			text = strings.TrimPrefix(text, "MIG ")
			if id != plain.Id {
				t.Errorf("%s has id %d and, in %s, %d", text, plain.Id, version, id)
			}
			if version == "v2" {
				found = append(found, fmt.Sprintf("%s=%d", text, id))
			}
		}
	}
	return strings.Join(found, " ")
}

// The library returns the scripted values, in NVML's units.
func TestScriptedValues(t *testing.T) {
	n := NewNode(t, 2)
	device := gpu(t, open(t, n), 1)
	for key, value := range map[string]string{
		"power.draw": "412.345", "utilization.gpu": "87", "temperature.gpu": "71", "clocks.sm": "1755", "energy": "1234.5",
		"memory.used": "1073741824", "ecc.uncorrected": "3", "remapped_rows.pending": "1", "name": "Imitation 9000",
	} {
		n.Set(1, key, value)
	}
	power, ret := device.GetPowerUsage()
	must(t, ret)
	utilization, ret := device.GetUtilizationRates()
	must(t, ret)
	temperature, ret := device.GetTemperature(nvml.TEMPERATURE_GPU)
	must(t, ret)
	clock, ret := device.GetClockInfo(nvml.CLOCK_SM)
	must(t, ret)
	energy, ret := device.GetTotalEnergyConsumption()
	must(t, ret)
	older, ret := device.GetMemoryInfo()
	must(t, ret)
	newer, ret := device.GetMemoryInfo_v2()
	must(t, ret)
	uncorrected, ret := device.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)
	must(t, ret)
	_, _, pending, failed, ret := device.GetRemappedRows()
	must(t, ret)
	name, ret := device.GetName()
	must(t, ret)
	got := fmt.Sprintln(power, utilization.Gpu, temperature, clock, energy, newer.Used, older.Used-newer.Reserved, uncorrected, pending, failed, name)
	if want := "412345 87 71 1755 1234500 1073741824 1073741824 3 true false Imitation 9000\n"; got != want {
		t.Errorf("the library says %s, not %s", got, want)
	}
	n.Unset(1, "temperature.gpu")
	if temperature, _ := device.GetTemperature(nvml.TEMPERATURE_GPU); temperature != 32 {
		t.Errorf("the default temperature is %d", temperature)
	}
	n.Set(1, "power.draw", "none")
	_, ret = device.GetPowerUsage()
	expect(t, "a GPU without a power meter", ret, nvml.ERROR_NOT_SUPPORTED)
	if power, ret := gpu(t, open(t, n), 0).GetPowerUsage(); ret != nvml.SUCCESS || power != 70500 {
		t.Errorf("the other GPU draws %d mW (%v)", power, ret)
	}
}

// A counter counts from the node's epoch at the rate that is scripted.
func TestCounters(t *testing.T) {
	n := NewNode(t, 1)
	n.SetNode("epoch", "1") // long ago
	n.Set(0, "energy", "10+2/s")
	n.Set(0, "pcie.tx_bytes", "4294967290")
	n.Set(0, "pcie.rx_bytes", "4294967300")
	device := gpu(t, open(t, n), 0)
	first, ret := device.GetTotalEnergyConsumption()
	must(t, ret)
	if first < 2*1_700_000_000*1000 {
		t.Errorf("the counter is at %d mJ", first)
	}
	waitUntil(t, func() bool {
		second, ret := device.GetTotalEnergyConsumption()
		must(t, ret)
		if second < first {
			t.Fatalf("the counter fell from %d to %d", first, second)
		}
		return second > first
	})
	if value := field(t, device, nvml.FI_DEV_PCIE_COUNT_TX_BYTES, 0); value != 4294967290 {
		t.Errorf("%d bytes before the counter wraps", value)
	}
	if value := field(t, device, nvml.FI_DEV_PCIE_COUNT_RX_BYTES, 0); value != 4 {
		t.Errorf("%d bytes after the counter has wrapped", value)
	}
}

// field reads one field value, which must exist, and returns it as a whole
// number.
func field(t *testing.T, device nvml.Device, id, scope uint32) uint64 {
	t.Helper()
	value := ask(t, device, id, scope)
	if ret := nvml.Return(value.NvmlReturn); ret != nvml.SUCCESS {
		t.Fatalf("field %d in scope %d answers %v", id, scope, ret)
	}
	number := uint64(0)
	for i := range 8 {
		number |= uint64(value.Value[i]) << (8 * i) // both architectures of servers are little-endian
	}
	return number
}

func ask(t *testing.T, device nvml.Device, id, scope uint32) nvml.FieldValue {
	t.Helper()
	values := []nvml.FieldValue{{FieldId: id, ScopeId: scope}}
	must(t, device.GetFieldValues(values))
	return values[0]
}
