package cluster

import (
	"encoding/hex"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// runLifecycles delivers the lifecycles of this many claims and pods.
func runLifecycles(t *testing.T, f *fakeInputs, pods int) *prometheus.Registry {
	t.Helper()
	now := clock.System()
	_, registry, stop := run(t, f)
	defer stop()
	deliver := func(change Change) {
		change.Live, change.At = true, now()
		f.deliver(change)
		time.Sleep(time.Second)
		synctest.Wait()
	}
	deliver(Change{Node: &dra.Node{Name: "new", SandboxPrompt: true}})
	for i := range pods {
		name := fmt.Sprint("a", i)
		claim := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ns", Name: name}, UID: "claim-" + name, Classes: []string{"gpu"}, Created: now().Wall}
		pod := dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: name}, UID: "pod-" + name, Created: now().Wall, Claims: []dra.PodClaim{{Name: "r", Claim: name}}}
		allocated := claim
		allocated.Allocated, allocated.Results = true, []dra.AllocatedDevice{{Class: "gpu"}}
		allocated.ReservedFor = []dra.Consumer{{Resource: "pods", Name: name, UID: pod.UID}}
		bound, ready, started := pod, pod, pod
		bound.Node, ready.Node, started.Node = "new", "new", "new"
		deliver(Change{Claim: &claim})
		deliver(Change{Pod: &pod})
		deliver(Change{Claim: &allocated})
		deliver(Change{Pod: &bound})
		ready.Sandbox = now().Wall
		deliver(Change{Pod: &ready})
		started.Sandbox, started.Started = ready.Sandbox, now().Wall
		deliver(Change{Pod: &started})
	}
	return registry
}

// exemplars returns all exemplars of the registry: of classic buckets, and of
// native histograms.
func exemplars(t *testing.T, registry *prometheus.Registry) (classic, native []*dto.Exemplar) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, bucket := range m.GetHistogram().GetBucket() {
				if bucket.GetExemplar() != nil {
					classic = append(classic, bucket.GetExemplar())
				}
			}
			native = append(native, m.GetHistogram().GetExemplars()...)
		}
	}
	return classic, native
}

// Exemplars refer to spans of reported traces that are sampled, and to no
// others.
func TestExemplarsPointToSampledTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 12
		f := &fakeInputs{settled: true, traces: true}
		registry := runLifecycles(t, f, pods)
		spans, sampledTraces := map[string]bool{}, 0
		for i := range f.traced {
			traced := &f.traced[i]
			if !sampled(traced.ID()) {
				continue
			}
			sampledTraces++
			for j := range traced.Spans {
				id, span := traced.ID(), trace.NewSpanID(traced.Claim.UID, traced.Pod.UID, traced.Spans[j].Name())
				spans[hex.EncodeToString(id[:])+" "+hex.EncodeToString(span[:])] = true
			}
		}
		if len(f.traced) != pods || sampledTraces == 0 || sampledTraces == pods {
			t.Fatalf("%d traces, of which %d are sampled", len(f.traced), sampledTraces)
		}
		classic, native := exemplars(t, registry)
		if len(classic) == 0 || len(native) < len(classic) {
			t.Errorf("%d exemplars of classic buckets, %d of native ones", len(classic), len(native))
		}
		for _, exemplar := range append(classic, native...) {
			labels := map[string]string{}
			for _, pair := range exemplar.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if !spans[labels["trace_id"]+" "+labels["span_id"]] || len(labels) != 2 {
				t.Errorf("an exemplar points to %v, which is no span of a sampled trace", labels)
			}
		}
	})
}

// Without traces there are no exemplars.
func TestNoExemplarsWithoutTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeInputs{settled: true}
		classic, native := exemplars(t, runLifecycles(t, f, 3))
		if len(classic)+len(native)+len(f.traced) > 0 {
			t.Errorf("%d exemplars, %d traces", len(classic)+len(native), len(f.traced))
		}
	})
}
