package explain_test

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

func denied(name string) source.Status {
	return source.Status{Name: name, Reason: source.ReasonPermission, Errors: 1, Message: name + " is forbidden"}
}

func TestGapsOf(t *testing.T) {
	ever := clock.Instant{Wall: now, Elapsed: 1}
	here := []source.Status{
		{Name: "resourceclaims", Up: true}, {Name: "pods", LastSuccess: ever}, // was read, and is interrupted
		denied("resourceslices"),
		denied("events"),
		{Name: "nodes"}, // has not answered in time
		{Name: "podgroups", Reason: source.ReasonNotFound, Errors: 1},
		{Name: "devicetaintrules", Reason: source.ReasonUnsupported, Errors: 1},
	}
	everywhere := []source.Status{denied("resourceclaims"), {Name: "pods", Up: true}, denied("resourceslices"), denied("deviceclasses"), denied("events")}
	var got []string
	for _, gap := range explain.GapsOf(here, everywhere, "team-a") {
		got = append(got, gap.Source+" "+gap.Reason+" "+gap.Only)
		if gap.Consequence == "" {
			t.Errorf("%s: nothing follows from it", gap.Source)
		}
	}
	want := "resourceclaims permission_denied team-a|resourceslices permission_denied |nodes timeout |events permission_denied "
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
}

// There are no questions about references that cannot be diagnosed.
func TestDiagnosable(t *testing.T) {
	questions := []dra.Question{
		{PodUID: "both", Refs: []dra.PendingRef{{PodClaim: "a", Claim: "a"}, {PodClaim: "b", Template: "b"}}},
		{PodUID: "template", Refs: []dra.PendingRef{{PodClaim: "b", Template: "b"}}},
		{PodUID: "extended", Refs: []dra.PendingRef{{PodClaim: "example.com/gpu", Extended: 2}}},
	}
	for lacking, want := range map[string]string{
		"":                       "both:2 template:1 extended:1",
		"events":                 "both:2 template:1 extended:1",
		"resourceslices":         "",
		"deviceclasses":          "",
		"resourceclaims":         "",
		"resourceclaimtemplates": "both:1 extended:1",
	} {
		var got []string
		for _, question := range explain.Diagnosable(questions, explain.GapsOf([]source.Status{denied(lacking)}, nil, "")) {
			got = append(got, question.PodUID+":"+string(rune('0'+len(question.Refs))))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("without %q: asked %v, want %s", lacking, got, want)
		}
	}
	if len(questions[0].Refs) != 2 {
		t.Error("the questions that were given have been changed")
	}
}

// With gaps, too few devices are certainly too few; whether there are enough is
// unknown.
func TestSplitByGaps(t *testing.T) {
	blind := explain.GapsOf(nil, []source.Status{denied("resourceclaims")}, "team-a")
	nodes := explain.GapsOf([]source.Status{denied("nodes")}, nil, "")
	rules := explain.GapsOf([]source.Status{denied("devicetaintrules")}, nil, "")
	for _, test := range []struct {
		gaps   explain.Gaps
		reason dra.PendingReason
		sure   bool
	}{
		{nil, dra.ReasonNone, true},
		{blind, dra.ReasonNone, false},
		{blind, dra.ReasonInsufficient, true},
		{blind, dra.ReasonFragmented, true},
		{nodes, dra.ReasonNone, false},
		{nodes, dra.ReasonFragmented, false},
		{nodes, dra.ReasonConstraints, false},
		{nodes, dra.ReasonInsufficient, true},
		{rules, dra.ReasonNone, false},
		{rules, dra.ReasonTainted, true},
		{rules, dra.ReasonNoDeviceClass, true},
	} {
		given := dra.Diagnosis{PodUID: "p", PodClaim: "c", Reason: test.reason, Message: "as diagnosed", Detail: &dra.Detail{Fits: "node-a"}}
		sure, unsure := explain.SplitByGaps([]dra.Diagnosis{given}, test.gaps)
		if (len(sure) == 1) != test.sure || len(sure)+len(unsure) != 1 {
			t.Errorf("%v and %q: sure %d, unsure %d", test.gaps, test.reason, len(sure), len(unsure))
			continue
		}
		if test.sure {
			continue
		}
		if unsure[0].Reason != dra.ReasonUnknown || unsure[0].Detail.Fits != "" || given.Detail.Fits != "node-a" {
			t.Errorf("%v and %q: what is not sure says %+v", test.gaps, test.reason, unsure[0])
		}
		references := []cluster.PendingRef{{PodUID: "p", PodClaim: "c", Message: "the scheduler reports: no"}, {PodUID: "p", PodClaim: "other"}}
		explain.AddUncertain(references, unsure)
		if references[0].Diagnosis == nil || !strings.HasPrefix(references[0].Message, "the scheduler reports: no; the ") || references[1].Diagnosis != nil {
			t.Errorf("the counts of uncertain diagnoses are not reported: %+v", references)
		}
	}
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
		f.Objects.Pod(&dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: "train-0"}, UID: "train-0", Node: test.node, Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}}}, false)
		f.Gaps = explain.GapsOf([]source.Status{test.status}, nil, "")
		report, err := explain.Explain(f, pod)
		if err != nil || !strings.HasPrefix(report.Summary, test.want) || report.State != test.state {
			t.Errorf("%s: %s, %q, %v", name, report.State, report.Summary, err)
		}
	}
	grouped := pendingRef(dra.ReasonClaimNotCreated, "no resourceclaim has been created from template gpus yet", nil)
	grouped.Claim = ""
	f := facts(2, grouped)
	f.Objects.Pod(&dra.PodLifecycle{Ref: grouped.Pod, UID: "train-0", Group: "gang", Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}}}, false)
	if text := unwrappedText(t, f, pod); !strings.Contains(text, "claim_not_created") {
		t.Errorf("where all could be read: %s", text)
	}
	f.Gaps = explain.GapsOf([]source.Status{denied("podgroups")}, nil, "")
	text := unwrappedText(t, f, pod)
	if !strings.Contains(text, "the PodGroups could not be read") || strings.Contains(text, "claim_not_created") || strings.Contains(text, "has been created from template") {
		t.Errorf("without the groups: %s", text)
	}
}
