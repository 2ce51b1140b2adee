package exporter

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

const testDriver = "gpu.example.com"

// gpu is a series of a device of the test's driver.
func gpu(family, labels string, value any) string {
	if labels != "" {
		labels = "," + labels
	}
	return fmt.Sprintf("dra_device_%s{driver=%q,pool=\"node-1\",device=\"gpu-0\"%s} %v\n", family, testDriver, labels, value)
}

func decodeText(t testing.TB, text string, extensions ...string) ([]device.Observation, violations) {
	t.Helper()
	exported := make(map[string]bool)
	for _, name := range extensions {
		exported[name] = true
	}
	devices, found, err := newDecoder(testDriver, exported).decode([]byte(text), device.Window{From: time.Minute, To: time.Hour}, at())
	if err != nil {
		t.Fatal(err)
	}
	return devices, found
}

// A page gives the device by its published name, with what its series say of it.
func TestFamilies(t *testing.T) {
	devices, found := decodeText(t, "# TYPE dra_device_power_watts gauge\n"+
		gpu("power_watts", "", 71.5)+
		gpu("info", `vendor="example",model="X 1",driver_version="1.2",parent="board"`, 1)+
		gpu("energy_joules_total", "", 7e6)+gpu("energy_joules_created", "", 1.8e9)+
		gpu("temperature_celsius", `sensor="gpu",zone="ignored"`, -3)+
		gpu("network_link_state", `port="1",state="active"`, 1)+
		gpu("utilization_ratio", "", "NaN")+
		gpu("ext_fan_speed_rpm", "", 900)+gpu("ext_frames_total", "", 12)+gpu("ext_other", "", 5)+
		gpu("driver_health", `signal="link",state="degraded"`, 1)+gpu("driver_health", `signal="link",state="healthy"`, 0)+
		"dra_claim_power_watts{driver=\"other\"} 5\ngo_goroutines 7\n", "fan_speed_rpm", "frames_total")
	if err := found.err(); err != nil || len(devices) != 1 {
		t.Fatalf("got %v, %v", devices, err)
	}
	want := device.Device{
		Vendor: "example", Model: "X 1", DriverVersion: "1.2", PublishedParent: "board",
		Published: device.PublishedName{Driver: testDriver, Pool: "node-1", Device: "gpu-0"},
		Minor:     device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
	}
	if got := devices[0].Device; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v", got)
	}
	lines := []string{
		"gpu-0 driver_health link,degraded 1", "gpu-0 driver_health link,healthy 0", "gpu-0 driver_health link,unhealthy 0",
		"gpu-0 energy 7000000", "gpu-0 extension fan_speed_rpm,gauge 900", "gpu-0 extension frames,counter 12",
		"gpu-0 network_links 1,active 1", "gpu-0 power 71.5", "gpu-0 temperature gpu -3",
	}
	if got := linesOf(devices); !slices.Equal(got, lines) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
	for _, r := range devices[0].Readings {
		if r.Measured != (device.Window{From: time.Minute, To: time.Hour}) {
			t.Errorf("%+v", r)
		}
	}
	if devices[0].Processes != nil {
		t.Errorf("processes %v", devices[0].Processes)
	}
}

// Processes are known if the page has series of them, or says that there are none.
func TestProcesses(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"unknown":       {gpu("power_watts", "", 1), "[] true"},
		"none":          {gpu("processes", "", 0), "[] false"},
		"two":           {gpu("process_memory_bytes", `pid="7"`, 5) + gpu("process_utilization_ratio", `pid="7"`, 0.5) + gpu("process_memory_bytes", `pid="8"`, 6), "[{7 5 0.5 false} {8 6 -1 false}] false"},
		"one, as said":  {gpu("processes", "", 1) + gpu("process_memory_bytes", `pid="7"`, 5), "[{7 5 -1 false}] false"},
		"not all":       {gpu("processes", "", 2) + gpu("process_memory_bytes", `pid="7"`, 5), "[] true"},
		"no process ID": {gpu("process_memory_bytes", `pid="0"`, 5) + gpu("process_memory_bytes", `pid="x"`, 5), "[] true"},
	} {
		devices, _ := decodeText(t, c.page)
		if got := fmt.Sprint(devices[0].Processes, devices[0].Processes == nil); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// A series that violates the specification is left out and named, and others stay.
func TestViolations(t *testing.T) {
	many := func(family, labels string, count int) string {
		var page strings.Builder
		for i := range count {
			page.WriteString(gpu(family, fmt.Sprintf(labels, i), 0))
		}
		return page.String()
	}
	other := func(text, change string) string { return strings.ReplaceAll(gpu("power_watts", "", 1), text, change) }
	for name, c := range map[string]struct{ page, rule, text string }{
		"another driver":    {other(testDriver, "gpu.nvidia.com"), ruleOwn, `dra_device_power_watts{driver="gpu.nvidia.com",pool="node-1",device="gpu-0"}: the label driver is "gpu.nvidia.com", and not "gpu.example.com"`},
		"no driver":         {"dra_device_power_watts 1\n", ruleOwn, `the label driver is ""`},
		"no pool":           {other("node-1", ""), ruleDevice, `pool ""`},
		"no device":         {other("gpu-0", "GPU 0"), ruleDevice, `device "GPU 0"`},
		"long pool":         {other("node-1", strings.Repeat("n", 254)), ruleText, "pool is not text of at most 253 bytes"},
		"no detail":         {gpu("temperature_celsius", "", 1), ruleDetails, "it has no label sensor"},
		"control character": {gpu("temperature_celsius", `sensor="a\nb"`, 1), ruleText, "sensor is not text"},
		"long detail":       {gpu("temperature_celsius", `sensor="`+strings.Repeat("a", 65)+`"`, 1), ruleText, "at most 64 bytes"},
		"infinite":          {gpu("memory_used_bytes", "", "+Inf"), ruleValue, "+Inf is not finite"},
		"twice":             {gpu("memory_used_bytes", "", 1) + gpu("memory_used_bytes", "", 2), ruleOnce, "it is there twice"},
		"old":               {gpu("memory_used_bytes", "", "1 1"), ruleAge, "older than 1m30s"},
		"no information":    {gpu("info", "", 0), ruleInfo, "the value is 0"},
		"long model":        {gpu("info", `model="`+strings.Repeat("m", 129)+`"`, 1), ruleText, "model of 128"},
		"its own parent":    {gpu("info", `parent="gpu-0"`, 1), ruleParent, `the parent "gpu-0"`},
		"described twice":   {gpu("info", "", 1) + gpu("info", `model="x"`, 1), ruleOnce, "described twice"},
		"signal":            {gpu("driver_health", `signal="Link",state="healthy"`, 1), ruleSignal, `"Link" is not a DNS label`},
		"state":             {gpu("driver_health", `signal="link",state="well"`, 1), ruleSignal, "none of healthy, degraded, unhealthy"},
		"half a state":      {gpu("driver_health", `signal="link",state="healthy"`, 0.5), ruleSignal, "the value is 0.5"},
		"two states":        {gpu("driver_health", `signal="link",state="healthy"`, 1) + gpu("driver_health", `signal="link",state="degraded"`, 1), ruleSignal, "the signal is healthy too"},
		"no state":          {gpu("driver_health", `signal="link",state="healthy"`, 0), ruleSignal, "no state of the signal link of gpu-0 is 1"},
		"many signals":      {many("driver_health", `signal="s%d",state="healthy"`, maxSignals+1), ruleReadings, "more than 32 signals"},
		"many values":       {many("temperature_celsius", `sensor="s%d"`, maxReadings+1), ruleReadings, "more than 256 values"},
		"many processes":    {many("process_memory_bytes", `pid="1%d"`, maxProcesses+1), ruleReadings, "more than 4096 processes"},
		"negative memory":   {gpu("process_memory_bytes", `pid="7"`, -1), ruleValue, "-1 is negative"},
		"process twice":     {gpu("process_memory_bytes", `pid="7"`, 1) + gpu("process_memory_bytes", `pid="7"`, 2), ruleOnce, "it is there twice"},
		"process ID":        {gpu("process_memory_bytes", `pid="-7"`, 1), rulePID, `"-7" is no process ID`},
		"processes":         {gpu("processes", "", 1), ruleProcesses, "gpu-0 has 1 processes, and series of 0"},
		"negative counter":  {gpu("ext_frames_total", "", -1), ruleValue, "the counter is negative"},
		"extension":         {gpu("ext_Fan", "", 1), ruleExtension, `"Fan" is not the name of an extension`},
	} {
		devices, found := decodeText(t, c.page+gpu("clock_hertz", `clock="core"`, 5), "Fan", "frames_total")
		if len(found.list) == 0 || !slices.ContainsFunc(found.list, func(v Violation) bool { return v.Rule == c.rule && strings.Contains(v.Text, c.text) }) {
			t.Errorf("%s: got %+v", name, found.list)
		}
		if !slices.Contains(linesOf(devices), "gpu-0 clock core 5") && name != "many values" {
			t.Errorf("%s: the other series is not read: %v", name, linesOf(devices))
		}
	}
}

// A page that is too large, or is none, is not used at all. Of its violations, some are
// spelled out.
func TestPagesOfDrivers(t *testing.T) {
	var devices strings.Builder
	for i := range maxDevices + 1 {
		devices.WriteString(strings.ReplaceAll(gpu("power_watts", "", 1), "gpu-0", fmt.Sprintf("gpu-%d", i)))
	}
	got, found := decodeText(t, devices.String())
	if len(got) != maxDevices || !found.has(rulePage) {
		t.Errorf("%d devices, %v", len(got), found)
	}
	for text, want := range map[string]string{
		gpu("power_watts", "", "x"):                  "parse the page: line 1: the value is no number",
		strings.TrimSpace(gpu("power_watts", "", 1)): "the page ends within a line",
		strings.Repeat("up 1\n", maxSeries+1):        "the page has more than 20000 series",
	} {
		if _, _, err := newDecoder(testDriver, nil).decode([]byte(text), device.Window{}, at()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
	_, found = decodeText(t, gpu("info", "", 0)+gpu("info", "", 0)+gpu("temperature_celsius", "", 1)+gpu("driver_health", `signal="a",state="b"`, 1)+
		gpu("process_memory_bytes", `pid="x"`, 1)+gpu("processes", "", 5)+"dra_device_lost 1\n")
	if err := found.err(); len(found.list) != 6 || !strings.HasSuffix(err.Error(), "and 3 more") {
		t.Errorf("%d violations: %v", len(found.list), err)
	}
}

// FuzzFamilies decodes foreign pages: nothing may panic, and what is read is of the
// driver's own devices, within the limits.
func FuzzFamilies(f *testing.F) {
	f.Add([]byte(gpu("info", `vendor="v",parent="p"`, 1) + gpu("energy_joules_total", "", "1e6 1800000000000") + gpu("ext_a_total", "", 1)))
	f.Add([]byte(gpu("driver_health", `signal="a",state="healthy"`, 1) + gpu("process_memory_bytes", `pid="7"`, 1) + gpu("processes", "", 1)))
	f.Add([]byte("{\"dra_device_power_watts\",driver=\"gpu.example.com\",pool=\"\xff\",device=\"a\"} NaN\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		devices, _, err := newDecoder(testDriver, nil).decode(text, device.Window{To: time.Hour}, at())
		if err != nil {
			return
		}
		seen := make(map[device.PublishedName]bool)
		for _, o := range devices {
			name := o.Device.Published
			if seen[name] || name.Driver != testDriver || !isLabel(name.Device) || !isText(name.Pool, maxPool) || o.Device.UUID != "" {
				t.Fatalf("the device %+v", o.Device)
			}
			seen[name] = true
			readings := make(map[string]bool)
			for _, r := range o.Readings {
				key := fmt.Sprint(r.Quantity, r.Details)
				if readings[key] || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Measured.To > time.Hour+at().Elapsed {
					t.Fatalf("the reading %+v", r)
				}
				readings[key] = true
			}
			if len(readings) > maxReadings+len(healthStates())*maxSignals || len(o.Processes) > maxProcesses {
				t.Fatalf("%d readings, %d processes", len(readings), len(o.Processes))
			}
			for _, p := range o.Processes {
				if p.PID <= 0 || math.IsNaN(p.Memory+p.Utilization) || min(p.Memory, p.Utilization) < device.Unknown {
					t.Fatalf("the process %+v", p)
				}
			}
		}
	})
}

// BenchmarkFamilies decodes a page of 1,000 devices with 19 values each.
func BenchmarkFamilies(b *testing.B) {
	var page strings.Builder
	for i := range 1000 {
		for q, spec := range device.Specs() {
			if q < 19 {
				labels := ""
				for _, detail := range spec.Details {
					labels += fmt.Sprintf(",%s=\"d\"", detail)
				}
				fmt.Fprintf(&page, "%s{driver=%q,pool=\"node-1\",device=\"gpu-%d\"%s} 0.5\n", spec.Family(), testDriver, i, labels)
			}
		}
	}
	d := newDecoder(testDriver, nil)
	text := []byte(page.String())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if devices, _, err := d.decode(text, device.Window{}, at()); err != nil || len(devices) != 1000 {
			b.Fatal(len(devices), err)
		}
	}
}

// Each rule is a sentence of the specification.
func TestRulesAreInTheSpecification(t *testing.T) {
	text, err := os.ReadFile("../../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	specification := strings.Join(strings.Fields(string(text)), " ")
	if words := len(strings.Fields(specification)); words > 500 {
		t.Errorf("the specification has %d words, more than 500", words)
	}
	for _, rule := range []string{
		rulePlace, rulePage, ruleOwn, ruleDevice, ruleDetails, ruleInfo, ruleParent, ruleText, ruleOnce, ruleValue, ruleLeftOut, ruleFell,
		ruleSignal, rulePID, ruleProcesses, ruleExtension, ruleAge, ruleReadings,
	} {
		if !strings.Contains(specification, rule) {
			t.Errorf("the specification does not say: %s", rule)
		}
	}
}
