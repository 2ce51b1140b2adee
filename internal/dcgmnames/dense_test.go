package dcgmnames

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// denseNode is a real reducer with the node of the benchmarks: 8 GPUs of
// 7 partitions, 64 claims (the last 8 share partitions with others), 128
// containers, every quantity.
type denseNode struct {
	state    node.State
	facts    node.Facts
	now      clock.Instant
	counters float64
}

func newDenseNode() *denseNode {
	d := &denseNode{now: clock.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Elapsed: time.Hour}}
	d.state = node.NewState(node.Config{Node: sceneNode, Interval: time.Second, Grace: 5 * time.Minute, HealthHold: time.Minute})
	d.facts.Cluster = node.APIFacts{Enabled: true, Fresh: true, SlicesFresh: true}
	for g := range 8 {
		whole := device.Device{
			UUID: fmt.Sprintf("GPU-%d", g), Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3", DriverVersion: "580.65.06",
			PCIBusID: fmt.Sprintf("0000:%02x:00.0", g+16), Minor: g, RenderMinor: device.Unknown, Placement: device.Unknown,
			GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		}
		d.add(whole)
		for p := range 7 {
			part := whole
			part.UUID, part.ParentUUID, part.Profile, part.Placement = fmt.Sprintf("MIG-%d-%d", g, p), whole.UUID, "1g.10gb", p
			part.GPUInstance, part.ComputeInstance = p+7, 0
			d.add(part)
		}
	}
	for c := range 64 {
		d.claim(c, fmt.Sprintf("MIG-%d-%d", c/7%8, c%7))
	}
	return d
}

func (d *denseNode) add(of device.Device) {
	d.facts.Samples = append(d.facts.Samples, device.Sample{Device: of, Source: "nvml"})
	d.facts.Cluster.Published = append(d.facts.Cluster.Published, dra.PublishedDevice{
		ID: dra.DeviceID{Driver: "gpu.nvidia.com", Pool: sceneNode, Name: of.UUID}, Node: sceneNode,
		UUID: of.UUID, ParentUUID: of.ParentUUID, Profile: of.Profile, Placement: of.Placement,
	})
}

func (d *denseNode) claim(c int, uuid string) {
	namespace, name := fmt.Sprintf("team-%d", c%6), fmt.Sprintf("claim-%02d", c)
	d.facts.Cluster.Claims = append(d.facts.Cluster.Claims, dra.Claim{
		Ref: dra.ClaimRef{Namespace: namespace, Name: name}, UID: "uid-" + name, Allocated: true,
		Requests:    []dra.Request{{Name: "mig", DeviceClass: "mig.nvidia.com"}},
		Results:     []dra.Result{{Request: "mig", Device: dra.DeviceID{Driver: "gpu.nvidia.com", Pool: sceneNode, Name: uuid}}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: name, UID: "pod-" + name}},
	})
	use := []dra.Use{{Claim: name}}
	d.facts.Cluster.Pods = append(d.facts.Cluster.Pods, dra.Pod{
		Ref: dra.PodRef{Namespace: namespace, Name: name}, UID: "pod-" + name, Node: sceneNode,
		Claims:     []dra.PodClaim{{Name: "mig", Template: "mig", Claim: name}},
		Containers: []dra.Container{{Name: "server", Uses: use}, {Name: "sidecar", Uses: use}},
	})
}

// tick advances by one second, with new readings of everything.
func (d *denseNode) tick() *model.Node {
	d.now = d.now.Add(time.Second)
	d.counters += 1000
	samples := slices.Clone(d.facts.Samples)
	for i := range samples {
		samples[i].At, samples[i].Readings = d.now, d.readings()
		samples[i].XIDs, samples[i].XIDSource = []device.XID{}, "nvml"
	}
	d.facts.Samples = samples
	var snapshot node.Snapshot
	d.state, snapshot, _ = node.Step(d.state, d.facts, d.now)
	return snapshot.Model
}

func (d *denseNode) readings() []device.Reading {
	details := map[device.Quantity][]string{
		device.EngineActive:   {"copy", "decoder", "dram", "encoder", "fp16", "fp32", "fp64", "graphics", "sm", "tensor"},
		device.Temperature:    {"gpu", "memory"},
		device.ClockFrequency: {"memory", "sm"},
		device.RemappedRows:   {"corrected", "uncorrected"},
		device.ECCErrors:      {"corrected", "uncorrected"},
		device.Throttled:      {"hw_thermal", "power_cap", "sync_boost", "thermal"},
	}
	var readings []device.Reading
	for q, spec := range device.Specs() {
		value := 0.5
		if spec.Kind == device.Counter {
			value = d.counters
		}
		for _, detail := range append(details[device.Quantity(q)], []string{""}[min(1, len(details[device.Quantity(q)])):]...) {
			readings = append(readings, device.Reading{Quantity: device.Quantity(q), Details: [2]string{detail}, Value: value})
		}
	}
	return readings
}

// The reducer's node in fact has every field, each container's and each free
// partition's, and the plan holds from one snapshot to the next.
func TestRowsOfTheReducer(t *testing.T) {
	d, translator := newDenseNode(), newTranslator(Split)
	var rows []metric.Row
	for range 4 {
		before := translator.plan
		rows = translator.Rows(d.now.Elapsed, d.tick())
		if before != nil && translator.plan != before {
			t.Error("a new plan, though nothing has changed but readings")
		}
	}
	metrictest.Text(t, metric.NewPage(rows), familyNames()...)
	count := map[string]int{}
	for _, row := range rows {
		count[row.Family.Name]++
	}
	for _, family := range Families() {
		if got := count[family.Name]; got != 128 {
			t.Errorf("%s has %d series, want one of each container", family.Name, got)
		}
	}
	d.facts.Cluster.Pods = d.facts.Cluster.Pods[: len(d.facts.Cluster.Pods)-1 : len(d.facts.Cluster.Pods)-1]
	d.facts.Cluster.Claims = slices.Clone(d.facts.Cluster.Claims)
	if rows = translator.Rows(d.now.Elapsed, d.tick()); len(rows) != 126*len(Families()) {
		t.Errorf("%d rows after a pod has ended, want %d", len(rows), 126*len(Families()))
	}
	for _, row := range rows {
		if row.Labels.Get("pod") == "claim-63" {
			t.Fatal("the pod that has ended is still shown")
		}
	}
}

// TestDeletedDevices checks that a GPU whose partitions were removed is a whole GPU
// immediately, although the info rows of partitions stay for the grace period, and that
// a removed GPU keeps its number as long as its rows, so that others keep theirs.
func TestDeletedDevices(t *testing.T) {
	d, translator := newDenseNode(), newTranslator(Copy)
	var rows []metric.Row
	for range 4 {
		rows = translator.Rows(d.now.Elapsed, d.tick())
	}
	series := func(name string) (whole, parts, last int) {
		for _, row := range rows {
			switch l := row.Labels; {
			case row.Family.Name != "DCGM_FI_DEV_"+name:
			case l.Get("UUID") == "GPU-3" && l.Get("GPU_I_ID") == "":
				whole++
			case l.Get("UUID") == "GPU-3":
				parts++
			case l.Get("UUID") == "GPU-7" && l.Get("gpu") == "7":
				last++
			}
		}
		return whole, parts, last
	}
	want := func(when, name string, whole, parts int) {
		t.Helper()
		if w, p, last := series(name); w != whole || p != parts || last == 0 {
			t.Errorf("%s: %s of the GPU %d, of its partitions %d, want %d and %d; of the last GPU %d", when, name, w, p, whole, parts, last)
		}
	}
	want("at first", "POWER_USAGE", 0, 14)
	d.facts.Samples = slices.DeleteFunc(slices.Clone(d.facts.Samples), func(s device.Sample) bool { return s.Device.ParentUUID == "GPU-3" })
	rows = translator.Rows(d.now.Elapsed, d.tick())
	want("without partitions", "POWER_USAGE", 1, 0)
	want("without partitions", "GPU_UTIL", 1, 0)
	d.facts.Samples = slices.DeleteFunc(slices.Clone(d.facts.Samples), func(s device.Sample) bool { return s.Device.UUID == "GPU-3" })
	for range 20 {
		rows = translator.Rows(d.now.Elapsed, d.tick())
	}
	want("without the GPU", "XID_ERRORS", 0, 0) // it is not watched any more
	if whole, parts, _ := series("POWER_USAGE"); whole+parts != 0 {
		t.Error("a GPU that is gone draws power")
	}
}

// BenchmarkRows measures a snapshot with new readings only.
func BenchmarkRows(b *testing.B) {
	d, translator := newDenseNode(), newTranslator(Split)
	snapshots := [2]*model.Node{d.tick(), d.tick()}
	now, made := time.Duration(0), 0
	b.ReportAllocs()
	for b.Loop() {
		now += time.Second
		made = len(translator.Rows(now, snapshots[int(now/time.Second)%2]))
	}
	b.ReportMetric(float64(made), "series")
}

// BenchmarkRowsAfterChange measures a snapshot with an added or removed pod.
func BenchmarkRowsAfterChange(b *testing.B) {
	d, translator := newDenseNode(), newTranslator(Split)
	full := d.tick()
	less := *full
	less.Claims = less.Claims[1:]
	snapshots, now := [2]*model.Node{full, &less}, time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Second
		translator.Rows(now, snapshots[int(now/time.Second)%2])
	}
}
