//go:build cgo

package nvml

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// swift is a GPU, or a MIG device of one, that answers at once and writes
// nothing down, as the mocks do: what is measured is the source alone.
type swift struct {
	nvml.Device
	uuid       string
	instance   int
	migDevices []*swift
}

func (d *swift) GetUUID() (string, nvml.Return) { return d.uuid, nvml.SUCCESS }
func (d *swift) GetName() (string, nvml.Return) {
	return "NVIDIA H100 80GB HBM3 MIG 1g.10gb", nvml.SUCCESS
}
func (d *swift) GetMinorNumber() (int, nvml.Return) { return 0, nvml.SUCCESS }
func (d *swift) GetSerial() (string, nvml.Return)   { return "1650923004310", nvml.SUCCESS }
func (d *swift) GetBoardPartNumber() (string, nvml.Return) {
	return "692-2G520-0200-000", nvml.SUCCESS
}
func (d *swift) GetVbiosVersion() (string, nvml.Return) { return "96.00.74.00.01", nvml.SUCCESS }
func (d *swift) GetIndex() (int, nvml.Return)           { return 0, nvml.SUCCESS }

//nolint:staticcheck // the binding's name
func (d *swift) GetModuleId() (int, nvml.Return) { return 1, nvml.SUCCESS }
func (d *swift) GetPlatformInfo() (nvml.PlatformInfo, nvml.Return) {
	return nvml.PlatformInfo{}, nvml.ERROR_NOT_SUPPORTED
}
func (d *swift) GetPowerUsage() (uint32, nvml.Return) { return 1, nvml.SUCCESS }
func (d *swift) GetMigMode() (int, int, nvml.Return) {
	return nvml.DEVICE_MIG_ENABLE, nvml.DEVICE_MIG_ENABLE, nvml.SUCCESS
}
func (d *swift) GetMaxMigDeviceCount() (int, nvml.Return) { return len(d.migDevices), nvml.SUCCESS }

//nolint:staticcheck // the binding's name
func (d *swift) GetGpuInstanceId() (int, nvml.Return) { return d.instance, nvml.SUCCESS }

//nolint:staticcheck // the binding's name
func (d *swift) GetComputeInstanceId() (int, nvml.Return)      { return 0, nvml.SUCCESS }
func (d *swift) GetPciInfo() (nvml.PciInfo, nvml.Return)       { return nvml.PciInfo{}, nvml.SUCCESS }
func (d *swift) GetSupportedEventTypes() (uint64, nvml.Return) { return 0, nvml.SUCCESS }
func (d *swift) GetEnforcedPowerLimit() (uint32, nvml.Return)  { return 1, nvml.SUCCESS }
func (d *swift) GetTemperature(nvml.TemperatureSensors) (uint32, nvml.Return) {
	return 1, nvml.SUCCESS
}
func (d *swift) GetTotalEnergyConsumption() (uint64, nvml.Return)  { return 1, nvml.SUCCESS }
func (d *swift) GetClockInfo(nvml.ClockType) (uint32, nvml.Return) { return 1, nvml.SUCCESS }

//nolint:staticcheck // the binding's name
func (d *swift) GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return) {
	return nvml.Memory_v2{Total: 1}, nvml.SUCCESS
}

//nolint:staticcheck // the binding's name
func (d *swift) GetGpuInstanceById(int) (nvml.GpuInstance, nvml.Return) {
	return nil, nvml.ERROR_NOT_SUPPORTED
}
func (d *swift) GetUtilizationRates() (nvml.Utilization, nvml.Return) {
	return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
}
func (d *swift) GetCurrentClocksEventReasons() (uint64, nvml.Return)   { return 0, nvml.SUCCESS }
func (d *swift) GetSupportedClocksEventReasons() (uint64, nvml.Return) { return 0x1ff, nvml.SUCCESS }
func (d *swift) GetGpuFabricInfo() (nvml.GpuFabricInfo, nvml.Return) {
	return nvml.GpuFabricInfo{}, nvml.ERROR_NOT_SUPPORTED
}
func (d *swift) GetP2PStatus(nvml.Device, nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
	return nvml.P2P_STATUS_OK, nvml.SUCCESS
}
func (d *swift) GetNvLinkRemoteDeviceType(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
	return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
}
func (d *swift) GetMigDeviceHandleByIndex(i int) (nvml.Device, nvml.Return) {
	return d.migDevices[i], nvml.SUCCESS
}
func (d *swift) GetFieldValues(values []nvml.FieldValue) nvml.Return {
	for i := range values {
		values[i].ValueType, values[i].NvmlReturn = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG), 0
		binary.NativeEndian.PutUint64(values[i].Value[:], 18)
	}
	return nvml.SUCCESS
}

// dense is a machine of eight GPUs that are cut into seven MIG devices each.
func dense() *server.Server {
	s := withoutSystemEvents(dgxh100.New())
	for i := range s.Devices {
		whole := &swift{uuid: fmt.Sprintf("GPU-%d", i)}
		for j := range 7 {
			whole.migDevices = append(whole.migDevices, &swift{uuid: fmt.Sprintf("MIG-%d-%d", i, j), instance: 7 + j})
		}
		s.Devices[i] = whole
	}
	return s
}

// BenchmarkSample is one fast sample of eight GPUs with 18 links and seven
// MIG devices each.
func BenchmarkSample(b *testing.B) {
	for _, links := range []bool{false, true} {
		b.Run(fmt.Sprintf("links=%t", links), func(b *testing.B) {
			found := readers(b, NewOver(dense(), Options{Links: links}))
			sample := func() (readings int) {
				for _, r := range found {
					observations, err := r.Read(b.Context(), device.Fast)
					if err != nil {
						b.Fatal(err)
					}
					for _, o := range observations {
						readings += len(o.Readings)
					}
				}
				return readings
			}
			readings := sample()
			b.ReportAllocs()
			for b.Loop() {
				sample()
			}
			b.ReportMetric(float64(readings), "readings")
		})
	}
}

// The hundredth sample costs as many allocations as the tenth: three for each
// device at most.
func TestAllocationsAreFlat(t *testing.T) {
	found := readers(t, NewOver(dense(), Options{}))
	sample := func() {
		for _, r := range found {
			if _, err := r.Read(t.Context(), device.Fast); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 10 {
		sample()
	}
	early := testing.AllocsPerRun(10, sample)
	for range 100 {
		sample()
	}
	late := testing.AllocsPerRun(10, sample)
	if late > early || early > 3*8*8 {
		t.Errorf("a sample costs %.0f allocations, and later %.0f", early, late)
	}
}
