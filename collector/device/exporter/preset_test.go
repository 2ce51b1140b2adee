package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Each preset turns its page into these values, which were computed by hand.
func TestPresets(t *testing.T) {
	for preset, want := range map[string]string{
		"nvidia-dcgm-exporter": `
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 clock memory 405000000
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 clock sm 139000000
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 energy 1234567
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 engine_active decoder 0
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 engine_active encoder 0.25
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 engine_active graphics 0.561
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 engine_active tensor 0.25
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 memory_activity 0.12
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 memory_reserved 536870912
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 memory_used 17179869184
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 pcie_replays 3
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 power 98.125
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 remapped_rows corrected 1
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 row_remap_failed 0
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 temperature gpu 41
GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 utilization 0.57
MIG-GPU-00000001-d9cf-fef3-62e9-d92044ab6e52/7/0 engine_active graphics 0.932
MIG-GPU-00000001-d9cf-fef3-62e9-d92044ab6e52/7/0 memory_used 2147483648
MIG-GPU-00000001-d9cf-fef3-62e9-d92044ab6e52/7/0 utilization 0.932
`,
		"intel-xpumd": `
0000:05:00.0 clock sm 1200000000
0000:05:00.0 ecc_errors uncorrected 2
0000:05:00.0 energy 5
0000:05:00.0 engine_active compute 0.4
0000:05:00.0 memory_activity 0.125
0000:05:00.0 memory_size 17179869184
0000:05:00.0 memory_used 8589934592
0000:05:00.0 pcie_receive 1000000
0000:05:00.0 pcie_transmit 2000000
0000:05:00.0 power 62.5
0000:05:00.0 temperature gpu 48
0000:05:00.0 temperature memory 48
0000:05:00.0 utilization 0.42
`,
		// Four cores at 99.68363645361265 % and four at 99.6826341187199 %.
		"furiosa": `
09512C86-0702-4303-8F40-474746474A40 clock core 1750000000
09512C86-0702-4303-8F40-474746474A40 power 50
09512C86-0702-4303-8F40-474746474A40 temperature board 52
09512C86-0702-4303-8F40-474746474A40 temperature gpu 67.756
09512C86-0702-4303-8F40-474746474A40 utilization 0.9968313529
19512C86-0702-4303-8F40-474746474A40 temperature board 50
19512C86-0702-4303-8F40-474746474A40 temperature gpu 64.41
`,
		"all-smi": `
0000:9a:00.0 memory_size 51539607552
0000:9a:00.0 memory_used 0
0000:c1:00.0 memory_used 1024
0000:c1:00.0 utilization 0.8
GPU-12345678-aaaa-bbbb-cccc-000000000000 clock sm 1980000000
GPU-12345678-aaaa-bbbb-cccc-000000000000 memory_activity 0.2
GPU-12345678-aaaa-bbbb-cccc-000000000000 memory_size 151397597184
GPU-12345678-aaaa-bbbb-cccc-000000000000 memory_used 8589934592
GPU-12345678-aaaa-bbbb-cccc-000000000000 power 350.5
GPU-12345678-aaaa-bbbb-cccc-000000000000 power_limit 700
GPU-12345678-aaaa-bbbb-cccc-000000000000 sm_occupancy 0.31
GPU-12345678-aaaa-bbbb-cccc-000000000000 temperature gpu 45
GPU-12345678-aaaa-bbbb-cccc-000000000000 utilization 0.255
MIG-GPU-87654321-aaaa-bbbb-cccc-000000000000/7/0 memory_size 18253611008
MIG-GPU-87654321-aaaa-bbbb-cccc-000000000000/7/0 memory_used 2048
MIG-GPU-87654321-aaaa-bbbb-cccc-000000000000/7/0 utilization 0.66
`,
		"google-tpu-device-plugin": `
0 engine_active tensor 0.22
0 memory_activity 0.11
0 memory_size 4000
0 memory_used 1000
0 utilization 0.2
1 engine_active tensor 0.23
1 memory_activity 0.12
1 memory_size 4000
1 memory_used 2000
1 utilization 0.4
2 memory_size 4000
2 utilization 0
accel3 utilization 0.75
`,
	} {
		t.Run(preset, func(t *testing.T) {
			got, err := mapPreset(t, preset)
			if err != nil {
				t.Error(err)
			}
			if lines := linesOf(got); !slices.Equal(lines, strings.Split(strings.TrimSpace(want), "\n")) {
				t.Errorf("got\n%s", strings.Join(lines, "\n"))
			}
		})
	}
	if pages, err := filepath.Glob("testdata/*.txt"); err != nil || len(pages) != len(Presets())+1 {
		t.Errorf("%d pages for the presets %v, %v", len(pages), Presets(), err)
	}
}

// The page of dcgm-exporter 4.9 gives the devices and values of that of 4.8, and the
// size of the memory, which 4.8 does not have by default.
func TestNewNamesOfDCGMExporter(t *testing.T) {
	before, err := mapPreset(t, "nvidia-dcgm-exporter")
	if err != nil {
		t.Fatal(err)
	}
	after, err := mapFile(t, "nvidia-dcgm-exporter", "nvidia-dcgm-exporter_4.9")
	if err != nil {
		t.Fatal(err)
	}
	want := append(linesOf(before),
		"GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52 memory_size 42949672960",
		"MIG-GPU-00000001-d9cf-fef3-62e9-d92044ab6e52/7/0 memory_size 4831838208")
	slices.Sort(want)
	if got := linesOf(after); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i := range before {
		if fmt.Sprint(after[i].Device) != fmt.Sprint(before[i].Device) {
			t.Errorf("got %+v, want %+v", after[i].Device, before[i].Device)
		}
	}
}

// mapPreset maps the page of a preset as its reader does.
func mapPreset(t *testing.T, name string) ([]device.Observation, error) {
	t.Helper()
	return mapFile(t, name, name)
}

func mapFile(t *testing.T, preset, file string) ([]device.Observation, error) {
	t.Helper()
	config, err := Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", file+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	families, err := parsePage(text, config.rules.names())
	if err != nil {
		t.Fatal(err)
	}
	devices, had, err := newChoices().mapPage(&config.rules, families, device.Window{}, at())
	if lacking := make(missing).update(&config.rules, had, at().Wall); lacking != nil {
		t.Error(lacking)
	}
	return devices, err
}

// What presets know of devices beside their readings.
func TestPresetIdentities(t *testing.T) {
	for preset, want := range map[string]device.Device{
		"nvidia-dcgm-exporter":     {UUID: "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52", Vendor: "nvidia", Model: "NVIDIA A100-SXM4-40GB", PCIBusID: "0000:1a:00.0", DriverVersion: "595.71.05"},
		"intel-xpumd":              {Vendor: "intel", Model: "Super 3000", PCIBusID: "0000:05:00.0", Hardware: device.Hardware{Serial: "SN-0001"}},
		"furiosa":                  {UUID: "09512C86-0702-4303-8F40-474746474A40", Vendor: "furiosa", Model: "rngd", PCIBusID: "0000:c7:00.0", DriverVersion: "2025.1.0+f09a8d8"},
		"all-smi":                  {UUID: "GPU-12345678-aaaa-bbbb-cccc-000000000000", Vendor: "nvidia", Model: "NVIDIA H200 141GB HBM3"},
		"google-tpu-device-plugin": {Vendor: "google", Model: "tpu-v6e-slice", Published: device.PublishedName{Driver: "tpu.google.com", Device: "0"}},
	} {
		devices, _ := mapPreset(t, preset)
		got := devices[0].Device
		if got.UUID != want.UUID || got.Vendor != want.Vendor || got.Model != want.Model || got.PCIBusID != want.PCIBusID ||
			got.DriverVersion != want.DriverVersion || got.Published != want.Published || got.Hardware != want.Hardware || got.ParentUUID != "" {
			t.Errorf("%s: got %+v", preset, got)
		}
	}
	devices, _ := mapPreset(t, "all-smi")
	if amd := devices[1].Device; amd.Vendor != "amd" || amd.UUID != "" || amd.PCIBusID != "0000:c1:00.0" {
		t.Errorf("got %+v", amd)
	}
	devices, _ = mapPreset(t, "nvidia-dcgm-exporter")
	if part := devices[1].Device; part.ParentUUID != "GPU-00000001-d9cf-fef3-62e9-d92044ab6e52" || part.GPUInstance != 7 || part.Profile != "1g.5gb" {
		t.Errorf("got %+v", part)
	}
}
