package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// unusedClaim adds a claim of another namespace that has a device, with
// reservations set by change; the pod "worker" exists.
func unusedClaim(f *clusterread.Facts, change func(claim *dra.ClaimLifecycle, worker *dra.PodLifecycle)) {
	lifecycle := dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: "team-c", Name: "leftover"}, UID: "claim-leftover", Created: ago(9 * time.Hour), Classes: []string{"gpu.example.com"},
		Allocated: true, AllocatedAt: ago(8 * time.Hour), Node: "node-a",
		Results: []dra.AllocatedDevice{{Request: "gpu", Class: "gpu.example.com", Device: gpu("node-a", "gpu-2")}},
	}
	worker := dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-c", Name: "worker"}, UID: "worker", Created: ago(9 * time.Hour)}
	change(&lifecycle, &worker)
	f.Objects.Apply(dra.Change{Claim: &lifecycle})
	f.Objects.Apply(dra.Change{Pod: &worker})
}

// There is no advice to delete a claim that is in use, may be in use, or that a
// pod is pending for.
func TestAdviceToDelete(t *testing.T) {
	group := dra.Consumer{Resource: "podgroups", Name: "gang", UID: "gang"}
	for name, test := range map[string]struct {
		change func(*dra.ClaimLifecycle, *dra.PodLifecycle)
		gaps   clusterread.Gaps
		who    string // as the text names them
		delete bool
		gone   bool
	}{
		"no consumer": {func(*dra.ClaimLifecycle, *dra.PodLifecycle) {}, nil, "no pod uses it", true, false},
		"a group": {func(c *dra.ClaimLifecycle, _ *dra.PodLifecycle) { c.ReservedFor = []dra.Consumer{group} },
			nil, "PodGroup gang", false, false},
		"something else": {func(c *dra.ClaimLifecycle, _ *dra.PodLifecycle) {
			c.ReservedFor = []dra.Consumer{{Resource: "workloads", Name: "batch", UID: "batch"}}
		}, nil, "workloads batch", false, false},
		"a pod that waits": {func(_ *dra.ClaimLifecycle, p *dra.PodLifecycle) {
			p.Claims = []dra.PodClaim{{Name: "gpu", Claim: "leftover"}}
		},
			nil, "pod worker", false, false},
		"a pod that has ended": {func(_ *dra.ClaimLifecycle, p *dra.PodLifecycle) {
			p.Claims, p.Terminal = []dra.PodClaim{{Name: "gpu", Claim: "leftover"}}, true
		}, nil, "no pod uses it", true, false},
		"the pod that it was made for": {func(c *dra.ClaimLifecycle, _ *dra.PodLifecycle) {
			c.MadeFor = dra.Consumer{Resource: "pods", Name: "worker", UID: "worker"}
		}, nil, "pod worker", false, false},
		"another pod of that name": {func(c *dra.ClaimLifecycle, _ *dra.PodLifecycle) {
			c.MadeFor = dra.Consumer{Resource: "pods", Name: "worker", UID: "before"}
		}, nil, "no pod uses it", true, false},
		"pods that are gone": {func(c *dra.ClaimLifecycle, _ *dra.PodLifecycle) {
			c.ReservedFor = []dra.Consumer{{Resource: "pods", Name: "worker", UID: "before"}}
		}, nil, "its pods no longer exist", false, true},
		"pods that are gone, and one that waits": {func(c *dra.ClaimLifecycle, p *dra.PodLifecycle) {
			c.ReservedFor = []dra.Consumer{{Resource: "pods", Name: "first", UID: "first"}}
			p.Claims = []dra.PodClaim{{Name: "gpu", Claim: "leftover"}}
		}, nil, "its pods no longer exist; pod worker", false, false},
		"pods were not read": {func(*dra.ClaimLifecycle, *dra.PodLifecycle) {},
			clusterread.NewGaps([]source.Status{denied("pods")}, nil, ""), "its users are unknown", false, false},
		"pods of that namespace were not read": {func(*dra.ClaimLifecycle, *dra.PodLifecycle) {},
			clusterread.NewGaps(nil, []source.Status{denied("pods")}, "team-a"), "its users are unknown", false, false},
		"groups were not read, and it is a group's": {func(c *dra.ClaimLifecycle, _ *dra.PodLifecycle) { c.MadeFor = group },
			clusterread.NewGaps([]source.Status{denied("podgroups")}, nil, ""), "its users are unknown", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(4, pendingRef(dra.ReasonInsufficient, "too few", diagnosis(dra.ReasonInsufficient, 4, [dra.Stages]int{8, 8, 8, 8, 2, 2}, dra.Detail{Holders: []dra.Holder{leftover}})))
			f.Gaps = test.gaps
			unusedClaim(&f, test.change)
			text := unwrappedText(t, f, pod)
			if !strings.Contains(text, "team-c/leftover ("+test.who+") since") {
				t.Errorf("not held by %q", test.who)
			}
			f.Pending = nil
			own := unwrappedText(t, f, clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-c", Name: "leftover"})
			for what, is := range map[string]bool{
				"kubectl delete resourceclaim": strings.Contains(text, "kubectl delete resourceclaim"),
				"what the claim's own says":    strings.Contains(own, "kubectl delete resourceclaim"),
			} {
				if is != test.delete {
					t.Errorf("%s: advised %v, want %v", what, is, test.delete)
				}
			}
			if strings.Contains(text, "the pods of team-c/leftover no longer exist: check that kube-controller-manager runs") != test.gone {
				t.Errorf("orphans: want %v", test.gone)
			}
			if test.gone && strings.Contains(text, "become free when these end") {
				t.Error("pods that are gone are to end")
			}
			t.Logf("\n%s\n%s", text, own)
		})
	}
}

// unwrappedText returns the report's text without line breaks.
func unwrappedText(t *testing.T, f clusterread.Facts, about clusterread.Subject) string {
	t.Helper()
	report, err := explain.Explain(f, about)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(report.Text(false)), " ")
}
