package exporter

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/exposition"
)

// at is the moment at which the pages of these tests are read.
func at() clock.Instant {
	return clock.Instant{Wall: time.UnixMilli(1_800_000_000_000), Elapsed: time.Hour}
}

// rulesOf are the rules of an exporter without its first lines.
func rulesOf(t testing.TB, text string) *rules {
	t.Helper()
	configs, err := Parse([]byte("exporters:\n- name: x\n  url: http://127.0.0.1:1/\n"+text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &configs[0].rules
}

// mapText maps a page, and returns a line for each device and reading, sorted.
func mapText(t testing.TB, rules *rules, page string) (lines []string, err error) {
	t.Helper()
	families, err := parsePage([]byte(page), rules.names())
	if err != nil {
		t.Fatal(err)
	}
	devices, _, err := newChoices().mapPage(rules, families, device.Window{From: time.Minute, To: time.Hour}, at())
	return linesOf(devices), err
}

func linesOf(devices []device.Observation) []string {
	var lines []string
	for _, one := range devices {
		for _, r := range one.Readings {
			details := strings.TrimSuffix(strings.Join(r.Details[:], ","), ",")
			value := fmt.Sprintf("%.10g", r.Value)
			if r.Value == math.Trunc(r.Value) {
				value = fmt.Sprintf("%.0f", r.Value)
			}
			lines = append(lines, strings.Join(strings.Fields(deviceName(one.Device)+" "+device.Specs()[r.Quantity].Name+" "+details+" "+value), " "))
		}
	}
	slices.Sort(lines)
	return lines
}

const npu = `  device: {uuid: id}
  metrics:
  - {metric: busy, quantity: utilization, unit: percent}
  - {metric: energy, quantity: energy, unit: microjoules}
  - {metric: joules, quantity: energy}
  - {metric: core_busy, quantity: engine_active, details: {engine: {label: engine, values: {c: compute}}}, combine: mean}
  - {metric: sent, match: {port: "[0-9]+"}, quantity: network_transmit, unit: kibibytes, combine: sum}
  - {metric: heat, quantity: temperature, details: {sensor: {label: place}}, combine: max}
  blanks: [-1, 4294967295]
`

func TestMapping(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		want []string
		err  string
	}{
		"units and kinds": {
			page: "# TYPE busy gauge\nbusy{id=\"a\"} 57\n# TYPE energy counter\nenergy{id=\"a\"} 2.5e6\nbusy{id=\"b\"} 0\n",
			want: []string{"a energy 2.5", "a utilization 0.57", "b utilization 0"},
		},
		"a first rule has precedence": {
			page: "energy{id=\"a\"} 1e6\njoules{id=\"a\"} 7\njoules{id=\"b\"} 8\n",
			want: []string{"a energy 1", "b energy 8"},
		},
		"combined series": {
			page: `core_busy{id="a",engine="c",core="0"} 0.2
core_busy{id="a",engine="c",core="1"} 0.4
core_busy{id="a",engine="video"} 0.9
sent{id="a",port="1"} 1
sent{id="a",port="2"} 2
sent{id="a",port="all"} 3
heat{id="a",place="die",n="1"} 50
heat{id="a",place="die",n="2"} -3
heat{id="a"} 99
`,
			want: []string{"a engine_active compute 0.3", "a network_transmit 3072", "a temperature die 50"},
		},
		"values that mean nothing": {page: "busy{id=\"a\"} NaN\nbusy{id=\"b\"} +Inf\nbusy{id=\"c\"} -1\nbusy{id=\"d\"} 4294967295\nbusy{id=\"e\"} 1\n", want: []string{"e utilization 0.01"}},
		"no device":                {page: "busy 5\nbusy{id=\"\"} 5\nbusy{id=\" \"} 5\n"},
		"not a ratio":              {page: "busy{id=\"a\"} 101\nbusy{id=\"b\"} 100\n", want: []string{"b utilization 1"}, err: "busy: 1.01 is impossible for utilization of a: is the unit right?"},
		"negative":                 {page: "sent{id=\"a\",port=\"1\"} -2\nsent{id=\"a\",port=\"2\"} 5\n", err: "sent: -2048 is impossible for network_transmit of a"},
		"several series":           {page: "busy{id=\"a\",x=\"1\"} 1\nbusy{id=\"a\",x=\"2\"} 2\nbusy{id=\"a\",x=\"3\"} 2\n", err: "busy: several series give utilization of a: match one of them, or combine them"},
		"a counter as a gauge":     {page: "# TYPE busy counter\nbusy{id=\"a\"} 1\n", want: []string{"a utilization 0.01"}},
		"a histogram":              {page: "# TYPE busy summary\nbusy{quantile=\"0.5\",id=\"a\"} 1\n", err: "busy is a summary: only gauges and counters are read"},
		"a long identity":          {page: "busy{id=\"" + strings.Repeat("x", 129) + "\"} 1\n", err: "busy: a label that identifies the device is not text of at most 128 bytes"},
		"control characters":       {page: "busy{id=\"a\\nb\"} 1\n", err: "busy: a label that identifies the device is not text"},
		"a long detail":            {page: "heat{id=\"a\",place=\"" + strings.Repeat("x", 65) + "\"} 1\n", err: "heat: the label place is not text of at most 64 bytes"},
		"an old value":             {page: "busy{id=\"a\"} 1 1799999909000\nbusy{id=\"b\"} 1 1799999911000\n", want: []string{"b utilization 0.01"}},
		"a value that overflows":   {page: "sent{id=\"a\",port=\"1\"} 1e306\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mapText(t, rulesOf(t, npu), c.page)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got the error %v, want %q", err, c.err)
			}
		})
	}
}

// Of a GPU that several pods share, dcgm-exporter repeats each series for each pod
// (claims), or gives the share of each pod beside the series of the GPU (time-slicing,
// MPS). Equal values are one reading, and shares are not the GPU's.
func TestSharedDevices(t *testing.T) {
	config, err := Preset("nvidia-dcgm-exporter")
	if err != nil {
		t.Fatal(err)
	}
	gpu := func(metric, labels, value string) string {
		return metric + `{gpu="0",UUID="GPU-1",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="H100"` + labels + "} " + value + "\n"
	}
	pod := func(name, more string) string {
		return `,namespace="team",pod="` + name + `",container="main"` + more
	}
	claim := func(name, device string) string {
		return pod(name, `,dra_claim_name="`+name+`",dra_claim_namespace="team",dra_driver_name="gpu.nvidia.com",dra_pool_name="n",dra_device_name="`+device+`"`)
	}
	const used, busy, watts = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"
	for name, c := range map[string]struct {
		page string
		want []string
		err  string
	}{
		"a claim of two pods": {
			page: gpu(watts, claim("a", "gpu-0"), "98.125000") + gpu(watts, claim("b", "gpu-0"), "98.125000"),
			want: []string{"GPU-1 power 98.125"},
		},
		"two containers, one with labels of its pod": {
			page: gpu(watts, claim("a", "gpu-0"), "98") + gpu(watts, pod("a", `,app="x"`), "98"),
			want: []string{"GPU-1 power 98"},
		},
		"MIG devices of one GPU, held by two pods": {
			page: gpu(watts, claim("a", "gpu-0-mig-1")+`,dra_mig_profile="1g.5gb",dra_mig_device_uuid="MIG-1"`, "98") +
				gpu(watts, claim("b", "gpu-0-mig-2")+`,dra_mig_profile="2g.10gb",dra_mig_device_uuid="MIG-2"`, "98") +
				gpu(used, `,GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"`, "5") +
				gpu(used, `,GPU_I_PROFILE="2g.10gb",GPU_I_ID="8"`, "6"),
			want: []string{"GPU-1 power 98", "MIG-GPU-1/7/0 memory_used 5242880", "MIG-GPU-1/8/0 memory_used 6291456"},
		},
		"a MIG instance of two pods": {
			page: gpu(used, `,GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"`+pod("a", `,vgpu="0"`), "5") + gpu(used, `,GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"`+pod("b", `,vgpu="1"`), "5"),
			want: []string{"MIG-GPU-1/7/0 memory_used 5242880"},
		},
		"time-slicing: shares of pods beside the GPU's value": {
			page: gpu(busy, "", "57") + gpu(busy, pod("a", `,pod_uid="1",vgpu="0"`), "30") + gpu(busy, pod("b", `,pod_uid="2",vgpu="1"`), "20") +
				gpu(used, pod("a", `,pod_uid="1",vgpu="0"`), "10") + gpu(used, pod("b", `,pod_uid="2",vgpu="1"`), "0") + gpu(used, "", "15") +
				gpu(watts, pod("a", `,vgpu="0"`), "98") + gpu(watts, pod("b", `,vgpu="1"`), "98"),
			want: []string{"GPU-1 memory_used 15728640", "GPU-1 power 98", "GPU-1 utilization 0.57"},
		},
		"a share that is impossible for the GPU": {
			page: gpu(busy, pod("a", ""), "130") + gpu(busy, "", "100"),
			want: []string{"GPU-1 utilization 1"},
		},
		"shares of pods in two batch jobs": {
			page: gpu(busy, `,hpc_job="1"`, "57") + gpu(busy, `,hpc_job="2"`, "57") + gpu(busy, `,hpc_job="1"`+pod("a", ""), "30") + gpu(busy, `,hpc_job="2"`+pod("a", ""), "30"),
			want: []string{"GPU-1 utilization 0.57"},
		},
		"different values, each of a pod": {
			page: gpu(busy, pod("a", ""), "30") + gpu(busy, pod("b", ""), "20") + gpu(busy, pod("c", ""), "20") + gpu(watts, pod("a", ""), "98") + gpu(watts, pod("b", ""), "98"),
			want: []string{"GPU-1 power 98"},
			err:  "DCGM_FI_DEV_GPU_UTIL: several series give utilization of GPU-1: match one of them, or combine them",
		},
		"different values of the GPU": {
			page: gpu(busy, "", "30") + gpu(busy, `,hpc_job="1"`, "31") + gpu(busy, pod("a", ""), "30"),
			err:  "several series give utilization of GPU-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mapText(t, &config.rules, c.page)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Count(err.Error(), c.err) != 1) {
				t.Errorf("got the error %v, want %q", err, c.err)
			}
		})
	}
}

// Parts of a device are summed once each, however many pods hold the device.
func TestPartsOfSharedDevices(t *testing.T) {
	const given = `  device: {uuid: id}
  metrics:
  - {metric: sent, quantity: network_transmit, combine: sum}
  - {metric: received, quantity: network_receive, combine: sum, parts: [port]}
  - {metric: held, quantity: memory_used, combine: sum, parts: [namespace, pod]}
  - {metric: busy, quantity: utilization, combine: mean}
  - {metric: heat, quantity: temperature, details: {sensor: gpu}, combine: max}
`
	for name, c := range map[string]struct {
		page string
		want []string
		err  string
	}{
		"links, each for two pods": {
			page: `sent{id="a",link="0",pod="x"} 1
sent{link="1",id="a",pod="x"} 2
sent{pod="y",id="a",link="0"} 1
sent{id="a",pod="y",link="1"} 2
`,
			want: []string{"a network_transmit 3"},
		},
		"processes of pods":       {page: "sent{id=\"a\",pid=\"1\",pod=\"x\"} 1\nsent{id=\"a\",pid=\"2\",pod=\"y\"} 1\n", want: []string{"a network_transmit 2"}},
		"a link and shares of it": {page: "sent{id=\"a\",link=\"0\",pod=\"x\"} 1\nsent{id=\"a\",link=\"0\"} 5\nsent{id=\"a\",link=\"1\"} 5\n", want: []string{"a network_transmit 10"}},
		"the same series twice":   {page: "sent{id=\"a\",link=\"0\"} 1\nsent{id=\"a\",link=\"0\"} 1\n", want: []string{"a network_transmit 1"}},
		"shares of links only": {
			page: "sent{id=\"a\",link=\"0\",pod=\"x\"} 1\nsent{id=\"a\",link=\"0\",pod=\"y\"} 2\nsent{id=\"b\",link=\"0\"} 7\n", want: []string{"b network_transmit 7"},
			err: "sent: several series give network_transmit of the same part of a: name the labels of its parts",
		},
		"named parts":         {page: "received{id=\"a\",port=\"0\",app=\"x\"} 1\nreceived{id=\"a\",port=\"0\",app=\"y\"} 1\nreceived{id=\"a\",port=\"1\"} 3\n", want: []string{"a network_receive 4"}},
		"named parts differ":  {page: "received{id=\"a\",port=\"0\",app=\"x\"} 1\nreceived{id=\"a\",port=\"0\",app=\"y\"} 2\n", err: "several series give network_receive of the same part of a"},
		"pods are parts":      {page: "held{id=\"a\",namespace=\"n\",pod=\"x\"} 4\nheld{id=\"a\",namespace=\"n\",pod=\"y\"} 4\n", want: []string{"a memory_used 8"}},
		"a mean over cores":   {page: "busy{id=\"a\",core=\"0\",pod=\"x\"} 0.5\nbusy{id=\"a\",core=\"0\",pod=\"y\"} 0.5\nbusy{id=\"a\",core=\"1\"} 0.1\n", want: []string{"a utilization 0.3"}},
		"a maximum over pods": {page: "heat{id=\"a\",pod=\"x\"} 40\nheat{id=\"a\",pod=\"y\"} 50\n", want: []string{"a temperature gpu 50"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mapText(t, rulesOf(t, given), c.page)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got the error %v, want %q", err, c.err)
			}
		})
	}
}

// A value with a time stamp was measured then, another one while the page was read.
func TestTimeOfMeasurement(t *testing.T) {
	rules := rulesOf(t, npu)
	families, err := parsePage([]byte("busy{id=\"a\"} 1 1799999990000\nbusy{id=\"b\"} 1\nbusy{id=\"c\"} 1 1900000000000\n"), rules.names())
	if err != nil {
		t.Fatal(err)
	}
	window := device.Window{From: time.Minute, To: time.Hour}
	devices, _, err := newChoices().mapPage(rules, families, window, at())
	if err != nil {
		t.Fatal(err)
	}
	before := time.Hour - 10*time.Second
	for i, want := range []device.Window{{From: before, To: before}, window, {From: time.Hour, To: time.Hour}} {
		if got := devices[i].Readings[0].Measured; got != want {
			t.Errorf("device %d: measured %v, want %v", i, got, want)
		}
	}
}

func TestManyProblems(t *testing.T) {
	var page strings.Builder
	for i := range 10 {
		fmt.Fprintf(&page, "busy{id=\"d%d\"} 200\n", i)
	}
	_, err := mapText(t, rulesOf(t, npu), page.String())
	if err == nil || strings.Count(err.Error(), "impossible") != maxProblems || !strings.HasSuffix(err.Error(), "and 6 more") {
		t.Errorf("got %v", err)
	}
}

func TestTooManyDevices(t *testing.T) {
	var page strings.Builder
	for i := range maxDevices + 2 {
		fmt.Fprintf(&page, "busy{id=\"d%d\"} 1\n", i)
	}
	got, err := mapText(t, rulesOf(t, npu), page.String())
	if len(got) != maxDevices || err == nil || !strings.Contains(err.Error(), "more than 1024 devices") {
		t.Errorf("%d readings, %v", len(got), err)
	}
}

func TestRelabel(t *testing.T) {
	rules := rulesOf(t, `  driver: tpu.example.com
  device: {name: device}
  relabel:
  - {source_labels: [accelerator_id], regex: '.*-([0-9]+)', target_label: device, replacement: tpu-$1}
  - {source_labels: [make, model], separator: '/', regex: 'cloud/v.', action: keep}
  - {source_labels: [__name__, pod], regex: 'duty;.+', action: drop}
  metrics:
  - {metric: duty, quantity: utilization}
`)
	got, err := mapText(t, rules, `duty{accelerator_id="4001-0",make="cloud",model="v5"} 0.1
duty{accelerator_id="4001-1",make="cloud",model="v5",pod="x"} 0.2
duty{accelerator_id="4001-2",make="other",model="v5"} 0.3
duty{accelerator_id="4001",make="cloud",model="v6"} 0.4
`)
	if want := []string{"tpu-0 utilization 0.1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// The identity of a device is what any of its series says.
func TestIdentity(t *testing.T) {
	rules := rulesOf(t, `  vendor: acme
  driver: npu.acme.com
  device: {name: n}
  metrics: [{metric: busy, quantity: utilization}]
`)
	families, err := parsePage([]byte("busy{n=\"npu-0\"} 1\n"), rules.names())
	if err != nil {
		t.Fatal(err)
	}
	devices, _, err := newChoices().mapPage(rules, families, device.Window{}, at())
	want := device.Device{
		Vendor: "acme", Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		Published: device.PublishedName{Driver: "npu.acme.com", Device: "npu-0"},
	}
	if err != nil || len(devices) != 1 || fmt.Sprint(devices[0].Device) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v", devices, err)
	}

	rules = rulesOf(t, `  vendor: nvidia
  device: {uuid: UUID, pci_address: pci, model: m, driver_version: v, gpu_instance: gi, profile: p}
  metrics: [{metric: busy, quantity: utilization}, {metric: heat, quantity: temperature, details: {sensor: gpu}}]
`)
	families, err = parsePage([]byte(`busy{UUID="GPU-1",pci="00000000:C1:00.0"} 1
heat{UUID="GPU-1",m="H100",v="595.1"} 40
busy{UUID="GPU-1",gi="7",p="1g.10gb"} 0.5
heat{UUID="GPU-1",gi="x"} 40
heat{UUID="GPU-1",pci="c1"} 40
`), rules.names())
	if err != nil {
		t.Fatal(err)
	}
	devices, _, err = newChoices().mapPage(rules, families, device.Window{}, at())
	if len(devices) != 2 || err == nil || !strings.Contains(err.Error(), `heat: "x" is not the number of a GPU instance`) || !strings.Contains(err.Error(), `heat: "c1" is not a PCI address`) {
		t.Fatalf("got %+v, %v", devices, err)
	}
	gpu, part := devices[0].Device, devices[1].Device
	if gpu.UUID != "GPU-1" || gpu.PCIBusID != "0000:c1:00.0" || gpu.Model != "H100" || gpu.DriverVersion != "595.1" || gpu.IsPartition() {
		t.Errorf("got %+v", gpu)
	}
	if part.UUID != "MIG-GPU-1/7/0" || part.ParentUUID != "GPU-1" || part.GPUInstance != 7 || part.ComputeInstance != 0 || part.Profile != "1g.10gb" {
		t.Errorf("got %+v", part)
	}
}

// While the metric that has given a reading is missing, another one that could give it
// does not: it may have counted from another time.
func TestAlternativesAreChosenOnce(t *testing.T) {
	rules := rulesOf(t, `  device: {uuid: id}
  metrics: [{metric: joules, quantity: energy, unit: joules}, {metric: energy, quantity: energy, unit: joules}]
`)
	chosen := newChoices()
	for _, step := range []struct{ page, want string }{
		{"joules{id=\"a\"} 1000\nenergy{id=\"a\"} 7\n", "[a energy 1000]"},
		{"energy{id=\"a\"} 8\nenergy{id=\"b\"} 5\n", "[b energy 5]"},
		{"joules{id=\"a\"} 1200\nenergy{id=\"a\"} 9\njoules{id=\"b\"} 3000\nenergy{id=\"b\"} 6\n", "[a energy 1200 b energy 6]"},
	} {
		families, err := parsePage([]byte(step.page), rules.names())
		if err != nil {
			t.Fatal(err)
		}
		devices, _, err := chosen.mapPage(rules, families, device.Window{}, at())
		if got := fmt.Sprint(linesOf(devices)); got != step.want || err != nil {
			t.Errorf("%s gives %s (%v), want %s", step.page, got, err, step.want)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		base, name  string
		value, want float64
	}{
		{"ratio", "percent", 57, 0.57}, {"bytes", "mebibytes", 1, 1 << 20}, {"bytes", "megabytes", 1, 1e6},
		{"watts", "milliwatts", 350_000, 350}, {"joules", "microjoules", 3, 3e-6}, {"hertz", "megahertz", 1755, 1.755e9},
		{"seconds", "nanoseconds", 5e8, 0.5}, {"celsius", "celsius", 41, 41}, {"", "", 3, 3},
	} {
		unit, known := baseUnits(c.base)[c.name]
		if got := unit.base(c.value); !known || got != c.want {
			t.Errorf("%v %s: got %v, want %v", c.value, c.name, got, c.want)
		}
	}
}

// forPod adds a copy of each series, of one pod that holds the device.
func forPod(families map[string]*family) {
	for _, family := range families {
		for _, one := range slices.Clone(family.series) {
			one.Labels = append(slices.DeleteFunc(slices.Clone(one.Labels), func(l exposition.Label) bool { return l.Name == "pod" }), exposition.Label{Name: "pod", Value: "copy"})
			family.series = append(family.series, one)
		}
	}
}

// FuzzPage maps foreign pages: nothing may panic, no reading may be out of its range,
// and the readings do not depend on how many pods hold a device.
func FuzzPage(f *testing.F) {
	f.Add([]byte("# TYPE busy gauge\nbusy{id=\"a\"} 57\nheat{id=\"a\",place=\"die\"} 1e3 1800000000000\n"))
	f.Add([]byte("busy{id=\"a\",pod=\"x\"} 5\nbusy{id=\"a\",pod=\"y\"} 5\nsent{id=\"a\",port=\"1\",pod=\"x\"} 1\nsent{id=\"a\",port=\"1\",pod=\"y\"} 1\n"))
	f.Add([]byte("sent{id=\"a\",port=\"1\"} 1\nsent{id=\"a\",port=\"2\"} 1e300\ncore_busy{id=\"\xff\",engine=\"c\"} 2\n"))
	rules := rulesOf(f, npu)
	names := rules.names()
	f.Fuzz(func(t *testing.T, text []byte) {
		families, err := parsePage(text, names)
		if err != nil {
			return
		}
		devices, had, _ := newChoices().mapPage(rules, families, device.Window{}, at())
		if len(devices) > maxDevices || len(had) != len(rules.metrics) {
			t.Fatalf("%d devices, %d rules", len(devices), len(had))
		}
		forPod(families)
		if held, _, _ := newChoices().mapPage(rules, families, device.Window{}, at()); !slices.Equal(linesOf(held), linesOf(devices)) {
			t.Fatalf("got\n%v\nof one pod more\n%v", linesOf(devices), linesOf(held))
		}
		seen := make(map[string]bool)
		for _, one := range devices {
			if name := deviceName(one.Device); name == "" || seen[name] || !isText(name, maxIdentity) {
				t.Fatalf("the device %q", name)
			} else {
				seen[name] = true
			}
			readings := make(map[string]bool)
			for _, r := range one.Readings {
				key := fmt.Sprint(r.Quantity, r.Details)
				if readings[key] || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Quantity != device.Temperature && r.Value < 0 ||
					device.Specs()[r.Quantity].Unit == "ratio" && r.Value > 1 {
					t.Fatalf("the reading %+v", r)
				}
				readings[key] = true
			}
		}
	})
}

// BenchmarkPage measures parsing and mapping of a page of 5,000 series: 8 GPUs with the
// metrics of both namings that the preset maps, and others.
func BenchmarkPage(b *testing.B) {
	config, err := Preset("nvidia-dcgm-exporter")
	if err != nil {
		b.Fatal(err)
	}
	var page strings.Builder
	lines := 0
	for _, rule := range config.rules.metrics {
		for gpu := range 8 {
			fmt.Fprintf(&page, "%s{gpu=\"%d\",UUID=\"GPU-%036d\",pci_bus_id=\"00000000:%02X:00.0\",device=\"nvidia%d\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"gpu-1\",DCGM_FI_DRIVER_VERSION=\"595.71.05\"} 1\n", rule.metric, gpu, gpu, gpu+16, gpu)
			lines++
		}
	}
	for ; lines < 5000; lines++ {
		fmt.Fprintf(&page, "DCGM_EXP_OTHER{gpu=\"%d\",UUID=\"GPU-%036d\",pci_bus_id=\"00000000:%02X:00.0\",device=\"nvidia%d\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"gpu-1\",n=\"%d\"} 1\n", lines%8, lines%8, lines%8+16, lines%8, lines)
	}
	b.SetBytes(int64(page.Len()))
	b.ReportAllocs()
	for b.Loop() {
		families, err := parsePage([]byte(page.String()), config.rules.names())
		if err != nil {
			b.Fatal(err)
		}
		devices, _, _ := newChoices().mapPage(&config.rules, families, device.Window{}, at())
		if len(devices) != 8 {
			b.Fatalf("%d devices", len(devices))
		}
	}
}

// BenchmarkMapping measures the mapping of a page of 5,000 series that are all of
// rules, without its parsing.
func BenchmarkMapping(b *testing.B) {
	config, err := Preset("nvidia-dcgm-exporter")
	if err != nil {
		b.Fatal(err)
	}
	var page strings.Builder
	for _, rule := range config.rules.metrics {
		for gpu := range 5000 / len(config.rules.metrics) {
			fmt.Fprintf(&page, "%s{gpu=\"%d\",UUID=\"GPU-%036d\",pci_bus_id=\"00000000:%02X:00.0\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"gpu-1\",DCGM_FI_DRIVER_VERSION=\"595.71.05\"} 1\n", rule.metric, gpu, gpu, gpu)
		}
	}
	families, err := parsePage([]byte(page.String()), config.rules.names())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if devices, _, _ := newChoices().mapPage(&config.rules, families, device.Window{}, at()); len(devices) == 0 {
			b.Fatal("no devices")
		}
	}
}
