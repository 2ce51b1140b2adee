package explain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// textCase is a subject and the facts about it.
type textCase struct {
	subject explain.Subject
	facts   explain.Facts
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
			text := report.Text(false)
			metrictest.CompareGolden(t, "testdata/"+name+".txt", text)
			for line := range strings.Lines(text) {
				if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 100 {
					t.Errorf("wider than 100 columns: %q", line)
				} else if strings.HasSuffix(line, " ") {
					t.Errorf("blanks at the end of %q", line)
				}
			}
		})
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
