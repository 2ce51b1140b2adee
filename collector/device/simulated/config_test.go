package simulated

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

func TestParseErrors(t *testing.T) {
	gpu := func(rest string) string { return "devices:\n- {uuid: GPU-0}\n- {uuid: GPU-1, " + rest + "}\n" }
	quantity := func(text string) string { return gpu("quantities: {" + text + "}") }
	for name, test := range map[string]struct{ file, want string }{
		"nothing at all":         {" \n", "the file is empty"},
		"no YAML":                {"devices: [", "did not find expected node content"},
		"key of the file":        {"device: []", `unknown field "device"`},
		"key twice":              {"seed: 1\nseed: 2", `key "seed" already set`},
		"key of a device":        {gpu("kernel: x"), `devices[1] (GPU-1): unknown field "kernel"`},
		"no identity":            {"devices:\n- {model: x}", `devices[0]: uuid:`},
		"address":                {"devices:\n- {pciBusID: 1a.0}", `devices[0] (1a.0): pciBusID: "1a.0"`},
		"template":               {gpu("template: x"), `devices[1] (GPU-1): template: there is no "x"`},
		"key of a template":      {"templates: {x: {kernel: y}}\n" + gpu("template: x"), `devices[1] (GPU-1): template x: unknown field "kernel"`},
		"template of a template": {"templates: {x: {template: x}}\n" + gpu("template: x"), `template x: a template has no template`},
		"profile":                {gpu("profile: 1g.10gb"), `devices[1] (GPU-1): profile:`},
		"load":                   {gpu("load: 2"), `devices[1] (GPU-1): load: 2`},
		"partition's UUID":       {gpu("partitions: [{profile: x}]"), `devices[1] (GPU-1): partitions[0]: uuid:`},
		"partition's key":        {gpu("partitions: [{uuid: M, x: y}]"), `devices[1] (GPU-1): partitions[0] (M): unknown field "x"`},
		"partition's vendor":     {gpu("partitions: [{uuid: M, vendor: intel}]"), `partitions[0] (M): a partition has the vendor`},
		"partition's domain":     {gpu("partitions: [{uuid: M, linkDomain: d}]"), `partitions[0] (M): a partition has the vendor`},
		"partition's partition":  {gpu("partitions: [{uuid: M, partitions: [{}]}]"), `partitions[0] (M): a partition has no partitions`},
		"quantity":               {quantity("utilisation: 1"), `devices[1] (GPU-1): quantities: "utilisation" is not a quantity`},
		"nothing":                {quantity("power: "), `quantities: power: a constant has a value`},
		"counter of nothing":     {quantity("energy: "), `quantities: energy: a counter has a rate`},
		"text":                   {quantity("power: much"), `quantities: power: cannot unmarshal string`},
		"curve":                  {quantity("power: {curve: cosine}"), `quantities: power: curve: "cosine" is not`},
		"key of a curve":         {quantity("power: {curve: sine, height: 3}"), `quantities: power: unknown field "height"`},
		"no period":              {quantity("power: {curve: sine, min: 0, max: 1}"), `quantities: power: a sine has`},
		"max below min":          {quantity("power: {curve: ramp, min: 2, max: 1, period: 1s}"), `quantities: power: a ramp has`},
		"constant with a max":    {quantity("power: {value: 1, max: 1}"), `quantities: power: a constant has`},
		"negative noise":         {quantity("power: {value: 1, noise: -1}"), `quantities: power: noise: -1`},
		"sampled rate":           {quantity("energy: {rate: {value: 1, sampled: 1s}}"), `quantities: energy: rate: unknown field "sampled"`},
		"sampled backwards":      {quantity("power: {value: 1, sampled: -1s}"), `quantities: power: "-1s" is not a duration`},
		"duration":               {quantity("power: {curve: sine, period: 7}"), `quantities: power: 7 is not a duration`},
		"negative duration":      {quantity("power: {curve: sine, period: -7s}"), `quantities: power: "-7s" is not a duration`},
		"details":                {quantity("temperature: 3"), `quantities: temperature: is not a map with a key for each sensor`},
		"details within":         {quantity("nvlink_link_receive: {0: 3}"), `nvlink_link_receive: 0: is not a map with a key for each peer`},
		"rate of a gauge":        {quantity("power: {rate: 1}"), `quantities: power: unknown field "rate"`},
		"negative rate":          {quantity("energy: {rate: -1}"), `quantities: energy: a counter only counts up`},
		"noisy rate":             {quantity("energy: {rate: {value: 1, noise: 1}}"), `quantities: energy: a counter only counts up`},
		"wrong rate":             {quantity("energy: {rate: {curve: x}}"), `quantities: energy: rate: curve: "x"`},
		"fault":                  {gpu("faults: [{kind: explosion}]"), `devices[1] (GPU-1): faults[0]: kind: "explosion"`},
		"key of a fault":         {gpu("faults: [{type: error}]"), `devices[1] (GPU-1): faults: unknown field "type"`},
		"quantity of a fault":    {gpu("faults: [{kind: error, quantity: x}]"), `devices[1] (GPU-1): faults[0]: quantity:`},
		"quantity of a hang":     {gpu("faults: [{kind: hang, quantity: power}]"), `devices[1] (GPU-1): faults[0]: quantity:`},
		"value of an error":      {gpu("faults: [{kind: error, value: 1}]"), `devices[1] (GPU-1): faults[0]: value:`},
		"details of an error":    {gpu("faults: [{kind: error, details: [x]}]"), `devices[1] (GPU-1): faults[0]: value:`},
		"too many details":       {gpu("faults: [{kind: set, details: [v, w, x]}]"), `devices[1] (GPU-1): faults: details:`},
		"no pid":                 {gpu("processes: [{memory: 0.5}]"), `devices[1] (GPU-1): processes: 0 is not a pid`},
		"pid twice":              {gpu("processes: [{pid: 7}, {pid: 7}]"), `devices[1] (GPU-1): processes: pid 7 is there twice`},
		"percent of a process":   {gpu("processes: [{pid: 7, utilization: 30}]"), `devices[1] (GPU-1): processes: pid 7: memory and utilization are shares`},
		"less than nothing":      {gpu("processes: [{pid: 7, memory: -0.1}]"), `devices[1] (GPU-1): processes: pid 7: memory and utilization are shares`},
		"too much memory":        {gpu("processes: [{pid: 7, memory: 0.6}, {pid: 8, memory: 0.6}]"), `devices[1] (GPU-1): processes: together they use 1.2 of the device's memory`},
		"too much work":          {gpu("processes: [{pid: 7, utilization: 1}, {pid: 8, utilization: 0.1}]"), `and 1.1 of its utilization`},
		"key of a process":       {gpu("processes: [{pid: 7, name: x}]"), `devices[1] (GPU-1): unknown field "name"`},
		"partition's processes":  {gpu("partitions: [{uuid: M, processes: []}]"), `partitions[0] (M): processes: only whole devices`},
		"processes of parts":     {gpu("processes: [], partitions: [{uuid: M}]"), `devices[1] (GPU-1): processes: a device with partitions`},
		"code of no XID":         {gpu("faults: [{kind: xid}]"), `devices[1] (GPU-1): faults[0]: code: 0`},
		"code of an error":       {gpu("faults: [{kind: error, code: 79}]"), `devices[1] (GPU-1): faults[0]: code:`},
		"error every so often":   {gpu("faults: [{kind: error, every: 1s}]"), `devices[1] (GPU-1): faults[0]: code:`},
		"error of a partition":   {gpu("faults: [{kind: error, partition: x}]"), `devices[1] (GPU-1): faults[0]: code:`},
		"XID of no partition":    {gpu("faults: [{kind: xid, code: 79, partition: x}]"), `devices[1] (GPU-1): faults[0]: partition:`},
		"XID without a UUID":     {`devices: [{pciBusID: "0000:1a:00.0", faults: [{kind: xid, code: 79}]}]`, `faults[0]: kind:`},
		"nothing to be set":      {gpu("quantities: {power: 1}, faults: [{kind: set, quantity: lost}]"), `devices[1] (GPU-1): faults[0]: quantity:`},
		"a counter is not set":   {gpu("quantities: {energy: 1}, faults: [{kind: set, quantity: energy}]"), `devices[1] (GPU-1): faults[0]: quantity:`},
		"another detail":         {gpu("quantities: {temperature: {gpu: 1}}, faults: [{kind: set, quantity: temperature, details: [memory]}]"), `devices[1] (GPU-1): faults[0]: quantity:`},
		"instance of a device":   {gpu("gpuInstance: 7"), `devices[1] (GPU-1): profile:`},
		"compute instance":       {gpu("computeInstance: 0"), `devices[1] (GPU-1): profile:`},
		"fault of the source":    {"faults: [{kind: reset}]", `faults: a source has errors and hangs`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "parse simulated devices: ") {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// The example in the package's documentation is a file that works.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var example strings.Builder
	for line := range strings.Lines(string(doc)) {
		if text, there := strings.CutPrefix(line, "//\t"); there {
			example.WriteString(text)
		}
	}
	config := parsed(t, example.String())
	if len(config.Devices) != 2 || len(config.Devices[0].Partitions) != 1 || len(config.Devices[0].Faults) != 3 || len(config.Devices[1].Processes) != 2 {
		t.Errorf("the example is %+v", config)
	}
}

// FuzzParse: what is accepted can be read at any time without a surprise.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(used))
	f.Add([]byte(faulty("[{kind: error, quantity: power, after: 1s}, {kind: reset, after: 2s, for: 1s}]")))
	f.Add([]byte(faultyGPU("[{kind: xid, code: 79, after: 1s, every: 1us, for: 2s}, {kind: set, quantity: lost, value: 1}]")))
	f.Add([]byte("devices: [{uuid: a, quantities: {energy: {rate: {curve: random, min: 0, max: 1e300, period: 1ns}}}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := Parse(data)
		if err != nil {
			return
		}
		var elapsed time.Duration
		s := New(config, func() clock.Instant { return clock.Instant{Elapsed: elapsed} })
		s.ListProcesses(func() bool { return true })
		times := []time.Duration{0, time.Second, time.Hour, 1e6 * time.Hour}
		reported := make(map[string]uint64)
		for _, elapsed = range times {
			checkXIDs(t, s, reported)
		}
		elapsed = 0
		s.faults = faults{}
		before := make(map[string]float64)
		for i := range s.devices {
			s.devices[i].faults = faults{}
		}
		for _, elapsed = range times {
			for i := range s.devices {
				checkReader(t, reader{s, s.devices[i].key}, before)
			}
		}
	})
}

func checkXIDs(t *testing.T, s *Source, before map[string]uint64) {
	for uuid, xids := range s.XIDs() {
		if !slices.IsSortedFunc(xids, func(a, b device.XID) int { return a.Code - b.Code }) {
			t.Errorf("%v are not sorted", xids)
		}
		for _, xid := range xids {
			key := fmt.Sprint(uuid, " ", xid.Code)
			if xid.Count == 0 || xid.Count < before[key] {
				t.Errorf("XID %s: %d after %d", key, xid.Count, before[key])
			}
			before[key] = xid.Count
		}
	}
}

// checkProcessesOf: processes together use no more than their device.
func checkProcessesOf(t *testing.T, o device.Observation) {
	var memory, utilization float64
	for _, p := range o.Processes {
		memory, utilization = memory+max(p.Memory, 0), utilization+max(p.Utilization, 0)
	}
	if most := shown(o, device.MemoryUsed); memory > max(most, 0)*1.000001 {
		t.Errorf("processes use %g of %g bytes", memory, most)
	}
	if most := shown(o, device.Utilization); utilization > max(most, 0)*1.000001 {
		t.Errorf("processes are busy for %g of %g", utilization, most)
	}
}

func checkReader(t *testing.T, r reader, before map[string]float64) {
	observations, err := r.Read(t.Context(), device.Slow)
	if err != nil {
		t.Fatalf("read %s: %v", r.key, err)
	}
	checkProcessesOf(t, observations[0])
	for i, o := range observations {
		for _, reading := range append(o.Readings, o.Slow...) {
			spec := device.Specs()[reading.Quantity]
			if spec.Unit == "ratio" && (reading.Value < 0 || reading.Value > 1) {
				t.Errorf("%s is %g", spec.Name, reading.Value)
			}
			if spec.Kind != device.Counter {
				continue
			}
			name := r.key + string(rune(i)) + spec.Name + reading.Details[0] + "\n" + reading.Details[1]
			if reading.Value < before[name] {
				t.Errorf("%s fell from %g to %g", spec.Name, before[name], reading.Value)
			}
			before[name] = reading.Value
		}
	}
}
