package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// A randomWalk makes random changes to a test cluster, in any order.
type randomWalk struct {
	*testCluster
	random *rand.Rand
	time   float64
	due    map[trace.ID]float64 // expected traces of pods whose start was observed live, with its time
}

func (w *randomWalk) claimName() string { return fmt.Sprint("c", w.random.IntN(3)) }

func (w *randomWalk) podName() string { return fmt.Sprint("p", w.random.IntN(4)) }

// act makes one change, if it is possible.
func (w *randomWalk) act() {
	w.time += w.random.ExpFloat64() * 4
	w.at(w.time)
	if claim := w.claimName(); w.random.IntN(2) == 0 {
		w.actOnClaim(claim)
		return
	}
	w.actOnPod(w.podName())
}

func (w *randomWalk) actOnClaim(name string) {
	life, there := w.claims[name]
	pod := w.podName()
	_, known := w.pods[pod]
	switch action := w.random.IntN(16); {
	case !there:
		w.claim(name)
	case action == 0:
		w.goneClaim(name)
	case !life.Allocated && known:
		w.claim(name, w.allocated(pod), binding([]dra.Binding{dra.BindingNone, dra.BindingWaiting}[w.random.IntN(2)]))
	case action < 6 && life.Binding == dra.BindingWaiting:
		w.claim(name, w.bindingDone)
	case action < 12 && life.Binding == dra.BindingWaiting:
		w.claim(name, binding(dra.BindingFailed))
	case action < 13 && known && life.Allocated:
		w.claim(name, w.reserved(pod))
	case action < 14:
		w.claim(name, unreserved)
	default:
		w.claim(name, unallocated)
	}
}

func (w *randomWalk) actOnPod(name string) {
	life, there := w.pods[name]
	if !there {
		w.pod(name, uses(w.claimName()))
		if w.random.IntN(3) == 0 {
			w.pod(name, uses("c2"))
		}
		return
	}
	switch action := w.random.IntN(12); {
	case action == 0:
		w.gonePod(name)
	case action == 1:
		w.pod(name, deletedNow(w.testCluster))
	case action == 2:
		w.pod(name, terminal)
	case action == 3:
		w.pod(name, func(p *dra.PodLifecycle) {
			p.Unschedulable = fmt.Sprint("0/3 nodes are available: ", w.random.IntN(3), " Insufficient cpu.")
		})
	case action == 4:
		w.warning(dra.WarningKind(w.random.IntN(2)), fmt.Sprint("ns/", w.random.IntN(5)), name, "no", int64(w.random.IntN(9)))
	case action == 5:
		w.unreported(func(*testCluster) { w.actOnClaim(w.claimName()) }).relist()
	case action == 6:
		w.restartExporter()
	case life.Node == "":
		w.pod(name, w.bound([]string{"new", "old"}[w.random.IntN(2)]))
	case life.Sandbox.IsZero() && action < 10:
		w.pod(name, w.sandbox)
	case life.Started.IsZero():
		w.start(name)
	}
}

// start starts a pod and records the expected traces.
func (w *randomWalk) start(name string) {
	life := w.pods[name]
	for _, ref := range life.Claims {
		if claim, there := w.claims[ref.Claim]; there && !life.Terminal {
			w.due[trace.NewID(claim.UID, life.UID)] = w.time
		}
	}
	w.pod(name, w.started)
}

// restartExporter restarts the exporter. Traces that waited for another watch
// are not reported then.
func (w *randomWalk) restartExporter() {
	w.idleUntil(w.time)
	for id, since := range w.due {
		if w.time-since <= claimDelay.Seconds() && !slices.ContainsFunc(w.traced, func(t trace.Trace) bool { return t.ID() == id }) {
			delete(w.due, id)
		}
	}
	w.restart()
}

// Whatever happens to pods, claims and the exporter, each trace is reported
// once, and nothing is kept of deleted objects.
func TestEachTraceIsReportedOnce(t *testing.T) {
	failed, traces := map[string]int{}, 0
	for seed := range uint64(80) {
		w := &randomWalk{testCluster: newTestCluster(t), random: rand.New(rand.NewPCG(seed, 7)), due: map[trace.ID]float64{}}
		for range 250 {
			w.act()
		}
		for _, name := range sorted(w.pods) {
			w.gonePod(name)
		}
		for _, name := range sorted(w.claims) {
			w.goneClaim(name)
		}
		w.idleUntil(w.time + 11)
		w.check(failed)
		if traces += len(w.traced); t.Failed() {
			t.Fatalf("with the seed %d", seed)
		}
	}
	t.Logf("%d traces: %v", traces, failed)
	for _, reason := range []string{"", trace.FailedPodDeleted, trace.FailedPodFailed, trace.FailedClaimDeleted, trace.FailedBinding, trace.FailedReservationLost} {
		if failed[reason] < 10 {
			t.Errorf("%d spans that have failed for %q: too few to show anything", failed[reason], reason)
		}
	}
}

func (w *randomWalk) check(failed map[string]int) {
	seen := map[trace.ID]bool{}
	for i := range w.traced {
		reported := &w.traced[i]
		if seen[reported.ID()] {
			w.t.Errorf("reported twice:\n%s", w.text(reported))
		}
		seen[reported.ID()] = true
		w.checkSpans(reported, false)
		for _, span := range reported.Spans {
			failed[span.Failed]++
		}
	}
	for id := range w.due {
		if !seen[id] {
			w.t.Errorf("%x is not reported", id)
		}
	}
	if left := w.state.traces; len(left.started) > 0 || len(left.held) > 0 || left.notes != 0 || len(w.state.index.pods) > 0 {
		w.t.Errorf("kept: %+v, %d notes, %d pods", left, left.notes, len(w.state.index.pods))
	}
}
