package plugin

import (
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

const testDriver = "gpu.example.com"

func now() clock.Instant {
	return clock.Instant{Wall: time.Unix(1_000_000, 0), Elapsed: time.Hour}
}

func description(names ...string) *v1alpha1.Description {
	message := &v1alpha1.Description{Driver: testDriver}
	for _, name := range names {
		message.Devices = append(message.Devices, &v1alpha1.Device{Pool: "node-1", Name: name})
	}
	return message
}

func reading(quantity string, value float64, details ...string) *v1alpha1.Reading {
	return &v1alpha1.Reading{Quantity: quantity, Value: value, Details: details}
}

func reported(index uint32, readings ...*v1alpha1.Reading) *v1alpha1.Report {
	return &v1alpha1.Report{
		Measured: timestamppb.New(now().Wall.Add(-time.Second)),
		Devices:  []*v1alpha1.DeviceReport{{Device: index, Readings: readings}},
	}
}

func newDecoder(t testing.TB, names ...string) *Decoder {
	t.Helper()
	d := NewDecoder(testDriver)
	if err := d.Describe(description(names...)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReport(t *testing.T) {
	d := newDecoder(t, "gpu-0", "gpu-1")
	report := reported(1, reading("temperature", -3, "gpu"), reading("of_a_later_version", 1), reading("power", 70))
	report.Devices[0].Readings[2].Measured = timestamppb.New(now().Wall.Add(time.Hour))
	report.Devices[0].Processes = &v1alpha1.Processes{Processes: []*v1alpha1.Process{{Pid: 7, MemoryBytes: proto.Uint64(5)}}}
	got, _, err := d.Report(report, now())
	if err != nil || len(got) != 2 || len(got[0].Readings) != 0 || got[0].Processes != nil || len(got[1].Readings) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	at := time.Hour - time.Second
	want := device.Reading{Quantity: device.Temperature, Details: [2]string{"gpu"}, Value: -3, Measured: device.Window{From: at, To: at}}
	if name := (device.PublishedName{Driver: testDriver, Pool: "node-1", Device: "gpu-1"}); got[1].Readings[0] != want || got[1].Device.Published != name {
		t.Errorf("%+v", got[1])
	}
	if window := got[1].Readings[1].Measured; window.To != time.Hour {
		t.Errorf("a time in the future is %v", window)
	}
	if p := got[1].Processes; len(p) != 1 || p[0].Memory != 5 || p[0].Utilization != device.Unknown {
		t.Errorf("processes %+v", p)
	}
	if got, _, err = d.Report(reported(0), now()); err != nil || len(got[1].Readings) != 0 {
		t.Errorf("readings of an earlier report: %+v, %v", got, err)
	}
}

func TestOldReading(t *testing.T) {
	report := reported(0, reading("power", 1))
	report.Measured = timestamppb.New(now().Wall.Add(-time.Hour))
	if got, _, err := newDecoder(t, "gpu-0").Report(report, now()); err != nil || len(got[0].Readings) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A counter that falls is left out, whatever the stream: until it is as large as
// before, or has a later start.
func TestCountersNeverFall(t *testing.T) {
	d := newDecoder(t, "gpu-0")
	for i, step := range []struct {
		value float64
		start int64
		shown bool
	}{
		{10, 0, true}, {9, 0, false}, {10, 0, true}, {3, 100, true}, {2, 100, false}, {2, 0, false}, {4, 0, true}, {50, 90, true}, {49, 100, false}, {0, 200, true}, {7, 300, true},
	} {
		r := reading("energy", step.value)
		if step.start > 0 {
			r.StartTime = &timestamppb.Timestamp{Seconds: step.start}
		}
		got, ignored, err := d.Report(reported(0, r), now())
		if err != nil || (len(got[0].Readings) == 1) != step.shown || (ignored == nil) != step.shown {
			t.Errorf("step %d: %+v, %v, %v", i, got, ignored, err)
		}
		d.Begin()
		if _, _, err := d.Report(reported(0), now()); err == nil {
			t.Error("a report is accepted before the description of its stream")
		}
		if err := d.Describe(description("gpu-0")); err != nil {
			t.Fatal(err)
		}
	}
	_, ignored, _ := d.Report(reported(0, reading("energy", 1)), now())
	if want := "energy of device gpu-0 fell from 7 to 1 without a later start_time"; ignored == nil || ignored.Error() != want {
		t.Errorf("%v, want %s", ignored, want)
	}
}

// Each state of each signal is a reading.
func TestHealth(t *testing.T) {
	report := reported(0)
	report.Devices[0].Health = []*v1alpha1.HealthSignal{
		{Name: "link", State: v1alpha1.HealthState_HEALTH_STATE_DEGRADED, Reason: "one of two lanes"},
		{Name: "memory"},
	}
	got, _, err := newDecoder(t, "gpu-0").Report(report, now())
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[[2]string]float64)
	for _, r := range got[0].Readings {
		if r.Quantity != device.DriverHealth {
			t.Errorf("%+v", r)
		}
		values[r.Details] = r.Value
	}
	want := map[[2]string]float64{{"link", "healthy"}: 0, {"link", "degraded"}: 1, {"link", "unhealthy"}: 0}
	if !maps.Equal(values, want) {
		t.Errorf("%v, want %v", values, want)
	}
}

// The extensions that are named are returned, a counter as long as it rises.
func TestExportedExtensions(t *testing.T) {
	d := NewDecoder(testDriver)
	if err := d.Export([]string{"fan_speed_rpm", "frames_total", "other"}); err != nil {
		t.Fatal(err)
	}
	declared := description("gpu-0")
	for name, kind := range map[string]v1alpha1.Kind{
		"fan_speed_rpm": v1alpha1.Kind_KIND_GAUGE, "frames": v1alpha1.Kind_KIND_COUNTER,
		"other": v1alpha1.Kind_KIND_COUNTER, "more": v1alpha1.Kind_KIND_GAUGE,
	} {
		declared.Extensions = append(declared.Extensions, &v1alpha1.Extension{Name: name, Kind: kind})
	}
	if err := d.Describe(declared); err != nil {
		t.Fatal(err)
	}
	if got := d.Extensions(); !slices.Equal(got, []string{"fan_speed_rpm", "frames_total", "more", "other_total"}) {
		t.Errorf("the driver has %v", got)
	}
	value := func(name string, value float64) *v1alpha1.Reading {
		return &v1alpha1.Reading{Extension: name, Value: value}
	}
	got, fell, err := d.Report(reported(0, value("fan_speed_rpm", -5), value("frames", 10), value("other", 1), value("more", 1)), now())
	if err != nil || fell != nil || len(got[0].Readings) != 2 || got[0].Readings[1].Details != [2]string{"frames", "counter"} {
		t.Errorf("got %+v, %v, %v", got, fell, err)
	}
	got, fell, err = d.Report(reported(0, value("fan_speed_rpm", 7), value("frames", 9)), now())
	want := device.Reading{Quantity: device.Extension, Details: [2]string{"fan_speed_rpm", "gauge"}, Value: 7}
	if err != nil || fell == nil || len(got[0].Readings) != 1 {
		t.Fatalf("got %+v, %v, %v", got, fell, err)
	}
	if got := got[0].Readings[0]; got.Quantity != want.Quantity || got.Details != want.Details || got.Value != want.Value {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"", "Fan", "1fan", "a__b", "_a", "a_", "_total", "a_total_total", strings.Repeat("a", 64)} {
		if err := NewDecoder(testDriver).Export([]string{name}); err == nil {
			t.Errorf("%q is the name of an extension", name)
		}
	}
}

// Extensions are checked as quantities are.
func TestExtensions(t *testing.T) {
	extension := func(name string, value float64) *v1alpha1.Report {
		return reported(0, &v1alpha1.Reading{Extension: name, Value: value})
	}
	d := NewDecoder(testDriver)
	declared := description("gpu-0")
	declared.Extensions = []*v1alpha1.Extension{
		{Name: "fan_speed_rpm", Kind: v1alpha1.Kind_KIND_GAUGE}, {Name: "frames", Kind: v1alpha1.Kind_KIND_COUNTER},
	}
	if err := d.Describe(declared); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		report *v1alpha1.Report
		err    string
		fell   bool
	}{
		{report: extension("fan_speed_rpm", -1)},
		{report: extension("frames", 10)},
		{report: extension("frames", 9), fell: true},
		{report: extension("frames", -9), err: "device gpu-0: frames: -9 is negative"},
		{report: extension("other", 1), err: `device gpu-0: the extension "other" is not declared`},
	} {
		got, fell, err := d.Report(step.report, now())
		if step.err != "" {
			if err == nil || err.Error() != step.err {
				t.Errorf("step %d: %v, want %s", i, err, step.err)
			}
			if err := d.Describe(declared); err != nil {
				t.Fatal(err)
			}
		} else if err != nil || len(got[0].Readings) != 0 || (fell != nil) != step.fell {
			t.Errorf("step %d: %+v, %v, %v", i, got, fell, err)
		}
	}
	for name, wrong := range map[string][]*v1alpha1.Extension{
		"kind":  {{Name: "frames"}},
		"name":  {{Name: "frames_total", Kind: v1alpha1.Kind_KIND_COUNTER}},
		"twice": {{Name: "frames", Kind: v1alpha1.Kind_KIND_COUNTER}, {Name: "frames", Kind: v1alpha1.Kind_KIND_GAUGE}},
		"help":  {{Name: "frames", Kind: v1alpha1.Kind_KIND_COUNTER, Help: "a\nb"}},
		"many":  make([]*v1alpha1.Extension, maxExtensions+1),
	} {
		declared.Extensions = wrong
		if err := d.Describe(declared); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestViolations(t *testing.T) {
	if _, _, err := NewDecoder(testDriver).Report(reported(0), now()); err == nil {
		t.Error("a report before the description is accepted")
	}
	many := make([]string, maxDevices+1)
	for i := range many {
		many[i] = strings.Repeat("a", i%60+1)
	}
	for name, message := range map[string]*v1alpha1.Description{
		"another driver": {Driver: "other.example.com"},
		"twice":          description("a", "a"),
		"no name":        description(""),
		"name":           description("A"),
		"many":           description(many...),
		"pci":            {Driver: testDriver, Devices: []*v1alpha1.Device{{Pool: "p", Name: "a", PciAddress: "slot 1"}}},
		"control":        {Driver: testDriver, Devices: []*v1alpha1.Device{{Pool: "p", Name: "a", Model: "a\nb"}}},
		"pci spelling":   {Driver: testDriver, Devices: []*v1alpha1.Device{{Pool: "p", Name: "a", PciAddress: "00000000:C1:00.0"}}},
		"nil device":     {Driver: testDriver, Devices: []*v1alpha1.Device{nil}},
	} {
		if err := NewDecoder(testDriver).Describe(message); err == nil {
			t.Errorf("description, %s: no error", name)
		}
	}
	started := reading("power", 1)
	started.StartTime = &timestamppb.Timestamp{}
	twice := reported(0)
	twice.Devices = append(twice.Devices, twice.Devices[0])
	health := func(signals ...*v1alpha1.HealthSignal) *v1alpha1.Report {
		report := reported(0)
		report.Devices[0].Health = signals
		return report
	}
	pids := reported(0)
	pids.Devices[0].Processes = &v1alpha1.Processes{Processes: []*v1alpha1.Process{{}}}
	for name, message := range map[string]*v1alpha1.Report{
		"index": reported(1), "device twice": twice, "pid": pids, "no time": {},
		"NaN": reported(0, reading("power", math.NaN())), "negative": reported(0, reading("energy", -1)),
		"ratio": reported(0, reading("utilization", 2)), "details": reported(0, reading("power", 1, "a")),
		"no details": reported(0, reading("temperature", 1)), "reading twice": reported(0, reading("power", 1), reading("power", 1)),
		"gauge with start": reported(0, started), "flood": reported(0, make([]*v1alpha1.Reading, maxDeviceReadings+1)...),
		"no quantity":   reported(0, &v1alpha1.Reading{Value: 1}),
		"signal name":   health(&v1alpha1.HealthSignal{Name: "a b"}),
		"signal twice":  health(&v1alpha1.HealthSignal{Name: "a"}, &v1alpha1.HealthSignal{Name: "a"}),
		"signal state":  health(&v1alpha1.HealthSignal{Name: "a", State: 9}),
		"signal reason": health(&v1alpha1.HealthSignal{Name: "a", Reason: "a\nb"}),
		"signals":       health(make([]*v1alpha1.HealthSignal, maxHealth+1)...),
		"long detail":   reported(0, reading("temperature", 1, strings.Repeat("a", 65))),
	} {
		if _, _, err := newDecoder(t, "gpu-0").Report(message, now()); err == nil {
			t.Errorf("report, %s: no error", name)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	seed := func(messages ...*v1alpha1.WatchResponse) {
		var seeds [2][]byte
		for i, m := range messages {
			seeds[i], _ = proto.Marshal(m)
		}
		f.Add(seeds[0], seeds[1])
	}
	seed(&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Description{Description: description("gpu-0")}},
		&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Report{Report: reported(0, reading("energy", 1))}})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var description, report v1alpha1.WatchResponse
		if proto.Unmarshal(first, &description) != nil || proto.Unmarshal(second, &report) != nil {
			return
		}
		d := NewDecoder(testDriver)
		if d.Describe(description.GetDescription()) != nil {
			return
		}
		got, _, err := d.Report(report.GetReport(), now())
		if err != nil {
			return
		}
		for _, observation := range got {
			for _, r := range observation.Readings {
				if r.Measured.To > now().Elapsed || math.IsNaN(r.Value) || r.Value < 0 && r.Quantity != device.Temperature {
					t.Errorf("%+v", r)
				}
			}
		}
	})
}

// Each rule is a sentence of the specification, or a row of its limits.
func TestRulesAreInTheSpecification(t *testing.T) {
	text, err := os.ReadFile("../../../plugin/devicemetrics/v1alpha1/devicemetrics.proto")
	if err != nil {
		t.Fatal(err)
	}
	specification := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "//", " ")), " ")
	for _, rule := range rules() {
		if !strings.Contains(specification, rule) {
			t.Errorf("the specification does not say: %s", rule)
		}
	}
}
