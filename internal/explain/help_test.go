package explain_test

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Advice is only given if it can help.
func TestAdvice(t *testing.T) {
	one := func(most int, more ...dra.Removal) dra.Detail {
		return dra.Detail{OnOneNode: map[string]int{"gpus": most}, Holders: []dra.Holder{serve}, Removed: more}
	}
	const (
		futile  = "waiting does not help: no node has 6 usable devices for request gpus, held or not - request at most 4, or add a node with 6"
		release = "become free when these end: team-b/serve"
		wait    = "wait, add nodes with such devices, or request fewer"
	)
	growing := dra.Removal{Request: "gpus", Stage: dra.StageFree, Count: 1, Because: "pool incomplete"}
	for name, test := range map[string]struct {
		reason      dra.PendingReason
		left        [dra.Stages]int
		detail      dra.Detail
		gaps        clusterread.Gaps
		want, never []string
	}{
		"fragmented, and a node has enough": {dra.ReasonFragmented, [dra.Stages]int{16, 16, 16, 16, 8, 4}, one(8), nil, []string{release, "lacks 2"}, []string{"no node has"}},
		"fragmented, and no node has":       {dra.ReasonFragmented, [dra.Stages]int{16, 16, 16, 16, 8, 4}, one(4), nil, []string{futile}, []string{release}},
		"held, and a node has enough":       {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(8), nil, []string{release, wait}, []string{"no node has"}},
		"held, and no node has":             {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(4), nil, []string{futile}, []string{release, wait}},
		"no node at all":                    {dra.ReasonFragmented, [dra.Stages]int{16, 16, 16, 16, 8}, one(0), nil, []string{"held or not - check which nodes can use the devices"}, []string{release, "at most"}},
		"a pool may grow":                   {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(4, growing), nil, []string{release}, []string{"no node has"}},
		"nodes were not read":               {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(0), clusterread.NewGaps([]source.Status{denied("nodes")}, nil, ""), []string{release}, []string{"no node has"}},
		"too few, and some tainted": {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 5, 4, 2, 2}, one(4), nil,
			[]string{"add 1 matching device", "1 of 5 devices for request gpus has a taint that is not tolerated"}, []string{release, "add 2"}},
		"too few, and on several nodes": {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 5, 5, 2, 2}, one(2), nil,
			[]string{"add 1 matching device", "one node must be able to use all of them: currently none can use more than 2"}, []string{release, "has a taint", "have a taint"}},
		"too few, and on one node": {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 5, 5, 2, 2}, one(5), nil, []string{"add 1 matching device"}, []string{"one node must"}},
	} {
		w := pendingRef(test.reason, "as diagnosed", diagnosis(test.reason, 6, test.left, test.detail))
		f := facts(6, w)
		f.Gaps = test.gaps
		text := unwrappedText(t, f, pod)
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		for _, never := range test.never {
			if strings.Contains(text, never) {
				t.Errorf("%s: says %q", name, never)
			}
		}
	}
}

// Holders are only listed if their devices are needed.
func TestIrrelevantHolders(t *testing.T) {
	for _, reason := range dra.PendingReasons() {
		f := facts(2, pendingRef(reason, "as diagnosed", diagnosis(reason, 2, [dra.Stages]int{8, 8, 8, 8, 6, 6}, dra.Detail{Holders: []dra.Holder{serve}, HoldersInAll: 4})))
		text := unwrappedText(t, f, pod)
		inTheWay := reason == dra.ReasonInsufficient || reason == dra.ReasonFragmented || reason == dra.ReasonConstraints || reason == dra.ReasonPoolIncomplete
		if strings.Contains(text, "Held by") != inTheWay || strings.Contains(text, "and 3 more") != inTheWay {
			t.Errorf("%s: %s", reason, text)
		}
	}
}

// Advice stands where a person looks first: behind what is wrong.
func TestAdviceComesFirst(t *testing.T) {
	text := unwrappedText(t, textCases()["insufficient-devices"].facts, claim)
	help, rest := strings.Index(text, "Remedies"), strings.Index(text, "Requested:")
	if help < 0 || rest < help {
		t.Errorf("the advice is at %d, the rest at %d", help, rest)
	}
}

// More devices than a claim may have do not count as a constraint.
func TestTooManyDevices(t *testing.T) {
	text := unwrappedText(t, facts(33, pendingRef(dra.ReasonConstraints, "it requests 33 devices, and a claim can have at most 32", nil)), pod)
	if !strings.Contains(text, "it requests more devices than a claim may have") || !strings.Contains(text, "request at most 32 devices in one claim") || strings.Contains(text, "relax") {
		t.Error(text)
	}
}

// What has no namespace is not to be listed in all of them.
func TestPermissionsToList(t *testing.T) {
	f := facts(2, pendingRef(dra.ReasonUnknown, "", nil))
	f.Gaps = clusterread.NewGaps([]source.Status{denied("nodes"), denied("resourceslices"), denied("events")}, nil, "")
	if text := unwrappedText(t, f, pod); !strings.Contains(text, "permission to list resourceslices and nodes, and events in all namespaces") {
		t.Error(text)
	}
}
