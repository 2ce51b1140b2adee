package explain_test

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/clusterread"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

func denied(name string) source.Status {
	return source.Status{Name: name, Reason: source.ReasonPermission, Errors: 1, Message: name + " is forbidden"}
}

// If its claims, or its group, could not be read, it is unknown whether a pod
// has its devices.
func TestPodsWithUnknownClaims(t *testing.T) {
	hanging := source.Status{Name: "resourceclaims"}
	for name, test := range map[string]struct {
		status source.Status
		node   string
		want   string
		state  string
	}{
		"forbidden":           {denied("resourceclaims"), "", "has not started; whether it has its claims is unknown", explain.StateUnknown},
		"without an answer":   {hanging, "", "has not started; whether it has its claims is unknown", explain.StateUnknown},
		"of a pod with nodes": {denied("resourceclaims"), "node-a", "has all its claims and has not started on node-a", explain.StateStarting},
		"of another kind":     {denied("events"), "", "has all its claims and has not started", explain.StateStarting},
	} {
		f := facts(2)
		f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: "train-0"}, UID: "train-0", Node: test.node, Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}}}})
		f.Gaps = clusterread.NewGaps([]source.Status{test.status}, nil, "")
		report, err := explain.Explain(f, pod)
		if err != nil || !strings.HasPrefix(report.Summary, test.want) || report.State != test.state {
			t.Errorf("%s: %s, %q, %v", name, report.State, report.Summary, err)
		}
	}
	grouped := pendingRef(dra.ReasonClaimNotCreated, "no resourceclaim has been created from template gpus yet", nil)
	grouped.Claim = ""
	f := facts(2, grouped)
	f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: grouped.Pod, UID: "train-0", Group: "gang", Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}}}})
	if text := unwrappedText(t, f, pod); !strings.Contains(text, "claim_not_created") {
		t.Errorf("where all could be read: %s", text)
	}
	f.Gaps = clusterread.NewGaps([]source.Status{denied("podgroups")}, nil, "")
	text := unwrappedText(t, f, pod)
	if !strings.Contains(text, "the PodGroups could not be read") || strings.Contains(text, "claim_not_created") || strings.Contains(text, "has been created from template") {
		t.Errorf("without the groups: %s", text)
	}
}
