//go:build cgo

package nvml

import (
	"errors"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// What a GPU does not support is absent, is not asked for again, and is asked
// for again once the GPUs have been looked for.
func TestUnsupportedIsAbsent(t *testing.T) {
	s := fitted(dgxa100.New())
	d := gpu(s, 0)
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		values[0].NvmlReturn = uint32(nvml.ERROR_INVALID_ARGUMENT) // newer than the library
		for i := range values[1:] {
			values[1+i].NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
		}
		return nvml.SUCCESS
	}
	from := NewOver(s, Options{})
	r := readers(t, from)[0]
	for range 3 {
		text := written(r.Read(t.Context(), device.Fast))
		for _, absent := range []string{"power", "nvlink", "temperature memory", "error"} {
			if strings.Contains(text, "\t"+absent) || strings.Contains(text, "error:") {
				t.Errorf("%s is there:\n%s", absent, text)
			}
		}
	}
	if calls := len(d.GetPowerUsageCalls()); calls != 1 {
		t.Errorf("asked %d times for what is not supported", calls)
	}
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 1500, nvml.SUCCESS }
	if text := read(t, from, 0, device.Fast); !strings.Contains(text, "power  1.5 watts") {
		t.Errorf("after looking again there is no power:\n%s", text)
	}
}

func TestOlderMemoryCallIsTheSecondChoice(t *testing.T) {
	s := fitted(dgxa100.New())
	d := gpu(s, 0)
	d.MemoryInfo.Used = 7 << 30
	from := NewOver(s, Options{})
	if text := read(t, from, 0, device.Fast); !strings.Contains(text, "memory_used  1073741824 bytes") {
		t.Errorf("with the newer call:\n%s", text)
	}
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_UNKNOWN }
	if text := written(readers(t, from)[0].Read(t.Context(), device.Fast)); strings.Contains(text, "\tmemory_used") {
		t.Errorf("the older call stood in for a failure of the newer:\n%s", text)
	}
	s.LookupSymbolFunc = func(name string) error {
		if name == "nvmlDeviceGetMemoryInfo_v2" {
			return errors.New("undefined symbol")
		}
		return nil
	}
	d.GetMemoryInfo_v2Func = nil // calling it would end the process
	text := read(t, from, 0, device.Fast)
	if !strings.Contains(text, "memory_used  7516192768 bytes") || strings.Contains(text, "memory_reserved") {
		t.Errorf("without the newer call:\n%s", text)
	}
}

// From NVLink 5 on the links are asked one by one; one that stops answering
// does not make the sum fall.
func TestNVLinkOfSingleLinks(t *testing.T) {
	s := fitted(dgxb200.New())
	d := gpu(s, 0)
	f := fields{{nvml.FI_DEV_NVLINK_LINK_COUNT, 0}: 3}
	for link := range uint32(3) {
		f[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, link}] = 100
		f[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, link}] = 1000
	}
	d.GetFieldValuesFunc = f.answer
	r := readers(t, NewOver(s, Options{}))[0]
	expect := func(transmit, receive string) {
		t.Helper()
		text := written(r.Read(t.Context(), device.Fast))
		if !strings.Contains(text, "nvlink_transmit  "+transmit+" bytes") || !strings.Contains(text, "nvlink_receive  "+receive+" bytes") {
			t.Errorf("want %s and %s:\n%s", transmit, receive, text)
		}
	}
	expect("300", "3000")
	f[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 0}] = 150
	delete(f, [2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 2})
	calls := len(d.GetFieldValuesCalls())
	expect("350", "3000")
	if calls = len(d.GetFieldValuesCalls()) - calls; calls != 1 {
		t.Errorf("a read asked for field values %d times", calls)
	}
}

// What the links counted outlives a look for GPUs, whatever the number of
// links is then, until the hardware resets its counters.
func TestLinksAreRemembered(t *testing.T) {
	s := fitted(dgxb200.New())
	f := fields{{nvml.FI_DEV_NVLINK_LINK_COUNT, 0}: 3}
	set := func(link uint32, value uint64) { f[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, link}] = value }
	for link := range uint32(3) {
		set(link, 1000)
	}
	gpu(s, 0).GetFieldValuesFunc = f.answer
	from := NewOver(s, Options{})
	expect := func(when, sum string) {
		t.Helper()
		for i := range 4 {
			if text := read(t, from, 0, device.Fast); i >= 2 && !strings.Contains(text, "nvlink_transmit  "+sum+" bytes") {
				t.Errorf("%s: want %s:\n%s", when, sum, text)
			}
		}
	}
	expect("at first", "3000")
	delete(f, [2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 2})
	expect("one link is down", "3000")
	f[[2]uint32{nvml.FI_DEV_NVLINK_LINK_COUNT, 0}] = 2
	expect("it is not counted any more", "3000")
	f[[2]uint32{nvml.FI_DEV_NVLINK_LINK_COUNT, 0}] = 4
	set(2, 1001)
	set(3, 10)
	expect("it is back, with another", "3011")
	delete(f, [2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 2})
	from.connection.connected = false
	expect("it is down and the library was initialized again", "3011")
	set(0, 5)
	set(1, 6)
	expect("two start over", "3022")
	for link := range uint32(4) {
		set(link, uint64(link)+1)
	}
	expect("the hardware resets its counters", "10")
}

func TestOneFieldFails(t *testing.T) {
	s := fitted(dgxh100.New())
	well := gpu(s, 0).GetFieldValuesFunc
	gpu(s, 0).GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		ret := well(values)
		for i := range values {
			if values[i].FieldId == nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX {
				values[i].NvmlReturn = uint32(nvml.ERROR_UNKNOWN)
			}
			values[i].ScopeId = 77 // the library may write into the question
		}
		return ret
	}
	text := read(t, NewOver(s, Options{}), 0, device.Fast)
	if strings.Contains(text, "nvlink_transmit  ") || !strings.Contains(text, "nvlink_receive  4096 bytes") ||
		!strings.Contains(text, "error: read nvlink_transmit of GPU-0: ERROR_UNKNOWN") {
		t.Errorf("one field fails:\n%s", text)
	}
}

func TestValueThatIsNotThereYet(t *testing.T) {
	s := fitted(dgxh100.New())
	d := gpu(s, 0)
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NO_DATA }
	r := readers(t, NewOver(s, Options{}))[0]
	if text := written(r.Read(t.Context(), device.Fast)); strings.Contains(text, "\tpower ") || strings.Contains(text, "error:") {
		t.Errorf("no data gave\n%s", text)
	}
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 1000, nvml.SUCCESS }
	if text := written(r.Read(t.Context(), device.Fast)); !strings.Contains(text, "power  1 watts") {
		t.Errorf("the data was not asked for again:\n%s", text)
	}
}

// A library with no more than the core functions is read as far as it goes,
// and no other function of it is called.
func TestCoreLibrary(t *testing.T) {
	s := fitted(dgxh100.New())
	s.LookupSymbolFunc = func(name string) error {
		for _, versions := range core() {
			if versions[len(versions)-1] == name {
				return nil
			}
		}
		return errors.New("undefined symbol")
	}
	bare := server.NewDeviceFromConfig(gpu(s, 0).Config, 0)
	bare.UUID = "GPU-0"
	bare.GetMemoryInfoFunc, bare.GetMigModeFunc = nil, nil // calling them would end the process
	s.Devices = []nvml.Device{bare}
	observations, err := readers(t, NewOver(s, Options{}))[0].Read(t.Context(), device.Slow)
	if err != nil || len(observations) != 1 || len(observations[0].Readings)+len(observations[0].Slow) != 0 {
		t.Errorf("a core library gave\n%s", written(observations, err))
	}
}

func TestFastReadsMakeFewerCalls(t *testing.T) {
	s := servers()["dgxb200"]
	r := readers(t, NewOver(s, Options{Links: true}))[0]
	for range 3 {
		before := len(gpu(s, 0).GetFieldValuesCalls())
		text := written(r.Read(t.Context(), device.Fast))
		if strings.Contains(text, "(slow)") || strings.Contains(text, "power_limit") {
			t.Errorf("a fast read gave\n%s", text)
		}
		if calls := len(gpu(s, 0).GetFieldValuesCalls()) - before; before > 0 && calls != 1 {
			t.Errorf("one read asked for field values %d times", calls)
		}
	}
}
