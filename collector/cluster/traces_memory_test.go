package cluster

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// lifecycles creates and deletes claims and their pods, a hundred at a time.
// One pod in three is deleted before its start, after a few pending reasons. It
// returns the number of traces.
func (c *benchCluster) lifecycles(count int) (traces int) {
	for last := c.next + count; c.next < last; {
		const together = 100
		for stage := range 8 {
			for i := range together {
				c.lifecycle(c.next+i, stage)
			}
			traces += len(c.step().Traces)
			c.now = c.now.Add(3 * time.Second)
		}
		c.next += together
	}
	return traces
}

func (c *benchCluster) lifecycle(i, stage int) {
	claim, pod := benchClaim(i, stage > 2), benchPod(i, c.now.Wall, false)
	claim.Created = c.now.Wall
	switch {
	case stage == 0:
		c.deliver(true, Change{Claim: claim})
	case stage == 1:
		c.deliver(true, Change{Pod: pod})
	case stage == 2:
		pod.Unschedulable = fmt.Sprintf("0/%d nodes are available: %d Insufficient cpu.", i, i)
		c.deliver(true, Change{Pod: pod})
	case stage == 3:
		c.deliver(true, Change{Claim: claim})
	case stage == 4:
		pod.Node, pod.Scheduled = "node", c.now.Wall
		c.deliver(true, Change{Pod: pod})
		c.deliver(true, Change{Warning: &dra.Warning{Name: "event", Kind: dra.WarningPreparation, Pod: pod.Ref, PodUID: pod.UID, Message: "no driver", Count: int64(i)}})
	case stage == 5 && i%3 > 0:
		pod.Node, pod.Scheduled, pod.Sandbox, pod.Started = "node", c.now.Wall, c.now.Wall, c.now.Wall
		c.deliver(true, Change{Pod: pod})
	case stage == 6:
		c.deliver(true, Change{Gone: true, Pod: pod})
	case stage == 7:
		c.deliver(true, Change{Gone: true, Claim: claim})
	}
}

func TestTenThousandLifecyclesLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("lets 12,000 claims come and go")
	}
	c := newTracedBenchCluster(0, 0, true)
	c.lifecycles(2000)
	before := heap()
	traces := c.lifecycles(10000)
	after := heap()
	t.Logf("the heap grew by %.0f kB", (after-before)/1e3)
	if traces != 10000 {
		t.Errorf("%d traces, want one for each pod", traces)
	}
	if after-before > 500e3 {
		t.Errorf("the heap grew by %.0f kB", (after-before)/1e3)
	}
	state := &c.state
	if left := len(state.index.pods) + len(state.index.claims) + len(state.traces.started) + len(state.traces.held) + len(c.state.traces.histories); left > 0 {
		t.Errorf("%d things are left", left)
	}
}

// A pending pod with a trace costs little memory, and without traces none.
func TestMemoryOfPendingTraces(t *testing.T) {
	const pods = 2000
	size := func(traces bool) float64 {
		c := newTracedBenchCluster(0, 0, traces)
		for stage := range 3 {
			for i := range pods {
				c.lifecycle(i, stage)
			}
			c.step()
			c.now = c.now.Add(3 * time.Second)
		}
		if histories := len(c.state.traces.histories); (histories == pods) != traces {
			t.Errorf("%d pods have a history, traces wanted: %v", histories, traces)
		}
		with := heap()
		c.state.traces.histories = nil // the histories alone
		without := heap()
		runtime.KeepAlive(c)
		return (with - without) / pods
	}
	without, with := size(false), size(true)
	t.Logf("%.0f bytes for each pod that waits, %.0f without traces", with, without)
	if with > 1500 || without > 100 {
		t.Errorf("%.0f bytes for each pod that waits, and %.0f without traces", with, without)
	}
}

// The notes of pending pods are bounded, whatever the number of pods and of
// messages. The last message is always reported.
func TestMemoryOfNotesIsBounded(t *testing.T) {
	const pods, times = 4000, 40
	c := newTracedBenchCluster(0, 0, true)
	for k := range times {
		for i := range pods {
			if k == 0 {
				c.lifecycle(i, 0)
			}
			pod := benchPod(i, c.now.Wall, false)
			pod.Unschedulable = fmt.Sprintf("0/9 nodes are available: 9 Insufficient cpu-%d.", k)
			c.deliver(true, Change{Pod: pod})
		}
		c.step()
		c.now = c.now.Add(3 * time.Second)
	}
	if kept := c.state.traces.notes; kept < maxAllNotes*9/10 || kept > maxAllNotes {
		t.Errorf("%d notes are kept, of at most %d", kept, maxAllNotes)
	}
	for i := range pods {
		c.deliver(true, Change{Gone: true, Pod: benchPod(i, c.now.Wall, false)})
	}
	traces := c.step().Traces
	if len(traces) != pods || c.state.traces.notes != 0 {
		t.Errorf("%d traces, and %d notes are left", len(traces), c.state.traces.notes)
	}
	for i := range traces {
		span := traces[i].Spans[1]
		if n := len(span.Events); n+span.Lost != times || span.Events[n-1].Message != fmt.Sprint("not diagnosed yet; Insufficient cpu-", times-1) {
			t.Fatalf("%d events, %d lost, the last is %+v", n, span.Lost, span.Events[n-1])
		}
	}
}

// BenchmarkLifecycles measures 10,000 lifecycles of a claim and its pod.
func BenchmarkLifecycles(b *testing.B) {
	for _, traces := range []bool{false, true} {
		b.Run(fmt.Sprintf("traces=%v", traces), func(b *testing.B) {
			c := newTracedBenchCluster(0, 0, traces)
			b.ReportAllocs()
			for b.Loop() {
				c.lifecycles(10000)
			}
		})
	}
}
