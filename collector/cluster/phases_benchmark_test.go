package cluster

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A benchCluster is a large cluster of claims. The first have a running pod,
// and the next a pending one.
type benchCluster struct {
	state State
	now   clock.Instant
	facts Facts
	next  int
}

func newBenchCluster(claims, pods int) *benchCluster {
	return newTracedBenchCluster(claims, pods, false)
}

func newTracedBenchCluster(claims, pods int, traces bool) *benchCluster {
	c := &benchCluster{
		state: NewState(Config{Interval: 10 * time.Second, MaxSeries: 10000, Traces: traces}),
		now:   clock.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Elapsed: time.Hour},
	}
	c.facts.Synced = Synced{Claims: true, Pods: true, Slices: true, Classes: true, Nodes: true, Events: true}
	c.deliver(false, Change{Node: &dra.Node{Name: "node", SandboxPrompt: true}})
	for i := range claims {
		claim := benchClaim(i, i < pods*9/10)
		claim.Created = c.now.Wall.Add(-time.Hour)
		c.deliver(false, Change{Claim: claim})
		if i < pods {
			c.deliver(false, Change{Pod: benchPod(i, claim.Created, i < pods*9/10)})
		}
	}
	c.next = claims
	c.step()
	return c
}

func benchClaim(i int, allocated bool) *dra.ClaimLifecycle {
	claim := &dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: fmt.Sprint("team-", i%50), Name: fmt.Sprint("train-", i, "-gpu-x7k2p")},
		UID: fmt.Sprintf("6b625223-3f6f-41d6-b54a-%012d", i), Classes: []string{"gpu.example.com"},
		MadeFor: dra.Consumer{Resource: "pods", Name: fmt.Sprint("train-", i), UID: fmt.Sprint("pod-", i)}, PodClaim: "gpu",
	}
	if allocated {
		claim.Allocated, claim.Node = true, "node"
		claim.Results = []dra.AllocatedDevice{{Request: "gpu", Class: "gpu.example.com", Device: dra.DeviceID{Driver: "gpu.example.com", Pool: "node", Name: "gpu-1"}}}
		claim.ReservedFor = []dra.Consumer{claim.MadeFor}
	}
	return claim
}

func benchPod(i int, created time.Time, running bool) *dra.PodLifecycle {
	pod := &dra.PodLifecycle{
		Ref: dra.PodRef{Namespace: fmt.Sprint("team-", i%50), Name: fmt.Sprint("train-", i)}, UID: fmt.Sprint("pod-", i), Created: created,
		Member: dra.Member{Workload: &dra.Workload{Kind: "Job", Name: fmt.Sprint("train-", i/2000)}}, // 40 pods each
		Claims: []dra.PodClaim{{Name: "gpu", Template: "gpu", Claim: fmt.Sprint("train-", i, "-gpu-x7k2p")}},
	}
	if running {
		pod.Node, pod.Scheduled, pod.Sandbox, pod.Started = "node", created, created, created
	}
	return pod
}

func (c *benchCluster) deliver(live bool, change Change) {
	change.At, change.Live = c.now, live
	c.facts.Changes = append(c.facts.Changes, change)
}

// step makes a step and advances the time.
func (c *benchCluster) step() (snapshot Snapshot) {
	c.state, snapshot, _ = Step(c.state, c.facts, c.now)
	c.facts.Changes = nil
	c.now = c.now.Add(50 * time.Millisecond)
	return snapshot
}

// changeNext makes the next change in the lifecycle of a claim and its pod.
func (c *benchCluster) changeNext(change int) {
	i, stage := c.next+change/5, change%5
	claim, pod := benchClaim(i, stage > 1), benchPod(i, c.now.Wall, false)
	if claim.Created = c.now.Wall; stage > 2 {
		pod.Node, pod.Scheduled = "node", c.now.Wall
	}
	switch stage {
	case 0, 2:
		c.deliver(true, Change{Claim: claim})
	case 1, 3:
		c.deliver(true, Change{Pod: pod})
	default:
		pod.Sandbox, pod.Started = c.now.Wall, c.now.Wall
		c.deliver(true, Change{Pod: pod})
		c.deliver(true, Change{Gone: true, Pod: benchPod(i-1000, c.now.Wall, true)})
		c.deliver(true, Change{Gone: true, Claim: benchClaim(i-1000, true)})
	}
}

// BenchmarkStep measures one step of a large cluster with 25 changes: 500 a
// second, twenty steps a second.
func BenchmarkStep(b *testing.B) {
	for _, size := range []struct{ claims, pods int }{{1000, 200}, {10000, 2000}, {100000, 20000}} {
		for _, changes := range []int{0, 1, 25} {
			b.Run(fmt.Sprintf("claims=%d/pods=%d/changes=%d", size.claims, size.pods, changes), func(b *testing.B) {
				c := newBenchCluster(size.claims, size.pods)
				b.ReportAllocs()
				change := 0
				for b.Loop() {
					for range changes {
						c.changeNext(change)
						change++
					}
					c.step()
				}
			})
		}
	}
}

// BenchmarkFirstStep measures the step after the first lists.
func BenchmarkFirstStep(b *testing.B) {
	for b.Loop() {
		newBenchCluster(100000, 20000)
	}
}

// TestMemoryOfLargeCluster reports the memory of the reducer without the
// objects passed to it, and compares it with a bound.
func TestMemoryOfLargeCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 120,000 objects")
	}
	c := newBenchCluster(100000, 20000)
	with := heap()
	runtime.KeepAlive(c)
	objects := keepObjects(c)
	*c = benchCluster{}
	without := heap()
	runtime.KeepAlive(objects)
	const bound = 120e6
	t.Logf("state of 100,000 claims and 20,000 pods: %.1f MB beside the objects", (with-without)/1e6)
	if with-without > bound {
		t.Errorf("the state takes %.1f MB, more than %.0f", (with-without)/1e6, bound/1e6)
	}
}

func keepObjects(c *benchCluster) (objects []any) {
	for _, claim := range c.state.index.claims {
		objects = append(objects, claim.object)
	}
	for _, pod := range c.state.index.pods {
		objects = append(objects, pod.object)
	}
	return objects
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
