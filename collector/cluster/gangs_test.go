package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const saysGang = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"

// gangReasons are the reasons of the pods a/p0, a/p1 and so on, with their messages.
func gangReasons(h *harness) map[string]string {
	found := map[string]string{}
	for _, w := range h.last.Pending {
		found[w.Pod.Name] = strings.TrimSpace(string(w.Reason) + " " + w.Message)
	}
	return found
}

// TestGang follows a gang of three: pods that do not exist, devices that do not
// suffice for all, one that is blocked, one that is gated, until it is placed.
func TestGang(t *testing.T) {
	h := newHarness(t)
	group := dra.Group{Ref: dra.PodRef{Namespace: "a", Name: "gang"}, UID: "uid-gang", MinPods: 3}
	member := func(i int, options ...func(*dra.PodLifecycle)) dra.PodLifecycle {
		p := pod(fmt.Sprintf("a/p%d", i), 10, "gpu=c"+string(rune('0'+i)))
		p.Group = "gang"
		for _, option := range options {
			option(&p)
		}
		return p
	}
	claimOf := func(i int, options ...func(*dra.ClaimLifecycle)) dra.ClaimLifecycle {
		return claim(fmt.Sprintf("a/c%d", i), 11, options...)
	}
	free := func(i, devices int) dra.Diagnosis {
		return diagnosisFor(member(i), "gpu", dra.ReasonNone, "", 8, 8, 8, 8, devices, devices)
	}
	expect := func(step string, want map[string]string) {
		t.Helper()
		h.step(time.Second)
		if got := gangReasons(h); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%q, want\n%q", step, got, want)
		}
	}
	const begin = "gang_quorum gang gang is placed when 3 of its pods can be; bound: 0; "

	h.update(group, member(0), member(1), claimOf(0), claimOf(1))
	h.facts.Diagnoses = []dra.Diagnosis{free(0, 2), free(1, 2)}
	exist := begin + "pods that exist: 2"
	expect("a pod is missing", map[string]string{"p0": exist, "p1": exist})

	h.update(member(2), claimOf(2))
	h.facts.Diagnoses = []dra.Diagnosis{free(0, 2), free(1, 2), free(2, 2)}
	short := begin + "devices of class gpu.example.com that its pods request together: 3, free: 2"
	expect("two are free for three", map[string]string{"p0": short, "p1": short, "p2": short})

	// The scheduler's message, as it is on the pods and on the group.
	says := func(p *dra.PodLifecycle) { p.Unschedulable = saysGang }
	h.update(member(0, says), member(1, says), member(2, func(p *dra.PodLifecycle) { p.Unschedulable = "0/2 nodes are available: 2 cannot allocate all claims." }))
	expect("the scheduler agrees", map[string]string{"p0": short, "p1": short, "p2": short})

	// One has a reason of its own, which the others name.
	h.facts.Diagnoses = []dra.Diagnosis{free(0, 2), free(1, 2), diagnosisFor(member(2), "gpu", dra.ReasonTainted, "one is tainted", 8, 8, 8, 0, 0, 0)}
	blocked := begin + "pod p2 is pending because of tainted: one is tainted"
	expect("one is blocked", map[string]string{"p0": blocked, "p1": blocked, "p2": "tainted one is tainted"})
	gated := begin + "pod p2 is pending because of scheduling_gated"
	h.update(member(2, func(p *dra.PodLifecycle) { p.Gated = true }))
	expect("one is gated", map[string]string{"p0": gated, "p1": gated, "p2": "scheduling_gated the pod has scheduling gates"})

	// Enough devices, and something else: the scheduler's message about the group.
	h.update(member(2, says))
	h.facts.Diagnoses = []dra.Diagnosis{free(0, 8), free(1, 8), free(2, 8)}
	group.Unschedulable = saysGang
	h.update(group)
	said := begin + "the scheduler reports: " + saysGang
	expect("enough devices", map[string]string{"p0": said, "p1": said, "p2": said})
	h.update(member(1, func(p *dra.PodLifecycle) { p.Unschedulable = saysCPU }))
	h.step(time.Second)
	other := gangReasons(h)["p1"]
	if !strings.HasPrefix(other, "other_constraints ") {
		t.Errorf("p1 has %q", other)
	}
	blocked = begin + "pod p1 is pending because of " + strings.Replace(other, " ", ": ", 1)
	expect("one has too few CPUs", map[string]string{"p0": blocked, "p1": other, "p2": blocked})

	// Two are bound. The third has a claim that is allocated.
	bound := func(p *dra.PodLifecycle) { p.Node = "node-a" }
	h.update(member(0, bound))
	one := strings.Replace(blocked, "bound: 0", "bound: 1", 1)
	expect("one is bound", map[string]string{"p1": other, "p2": one})
	h.update(member(1, bound), member(2, says), claimOf(0, withDevices("gpu-0"), reserved("p0")), claimOf(1, withDevices("gpu-1"), reserved("p1")), claimOf(2, withDevices("gpu-2")))
	expect("two are bound", map[string]string{"p2": strings.Replace(said, "bound: 0", "bound: 2", 1)})

	// With a smaller minimum, or without one, it is not the gang that it waits for.
	for _, minPods := range []int32{2, 0} {
		group.MinPods, group.Unschedulable = minPods, ""
		h.update(group, member(2))
		expect("no gang that is incomplete", map[string]string{"p2": "unknown allocated, but not for this pod yet"})
	}
	h.update(member(2, bound))
	expect("all are bound", map[string]string{})
}

// A reason of a gang is counted as others are, once for each pending reference.
func TestGangOnset(t *testing.T) {
	h := newHarness(t)
	p := pod("a/p", 10, "gpu=c")
	p.Group = "gang"
	h.update(dra.Group{Ref: dra.PodRef{Namespace: "a", Name: "gang"}, UID: "uid-gang", MinPods: 2}, p, claim("a/c", 11))
	h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", dra.ReasonNone, "", 8, 8, 8, 8, 8, 8)}
	for range 5 { // the reason does not begin again when the pod changes
		h.update(p)
		h.step(time.Second)
	}
	h.expectOnsets("gpu.example.com/gang_quorum=1")
}

// What pods request together: a claim that they share counts once, and alternatives
// do not count.
func TestGangRequests(t *testing.T) {
	for name, test := range map[string]struct {
		second, request string
		want            string
	}{
		"claims of their own": {"d", "main", "devices of class gpu.example.com that its pods request together: 2, free: 1"},
		"a shared claim":      {"c", "main", "the scheduler has not placed them yet"},
		"alternatives":        {"d", "main/large", "the scheduler has not placed them yet"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.update(dra.Group{Ref: dra.PodRef{Namespace: "a", Name: "gang"}, UID: "uid-gang", MinPods: 2}, claim("a/c", 11), claim("a/d", 11))
			for i, of := range []string{"c", test.second} {
				p := pod(fmt.Sprintf("a/p%d", i), 10, "gpu="+of)
				p.Group = "gang"
				h.update(p)
				d := diagnosisFor(p, "gpu", dra.ReasonNone, "", 8, 8, 8, 8, 1, 1)
				d.Requests[0].Request = test.request
				h.facts.Diagnoses = append(h.facts.Diagnoses, d)
			}
			h.step(time.Second)
			for pod, got := range gangReasons(h) {
				if !strings.HasSuffix(got, "; "+test.want) {
					t.Errorf("%s: %s", pod, got)
				}
			}
		})
	}
}
