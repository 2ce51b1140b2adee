package dcgm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// converterFixture is a converter for one GPU whose values the test sets.
type converterFixture struct {
	*converter
	now time.Duration
	at  int64
}

func newConverterFixture(profiling bool) *converterFixture {
	b := &converterFixture{converter: newConverter(Options{Profiling: profiling}.complete()), at: 1e15}
	b.begin()
	return b
}

// begin applies the plan, again.
func (b *converterFixture) begin() {
	b.applyPlan(makePlan([]uint{0}, nil, map[entity]identity{{wholeGPU, 0}: {uuid: "GPU-a"}}))
}

// call is a call that takes no time. The engine's clock is ours.
func (b *converterFixture) call() *callTime {
	return &callTime{b.now, clock.Instant{Elapsed: b.now, Wall: time.UnixMicro(b.at)}}
}

// read applies the values of a read one second after the previous one.
func (b *converterFixture) read(tier device.Tier, values map[uint16]value) *deviceResult {
	b.now, b.at = b.now+time.Second, b.at+1e6
	b.grid.begin()
	for field, v := range values {
		v.entity, v.field = entity{wholeGPU, 0}, field
		if v.status == statusOK {
			v.at = b.at
		}
		b.grid.apply(&v, b.call())
	}
	return b.observe(&b.plan.targets[0], tier, b.now)
}

// text returns the readings of a quantity as text.
func (f *deviceResult) text(q device.Quantity) string {
	var words []string
	for _, r := range append(slices.Clone(f.Readings), f.Slow...) {
		if r.Quantity == q {
			words = append(words, strings.TrimPrefix(fmt.Sprintf("%s=%v", r.Details[0], r.Value), "="))
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestConversions(t *testing.T) {
	b := newConverterFixture(true)
	f := b.read(device.Slow, map[uint16]value{
		gpuUtilization: integer(55), encoderUtilization: integer(10), decoderUtilization: integer(20),
		boardPower: double(412.5), enforcedPowerLimit: double(700), totalEnergy: integer(1_234_567),
		gpuTemperature: integer(-5), memoryTemperature: integer(60), smClock: integer(1980), memoryClock: integer(2619),
		framebufferUsed: integer(1024), framebufferTotal: integer(81559), framebufferReserved: integer(0),
		nvlinkTransmit: integer(5), nvlinkTransmitRate: integer(9), pcieReceiveRate: integer(7),
		softwarePowerCap: integer(2_500_000_000), powerViolation: integer(9_000_000_000), clocksEventReasons: integer(0xff),
		remappedCorrected: integer(1), remappedUncorrected: integer(2), eccCorrected: integer(3), eccUncorrected: integer(4),
		nvlinkRecoveries: integer(blankInteger + 2), nvlinkRecoveryEvents: integer(6),
		recoveryAction: integer(1), fabricStatus: integer(4), smOccupancy: double(0.5), dramActive: double(0.75),
	})
	for q, want := range map[device.Quantity]string{
		device.Utilization:    "0.55",
		device.EngineActive:   "decoder=0.2 dram=0.75 encoder=0.1",
		device.SMOccupancy:    "0.5",
		device.Power:          "412.5",
		device.PowerLimit:     "700",
		device.Energy:         "1234.567",
		device.Temperature:    "gpu=-5 memory=60",
		device.ClockFrequency: "memory=2.619e+09 sm=1.98e+09",
		device.MemoryUsed:     "1.073741824e+09",
		device.MemoryReserved: "0",
		device.NVLinkTransmit: "5",
		device.NVLinkReceive:  "",
		device.PCIeReceive:    "0",
		device.Throttled:      "hw_slowdown=0 power_cap=2.5",
		device.ECCErrors:      "corrected=3 uncorrected=4",
		device.RemappedRows:   "corrected=1 uncorrected=2",
		device.NVLinkErrors:   "recovery=6",
		device.RecoveryAction: "drain_and_reset=0 drain_p2p=0 gpu_reset=1 node_reboot=0 none=0 other=0 recover_imex_domain=0",
		device.FabricState:    "failure=1 in_progress=0 not_started=0 success=0",
	} {
		// Reasons that are sampled have an alternative that may still have a
		// value, so they are not checked.
		got := f.text(q)
		if q == device.Throttled {
			got = strings.Join(slices.DeleteFunc(strings.Fields(got), func(w string) bool {
				return !strings.HasPrefix(w, "power_cap") && !strings.HasPrefix(w, "hw_slowdown")
			}), " ")
		}
		if got != want {
			t.Errorf("%s is %q, want %q", device.Specs()[q].Name, got, want)
		}
	}
}

func TestStates(t *testing.T) {
	for _, test := range []struct {
		field uint16
		q     device.Quantity
		value value
		want  string
	}{
		{fabricStatus, device.FabricState, integer(0), ""},
		{fabricStatus, device.FabricState, integer(1), "not_started"},
		{fabricStatus, device.FabricState, integer(3), "success"},
		{fabricStatus, device.FabricState, integer(5), ""},
		{fabricStatus, device.FabricState, integer(6), ""},
		{fabricStatus, device.FabricState, integer(-1), ""},
		{recoveryAction, device.RecoveryAction, integer(0), "none"},
		{recoveryAction, device.RecoveryAction, integer(4), "drain_and_reset"},
		{recoveryAction, device.RecoveryAction, integer(17), "other"},
		{recoveryAction, device.RecoveryAction, integer(blankInteger), ""},
	} {
		f := newConverterFixture(false).read(device.Slow, map[uint16]value{test.field: test.value})
		state := ""
		for _, word := range strings.Fields(f.text(test.q)) {
			if name, is := strings.CutSuffix(word, "=1"); is {
				state = name
			}
		}
		if state != test.want || (f.text(test.q) == "") != (test.want == "") {
			t.Errorf("field %d is %q (%s), want %q", test.field, state, f.text(test.q), test.want)
		}
	}
}

// The status of a value makes it present, absent or an error of that device and
// quantity. Other quantities are not affected.
func TestStatusOfValue(t *testing.T) {
	for code := status(-70); code <= 0; code++ {
		b := newConverterFixture(false)
		bad := integer(100)
		bad.status = code
		f := b.read(device.Fast, map[uint16]value{gpuUtilization: bad, boardPower: double(70)})
		if f.text(device.Power) != "70" || !f.hasValues {
			t.Errorf("status %d of another field: power is %q", code, f.text(device.Power))
		}
		if got, want := f.text(device.Utilization) == "1", code == 0; got != want {
			t.Errorf("status %d: utilization is %q", code, f.text(device.Utilization))
		}
		if got, want := errors.Is(f.err(), code), code.outcome() == failed; code != 0 && got != want {
			t.Errorf("status %d: error %v", code, f.err())
		}
		if f.lost != (code.outcome() == lost) {
			t.Errorf("status %d: lost is %v", code, f.lost)
		}
	}
}

func TestRates(t *testing.T) {
	b := newConverterFixture(true)
	total := func(rate int64) string {
		return b.read(device.Fast, map[uint16]value{pcieTransmitRate: integer(rate)}).text(device.PCIeTransmit)
	}
	for step, want := range []string{"0", "2000", "5000"} {
		if got := total(int64(step+1) * 1000); got != want {
			t.Errorf("second %d: %s, want %s", step, got, want)
		}
	}
	// A blank between two values does not stop the clock.
	b.read(device.Fast, map[uint16]value{pcieTransmitRate: integer(blankInteger)})
	if got := total(1000); got != "7000" {
		t.Errorf("after a blank: %s, want 7000", got)
	}
	// Ten seconds without any value: only the last second is known.
	for range 9 {
		b.read(device.Fast, nil)
	}
	if got := total(1000); got != "8000" {
		t.Errorf("after a gap: %s, want 8000", got)
	}
	// Another connection, another plan: nothing decreases.
	b.begin()
	if got := total(1000); got != "9000" {
		t.Errorf("after another plan: %s, want 9000", got)
	}
	// The engine's clock is set back: the unknown time is not counted.
	b.at -= 3600e6
	if got := total(1000); got != "9000" {
		t.Errorf("after the clock was set back: %s, want 9000", got)
	}
	if got := total(1000); got != "10000" {
		t.Errorf("a second later: %s, want 10000", got)
	}
}

func TestSampledReasons(t *testing.T) {
	b := newConverterFixture(false)
	none := integer(blankInteger + 2)
	read := func(mask int64) string {
		return b.read(device.Fast, map[uint16]value{
			clocksEventReasons: integer(mask), softwarePowerCap: none, powerViolation: none,
			softwareThermal: none, thermalViolation: none, hardwareThermal: none, hardwarePowerBrake: none,
			syncBoost: none, syncBoostViolation: none,
		}).text(device.Throttled)
	}
	read(0)
	if got, want := read(0x04|0x40), "hw_power_brake=0 hw_slowdown=0 hw_thermal=1 power_cap=1 sync_boost=0 thermal=0"; got != want {
		t.Errorf("throttled %s, want %s", got, want)
	}
	if got, want := read(0xff), "hw_power_brake=1 hw_slowdown=1 hw_thermal=2 power_cap=2 sync_boost=1 thermal=1"; got != want {
		t.Errorf("throttled %s, want %s", got, want)
	}
}

// Of several rows for a quantity the first with a value is used, and kept: two of
// them may count from different origins.
func TestAlternativeRows(t *testing.T) {
	counter := func(v value) map[uint16]value {
		return map[uint16]value{nvlinkTransmit: v, nvlinkTransmitRate: integer(1000)}
	}
	blank, none := integer(blankInteger), integer(blankInteger+2)

	b := newConverterFixture(true)
	for i, want := range []string{"", "", "", "0", "1000"} {
		if got := b.read(device.Fast, counter(blank)).text(device.NVLinkTransmit); got != want {
			t.Errorf("a counter without a value, read %d: %s, want %s", i, got, want)
		}
	}
	if got := b.read(device.Fast, counter(integer(7_000_000))).text(device.NVLinkTransmit); got != "2000" {
		t.Errorf("a counter that comes late takes over: %s", got)
	}
	b.begin()
	if got := b.read(device.Fast, counter(integer(8_000_000))).text(device.NVLinkTransmit); got != "3000" {
		t.Errorf("a counter takes over with another plan: %s", got)
	}

	b = newConverterFixture(true)
	if got := b.read(device.Fast, counter(none)).text(device.NVLinkTransmit); got != "0" {
		t.Errorf("without a counter: %s", got)
	}

	b = newConverterFixture(true)
	b.read(device.Fast, counter(integer(500)))
	for range 5 {
		if got := b.read(device.Fast, counter(none)).text(device.NVLinkTransmit); got != "" {
			t.Errorf("a counter that was lost is replaced: %s", got)
		}
	}
}

// Where only the older counter of thermal violations answers, which is of
// either cause, the hardware's reason is not sampled beside it.
func TestThermalViolationsAreCountedOnce(t *testing.T) {
	none := integer(blankInteger + 2)
	values := map[uint16]value{
		softwareThermal: none, hardwareThermal: none, thermalViolation: integer(3_000_000_000), clocksEventReasons: integer(0xff),
	}
	b := newConverterFixture(false)
	b.read(device.Fast, values)
	if got := b.read(device.Fast, values).text(device.Throttled); !strings.Contains(got, " thermal=3") || strings.Contains(got, "hw_thermal") {
		t.Errorf("throttled %s", got)
	}
}

func TestStaleValues(t *testing.T) {
	b := newConverterFixture(false)
	frozen := integer(50)
	read := func(seconds int) (f *deviceResult) {
		for range seconds {
			b.now += time.Second
			b.grid.begin()
			for field, v := range map[uint16]value{gpuUtilization: frozen, eccCorrected: frozen} {
				v.entity, v.field, v.at = entity{wholeGPU, 0}, field, 1e15
				b.grid.apply(&v, b.call())
			}
			f = b.observe(&b.plan.targets[0], device.Slow, b.now)
		}
		return f
	}
	if f := read(10); f.text(device.Utilization) != "0.5" || f.err() != nil {
		t.Errorf("after 10 s: %q, %v", f.text(device.Utilization), f.err())
	}
	if f := read(5); f.text(device.Utilization) != "" || f.text(device.ECCErrors) != "corrected=50" || f.err() != nil {
		t.Errorf("after 15 s: %q, %q, %v", f.text(device.Utilization), f.text(device.ECCErrors), f.err())
	}
	if f := read(90); f.hasValues || f.err() == nil {
		t.Errorf("after 105 s: %q, %v", f.text(device.ECCErrors), f.err())
	}
	// A value that this read does not report is absent, however new the last one is.
	b.read(device.Slow, map[uint16]value{gpuUtilization: integer(60)})
	if f := b.read(device.Slow, nil); f.hasValues {
		t.Errorf("a value of an earlier read is reported again: %q", f.text(device.Utilization))
	}
}

func TestLinkReadings(t *testing.T) {
	if got := linkReadings(links{}); got != nil {
		t.Errorf("a GPU without links has %v", got)
	}
	f := &deviceResult{}
	f.Readings = linkReadings(links{up: 17, down: 1})
	if got := f.text(device.NVLinks); got != "active=17 inactive=1" {
		t.Errorf("links %s", got)
	}
}
