// Package otlptest has a node of the real reducer, whose rows tests and benchmarks
// convert, and the names that Prometheus gives to the result.
package otlptest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Node is the node reducer with the inventory that benchmarks use: 8 GPUs
// of 7 partitions, 64 claims (the last 8 share partitions with others), 128
// containers, every quantity; and a network adapter.
type Node struct {
	state    node.State
	Facts    node.Facts
	Now      clock.Instant // of the newest snapshot
	Model    *model.Node   // likewise
	counters float64
}

// NewNode returns a node whose first snapshot is a second after start.
func NewNode(start time.Time) *Node {
	n := &Node{Now: clock.Instant{Wall: start, Elapsed: time.Hour}}
	n.state = node.NewState(node.Config{Node: "node-a", Interval: time.Second, Grace: 5 * time.Minute, HealthHold: time.Minute})
	n.Facts.Cluster = node.APIFacts{Enabled: true, Fresh: true, SlicesFresh: true}
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

func (n *Node) add(d device.Device) {
	n.Facts.Samples = append(n.Facts.Samples, device.Sample{Device: d, Source: "nvml"})
	n.Facts.Cluster.Published = append(n.Facts.Cluster.Published, dra.PublishedDevice{
		ID: dra.DeviceID{Driver: "gpu.nvidia.com", Pool: "node-a", Name: d.UUID}, Node: "node-a",
		UUID: d.UUID, ParentUUID: d.ParentUUID, Profile: d.Profile, Placement: d.Placement,
	})
}

func (n *Node) claim(c int, uuid string) {
	namespace, name := fmt.Sprintf("team-%d", c%6), fmt.Sprintf("claim-%02d", c)
	n.Facts.Cluster.Claims = append(n.Facts.Cluster.Claims, dra.Claim{
		Ref: dra.ClaimRef{Namespace: namespace, Name: name}, UID: "uid-" + name, Allocated: true,
		Requests:    []dra.Request{{Name: "mig", DeviceClass: "mig.nvidia.com"}},
		Results:     []dra.Result{{Request: "mig", Device: dra.DeviceID{Driver: "gpu.nvidia.com", Pool: "node-a", Name: uuid}}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: name, UID: "pod-" + name}},
	})
	use := []dra.Use{{Claim: name}}
	n.Facts.Cluster.Pods = append(n.Facts.Cluster.Pods, dra.Pod{
		Ref: dra.PodRef{Namespace: namespace, Name: name}, UID: "pod-" + name, Node: "node-a",
		Claims:     []dra.PodClaim{{Name: "mig", Template: "mig", Claim: name}},
		Containers: []dra.Container{{Name: "server", Uses: use}, {Name: "sidecar", Uses: use}},
	})
}

// Tick returns the rows of a second later, with a new reading of every quantity.
func (n *Node) Tick() []metric.Row {
	n.Now = n.Now.Add(time.Second)
	n.counters += 1000
	samples := slices.Clone(n.Facts.Samples)
	for i := range samples {
		samples[i].At, samples[i].Readings = n.Now, n.readings()
		samples[i].XIDs, samples[i].XIDSource = []device.XID{}, "nvml"
	}
	n.Facts.Samples = samples
	var snapshot node.Snapshot
	n.state, snapshot, _ = node.Step(n.state, n.Facts, n.Now)
	n.Model = snapshot.Model
	return snapshot.Rows()
}

func (n *Node) readings() []device.Reading {
	details := map[device.Quantity][][2]string{
		device.EngineActive:       {{"copy"}, {"decoder"}, {"dram"}, {"encoder"}, {"fp16"}, {"fp32"}, {"fp64"}, {"graphics"}, {"sm"}, {"tensor"}},
		device.Temperature:        {{"gpu"}, {"memory"}},
		device.ClockFrequency:     {{"memory"}, {"sm"}},
		device.RemappedRows:       {{"corrected"}, {"uncorrected"}},
		device.ECCErrors:          {{"corrected"}, {"uncorrected"}},
		device.XGMIErrors:         {{"corrected"}, {"uncorrected"}},
		device.DriverHealth:       {{"link", "degraded"}, {"link", "healthy"}, {"link", "unhealthy"}},
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
		pairs := details[device.Quantity(q)]
		if pairs == nil {
			pairs = [][2]string{{}}
		}
		for _, detail := range pairs {
			readings = append(readings, device.Reading{Quantity: device.Quantity(q), Details: detail, Value: value})
		}
	}
	return readings
}

// SeriesName is the name of the Prometheus series that a metric is converted to.
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/#metric-metadata-1
func SeriesName(metrics metricdata.Metrics) string {
	words := map[string]string{"s": "seconds", "By": "bytes", "J": "joules", "W": "watts", "Cel": "celsius", "Hz": "hertz"}
	tokens := strings.Split(metrics.Name, "_")
	if word := words[metrics.Unit]; word != "" && !slices.Contains(tokens, word) {
		tokens = append(tokens, word)
	}
	end := ""
	switch data := metrics.Data.(type) {
	case metricdata.Sum[float64]:
		if data.IsMonotonic {
			end = "total"
		}
	case metricdata.Gauge[float64]:
		if metrics.Unit == "1" {
			end = "ratio"
		}
	}
	if end != "" {
		tokens = append(slices.DeleteFunc(tokens, func(token string) bool { return token == end }), end)
	}
	return strings.Join(tokens, "_")
}
