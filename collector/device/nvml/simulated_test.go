//go:build cgo

package nvml

import (
	"encoding/binary"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// servers are the simulated machines; each call makes new ones.
func servers() map[string]*server.Server {
	return map[string]*server.Server{
		"dgxa100": equip(fitted(dgxa100.New()), 3),
		"dgxh100": equip(fitted(dgxh100.New()), 4),
		"dgxh200": equip(fitted(dgxh200.New()), 4),
		"dgxb200": equip(fitted(dgxb200.New()), 5),
	}
}

// fitted gives the GPUs of a simulated machine what it lacks: known UUIDs and
// addresses, and values that differ by GPU and by quantity.
func fitted(s *server.Server) *server.Server {
	for i := range s.Devices {
		fit(gpu(s, i), i)
	}
	return withoutSystemEvents(s)
}

// withoutSystemEvents makes the server refuse system events, which it does not imitate.
func withoutSystemEvents(s *server.Server) *server.Server {
	s.SystemEventSetCreateFunc = func(*nvml.SystemEventSetCreateRequest) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
	return s
}

func gpu(s *server.Server, i int) *server.Device { return s.Devices[i].(*server.Device) }

func fit(d *server.Device, i int) {
	n := uint32(i)
	d.UUID = fmt.Sprintf("GPU-%d", i)
	d.GetPciInfoFunc = func() (info nvml.PciInfo, _ nvml.Return) {
		for at, c := range []byte(fmt.Sprintf("00000000:%XA:00.0", i+1)) {
			info.BusId[at] = int8(c)
		}
		return info, nvml.SUCCESS
	}
	d.GetSerialFunc = func() (string, nvml.Return) { return fmt.Sprintf("165092300431%d", i), nvml.SUCCESS }
	d.GetBoardPartNumberFunc = func() (string, nvml.Return) { return "692-2G520-0200-000", nvml.SUCCESS }
	d.GetVbiosVersionFunc = func() (string, nvml.Return) { return "", nvml.ERROR_NOT_SUPPORTED }
	d.GetIndexFunc = func() (int, nvml.Return) { return i, nvml.SUCCESS }
	d.GetModuleIdFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS } // as without a baseboard
	d.GetPlatformInfoFunc = func() (nvml.PlatformInfo, nvml.Return) { return nvml.PlatformInfo{}, nvml.ERROR_NOT_SUPPORTED }
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{Total: d.MemoryInfo.Total, Used: uint64(i+1) << 30, Reserved: 600 << 20}, nvml.SUCCESS
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 10 + n, Memory: 99}, nvml.SUCCESS
	}
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 400_500 + n, nvml.SUCCESS }
	d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 700_000, nvml.SUCCESS }
	d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 5_000_250 + uint64(i), nvml.SUCCESS }
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 40 + n, nvml.SUCCESS }
	d.GetClockInfoFunc = func(clock nvml.ClockType) (uint32, nvml.Return) {
		return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 1980, nvml.CLOCK_MEM: 2619}[clock], nvml.SUCCESS
	}
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, of nvml.EccCounterType) (uint64, nvml.Return) {
		return 1000 * uint64(1+kind) * uint64(of), nvml.SUCCESS // none since the driver was loaded
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 3, 2, true, false, nvml.SUCCESS }
	d.GetPcieReplayCounterFunc = func() (int, nvml.Return) { return 70 + i, nvml.SUCCESS }
	d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
		return nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED}, nvml.SUCCESS
	}
	d.GetP2PStatusFunc = func(nvml.Device, nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
		return nvml.P2P_STATUS_OK, nvml.SUCCESS
	}
	d.GetSupportedClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0x1ff, nvml.SUCCESS }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, nvml.SUCCESS }
	d.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
	d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
	}
	d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return nvml.EventTypeNone, nvml.SUCCESS }
	d.GpmQueryDeviceSupportFunc = func() (nvml.GpmSupport, nvml.Return) { return nvml.GpmSupport{}, nvml.SUCCESS }
	d.GetFieldValuesFunc = fields{
		{nvml.FI_DEV_MEMORY_TEMP, 0}:                      50 + uint64(i),
		{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, allLinks}: 3,
		{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, allLinks}: 4,
	}.answer
}

// equip gives the GPUs of a simulated machine all field values that those of
// its generation have; generation is the version of their NVLink.
func equip(s *server.Server, generation int) *server.Server {
	for i := range s.Devices {
		gpu(s, i).GetFieldValuesFunc = fieldsOf(generation, i).answer
	}
	return s
}

// fieldsOf are the field values of the i-th GPU: each its own id, as a rule.
func fieldsOf(generation, i int) fields {
	f := fields{{nvml.FI_DEV_NVLINK_LINK_COUNT, 0}: 3}
	set := func(scope uint32, ids ...uint32) {
		for _, id := range ids {
			f[[2]uint32{id, scope}] = uint64(id)
		}
	}
	each := func(ids ...uint32) {
		for link := range uint32(3) {
			set(link, ids...)
		}
	}
	set(0, nvml.FI_DEV_MEMORY_TEMP, nvml.FI_DEV_ECC_SBE_AGG_TOTAL, nvml.FI_DEV_ECC_DBE_AGG_TOTAL,
		nvml.FI_DEV_REMAPPED_COR, nvml.FI_DEV_REMAPPED_UNC, nvml.FI_DEV_PCIE_REPLAY_COUNTER,
		nvml.FI_DEV_PCIE_COUNT_TX_BYTES, nvml.FI_DEV_PCIE_COUNT_RX_BYTES)
	f[[2]uint32{nvml.FI_DEV_MEMORY_TEMP, 0}] = 50 + uint64(i)
	f[[2]uint32{nvml.FI_DEV_REMAPPED_PENDING, 0}], f[[2]uint32{nvml.FI_DEV_REMAPPED_FAILURE, 0}] = 1, 0
	for id := uint32(nvml.FI_DEV_PERF_POLICY_POWER); id <= nvml.FI_DEV_PERF_POLICY_RELIABILITY; id++ {
		f[[2]uint32{id, 0}] = uint64(id) * 1e9
	}
	if generation >= 4 {
		for id := uint32(nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN); id <= nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN; id++ {
			f[[2]uint32{id, 0}] = uint64(id) * 1e9
		}
		f[[2]uint32{nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, 0}] = 1
		f[[2]uint32{nvml.FI_DEV_NVLINK_GET_STATE, 0}] = nvml.NVLINK_STATE_ACTIVE
		f[[2]uint32{nvml.FI_DEV_NVLINK_GET_STATE, 1}] = nvml.NVLINK_STATE_INACTIVE
		f[[2]uint32{nvml.FI_DEV_NVLINK_GET_STATE, 2}] = nvml.NVLINK_STATE_SLEEP
	}
	if generation >= 5 {
		each(nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES,
			nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS,
			nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS, nvml.FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS,
			nvml.FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, nvml.FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS,
			nvml.FI_DEV_NVLINK_COUNT_XMIT_DISCARDS)
		return f
	}
	f[[2]uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, allLinks}] = 3
	f[[2]uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, allLinks}] = 6
	for link := range uint32(3) {
		f[[2]uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, link}] = 1
		f[[2]uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, link}] = 2
	}
	set(0, nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
		nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL)
	if generation == 4 {
		each(nvml.FI_DEV_NVLINK_ERROR_DL_CRC, nvml.FI_DEV_NVLINK_ERROR_DL_REPLAY, nvml.FI_DEV_NVLINK_ERROR_DL_RECOVERY)
	}
	return f
}

// fields are the field values that a GPU has, by id and scope; it does not
// support any other.
type fields map[[2]uint32]uint64

func (f fields) answer(values []nvml.FieldValue) nvml.Return {
	for i := range values {
		v := &values[i]
		number, there := f[[2]uint32{v.FieldId, v.ScopeId}]
		if !there {
			v.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
			continue
		}
		v.ValueType = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG)
		binary.NativeEndian.PutUint64(v.Value[:], number)
	}
	return nvml.SUCCESS
}

// slice cuts MIG devices of one slice out of a GPU, at the given placements.
func slice(t *testing.T, d *server.Device, placements ...int) {
	t.Helper()
	profile, ret := d.GetGpuInstanceProfileInfo(nvml.GPU_INSTANCE_PROFILE_1_SLICE)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	instances := make(map[int]nvml.GpuInstance)
	parts := make(map[int]*mock.Device)
	for i, start := range placements {
		instance, ret := d.CreateGpuInstanceWithPlacement(&profile, &nvml.GpuInstancePlacement{Start: uint32(start), Size: 1})
		if ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
		instances[i+1], parts[i] = instance, simulatedMIGDevice(d, i, profile)
	}
	d.GetGpuInstanceByIdFunc = func(id int) (nvml.GpuInstance, nvml.Return) {
		if instance, there := instances[id]; there {
			return instance, nvml.SUCCESS
		}
		return nil, nvml.ERROR_NOT_FOUND
	}
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if part, there := parts[i]; there {
			return part, nvml.SUCCESS
		}
		return nil, nvml.ERROR_NOT_FOUND
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED }
}

// migDevice is a MIG device of a GPU: it panics when it is asked for anything
// that MIG devices do not have.
func simulatedMIGDevice(d *server.Device, i int, profile nvml.GpuInstanceProfileInfo) *mock.Device {
	return &mock.Device{
		GetUUIDFunc:              func() (string, nvml.Return) { return fmt.Sprintf("MIG-%s-%d", d.UUID, i), nvml.SUCCESS },
		GetNameFunc:              func() (string, nvml.Return) { return d.Config.Name, nvml.SUCCESS },
		GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return i + 1, nvml.SUCCESS },
		GetComputeInstanceIdFunc: func() (int, nvml.Return) { return 0, nvml.SUCCESS },
		GetAttributesFunc: func() (nvml.DeviceAttributes, nvml.Return) {
			return nvml.DeviceAttributes{
				GpuInstanceSliceCount: profile.SliceCount, ComputeInstanceSliceCount: profile.SliceCount,
				MemorySizeMB: profile.MemorySizeMB,
			}, nvml.SUCCESS
		},
		GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
			return nvml.Memory_v2{Total: profile.MemorySizeMB << 20, Used: uint64(i+1) << 20, Reserved: 15 << 20}, nvml.SUCCESS
		},
	}
}

// written writes observations down: the identity, then the readings of both
// tiers, sorted.
func written(observations []device.Observation, err error) string {
	var b strings.Builder
	for _, o := range observations {
		d := o.Device
		fmt.Fprintf(&b, "%s parent=%q vendor=%s model=%q pci=%s minor=%d profile=%q placement=%d instances=%d/%d driver=%s nodes=%q domain=%q\n",
			d.UUID, d.ParentUUID, d.Vendor, d.Model, d.PCIBusID, d.Minor, d.Profile, d.Placement, d.GPUInstance, d.ComputeInstance,
			d.DriverVersion, d.Nodes, d.LinkDomain)
		for tier, readings := range [][]device.Reading{o.Readings, o.Slow} {
			var lines []string
			for _, r := range readings {
				spec := device.Specs()[r.Quantity]
				lines = append(lines, fmt.Sprintf("\t%s %s %.12g %s (%s)\n",
					spec.Name, strings.TrimSuffix(strings.Join(r.Details[:], "/"), "/"), r.Value, spec.Unit, []string{"fast", "slow"}[tier]))
			}
			sort.Strings(lines)
			b.WriteString(strings.Join(lines, ""))
		}
	}
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	return b.String()
}
