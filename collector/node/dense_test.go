package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// dense is the node that speed and size are measured on: 8 GPUs of 7
// partitions, 64 claims, 128 containers, every quantity. 56 claims hold a
// partition each, in two containers; 8 are held by claims of the GPU that is
// not partitioned any more, or consume capacity of it.
type dense struct {
	facts    Facts
	now      clock.Instant
	gpus     int
	readings [2][][]device.Reading // of each device, in turns
	turn     int
}

const (
	denseGPUs       = 8
	densePartitions = 7
)

func newDense() *dense { return newDenseNode(denseGPUs) }

// newDenseNode is the same with another number of GPUs.
func newDenseNode(gpus int) *dense {
	d := &dense{now: origin(), gpus: gpus}
	d.facts.Cluster = APIFacts{Enabled: true, Fresh: true, SlicesFresh: true}
	for g := range gpus {
		whole := gpu(g)
		d.facts.Samples = append(d.facts.Samples, device.Sample{Device: whole, Source: "simulated"})
		for p := range densePartitions {
			part := gpu(g)
			part.UUID, part.ParentUUID, part.Profile, part.Placement = fmt.Sprintf("MIG-%d-%d", g, p), whole.UUID, "1g.10gb", p
			d.facts.Samples = append(d.facts.Samples, device.Sample{Device: part, Source: "simulated"})
			d.publish(part, fmt.Sprintf("gpu-%d-mig-1g10gb-19-%d", g, p))
		}
	}
	for c := range gpus * (densePartitions + 1) {
		d.claim(c)
	}
	d.adapter()
	d.cpus()
	d.plugin()
	d.setUnhealthy()
	for _, name := range []string{"simulated", "podresources", "pods", "resourceclaims", "resourceslices"} {
		d.facts.Sources = append(d.facts.Sources, source.Status{Name: name, Up: true, LastSuccess: d.now, Queue: source.Queue{Watched: name == "pods"}})
	}
	d.facts.Sources = append(d.facts.Sources, source.Status{Name: "cdi", Reason: source.ReasonInvalid, Errors: 1})
	return d
}

func (d *dense) publish(part device.Device, name string) {
	d.facts.Cluster.Published = append(d.facts.Cluster.Published, dra.PublishedDevice{
		ID: sceneID(name), ParentUUID: part.ParentUUID, Profile: part.Profile, Placement: part.Placement, Model: part.Model,
		PCIeRoot: "pci" + part.PCIBusID[:len("0000:00")], NUMANode: "0",
		Capacity: map[string]float64{"memory": 10e9},
	})
}

// claim adds one claim of a partition, with a pod of two containers. The
// last eight share partitions with earlier ones.
func (d *dense) claim(c int) {
	g, p := c/densePartitions%d.gpus, c%densePartitions
	namespace, name := fmt.Sprintf("team-%d", c%6), fmt.Sprintf("claim-%02d", c)
	d.facts.Cluster.Claims = append(d.facts.Cluster.Claims, dra.Claim{
		Ref: dra.ClaimRef{Namespace: namespace, Name: name}, UID: "uid-" + name, Allocated: true,
		Requests:    []dra.Request{{Name: "mig", DeviceClass: "mig.nvidia.com"}},
		Results:     []dra.Result{{Request: "mig", Device: sceneID(fmt.Sprintf("gpu-%d-mig-1g10gb-19-%d", g, p))}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: name, UID: "pod-" + name}},
	})
	d.facts.Cluster.Pods = append(d.facts.Cluster.Pods, dra.Pod{
		Ref: dra.PodRef{Namespace: namespace, Name: name}, UID: "pod-" + name, Node: sceneNode, OwnerKind: "ReplicaSet", OwnerName: "serve",
		Member: dra.Member{Workload: &dra.Workload{Kind: "LeaderWorkerSet", Name: "serve", Queue: namespace}, Role: "worker", Replica: fmt.Sprint(c / 8), Rank: fmt.Sprint(c % 8)},
		Claims: []dra.PodClaim{{Name: "mig", Template: "mig", Claim: name}},
		Containers: []dra.Container{
			{Name: "server", Uses: []dra.Use{{Claim: name}}},
			{Name: "sidecar", Uses: []dra.Use{{Claim: name}}},
		},
	})
}

// adapter gives the first claim a network adapter beside its partition.
func (d *dense) adapter() {
	id := dra.DeviceID{Driver: "dra.net", Pool: sceneNode, Name: "nic-0"}
	d.facts.Cluster.Published = append(d.facts.Cluster.Published, dra.PublishedDevice{ID: id, Placement: dra.PlacementUnknown, NUMANode: "0"})
	first := &d.facts.Cluster.Claims[0]
	first.Results = append(first.Results, dra.Result{Request: "nic", Device: id})
}

// cpus gives the second claim CPUs beside its partition.
func (d *dense) cpus() {
	second := &d.facts.Cluster.Claims[1]
	for i := range 2 {
		id := dra.DeviceID{Driver: "dra.cpu", Pool: sceneNode, Name: fmt.Sprint("cpudev00", i)}
		d.facts.Cluster.Published = append(d.facts.Cluster.Published, dra.PublishedDevice{ID: id, Placement: dra.PlacementUnknown, NUMANode: "0"})
		second.Results = append(second.Results, dra.Result{Request: "cpus", Device: id})
	}
}

// plugin adds a pod that got a GPU through a device plugin.
func (d *dense) plugin() {
	pod := dra.PodRef{Namespace: "legacy", Name: "notebook"}
	d.facts.Listing = dra.PodResources{
		Pods:    []dra.PodRef{pod},
		Plugins: []dra.PluginAssignment{{Pod: pod, Container: "main", Resource: "nvidia.com/gpu", DeviceIDs: []string{"GPU-7"}}},
	}
}

// setUnhealthy watches the Xids of all devices, and makes one GPU unhealthy by
// every reporter.
func (d *dense) setUnhealthy() {
	for i := range d.facts.Samples {
		d.facts.Samples[i].XIDs, d.facts.Samples[i].XIDSource = []device.XID{}, "simulated"
	}
	d.facts.Samples[0].XIDs = []device.XID{{Code: 79, Count: 1, Last: d.now.Wall}}
	d.facts.Cluster.Published[0].Taints = []dra.Taint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: "NoExecute"}}
	d.facts.Cluster.Pods[0].Health = []dra.ResourceHealth{{PodClaim: "mig", ResourceID: d.facts.Cluster.Published[0].ID.String()}}
}

// tick is one second: new readings of everything. Every third device idles.
// Two sets of readings take turns, so that a benchmark measures the reducer
// and not the making of its facts.
func (d *dense) tick() {
	d.now = d.now.Add(time.Second)
	d.facts.ListedAt = d.now
	d.turn = 1 - d.turn
	specs := device.Specs()
	samples := slices.Clone(d.facts.Samples)
	for i := range samples {
		if len(d.readings[d.turn]) <= i {
			d.readings[d.turn] = append(d.readings[d.turn], denseReadings(i))
		}
		readings := d.readings[d.turn][i]
		for at := range readings {
			switch q := readings[at].Quantity; {
			case q == device.Throttled && i > 0: // the first, which is unhealthy, is slowed down all the time
				readings[at].Value = 1e6 + d.now.Elapsed.Seconds()/10
			case q == device.Throttled:
				readings[at].Value = 1e6 + d.now.Elapsed.Seconds()
			case specs[q].Kind == device.Counter && q != device.ECCErrors:
				readings[at].Value = 1e6 + d.now.Elapsed.Seconds()*float64(i)
			}
		}
		samples[i].At, samples[i].Readings = d.now, readings
	}
	d.facts.Samples = samples
}

// denseReadings holds every quantity, with as many details as an H100 has.
func denseReadings(i int) []device.Reading {
	details := map[device.Quantity][][2]string{
		device.EngineActive:   pairs("graphics", "sm", "tensor", "fp64", "fp32", "fp16", "dram", "encoder", "decoder", "copy"),
		device.Temperature:    pairs("gpu", "memory"),
		device.ClockFrequency: pairs("sm", "memory"),
		device.Throttled:      pairs("power_cap", "thermal", "hw_thermal", "hw_power_brake", "sync_boost"),
		device.ECCErrors:      pairs("corrected", "uncorrected"),
		device.RemappedRows:   pairs("corrected", "uncorrected"),
		device.NVLinkErrors:   pairs("crc", "replay", "recovery"),
		device.RecoveryAction: pairs("none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset"),
		device.RetiredPages:   pairs("corrected", "uncorrected"),
		device.NVLinks:        pairs("active", "inactive"),
		device.FabricState:    pairs("success", "in_progress", "not_started", "failure"),
		device.HealthCheck:    {{"memory", "pass"}, {"memory", "warn"}, {"memory", "fail"}},
		device.NetworkLinks:   {{"1", "active"}, {"1", "down"}},
	}
	for _, q := range []device.Quantity{device.NVLinkLinkTransmit, device.NVLinkLinkReceive} {
		details[q] = [][2]string{{"0", "switch"}, {"1", "switch"}}
	}
	var readings []device.Reading
	for q := range device.Quantity(device.Quantities) {
		for _, detail := range append(details[q], pairs("")[:1-min(1, len(details[q]))]...) {
			readings = append(readings, device.Reading{Quantity: q, Details: detail, Value: denseValue(i, q, detail)})
		}
	}
	return readings
}

// denseValue keeps the devices healthy: of a state set the first state is
// present.
func denseValue(i int, q device.Quantity, detail [2]string) float64 {
	switch {
	case slices.Contains([]string{"none", "success", "active"}, detail[0]), slices.Contains([]string{"pass", "active"}, detail[1]):
		return 1
	case slices.Contains(healthQuantities(), q), q == device.RowRemapPending:
		return 0
	case q == device.Power:
		return 100
	default:
		return float64(i%3) / 2
	}
}

func pairs(names ...string) [][2]string {
	list := make([][2]string, len(names))
	for i, name := range names {
		list[i] = [2]string{name, ""}
	}
	return list
}

func denseConfig() Config {
	return Config{Node: sceneNode, Interval: time.Second, Grace: 5 * time.Minute, IdleThreshold: 0.01, MaxSeries: 100000, HealthHold: 5 * time.Minute, ThrottleRatio: 0.5, Version: self.Build{Version: "v0", Revision: "abc", GoVersion: "go"},
		Access: GPUAccess{Mode: "runtimeClass", Reason: "set"},
		Prices: &price.Prices{Currency: "EUR", Rules: []price.Rule{{PerHour: 4}, {DeviceClass: "mig.nvidia.com", PerHour: 0.6}}}}
}

// mustBeComplete fails unless the page has every family of the node role,
// each with its documented labels; only drops do not happen here, and no whole
// GPU is shared (see sharedNode).
func mustBeComplete(t testing.TB, rows []metric.Row) {
	t.Helper()
	documented := map[string][]string{}
	for _, family := range Families() {
		documented[family.Name] = slices.Sorted(slices.Values(family.Labels))
	}
	delete(documented, "dra_exporter_series_dropped_total")
	delete(documented, self.ReadDuration().Name)
	maps.DeleteFunc(documented, func(name string, _ []string) bool { return ofProcesses(name) })
	for _, row := range rows {
		var labels []string
		for name := range row.Labels.Each {
			labels = append(labels, name)
		}
		if !slices.Equal(labels, slices.Sorted(slices.Values(row.Family.Labels))) {
			t.Fatalf("a row of %s has the labels %v, documented are %v", row.Family.Name, labels, row.Family.Labels)
		}
		delete(documented, row.Family.Name)
	}
	if len(documented) > 0 {
		t.Fatalf("the dense node's page lacks %v", slices.Sorted(maps.Keys(documented)))
	}
}

// ofProcesses reports whether a family is about the work of single processes.
func ofProcesses(name string) bool {
	return strings.HasPrefix(name, "dra_pod_") && name != "dra_pod_workload_info" && name != metric.PodTopologyInfo || strings.HasPrefix(name, "dra_device_unattributed_") || name == "dra_device_foreign_processes"
}

// unheld returns the state after a step without claims: what the devices draw while
// nothing holds them is known.
func (d *dense) unheld() State {
	claims := d.facts.Cluster.Claims
	d.facts.Cluster.Claims = nil
	d.tick()
	state, _, _ := Step(NewState(denseConfig()), d.facts, d.now)
	d.facts.Cluster.Claims = claims
	return state
}

func TestDenseNodeHasEveryFamily(t *testing.T) {
	d := newDense()
	state := d.unheld()
	var snapshot Snapshot
	for range 3 {
		d.tick()
		state, snapshot, _ = Step(state, d.facts, d.now)
	}
	mustBeComplete(t, snapshot.Rows())
}

// BenchmarkStep is the step of every second: new readings of everything.
func BenchmarkStep(b *testing.B) {
	benchmarkStep(b, (*dense).tick)
}

// BenchmarkStepDevices is the same on larger nodes, whose time for a device must not grow.
func BenchmarkStepDevices(b *testing.B) {
	for _, gpus := range []int{8, 32, 128} {
		b.Run(fmt.Sprint(gpus), func(b *testing.B) {
			d := newDenseNode(gpus)
			state := d.unheld()
			for b.Loop() {
				d.tick()
				state, _, _ = Step(state, d.facts, d.now)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(d.facts.Samples)), "µs/device")
		})
	}
}

// BenchmarkStepAfterChange is a step after something has changed at the API
// server: everything is matched and joined again.
func BenchmarkStepAfterChange(b *testing.B) {
	benchmarkStep(b, func(d *dense) {
		d.tick()
		d.facts.Cluster.Claims = slices.Clone(d.facts.Cluster.Claims)
	})
}

func benchmarkStep(b *testing.B, advance func(*dense)) {
	d := newDense()
	state := d.unheld()
	var snapshot Snapshot
	b.ReportAllocs()
	for b.Loop() {
		advance(d)
		state, snapshot, _ = Step(state, d.facts, d.now)
	}
	mustBeComplete(b, snapshot.Rows())
	b.ReportMetric(float64(len(snapshot.Rows())), "series")
}
