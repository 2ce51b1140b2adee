package otlp

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
)

// fullNode is a real reducer with the node that speed is measured on: 8 GPUs
// of 7 partitions, 64 claims (the last 8 share partitions with others), 128
// containers, every quantity; and a network adapter.
type fullNode struct {
	state    node.State
	facts    node.Facts
	now      clock.Instant
	counters float64
}

func newFullNode() *fullNode {
	n := &fullNode{now: clock.Instant{Wall: semconvTime, Elapsed: time.Hour}}
	n.state = node.NewState(node.Config{Node: "node-a", Interval: time.Second, Grace: 5 * time.Minute, HealthHold: time.Minute})
	n.facts.Cluster = node.Cluster{Enabled: true, Fresh: true, SlicesFresh: true}
	for g := range 8 {
		whole := device.Device{
			UUID: fmt.Sprintf("GPU-%d", g), Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3", DriverVersion: "580.65.06",
			PCIBusID: fmt.Sprintf("0000:%02x:00.0", g+16), Minor: g, RenderMinor: device.Unknown, Placement: device.Unknown,
			GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		}
		n.add(whole)
		for p := range 7 {
			part := whole
			part.UUID, part.ParentUUID, part.Profile, part.Placement = fmt.Sprintf("MIG-%d-%d", g, p), whole.UUID, "1g.10gb", p
			part.GPUInstance, part.ComputeInstance = p+7, 0
			n.add(part)
		}
	}
	for c := range 64 {
		n.claim(c, fmt.Sprintf("MIG-%d-%d", c/7%8, c%7))
	}
	return n
}

func (n *fullNode) add(of device.Device) {
	n.facts.Samples = append(n.facts.Samples, device.Sample{Device: of, Source: "nvml"})
	n.facts.Cluster.Published = append(n.facts.Cluster.Published, dra.PublishedDevice{
		ID: dra.DeviceID{Driver: "gpu.nvidia.com", Pool: "node-a", Name: of.UUID}, Node: "node-a",
		UUID: of.UUID, ParentUUID: of.ParentUUID, Profile: of.Profile, Placement: of.Placement,
	})
}

func (n *fullNode) claim(c int, uuid string) {
	namespace, name := fmt.Sprintf("team-%d", c%6), fmt.Sprintf("claim-%02d", c)
	n.facts.Cluster.Claims = append(n.facts.Cluster.Claims, dra.Claim{
		Ref: dra.ClaimRef{Namespace: namespace, Name: name}, UID: "uid-" + name, Allocated: true,
		Requests:    []dra.Request{{Name: "mig", DeviceClass: "mig.nvidia.com"}},
		Results:     []dra.Result{{Request: "mig", Device: dra.DeviceID{Driver: "gpu.nvidia.com", Pool: "node-a", Name: uuid}}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: name, UID: "pod-" + name}},
	})
	use := []dra.Use{{Claim: name}}
	n.facts.Cluster.Pods = append(n.facts.Cluster.Pods, dra.Pod{
		Ref: dra.PodRef{Namespace: namespace, Name: name}, UID: "pod-" + name, Node: "node-a",
		Claims:     []dra.PodClaim{{Name: "mig", Template: "mig", Claim: name}},
		Containers: []dra.Container{{Name: "server", Uses: use}, {Name: "sidecar", Uses: use}},
	})
}

// tick is one second with new readings of everything.
func (n *fullNode) tick() []metric.Row {
	n.now = n.now.Add(time.Second)
	n.counters += 1000
	samples := slices.Clone(n.facts.Samples)
	for i := range samples {
		samples[i].At, samples[i].Readings = n.now, n.readings()
		samples[i].XIDs, samples[i].XIDSource = []device.XID{}, "nvml"
	}
	n.facts.Samples = samples
	var snapshot node.Snapshot
	n.state, snapshot, _ = node.Step(n.state, n.facts, n.now)
	return snapshot.Rows
}

func (n *fullNode) readings() []device.Reading {
	details := map[device.Quantity][][2]string{
		device.EngineActive:       {{"copy"}, {"decoder"}, {"dram"}, {"encoder"}, {"fp16"}, {"fp32"}, {"fp64"}, {"graphics"}, {"sm"}, {"tensor"}},
		device.Temperature:        {{"gpu"}, {"memory"}},
		device.ClockFrequency:     {{"memory"}, {"sm"}},
		device.RemappedRows:       {{"corrected"}, {"uncorrected"}},
		device.ECCErrors:          {{"corrected"}, {"uncorrected"}},
		device.XGMIErrors:         {{"corrected"}, {"uncorrected"}},
		device.NVLinkErrors:       {{"crc_data"}, {"replay"}},
		device.NVLinkLinkTransmit: {{"0", "GPU-7"}, {"1", "switch"}},
		device.NVLinkLinkReceive:  {{"0", "GPU-7"}, {"1", "switch"}},
		device.NetworkLinks:       {{"1", "active"}, {"1", "down"}},
		device.NetworkErrors:      {{"receive"}, {"symbol"}},
		device.Throttled:          {{"hw_thermal"}, {"power_cap"}, {"sync_boost"}, {"thermal"}},
	}
	var readings []device.Reading
	for q, spec := range device.Specs() {
		value := 0.5
		if spec.Kind == device.Counter {
			value = n.counters
		}
		of := details[device.Quantity(q)]
		if of == nil {
			of = [][2]string{{}}
		}
		for _, detail := range of {
			readings = append(readings, device.Reading{Quantity: device.Quantity(q), Details: detail, Value: value})
		}
	}
	return readings
}

// The reducer's own rows go out whole, with starts, while claims come and go,
// and what is gone is forgotten.
func TestSemconvOfTheReducer(t *testing.T) {
	n, naming := newFullNode(), newSemconvNaming().(*semanticNaming)
	for turn := range 6 {
		rows, at := n.tick(), n.now.Wall
		checkSemconv(t, rows, naming.metrics(rows, at), at)
		if turn == 3 {
			n.facts.Cluster.Pods, n.facts.Cluster.Claims = n.facts.Cluster.Pods[32:], n.facts.Cluster.Claims[32:]
		}
	}
	full, devices, claims := len(naming.memory.all), len(naming.subjects.devices), len(naming.subjects.claims)
	if devices != 64 || claims != 64 {
		t.Errorf("%d devices and %d claims are known", devices, claims)
	}
	n.now = n.now.Add(time.Hour)
	for turn := range 4 {
		rows := n.tick()
		if turn > 1 { // the order of what is there is not always the same
			slices.Reverse(rows)
		}
		checkSemconv(t, rows, naming.metrics(rows, n.now.Wall), n.now.Wall)
	}
	ordered := 0
	for _, order := range naming.memory.orders {
		ordered += len(order)
	}
	if ordered > len(naming.memory.all) {
		t.Errorf("%d places are in order, %d are known", ordered, len(naming.memory.all))
	}
	if less := len(naming.memory.all); less >= full || len(naming.subjects.claims) != 32 {
		t.Errorf("%d places of %d are remembered after the grace, and %d claims", less, full, len(naming.subjects.claims))
	}
	naming.metrics(nil, n.now.Wall)
	if len(naming.memory.all)+len(naming.subjects.devices)+len(naming.subjects.claims) > 0 {
		t.Error("something is remembered of a page that is empty")
	}
}

// BenchmarkSemconvNaming is what a push costs in which only readings are new.
func BenchmarkSemconvNaming(b *testing.B) {
	n, naming := newFullNode(), newSemconvNaming()
	snapshots, turn := [2][]metric.Row{n.tick(), n.tick()}, 0
	naming.metrics(snapshots[1], n.now.Wall)
	b.ReportAllocs()
	for b.Loop() {
		naming.metrics(snapshots[turn%2], n.now.Wall)
		turn++
	}
	b.ReportMetric(float64(len(snapshots[0])), "rows")
}

// BenchmarkSemconvNamingAnew is what the first push costs.
func BenchmarkSemconvNamingAnew(b *testing.B) {
	n := newFullNode()
	rows := n.tick()
	b.ReportAllocs()
	for b.Loop() {
		newSemconvNaming().metrics(rows, n.now.Wall)
	}
}
