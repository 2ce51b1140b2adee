//go:build cgo

package nvml

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// A counter of 32 bits goes on where it wraps, over looks and over
// connections, and falls only where the hardware was reset.
func TestWrapsAreExtended(t *testing.T) {
	s := fitted(dgxh100.New())
	f := fieldsOf(4, 0)
	gpu(s, 0).GetFieldValuesFunc = f.answer
	from := NewOver(s, Options{})
	expect := func(when string, value uint64, want string) {
		t.Helper()
		f[[2]uint32{nvml.FI_DEV_PCIE_COUNT_TX_BYTES, 0}] = value
		if got := linesWith(read(t, from, 0, device.Fast), "pcie_transmit"); got != "pcie_transmit  "+want+" bytes" {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	expect("at first", 1<<32-5, "4294967291")
	expect("it wraps", 5, "4294967301")
	expect("it stays", 5, "4294967301")
	expect("it wraps again", 4, "8589934596")
	from.connection.connected = false
	expect("on another connection", 6, "8589934598")
	from.connection.connected = false
	expect("the hardware was reset", 3, "3")
	expect("it is wider", 1<<33, "8589934592")
	expect("a wide one falls", 7, "7")
	expect("10 GiB go over it, of which two wraps are not seen", 7+10<<30%(1<<32), "2147483655")
	expect("and again", (7+20<<30)%(1<<32), "4294967303")
	if got := linesWith(read(t, from, 0, device.Fast), "pcie_receive"); got != "pcie_receive  198 bytes" {
		t.Errorf("the other way went %s", got)
	}
}

// Where a GPU does not count for how long it was throttled, what it says at
// each read is added up.
func TestSampledThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		d := gpu(s, 0)
		reasons, ret := uint64(0), nvml.SUCCESS
		d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return reasons, ret }
		d.GetSupportedClocksEventReasonsFunc = func() (uint64, nvml.Return) {
			return 0x1ff &^ nvml.ClocksEventReasonSyncBoost, nvml.SUCCESS
		}
		f := fields{{nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, 0}: 1500e6}
		d.GetFieldValuesFunc = f.answer
		from := NewOver(s, Options{})
		expect := func(after time.Duration, power, brake string) {
			t.Helper()
			time.Sleep(after)
			want := "throttled hw_power_brake " + brake + " seconds; throttled hw_slowdown 0 seconds; throttled hw_thermal 1.5 seconds; " +
				"throttled power_cap " + power + " seconds; throttled thermal 0 seconds"
			if ret != nvml.SUCCESS {
				want = "throttled hw_thermal 1.5 seconds"
			}
			if got := linesWith(read(t, from, 0, device.Fast), "throttled"); got != want {
				t.Errorf("throttled for %s, want %s", got, want)
			}
		}
		expect(0, "0", "0")
		reasons = nvml.ClocksEventReasonSwPowerCap | nvml.ClocksEventReasonGpuIdle
		expect(time.Second, "0", "0")
		expect(2*time.Second, "2", "0")
		reasons |= hwPowerBrake
		expect(500*time.Millisecond, "2.5", "0")
		reasons = hwPowerBrake
		expect(time.Second, "3.5", "1")
		reasons = 0
		from.connection.connected = false // it goes on over another connection
		expect(10*time.Second, "3.5", "11")
		reasons = hwPowerBrake
		expect(time.Second, "3.5", "11")
		expect(11*time.Second, "3.5", "11") // too long ago to be known
		ret = nvml.ERROR_NO_DATA
		expect(5*time.Second, "", "")
		ret = nvml.SUCCESS
		expect(5*time.Second, "3.5", "21")
		if calls := len(d.GetCurrentClocksEventReasonsCalls()); calls != 10 {
			t.Errorf("the reasons were asked for %d times in 10 reads", calls)
		}
	})
}

// However seldom the GPU is read, what it says lasts up to the next read,
// unless several are missing between the two.
func TestSampledThrottlingAtLongIntervals(t *testing.T) {
	for interval, want := range map[time.Duration]string{0: "0", time.Second: "0", 15 * time.Second: "300", 6 * time.Second: "300"} {
		synctest.Test(t, func(t *testing.T) {
			s := fitted(dgxh100.New())
			gpu(s, 0).GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return hwThermalSlowdown, nvml.SUCCESS }
			from := NewOver(s, Options{Interval: interval})
			for range 20 {
				read(t, from, 0, device.Fast)
				time.Sleep(15 * time.Second)
			}
			if got := linesWith(read(t, from, 0, device.Fast), "throttled hw_thermal"); got != "throttled hw_thermal "+want+" seconds" {
				t.Errorf("read every 15 s, at an interval of %s: %s, want %s seconds", interval, got, want)
			}
			time.Sleep(46 * time.Second)
			if got := linesWith(read(t, from, 0, device.Fast), "throttled hw_thermal"); got != "throttled hw_thermal "+want+" seconds" {
				t.Errorf("46 s later: %s, want %s seconds", got, want)
			}
		})
	}
}

// A library without the call reports nothing.
func TestNoThrottling(t *testing.T) {
	s := fitted(dgxh100.New())
	gpu(s, 0).GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	if text := read(t, NewOver(s, Options{}), 0, device.Fast); strings.Contains(text, "throttled") || strings.Contains(text, "error:") {
		t.Errorf("throttled:\n%s", text)
	}
}
