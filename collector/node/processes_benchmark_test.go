package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// sharedNode is a node of whole GPUs, each of which several claims and a pod with a
// device plugin share.
type sharedNode struct {
	facts    Facts
	now      clock.Instant
	readings [2][]device.Reading
	lists    [2][][]device.Process // of each GPU, in turns
	turn     int
}

const (
	sharedNodeGPUs      = 8
	sharedNodeClaims    = 4  // on each GPU
	sharedNodeProcesses = 32 // processes on each GPU
)

func newSharedNode() *sharedNode {
	c := &sharedNode{now: origin()}
	c.facts.Cluster = APIFacts{Enabled: true, Fresh: true, SlicesFresh: true}
	c.facts.Processes.Owners = map[int]dra.Owner{}
	for turn := range c.readings {
		c.readings[turn] = denseReadings(1)
	}
	for g := range sharedNodeGPUs {
		whole := gpu(g)
		c.facts.Samples = append(c.facts.Samples, device.Sample{Device: whole, Source: "simulated"})
		c.facts.Cluster.Published = append(c.facts.Cluster.Published, dra.PublishedDevice{ID: sceneID(fmt.Sprintf("gpu-%d", g)), UUID: whole.UUID, Placement: dra.PlacementUnknown})
		for i := range sharedNodeClaims {
			c.claim(g, i)
		}
		c.plugin(g)
		c.addProcesses(g)
	}
	c.facts.Sources = []source.Status{{Name: "simulated", Up: true, LastSuccess: c.now}}
	return c
}

func (c *sharedNode) claim(g, i int) {
	name := fmt.Sprintf("claim-%d-%d", g, i)
	uid := "d3b07384-d113-4956-a5a1-" + fmt.Sprintf("%06d%06d", g, i)
	c.facts.Cluster.Claims = append(c.facts.Cluster.Claims, dra.Claim{
		Ref: dra.ClaimRef{Namespace: "ml", Name: name}, UID: "uid-" + name, Allocated: true,
		Requests:    []dra.Request{{Name: "gpu", DeviceClass: "gpu.nvidia.com"}},
		Results:     []dra.Result{{Request: "gpu", Device: sceneID(fmt.Sprintf("gpu-%d", g))}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: name, UID: uid}},
	})
	c.facts.Cluster.Pods = append(c.facts.Cluster.Pods, dra.Pod{
		Ref: dra.PodRef{Namespace: "ml", Name: name}, UID: uid, Node: sceneNode,
		Claims:     []dra.PodClaim{{Name: "gpu", Claim: name}},
		Containers: []dra.Container{{Name: "main", ID: "id-" + name, Uses: []dra.Use{{Claim: name}}}},
	})
}

func (c *sharedNode) plugin(g int) {
	pod := dra.PodRef{Namespace: "legacy", Name: fmt.Sprintf("notebook-%d", g)}
	c.facts.Listing.Pods = append(c.facts.Listing.Pods, pod)
	c.facts.Listing.Plugins = append(c.facts.Listing.Plugins, dra.PluginAssignment{Pod: pod, Container: "main", Resource: "nvidia.com/gpu", DeviceIDs: []string{fmt.Sprintf("GPU-%d::0", g)}})
	c.facts.Cluster.PluginPods = append(c.facts.Cluster.PluginPods, dra.Pod{Ref: pod, UID: "uid-of-" + pod.Name})
}

// addProcesses lists the processes of a GPU: of each of its pods in turn, and of
// the host.
func (c *sharedNode) addProcesses(g int) {
	for turn := range c.lists {
		var list []device.Process
		for i := range sharedNodeProcesses {
			pid := 1000*(g+1) + i
			list = append(list, device.Process{PID: pid, Utilization: 0.01 * float64(1+(i+turn)%3), Memory: 1e9})
			switch at := i % (sharedNodeClaims + 2); {
			case at < sharedNodeClaims:
				pod := c.facts.Cluster.Pods[g*sharedNodeClaims+at]
				c.facts.Processes.Owners[pid] = dra.Owner{PodUID: pod.UID, ContainerID: pod.Containers[0].ID}
			case at == sharedNodeClaims:
				c.facts.Processes.Owners[pid] = dra.Owner{PodUID: c.facts.Cluster.PluginPods[g].UID}
			default:
				c.facts.Processes.Owners[pid] = dra.Owner{}
			}
		}
		c.lists[turn] = append(c.lists[turn], list)
	}
}

func (c *sharedNode) tick(listed bool) {
	c.now = c.now.Add(time.Second)
	c.facts.ListedAt = c.now
	c.turn = 1 - c.turn
	samples := slices.Clone(c.facts.Samples)
	for i := range samples {
		samples[i].At, samples[i].Readings = c.now, c.readings[c.turn]
		if listed {
			samples[i].Processes, samples[i].ProcessesAt = c.lists[c.turn][i], c.now
		}
	}
	c.facts.Samples = samples
}

// The shared node's page has the families that the dense node's lacks.
func TestSharedNodeHasProcessRows(t *testing.T) {
	c := newSharedNode()
	c.tick(true)
	_, snapshot, _ := Step(NewState(denseConfig()), c.facts, c.now)
	rows := map[string]int{}
	for _, row := range snapshot.Rows() {
		rows[row.Family.Name]++
	}
	for _, family := range Families() {
		want := sharedNodeGPUs
		if strings.HasPrefix(family.Name, "dra_pod_") {
			want *= sharedNodeClaims + 1
		}
		if ofProcesses(family.Name) && rows[family.Name] != want {
			t.Errorf("%d rows of %s, want %d", rows[family.Name], family.Name, want)
		}
	}
}

// In a step that brings new lists alone, splitting makes no garbage.
func TestSplitDoesNotAllocate(t *testing.T) {
	c, state := newSharedNode(), NewState(denseConfig())
	for range 3 {
		c.tick(true)
		state, _, _ = Step(state, c.facts, c.now)
	}
	if got := testing.AllocsPerRun(100, func() { state.splitAll(c) }); got != 0 {
		t.Errorf("%v allocations a step", got)
	}
}

// BenchmarkStepWithProcesses is the step of every second on eight shared GPUs
// of 32 processes each; BenchmarkStepWithoutProcesses is the same where
// processes cannot be listed.
func BenchmarkStepWithProcesses(b *testing.B) { benchmarkSharedNode(b, true) }

func BenchmarkStepWithoutProcesses(b *testing.B) { benchmarkSharedNode(b, false) }

func benchmarkSharedNode(b *testing.B, listed bool) {
	c, state := newSharedNode(), NewState(denseConfig())
	var snapshot Snapshot
	b.ReportAllocs()
	for b.Loop() {
		c.tick(listed)
		state, snapshot, _ = Step(state, c.facts, c.now)
	}
	b.ReportMetric(float64(len(snapshot.Rows())), "series")
}

// BenchmarkSplit is what of it splitting costs.
func BenchmarkSplit(b *testing.B) {
	c, state := newSharedNode(), NewState(denseConfig())
	c.tick(true)
	state, _, _ = Step(state, c.facts, c.now)
	b.ReportAllocs()
	for b.Loop() {
		state.splitAll(c)
	}
}

// splitAll splits as if all lists were new.
func (s *State) splitAll(c *sharedNode) {
	c.now = c.now.Add(1)
	for _, d := range s.devices.all() {
		d.listedAt = c.now
	}
	s.splits.update(s.devices, c.facts, &holding{views: s.join.views, plugins: s.plugins.consumers}, c.now)
}
