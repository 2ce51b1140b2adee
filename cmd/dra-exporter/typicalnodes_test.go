package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// typicalNode is a node whose rows are counted in docs/metrics.md.
type typicalNode struct {
	name     string
	title    string
	hardware string // as in the file of the simulated source
	holds    [][]int
}

// typicalNodes are the demo's node with the claims of the demo, a node whose GPUs
// are all partitioned, and one whose GPUs are all shared in time. All hardware is
// made of the demo's templates.
func typicalNodes(t testing.TB) []typicalNode {
	t.Helper()
	templates, err := os.ReadFile("../../internal/demo/templates.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile("../../internal/demo/gpu-node-1.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dense, shared := string(templates)+"devices:\n", string(templates)+"devices:\n"
	for g := range 8 {
		dense += fmt.Sprintf("- {template: mig-gpu, minor: %[1]d, uuid: GPU-%[1]d, pciBusID: \"0000:%[2]x:00.0\", partitions: [", g, g+16)
		for p := range 7 {
			dense += fmt.Sprintf("{template: partition, uuid: MIG-%d-%d, profile: 1g.10gb, placement: %d, gpuInstance: %d, computeInstance: 0, quantities: {memory_used: 4.0e+9, memory_size: 10468982784}}, ", g, p, p, p+7)
		}
		dense += "]}\n"
	}
	for g := range 4 {
		shared += fmt.Sprintf("- {template: gpu, minor: %[1]d, uuid: GPU-%[1]d, pciBusID: \"0000:%[2]x:00.0\"}\n", g, g+16)
	}
	nodes := []typicalNode{
		// Devices are numbered as in the file: 6 to 8 and 10 to 13 are partitions, 15 is the adapter.
		{name: "demo", title: "8 GPUs, 2 of them partitioned, a network adapter, 12 claims", hardware: string(templates) + string(first), holds: [][]int{
			{0}, {1}, {2, 15}, {3}, {3}, {6}, {7}, {8}, {10}, {12}, {13}, {14},
		}},
		{name: "dense", title: "8 GPUs of 7 partitions, 64 claims", hardware: dense},
		{name: "shared", title: "4 GPUs, each shared by 4 claims", hardware: shared},
	}
	for c := range 64 {
		gpu, partition := c/7%8, c%7
		nodes[1].holds = append(nodes[1].holds, []int{gpu*8 + 1 + partition})
	}
	for c := range 16 {
		nodes[2].holds = append(nodes[2].holds, []int{c / 4})
	}
	return nodes
}

// rows returns the rows after a few steps. change, which may be nil, changes the
// samples of each step.
func (n typicalNode) rows(t testing.TB, change func(step int, samples []device.Sample)) []metric.Row {
	t.Helper()
	now := clock.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Elapsed: time.Hour}
	config, err := simulated.Parse([]byte(n.hardware))
	if err != nil {
		t.Fatal(err)
	}
	src := simulated.New(config, func() clock.Instant { return now })
	state := node.NewState(node.Config{
		Node: demoNodeName, Version: buildVersion(), Interval: time.Second, Grace: 5 * time.Minute, IdleThreshold: 0.01,
		HealthHold: 5 * time.Minute, ThrottleRatio: 0.25, PodLabels: []string{"team"},
		Prices: &price.Prices{Currency: "EUR", Rules: []price.Rule{{PerHour: 4}}},
	})
	facts := node.Facts{Cluster: node.APIFacts{Enabled: true, Fresh: true, SlicesFresh: true}}
	var snapshot node.Snapshot
	for step := range 4 {
		now = now.Add(time.Second)
		facts.Samples = samplesOf(t, src, now)
		if change != nil {
			change(step, facts.Samples)
		}
		if step == 0 {
			n.publish(&facts)
			n.claim(&facts)
		}
		facts.ListedAt, facts.Sources = now, sourcesAt(now)
		facts.Processes = node.Processes{State: node.ProcessesOK}
		state, snapshot, _ = node.Step(state, facts, now)
	}
	return snapshot.Rows()
}

const demoNodeName = "gpu-node-1"

// sourcesAt are those of the node role on a node with NVIDIA GPUs.
func sourcesAt(now clock.Instant) []source.Status {
	var all []source.Status
	for _, name := range []string{"nvml", "rdma", "podresources", "cdi", "cgroup", "pods", "resourceclaims", "resourceslices"} {
		watched := name == "pods" || name == "resourceslices"
		all = append(all, source.Status{Name: name, Up: true, LastSuccess: now, Queue: source.Queue{Watched: watched}})
	}
	return all
}

// samplesOf reads every device of the source, whose GPUs' Xids are watched.
func samplesOf(t testing.TB, src *simulated.Source, now clock.Instant) []device.Sample {
	t.Helper()
	readers, err := src.Readers(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var samples []device.Sample
	for _, reader := range readers {
		observed, err := reader.Read(context.Background(), device.Slow)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range observed {
			sample := device.Sample{Device: o.Device, Source: "nvml", At: now, Readings: slices.Concat(o.Readings, o.Slow)}
			if o.Device.Vendor == "nvidia" {
				sample.XIDs, sample.XIDSource = []device.XID{}, "nvml"
			}
			slices.SortFunc(sample.Readings, func(a, b device.Reading) int {
				return cmp.Or(cmp.Compare(a.Quantity, b.Quantity), strings.Compare(a.Details[0], b.Details[0]), strings.Compare(a.Details[1], b.Details[1]))
			})
			for r := range sample.Readings {
				sample.Readings[r].Measured = device.Window{From: now.Elapsed, To: now.Elapsed}
			}
			samples = append(samples, sample)
		}
	}
	return samples
}

// publish publishes each device under its place in the list of samples.
func (n typicalNode) publish(facts *node.Facts) {
	for i, sample := range facts.Samples {
		d := sample.Device
		facts.Cluster.Published = append(facts.Cluster.Published, dra.PublishedDevice{
			ID: publishedID(i), Node: demoNodeName, UUID: d.UUID, ParentUUID: d.ParentUUID, PCIAddress: d.PCIBusID,
			Profile: d.Profile, Placement: d.Placement, Model: d.Model, Capacity: map[string]float64{"memory": 80e9},
		})
	}
}

func publishedID(i int) dra.DeviceID {
	return dra.DeviceID{Driver: "gpu.nvidia.com", Pool: demoNodeName, Name: fmt.Sprintf("device-%d", i)}
}

// claim adds the claims, each with a pod of one container.
func (n typicalNode) claim(facts *node.Facts) {
	for c, devices := range n.holds {
		namespace, name := fmt.Sprintf("team-%d", c%4), fmt.Sprintf("claim-%02d", c)
		claim := dra.Claim{
			Ref: dra.ClaimRef{Namespace: namespace, Name: name}, UID: "uid-" + name, Allocated: true,
			Requests:    []dra.Request{{Name: "gpu", DeviceClass: "gpu.nvidia.com"}},
			ReservedFor: []dra.Consumer{{Resource: "pods", Name: name, UID: "pod-" + name}},
		}
		for _, i := range devices {
			claim.Results = append(claim.Results, dra.Result{Request: "gpu", Device: publishedID(i)})
		}
		facts.Cluster.Claims = append(facts.Cluster.Claims, claim)
		facts.Cluster.Pods = append(facts.Cluster.Pods, dra.Pod{
			Ref: dra.PodRef{Namespace: namespace, Name: name}, UID: "pod-" + name, Node: demoNodeName, OwnerKind: "Job", OwnerName: name, Labels: []string{"red"},
			Member:     dra.Member{Workload: &dra.Workload{Kind: "Job", Name: name}, Rank: "0"},
			Claims:     []dra.PodClaim{{Name: "gpu", Claim: name}},
			Containers: []dra.Container{{Name: "main", Uses: []dra.Use{{Claim: name}}}},
		})
	}
}
