package page

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestNarrowestStage(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		left         [dra.Stages]int
		want         string
	}{
		{"nothing of the class", "no_device_class", [dra.Stages]int{9, 0, 0, 0, 0, 0}, "class"},
		{"nothing selected", "no_matching_device", [dra.Stages]int{9, 8, 0, 0, 0, 0}, "selectors"},
		{"all tainted", "tainted", [dra.Stages]int{9, 8, 7, 0, 0, 0}, "untainted"},
		{"some tainted", "tainted", [dra.Stages]int{9, 8, 7, 3, 3, 3}, "untainted"},
		{"nothing free", "insufficient_devices", [dra.Stages]int{9, 8, 8, 8, 0, 0}, "free"},
		{"too few free", "insufficient_devices", [dra.Stages]int{9, 8, 7, 7, 1, 1}, "free"},
		{"too few there", "insufficient_devices", [dra.Stages]int{9, 8, 2, 2, 2, 1}, "selectors"},
		{"too few of the class", "insufficient_devices", [dra.Stages]int{9, 2, 2, 2, 2, 1}, "class"},
		{"incomplete", "pool_incomplete", [dra.Stages]int{9, 8, 7, 7, 1, 1}, "free"},
		{"scattered", "fragmented", [dra.Stages]int{9, 8, 7, 7, 3, 2}, "best_node"},
		{"another request's fault", "tainted", [dra.Stages]int{9, 8, 7, 7, 3, 2}, ""},
		{"no device's fault", "other_constraints", [dra.Stages]int{9, 8, 7, 7, 3, 2}, ""},
		{"nothing published", "no_matching_device", [dra.Stages]int{}, "published"},
	} {
		f := newRequestCounts([]dra.RequestStages{{Left: test.left}}, true)[0]
		got := ""
		for _, stage := range newStages(f, test.reason) {
			if stage.Narrows {
				got += stage.Name
			}
		}
		if got != test.want {
			t.Errorf("%s: it narrows at %q, want %q", test.name, got, test.want)
		}
	}
	unknown := newStages(RequestCounts{}, "tainted")
	for _, stage := range unknown {
		if stage.Narrows || stage.Width != "" {
			t.Errorf("of unknown counts %s is drawn", stage.Name)
		}
	}
}

// If the requested count is known, the first stage that leaves fewer is the
// narrowest, whatever the reason is.
func TestNarrowestStageWithRequestedCount(t *testing.T) {
	for asked, want := range map[int64]string{16: "selectors", 7: "untainted", 3: "best_node", 2: ""} {
		f := newRequestCounts([]dra.RequestStages{{Count: asked, Left: [dra.Stages]int{40, 20, 13, 5, 4, 2}}}, true)[0]
		got := ""
		for _, stage := range newStages(f, "insufficient_devices") {
			if stage.Narrows {
				got += stage.Name
			}
		}
		if got != want {
			t.Errorf("for %v it narrows at %q, want %q", asked, got, want)
		}
	}
}

// A bar is full if no device was removed, and empty if all were.
func TestStageWidths(t *testing.T) {
	all, few, none := 80000.0, 40.0, 0.0
	stages := newStages(RequestCounts{Published: &all, Class: &all, Selectors: &few, Untainted: &none}, "")
	for i, want := range []string{"100.0%", "100.0%", "32.9%", "0.0%", "", ""} {
		if stages[i].Width != want {
			t.Errorf("%s is %s wide, want %s", stages[i].Name, stages[i].Width, want)
		}
	}
}
