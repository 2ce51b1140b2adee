package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// A claim belongs to a pod once it is generated for it, or for its group,
// before their status names it.
func TestGeneratedClaimWithoutStatus(t *testing.T) {
	for name, owner := range map[string]dra.Consumer{
		"a pod's":   {Resource: "pods", Name: "train-0", UID: "train-0"},
		"a group's": {Resource: "podgroups", Name: "gang", UID: "gang"},
	} {
		f := facts(2, pendingRef(dra.ReasonInsufficient, "too few", nil))
		made := createdClaim()
		made.MadeFor = owner
		f.Objects.Apply(dra.Change{Claim: createdClaim(), Gone: true})
		f.Objects.Apply(dra.Change{Claim: made})
		f.Objects.Apply(dra.Change{Group: &dra.Group{Ref: dra.PodRef{Namespace: "team-a", Name: "gang"}, UID: "gang", Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}}}})
		f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{
			Ref: pendingPod(), UID: "train-0", Created: ago(4 * time.Minute), Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}},
			Group: map[string]string{"podgroups": "gang"}[owner.Resource],
		}})
		report, err := explain.Explain(f, claim)
		if err != nil || report.State != explain.StatePending || len(report.Pods) != 1 || strings.Contains(report.Text(false), "does not wait") {
			t.Errorf("%s: %v\n%s", name, err, report.Text(false))
		}
		if report, err = explain.Explain(f, pod); err != nil || len(report.Claims) != 1 {
			t.Errorf("%s: the pod has %v (%v)", name, report.Claims, err)
		}
	}
}

// A terminating pod is not pending, as in dra_claims.
func TestClaimOfTerminatingPod(t *testing.T) {
	f := facts(2)
	f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{
		Ref: pendingPod(), UID: "train-0", Created: ago(4 * time.Minute), Deleted: ago(time.Minute),
		Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus", Claim: "train-0-gpus-x7k2p"}},
	}})
	report, err := explain.Explain(f, claim)
	if err != nil || report.State != explain.StateUnused || !strings.Contains(report.Text(false), "only pods that are being deleted refer to it, pod train-0") {
		t.Errorf("%v\n%s", err, report.Text(false))
	}
}

// A claim creation failure ends for the reference of the event, whether of the
// pod or of its group, and for no other.
func TestClaimCreationFailures(t *testing.T) {
	const denied = "PodGroupResourceClaim gpus: admission webhook denied the request"
	for message, want := range map[string]bool{denied: true, "no resourceclaim has been created from template gpus yet": false} {
		w := pendingRef(dra.ReasonClaimNotCreated, message, nil)
		w.Claim = ""
		f := withoutClaim(facts(2, w))
		f.Objects.Apply(dra.Change{Warning: &dra.Warning{Name: "team-a/gang.1", Kind: dra.WarningCreation, Pod: dra.PodRef{Namespace: "team-a", Name: "gang"}, PodUID: "gang", Message: denied}})
		f.Objects.Apply(dra.Change{Warning: &dra.Warning{Name: "team-a/train-0.1", Kind: dra.WarningCreation, Pod: w.Pod, PodUID: "train-0", Message: "PodResourceClaim other: denied"}})
		f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: w.Pod, UID: "train-0", Created: ago(4 * time.Minute), Group: "gang", Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}}}})
		text := unwrappedText(t, f, pod)
		if strings.Contains(text, "correct what the controller manager reports;") != want || !strings.Contains(text, message) || strings.Contains(text, "PodResourceClaim other") {
			t.Errorf("%s:\n%s", message, text)
		}
	}
}

func pendingPod() dra.PodRef { return dra.PodRef{Namespace: "team-a", Name: "train-0"} }
