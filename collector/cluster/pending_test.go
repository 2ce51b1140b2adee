package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A reference is pending since the later of the creation times of its claim and
// its oldest live consumer, by the API server's clock.
func TestPendingSince(t *testing.T) {
	for _, test := range []struct {
		name   string
		update func(h *harness)
		want   string
	}{
		{"before the claim exists", func(h *harness) { h.update(pod("a/p", 10, "gpu<one")) },
			`dra_claim_pending_since_timestamp_seconds{deviceclass="",namespace="a",pod="p",pod_claim="gpu",resourceclaim=""} 10`},
		{"made from a template", func(h *harness) { h.update(pod("a/p", 10, "gpu=c"), claim("a/c", 12)) },
			`dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="p",pod_claim="gpu",resourceclaim="c"} 12`},
		{"a claim that lay unused for days", func(h *harness) { h.update(claim("a/c", -200000), pod("a/p", 10, "gpu=c")) },
			`dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="p",pod_claim="gpu",resourceclaim="c"} 10`},
		{"shared: since the oldest that waits", func(h *harness) {
			h.update(claim("a/c", 0), pod("a/p", 10, "gpu=c"), pod("a/q", 70, "mine=c"))
		}, `dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="p",pod_claim="gpu",resourceclaim="c"} 10
			dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="q",pod_claim="mine",resourceclaim="c"} 10`},
		{"shared: not with those that are over", func(h *harness) {
			over := pod("a/p", 10, "gpu=c")
			over.Terminal = true
			h.update(claim("a/c", 0), over, pod("a/q", 70, "gpu=c"))
		}, `dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="q",pod_claim="gpu",resourceclaim="c"} 70`},
		{"shared: nor with those behind a gate", func(h *harness) {
			gated := pod("a/p", 10, "gpu=c")
			gated.Gated = true
			h.update(claim("a/c", 0), gated, pod("a/q", 70, "gpu=c"))
		}, `dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="p",pod_claim="gpu",resourceclaim="c"} 10
			dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="q",pod_claim="gpu",resourceclaim="c"} 70`},
		{"allocated for another pod: since its own creation", func(h *harness) {
			h.update(claim("a/c", 0, withDevices("gpu-0"), reserved("p")), pod("a/p", 10, "gpu=c"), pod("a/q", 70, "gpu=c"))
		}, `dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="q",pod_claim="gpu",resourceclaim="c"} 70`},
		{"made again under its name", func(h *harness) {
			p := pod("a/p", 10, "gpu=c")
			h.update(claim("a/c", 0), p)
			h.step(time.Second)
			h.remove(p)
			again := pod("a/p", 90, "gpu=c")
			again.UID = "another"
			h.update(again)
		}, `dra_claim_pending_since_timestamp_seconds{deviceclass="gpu.example.com",namespace="a",pod="p",pod_claim="gpu",resourceclaim="c"} 90`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			test.update(h)
			h.step(time.Second)
			h.expectSince(test.want)
		})
	}
}

// expectSince compares the rows of pending references, with values in seconds
// after testStart.
func (h *harness) expectSince(want string) {
	h.t.Helper()
	rows := ""
	for _, row := range h.last.Rows() {
		if row.Family.Name != "dra_claim_pending_since_timestamp_seconds" {
			continue
		}
		labels := ""
		for name, value := range row.Labels.Each {
			labels += fmt.Sprintf(",%s=%q", name, value)
		}
		rows += fmt.Sprintf("%s{%s} %d\n", row.Family.Name, labels[1:], int64(row.Value)-testStart().Unix())
	}
	if got, want := unindented(rows), unindented(want); got != want {
		h.t.Errorf("the page has\n%s\nwant\n%s", got, want)
	}
}

// A pod's extended resources are references once a device class is known to
// back them. They are the same references when the scheduler creates their
// claim.
func TestExtendedResources(t *testing.T) {
	h := newHarness(t)
	p := pod("a/p", 10)
	p.Extended = map[string]int64{"example.com/gpu": 2, "deviceclass.resource.kubernetes.io/nic": 1, "vendor.example.com/plugin": 1}
	h.update(p)
	h.step(time.Second)
	h.expectSince(`dra_claim_pending_since_timestamp_seconds{deviceclass="nic",namespace="a",pod="p",pod_claim="deviceclass.resource.kubernetes.io/nic",resourceclaim=""} 10`)

	h.facts.Supply = &dra.Supply{Classes: []dra.ClassSupply{{Class: "gpu", ExtendedResource: "example.com/gpu"}, {Class: "nic"}}}
	h.step(time.Second)
	both := `dra_claim_pending_since_timestamp_seconds{deviceclass="nic",namespace="a",pod="p",pod_claim="deviceclass.resource.kubernetes.io/nic",resourceclaim=%[1]q} 10
		dra_claim_pending_since_timestamp_seconds{deviceclass="gpu",namespace="a",pod="p",pod_claim="example.com/gpu",resourceclaim=%[1]q} 10`
	h.expectSince(fmt.Sprintf(both, ""))
	want := []dra.Question{{Pod: p.Ref, PodUID: p.UID, Refs: []dra.PendingRef{
		{PodClaim: "deviceclass.resource.kubernetes.io/nic", Extended: 1}, {PodClaim: "example.com/gpu", Extended: 2}}}}
	if !slices.EqualFunc(h.last.Questions, want, sameQuestion) {
		t.Errorf("asked %+v", h.last.Questions)
	}

	made := claim("a/p-extended", 20, withDevices("gpu-0", "gpu-1"), func(c *dra.ClaimLifecycle) {
		c.ExtendedResource, c.Binding = true, dra.BindingWaiting
		c.MadeFor = dra.Consumer{Resource: "pods", Name: "p", UID: "uid-p"}
	}, reserved("p"))
	h.update(made)
	p.Claims = []dra.PodClaim{{Claim: "p-extended"}}
	h.update(p)
	h.step(time.Second)
	h.expectSince(fmt.Sprintf(both, "p-extended"))
	made.Binding = dra.BindingDone
	h.update(made)
	h.step(time.Second)
	if len(h.last.Pending) != 0 {
		t.Errorf("%+v wait", h.last.Pending)
	}
}

func sameQuestion(a, b dra.Question) bool {
	return a.Pod == b.Pod && a.PodUID == b.PodUID && slices.Equal(a.Refs, b.Refs)
}

// A page with a limit has the rows of the oldest pending references, and counts
// the dropped ones.
func TestCapKeepsTheOldest(t *testing.T) {
	h := newHarness(t)
	h.state = NewState(Config{MaxSeries: 2})
	for _, created := range []int{50, 20, 70, 10, 30} {
		h.update(pod(fmt.Sprintf("a/p-%d", created), created, "gpu<one"))
		h.step(time.Second)
	}
	h.expectSince(`dra_claim_pending_since_timestamp_seconds{deviceclass="",namespace="a",pod="p-10",pod_claim="gpu",resourceclaim=""} 10
		dra_claim_pending_since_timestamp_seconds{deviceclass="",namespace="a",pod="p-20",pod_claim="gpu",resourceclaim=""} 20`)
	h.expectRows(`dra_exporter_series_dropped_total{family="dra_claim_pending_reason_info"} 6
		dra_exporter_series_dropped_total{family="dra_claim_pending_since_timestamp_seconds"} 6`, "dra_exporter_series_dropped_total{family=\"dra_claim_pending_")
	var order []string
	for _, w := range h.last.Pending {
		order = append(order, w.Pod.Name)
	}
	if want := []string{"p-10", "p-20", "p-30", "p-50", "p-70"}; !slices.Equal(order, want) {
		t.Errorf("waiting %v, want %v", order, want)
	}
}

// A question has all references of a pod. The oldest pending reference is
// first. There are none for gated pods, and for claims that do not exist only
// if their template is known.
func TestQuestions(t *testing.T) {
	h := newHarness(t)
	gated := pod("a/gated", 1, "gpu=free")
	gated.Gated = true
	h.update(gated, claim("a/free", 0), claim("a/held", 0, withDevices("gpu-0"), reserved("other")),
		pod("a/late", 90, "gpu=free"), pod("a/mixed", 20, "no=nothing", "new<one", "gpu=free", "had=held"), pod("a/lost", 30, "gpu=nothing"),
		pod("a/foreign", 40, "gpu=held"))
	h.step(time.Second)
	want := []dra.Question{
		{Pod: dra.PodRef{Namespace: "a", Name: "late"}, PodUID: "uid-late", Refs: []dra.PendingRef{{PodClaim: "gpu", Claim: "free"}}},
		{Pod: dra.PodRef{Namespace: "a", Name: "mixed"}, PodUID: "uid-mixed", Refs: []dra.PendingRef{{PodClaim: "new", Template: "one"}, {PodClaim: "gpu", Claim: "free"}, {PodClaim: "had", Claim: "held"}}},
	}
	if !slices.EqualFunc(h.last.Questions, want, sameQuestion) {
		t.Errorf("asked %+v\nwant  %+v", h.last.Questions, want)
	}
}

// The onset of a reason counts once it has lasted, once for each pending
// reference, and not if it may have existed before the exporter started.
func TestOnsets(t *testing.T) {
	count := func(h *harness, few, scattered float64) {
		h.t.Helper()
		for reason, want := range map[string]float64{"insufficient_devices": few, "fragmented": scattered} {
			got := 0.0
			for _, row := range h.last.Rows() {
				if row.Family.Name == "dra_allocation_failures_total" && row.Labels.Get("reason") == reason {
					got += row.Value
				}
			}
			if got != want {
				h.t.Errorf("%s: counted %v, want %v", reason, got, want)
			}
		}
	}
	wait := func(h *harness, live bool) dra.PodLifecycle {
		h.live = live
		p := pod("a/p", 10, "gpu=c")
		h.update(claim("a/c", 11), p)
		h.step(time.Second)
		h.live = true
		return p
	}
	t.Run("live", func(t *testing.T) {
		h := newHarness(t)
		p := wait(h, true)
		diagnose := func(reason dra.PendingReason) {
			h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", reason, "m")}
		}
		diagnose(dra.ReasonInsufficient)
		h.step(time.Second)
		count(h, 0, 0)
		h.step(time.Second)
		count(h, 0, 0)
		h.step(time.Second)
		count(h, 1, 0)
		diagnose(dra.ReasonFragmented)
		h.step(time.Second)
		diagnose(dra.ReasonInsufficient)
		h.step(5 * time.Second)
		h.step(5 * time.Second)
		count(h, 1, 0) // fragmented did not last, and the other is not new
		diagnose(dra.ReasonFragmented)
		h.step(time.Second)
		h.step(5 * time.Second)
		count(h, 1, 1)
	})
	t.Run("found", func(t *testing.T) {
		h := newHarness(t)
		p := wait(h, false)
		h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", dra.ReasonInsufficient, "m")}
		h.step(time.Minute)
		h.step(time.Minute)
		count(h, 0, 0)
		h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", dra.ReasonFragmented, "m")}
		h.step(time.Second)
		h.step(time.Minute)
		count(h, 0, 1)
	})
	t.Run("over before it lasted", func(t *testing.T) {
		h := newHarness(t)
		p := wait(h, true)
		h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", dra.ReasonInsufficient, "m")}
		h.step(time.Second)
		p.Node = "node-a"
		h.update(p)
		h.step(time.Minute)
		h.step(time.Minute)
		count(h, 0, 0)
	})
}

// A diagnosis applies to the pod for which it was made, until another replaces
// it.
func TestDiagnoses(t *testing.T) {
	h := newHarness(t)
	p := pod("a/p", 10, "gpu=c")
	h.update(claim("a/c", 11), p)
	other := diagnosisFor(p, "gpu", dra.ReasonTainted, "of another")
	other.PodUID = "before"
	h.facts.Diagnoses = []dra.Diagnosis{other, diagnosisFor(p, "nic", dra.ReasonTainted, "of another")}
	h.step(time.Second)
	if w := h.onlyPending(); w.Reason != dra.ReasonPendingDiagnosis {
		t.Errorf("%s: %s", w.Reason, w.Message)
	}
	twice := diagnosisFor(p, "gpu", dra.ReasonInsufficient, "two are free", 8, 8, 4, 4, 2, 1)
	twice.Requests = append(twice.Requests, twice.Requests[0]) // Prometheus rejects a page with a duplicate label set
	h.facts.Diagnoses = []dra.Diagnosis{twice}
	h.step(time.Second)
	rows := `dra_claim_pending_candidates{namespace="a",pod="p",pod_claim="gpu",request="gpu",stage="best_node"} 1
		dra_claim_pending_candidates{namespace="a",pod="p",pod_claim="gpu",request="gpu",stage="class"} 8
		dra_claim_pending_candidates{namespace="a",pod="p",pod_claim="gpu",request="gpu",stage="free"} 2
		dra_claim_pending_candidates{namespace="a",pod="p",pod_claim="gpu",request="gpu",stage="published"} 8
		dra_claim_pending_candidates{namespace="a",pod="p",pod_claim="gpu",request="gpu",stage="selectors"} 4
		dra_claim_pending_candidates{namespace="a",pod="p",pod_claim="gpu",request="gpu",stage="untainted"} 4
		dra_claim_pending_reason_info{namespace="a",pod="p",pod_claim="gpu",reason="insufficient_devices",workload="",workload_kind=""} 1`
	h.expectRows(rows, "dra_claim_pending_candidates", "dra_claim_pending_reason_info")
	h.facts.Diagnoses = nil
	h.step(time.Second)
	h.expectRows(rows, "dra_claim_pending_candidates", "dra_claim_pending_reason_info")
	h.facts.Synced.Slices = false
	h.step(time.Second)
	h.expectRows(`dra_claim_pending_reason_info{namespace="a",pod="p",pod_claim="gpu",reason="unknown",workload="",workload_kind=""} 1`, "dra_claim_pending_candidates", "dra_claim_pending_reason_info")
}

// Lists that two steps have returned are not changed by a third.
func TestSnapshotsAreImmutable(t *testing.T) {
	h := newHarness(t)
	for i := range 5 {
		h.update(pod(fmt.Sprintf("a/p-%d", i), 10*i, "gpu<one"))
	}
	h.step(time.Second)
	kept, before := h.last, pendingValues(h.last.Pending)
	rows := slices.Clone(kept.Rows())
	h.remove(pod("a/p-2", 20, "gpu<one"))
	h.update(pod("a/first", -5, "gpu<one"))
	h.step(time.Second)
	if !slices.Equal(pendingValues(kept.Pending), before) || !slices.Equal(kept.Rows(), rows) {
		t.Error("a snapshot has changed")
	}
	if len(h.last.Pending) != 5 || h.last.Pending[0].Pod.Name != "first" {
		t.Errorf("%+v wait", h.last.Pending)
	}
}

func pendingValues(refs []*PendingRef) []PendingRef {
	var values []PendingRef
	for _, ref := range refs {
		values = append(values, *ref)
	}
	return values
}
