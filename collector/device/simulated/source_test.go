package simulated

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const example = `
seed: 7
templates:
  h100:
    vendor: nvidia
    model: NVIDIA H100 80GB HBM3
    driverVersion: 580.65.06
    quantities:
      utilization: {curve: sine, min: 0.2, max: 0.8, period: 60s}
      memory_used: 40e9
      memory_size: 80e9
      power: {curve: ramp, min: 300, max: 600, period: 100s, idle: 75}
      energy: {rate: 400, start: 1000, idle: 75}
      temperature: {gpu: 60, memory: 70}
      nvlink_transmit: {rate: {curve: square, min: 0, max: 2e9, period: 30s}}
devices:
- template: h100
  uuid: GPU-a
  linkDomain: first
  pciBusID: "0000:1A:00.0"
  minor: 0
  partitions:
  - {uuid: MIG-a, profile: 1g.10gb, placement: 3, gpuInstance: 7, computeInstance: 0, quantities: {memory_used: 1e9, memory_size: 10e9}}
- template: h100
  uuid: GPU-b
  minor: 1
  quantities:
    temperature: {gpu: 50}
    utilization: 0.5
- {pciBusID: "0000:2a:00.0", renderMinor: 128, vendor: example}
`

func parsed(t testing.TB, text string) Config {
	t.Helper()
	config, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// read writes down what all readers of the source say now.
func read(t testing.TB, s *Source, tier device.Tier) string {
	t.Helper()
	readers, err := s.Readers(t.Context())
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	for _, r := range readers {
		b.WriteString(written(r.Read(t.Context(), tier)))
	}
	return b.String()
}

// written writes down what a read found.
func written(observations []device.Observation, err error) string {
	var b strings.Builder
	for _, o := range observations {
		b.WriteString(o.Device.UUID + o.Device.PCIBusID + ":")
		for _, reading := range append(o.Readings, o.Slow...) {
			b.WriteString(" " + device.Specs()[reading.Quantity].Name)
			if reading.Details[0] != "" {
				fmt.Fprintf(&b, "(%s)", strings.TrimSpace(reading.Details[0]+" "+reading.Details[1]))
			}
			fmt.Fprintf(&b, "=%.4g", reading.Value)
		}
		b.WriteString("\n")
	}
	if err != nil {
		b.WriteString("error: " + err.Error() + "\n")
	}
	return b.String()
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.ReplaceAll(strings.TrimPrefix(want, "\n"), "\t", ""); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, example), clock.System())
		expect(t, read(t, s, device.Slow), `
			GPU-a0000:1a:00.0: utilization=0.5 memory_used=4e+10 power=300 energy=1000 temperature(gpu)=60 temperature(memory)=70 nvlink_transmit=0 memory_size=8e+10
			MIG-a0000:1a:00.0: memory_used=1e+09 memory_size=1e+10
			GPU-b: utilization=0.5 memory_used=4e+10 power=300 energy=1000 temperature(gpu)=50 nvlink_transmit=0 memory_size=8e+10
			0000:2a:00.0:
			`)
		time.Sleep(15 * time.Second)
		expect(t, read(t, s, device.Fast), `
			GPU-a0000:1a:00.0: utilization=0.8 memory_used=4e+10 power=345 energy=7000 temperature(gpu)=60 temperature(memory)=70 nvlink_transmit=3e+10
			MIG-a0000:1a:00.0: memory_used=1e+09
			GPU-b: utilization=0.5 memory_used=4e+10 power=345 energy=7000 temperature(gpu)=50 nvlink_transmit=3e+10
			0000:2a:00.0:
			`)
	})
}

func TestIdentity(t *testing.T) {
	config := parsed(t, example)
	for i, want := range []string{
		"{UUID:GPU-a ParentUUID: Vendor:nvidia Model:NVIDIA H100 80GB HBM3 PCIBusID:0000:1a:00.0 Minor:0 RenderMinor:-1 Profile: Placement:-1 GPUInstance:-1 ComputeInstance:-1 DriverVersion:580.65.06 Nodes:[/dev/nvidia0] LinkDomain:first Hardware:{Serial: BoardPartNumber: VBIOS: Index: ModuleID: ChassisSerial: Slot: Tray:} Published:{Driver: Pool: Device:} PublishedParent:}",
		"{UUID:GPU-b ParentUUID: Vendor:nvidia Model:NVIDIA H100 80GB HBM3 PCIBusID: Minor:1 RenderMinor:-1 Profile: Placement:-1 GPUInstance:-1 ComputeInstance:-1 DriverVersion:580.65.06 Nodes:[/dev/nvidia1] LinkDomain: Hardware:{Serial: BoardPartNumber: VBIOS: Index: ModuleID: ChassisSerial: Slot: Tray:} Published:{Driver: Pool: Device:} PublishedParent:}",
		"{UUID: ParentUUID: Vendor:example Model: PCIBusID:0000:2a:00.0 Minor:-1 RenderMinor:128 Profile: Placement:-1 GPUInstance:-1 ComputeInstance:-1 DriverVersion: Nodes:[] LinkDomain: Hardware:{Serial: BoardPartNumber: VBIOS: Index: ModuleID: ChassisSerial: Slot: Tray:} Published:{Driver: Pool: Device:} PublishedParent:}",
	} {
		if got := fmt.Sprintf("%+v", config.Devices[i].Identity); got != want {
			t.Errorf("device %d is\n%s\nwant\n%s", i, got, want)
		}
	}
	partition := "{UUID:MIG-a ParentUUID:GPU-a Vendor:nvidia Model:NVIDIA H100 80GB HBM3 PCIBusID:0000:1a:00.0 Minor:-1 RenderMinor:-1 Profile:1g.10gb Placement:3 GPUInstance:7 ComputeInstance:0 DriverVersion:580.65.06 Nodes:[] LinkDomain: Hardware:{Serial: BoardPartNumber: VBIOS: Index: ModuleID: ChassisSerial: Slot: Tray:} Published:{Driver: Pool: Device:} PublishedParent:}"
	if got := fmt.Sprintf("%+v", config.Devices[0].Partitions[0].Identity); got != partition {
		t.Errorf("the partition is\n%s\nwant\n%s", got, partition)
	}
}

func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, `
devices:
- uuid: GPU-a
  load: 0
  quantities:
    utilization: {value: 0.8, noise: 0.1}
    power: {value: 600, idle: 100, ready: 200}
    energy: {rate: {value: 600, idle: 100, ready: 200}}
    clock: {sm: 1.2e9}
    nvlink_transmit: {rate: 1000}
`), clock.System())
		time.Sleep(10 * time.Second)
		expect(t, read(t, s, device.Fast),
			"GPU-a: utilization=0 power=100 energy=1000 clock(sm)=1.2e+09 nvlink_transmit=0\n")
		if !s.SetLoad("GPU-a", 0.5) || s.SetLoad("GPU-b", 1) {
			t.Error("SetLoad knows the wrong devices")
		}
		time.Sleep(10 * time.Second)
		if got := read(t, s, device.Fast); !strings.HasSuffix(got, "power=400 energy=5000 clock(sm)=1.2e+09 nvlink_transmit=5000\n") {
			t.Errorf("at half load: %s", got)
		}
		s.SetLoad("GPU-a", 7)
		time.Sleep(10 * time.Second)
		if got := read(t, s, device.Fast); !strings.HasSuffix(got, "power=600 energy=1.1e+04 clock(sm)=1.2e+09 nvlink_transmit=1.5e+04\n") {
			t.Errorf("at full load: %s", got)
		}
	})
}

// Every quantity that a device can have can be simulated.
func TestEveryQuantity(t *testing.T) {
	var file strings.Builder
	file.WriteString("devices:\n- uuid: GPU-a\n  quantities:\n")
	for _, spec := range device.Specs() {
		value := "1"
		if spec.Kind == device.Counter {
			value = "{start: 1, rate: 0}"
		}
		for range spec.Details {
			value = "{detail: " + value + "}"
		}
		fmt.Fprintf(&file, "    %s: %s\n", spec.Name, value)
	}
	s := New(parsed(t, file.String()), clock.System())
	readers, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	observations, err := readers[0].Read(t.Context(), device.Slow)
	if err != nil {
		t.Fatal(err)
	}
	all := append(observations[0].Readings, observations[0].Slow...)
	if len(all) != device.Quantities {
		t.Errorf("%d quantities were read, want %d", len(all), device.Quantities)
	}
	for _, reading := range all {
		if reading.Value != 1 {
			t.Errorf("%s is %g, want 1", device.Specs()[reading.Quantity].Name, reading.Value)
		}
		if details := len(device.Specs()[reading.Quantity].Details); reading.Details != [2]string{"detail", "detail"} && details == 2 || reading.Details[0] == "" && details > 0 {
			t.Errorf("%s has the details %q", device.Specs()[reading.Quantity].Name, reading.Details)
		}
	}
}
