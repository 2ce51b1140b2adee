package clusterread_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/clusterread"
)

func denied(name string) source.Status {
	return source.Status{Name: name, Reason: source.ReasonPermission, Errors: 1, Message: name + " is forbidden"}
}

func TestNewGaps(t *testing.T) {
	ever := clock.Instant{Wall: time.Date(2026, 11, 21, 22, 43, 40, 0, time.UTC), Elapsed: 1}
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
	for _, gap := range clusterread.NewGaps(here, everywhere, "team-a") {
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
		for _, question := range clusterread.Diagnosable(questions, clusterread.NewGaps([]source.Status{denied(lacking)}, nil, "")) {
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
	blind := clusterread.NewGaps(nil, []source.Status{denied("resourceclaims")}, "team-a")
	nodes := clusterread.NewGaps([]source.Status{denied("nodes")}, nil, "")
	rules := clusterread.NewGaps([]source.Status{denied("devicetaintrules")}, nil, "")
	for _, test := range []struct {
		gaps   clusterread.Gaps
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
		sure, unsure := clusterread.SplitByGaps([]dra.Diagnosis{given}, test.gaps)
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
		clusterread.AddUncertain(references, unsure)
		if references[0].Diagnosis == nil || !strings.HasPrefix(references[0].Message, "the scheduler reports: no; the ") || references[1].Diagnosis != nil {
			t.Errorf("the counts of uncertain diagnoses are not reported: %+v", references)
		}
	}
}
