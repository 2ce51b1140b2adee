package cluster

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// largeHarness returns a cluster with this many claims, a fifth as many pods,
// and this many pools. One pod in twenty is pending.
func largeHarness(t testing.TB, claims, pools int) *harness {
	h := newHarness(t)
	h.state = NewState(Config{MaxSeries: 20000})
	h.live = false
	for i := range claims {
		name := fmt.Sprintf("team-%d/claim-%d", i%200, i)
		c := claim(name, i%1000)
		if i < claims/5 {
			p := pod(fmt.Sprintf("team-%d/pod-%d", i%200, i), i%1000, "gpu=claim-"+fmt.Sprint(i))
			if i%20 != 0 {
				allOf(withDevices(fmt.Sprintf("gpu-%d", i)), reserved(p.Ref.Name))(&c)
				p.Node, p.Started = "node-a", second(2000)
			} else {
				p.Unschedulable = saysDevices
				h.facts.Diagnoses = append(h.facts.Diagnoses, diagnosisFor(p, "gpu", dra.ReasonInsufficient, "m", 9, 8, 7, 6, 0, 0))
			}
			h.update(p)
		}
		h.update(c)
	}
	supply := &dra.Supply{}
	for i := range pools {
		supply.Pools = append(supply.Pools, poolOf(i, 3))
	}
	h.facts.Supply = supply
	return h
}

func BenchmarkLargeCluster(b *testing.B) {
	for _, claims := range []int{1000, 10000, 100000} {
		h := largeHarness(b, claims, claims/10)
		changes := h.facts.Changes
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		begin := time.Now()
		h.step(time.Second)
		took := time.Since(begin)
		h.last = Snapshot{}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.Run(fmt.Sprintf("%d/nothing", claims), func(b *testing.B) {
			for b.Loop() {
				h.step(time.Second)
			}
			b.ReportMetric(took.Seconds(), "s/first")
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(claims), "B/claim")
			b.ReportMetric(float64(len(h.last.Rows())), "rows")
		})
		b.Run(fmt.Sprintf("%d/changes=25", claims), func(b *testing.B) {
			next := 0
			for b.Loop() {
				for range 25 {
					change := changes[next%len(changes)]
					next++
					change.At, change.Live = h.now, true
					if change.Claim != nil { // allocated, and deallocated again
						c := *change.Claim
						c.Allocated = !c.Allocated && next%2 == 0
						change.Claim = &c
					}
					h.facts.Changes = append(h.facts.Changes, change)
				}
				h.step(50 * time.Millisecond)
			}
		})
		b.Run(fmt.Sprintf("%d/a pool", claims), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				next := *h.facts.Supply
				next.Pools = append([]*dra.PoolSupply{}, next.Pools...)
				next.Pools[i%len(next.Pools)] = poolOf(i%len(next.Pools), i%8)
				h.facts.Supply = &next
				h.step(50 * time.Millisecond)
			}
		})
		runtime.KeepAlive(changes)
	}
}
