package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func domain(ready bool, nodes ...dra.ComputeDomainNode) dra.ComputeDomain {
	return dra.ComputeDomain{Ref: dra.PodRef{Namespace: "lab", Name: "nvl"}, UID: "d", Created: second(3), Template: "channel", NumNodes: 2, Ready: ready, Nodes: nodes}
}

func TestComputeDomainRows(t *testing.T) {
	h := newHarness(t)
	a, b := dra.ComputeDomainNode{Name: "node-a", Clique: "c.1", Ready: true}, dra.ComputeDomainNode{Name: "node-b", Clique: "c.1", Ready: true}
	h.update(domain(false))
	h.step(time.Second)
	h.expectRows(`
		dra_compute_domain_not_ready_since_timestamp_seconds{compute_domain="nvl",namespace="lab"} 1.795168803e+09
		dra_compute_domain_pods{compute_domain="nvl",namespace="lab"} 0
		dra_compute_domain_ready{compute_domain="nvl",namespace="lab"} 0
		dra_compute_domain_requested_nodes{compute_domain="nvl",namespace="lab"} 2`, "dra_compute_domain")
	h.update(domain(true, a, b))
	h.step(time.Second)
	h.expectRows(`
		dra_compute_domain_nodes{clique="c.1",compute_domain="nvl",namespace="lab",state="ready"} 2
		dra_compute_domain_pods{compute_domain="nvl",namespace="lab"} 0
		dra_compute_domain_ready{compute_domain="nvl",namespace="lab"} 1
		dra_compute_domain_requested_nodes{compute_domain="nvl",namespace="lab"} 2`, "dra_compute_domain")
	b.Ready, b.Clique = false, ""
	h.update(domain(false, a, b))
	h.step(time.Second)
	lost := `
		dra_compute_domain_nodes{clique="",compute_domain="nvl",namespace="lab",state="not_ready"} 1
		dra_compute_domain_nodes{clique="c.1",compute_domain="nvl",namespace="lab",state="ready"} 1
		dra_compute_domain_not_ready_since_timestamp_seconds{compute_domain="nvl",namespace="lab"} 1.795172402e+09
		dra_compute_domain_pods{compute_domain="nvl",namespace="lab"} 0
		dra_compute_domain_ready{compute_domain="nvl",namespace="lab"} 0
		dra_compute_domain_requested_nodes{compute_domain="nvl",namespace="lab"} 2`
	h.expectRows(lost, "dra_compute_domain")
	h.step(time.Minute)
	h.live = false
	h.update(domain(false, a, b)) // found again in a list
	h.step(time.Second)
	h.expectRows(lost, "dra_compute_domain")
	h.remove(domain(false, a, b))
	h.step(time.Second)
	h.expectRows(``, "dra_compute_domain")
	h.update(domain(false, a, b)) // since when is not known
	h.step(time.Second)
	h.expectRows(``, "dra_compute_domain_not_ready_since")
}

// While the IMEX daemon of its node is not ready, a pod cannot be prepared: that is no
// failure of the driver.
func TestComputeDomainPreparation(t *testing.T) {
	h := newHarness(t)
	p := pod("lab/p", 10, "channel=c")
	p.Node = "node-a"
	h.update(claim("lab/c", 11, withDevices("channel-0"), reserved("p")), p)
	h.step(time.Second)
	for _, message := range []string{
		"Failed to prepare dynamic resources: prepare devices failed: current node not ready in ComputeDomain",
		"Failed to prepare dynamic resources: no such device",
	} {
		h.update(dra.Warning{Name: "lab/" + message, Kind: dra.WarningPreparation, Pod: p.Ref, PodUID: p.UID, Message: message, Count: 1, Last: second(12)})
	}
	h.step(time.Second)
	h.expectRows(`
		dra_allocation_failures_total{deviceclass="gpu.example.com",reason="compute_domain"} 1
		dra_allocation_failures_total{deviceclass="gpu.example.com",reason="preparation_failed"} 1`,
		`dra_allocation_failures_total{deviceclass="gpu.example.com",reason="compute_domain"`, `dra_allocation_failures_total{deviceclass="gpu.example.com",reason="preparation_failed"`)
}

// The reason of a pod follows the ComputeDomain that makes its template.
func TestComputeDomainOfTemplate(t *testing.T) {
	h := newHarness(t)
	h.update(pod("lab/p", 10, "channel<channel"))
	expect := func(want dra.PendingReason) {
		t.Helper()
		h.step(time.Second)
		if w := h.onlyPending(); w.Reason != want {
			t.Errorf("%s, want %s", w.Reason, want)
		}
	}
	expect(dra.ReasonClaimNotCreated)
	h.update(domain(false))
	expect(dra.ReasonComputeDomain)
	moved := domain(false)
	moved.Template = "other"
	h.update(moved)
	expect(dra.ReasonClaimNotCreated)
	h.update(domain(true))
	expect(dra.ReasonComputeDomain)
	h.remove(domain(true))
	expect(dra.ReasonClaimNotCreated)
}

// Pods use the domain whose channels they have, while they are bound and have not ended,
// whichever of both is observed first.
func TestComputeDomainUsers(t *testing.T) {
	h := newHarness(t)
	early, late := member(pod("lab/early", 3, "channel<channel"), "JobSet/train", "", 0), member(pod("lab/late", 5, "channel<channel"), "JobSet/train", "", 0)
	early.Node = "node-a"
	h.update(early, pod("lab/other", 3, "gpu<one"))
	h.step(time.Second)
	h.update(domain(true), late)
	h.step(time.Second)
	h.expectRows(`
		dra_compute_domain_pods{compute_domain="nvl",namespace="lab"} 1
		dra_compute_domain_workload_info{compute_domain="nvl",namespace="lab",workload="train",workload_kind="JobSet"} 1`, "dra_compute_domain_pods", "dra_compute_domain_workload")
	late.Node = "node-b"
	h.update(late)
	h.step(time.Second)
	h.expectRows(`dra_compute_domain_pods{compute_domain="nvl",namespace="lab"} 2`, "dra_compute_domain_pods")
	early.Terminal = true
	h.update(early)
	h.remove(late)
	h.step(time.Second)
	h.expectRows(`dra_compute_domain_pods{compute_domain="nvl",namespace="lab"} 0`, "dra_compute_domain_pods", "dra_compute_domain_workload")
}
