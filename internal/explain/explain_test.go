package explain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/explain"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// textCase is a subject and the facts about it.
type textCase struct {
	subject clusterread.Subject
	facts   clusterread.Facts
}

// Each reason of the closed set, and each state of what does not wait, reads
// as the golden texts do.
func TestText(t *testing.T) {
	for name, scene := range textCases() {
		t.Run(name, func(t *testing.T) {
			report, err := explain.Explain(scene.facts, scene.subject)
			if err != nil {
				t.Fatal(err)
			}
			text, brief := report.Text(false), report.Brief(false)
			metrictest.CompareGolden(t, "testdata/"+name+".txt", text)
			metrictest.CompareGolden(t, "testdata/brief/"+name+".txt", brief)
			for line := range strings.Lines(text + brief) {
				if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 100 && line != firstLine(text) {
					t.Errorf("wider than 100 columns: %q", line)
				} else if strings.HasSuffix(line, " ") {
					t.Errorf("blanks at the end of %q", line)
				}
			}
		})
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// The brief report has a conclusion of one line, at most five lines of evidence, at most
// three of remedies, and then known bugs and the events.
func TestBriefIsBrief(t *testing.T) {
	for name, scene := range textCases() {
		report, err := explain.Explain(scene.facts, scene.subject)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(strings.TrimSuffix(report.Brief(false), "\n"), "\n\n")
		if lines := strings.Count(parts[0], "\n") + 1; lines != 1 {
			t.Errorf("%s: the conclusion has %d lines", name, lines)
		}
		if parts[0] != firstLine(report.Text(false)) {
			t.Errorf("%s: the whole report has another conclusion than %q", name, parts[0])
		}
		order := []string{"", "Remedies:\n", "Known bugs:\n", "Events:\n", "-v adds"}
		for _, part := range parts[1:] {
			for len(order) > 0 && !strings.HasPrefix(part, order[0]) {
				order = order[1:]
			}
			if len(order) == 0 {
				t.Fatalf("%s: %q is out of order", name, part)
			}
			most := map[string]int{"": 5, "Remedies:\n": 4, "Known bugs:\n": 6, "Events:\n": 5, "-v adds": 1}[order[0]]
			if lines := strings.Count(part, "\n") + 1; lines > most {
				t.Errorf("%s: %d lines, want at most %d:\n%s", name, lines, most, part)
			}
			order = order[1:]
		}
	}
}

// A brief report names holders only if it would suffice that all of them released
// their devices. Evidence that does not fit is cut, but never what was not read.
func TestBriefHolders(t *testing.T) {
	one := func(most int, more ...dra.Removal) dra.Detail {
		return dra.Detail{OnOneNode: map[string]int{"gpus": most}, Holders: []dra.Holder{serve}, HoldersInAll: 1, Removed: more}
	}
	invalid := dra.Removal{Request: "gpus", Stage: dra.StageFree, Count: 11, Because: "pool invalid"}
	held := dra.Removal{Request: "gpus", Stage: dra.StageFree, Count: 11, Because: "held"}
	for name, test := range map[string]struct {
		reason dra.PendingReason
		left   [dra.Stages]int
		detail dra.Detail
		lists  bool
	}{
		"enough on a node":         {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(8), true},
		"enough, held":             {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(8, held), true},
		"on no node":               {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(4), false},
		"too few match":            {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 5, 5, 2, 2}, one(5), false},
		"too few untainted":        {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 5, 2, 2}, one(5), false},
		"most are invalid":         {dra.ReasonInsufficient, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(8, invalid), false},
		"fragmented, and fits":     {dra.ReasonFragmented, [dra.Stages]int{16, 16, 16, 16, 8, 4}, one(8), true},
		"fragmented, on no node":   {dra.ReasonFragmented, [dra.Stages]int{16, 16, 16, 16, 8, 4}, one(4), false},
		"constraints":              {dra.ReasonConstraints, [dra.Stages]int{16, 16, 16, 16, 8, 8}, one(8), false},
		"a pool that is published": {dra.ReasonPoolIncomplete, [dra.Stages]int{16, 16, 16, 16, 2, 2}, one(8), false},
	} {
		f := facts(6, pendingRef(test.reason, "as diagnosed", diagnosis(test.reason, 6, test.left, test.detail)))
		f.Gaps = clusterread.NewGaps([]source.Status{denied("events")}, nil, "")
		report, err := explain.Explain(f, pod)
		if err != nil {
			t.Fatal(err)
		}
		evidence, _, _ := strings.Cut(report.Brief(false), "Remedies:")
		if strings.Contains(evidence, "team-b/serve (pod serve-0)") != test.lists {
			t.Errorf("%s: lists holders: want %v\n%s", name, test.lists, evidence)
		}
		if !strings.Contains(evidence, "not read  events\n") {
			t.Errorf("%s: does not say what was not read:\n%s", name, evidence)
		}
	}
}

// Every reason has a text case, with advice for every pending reference.
func TestEveryReasonHasText(t *testing.T) {
	seen := make(map[string]bool)
	for name, scene := range textCases() {
		report, err := explain.Explain(scene.facts, scene.subject)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, waiting := range report.Pending {
			seen[waiting.Reason] = true
			if len(waiting.Help) == 0 {
				t.Errorf("%s: nothing would help against %s", name, waiting.Reason)
			}
		}
	}
	for _, reason := range dra.PendingReasons() {
		if !seen[string(reason)] {
			t.Errorf("no scene has %s", reason)
		}
	}
}

// The JSON document is the same question answered for a program.
func TestJSON(t *testing.T) {
	for _, name := range []string{"insufficient-devices", "reserved-preparation"} {
		scene := textCases()[name]
		report, err := explain.Explain(scene.facts, scene.subject)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		metrictest.CompareGolden(t, "testdata/"+name+".json", string(text)+"\n")
	}
}

// Pods that are pending for one claim are described together only if their
// reason is the same.
func TestPodsWithDifferentReasons(t *testing.T) {
	first := pendingRef(dra.ReasonGated, "", nil)
	second, third := pendingRef(dra.ReasonUnknown, "", nil), first
	second.Pod.Name, third.Pod.Name = "train-1", "train-2"
	report, err := explain.Explain(facts(2, first, second, third), claim)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, waiting := range report.Pending {
		got = append(got, waiting.Reason+" "+strings.Join(waiting.Pods, "+"))
	}
	if want := "scheduling_gated train-0+train-2, unknown train-1"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
}
