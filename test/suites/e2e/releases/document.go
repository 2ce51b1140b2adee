package releases

import (
	"fmt"
	"strings"
)

// Markers of the generated part of docs/compatibility.md.
const (
	documentStart = "<!-- generated from test/suites/e2e/releases by make e2e-matrix -->\n"
	documentEnd   = "<!-- end -->\n"
)

// Document replaces the generated part of a document by the tables of results.
func Document(text string, results []Result) (string, error) {
	before, rest, found := strings.Cut(text, documentStart)
	_, after, closed := strings.Cut(rest, documentEnd)
	if !found || !closed {
		return "", fmt.Errorf("no part between %q and %q", documentStart, documentEnd)
	}
	return before + documentStart + "\n" + runTable(results) + "\n" + featureTable(results) + "\n" + documentEnd + after, nil
}

func runTable(results []Result) string {
	var b strings.Builder
	b.WriteString("| Kubernetes | tested with | requirements tested | passed | absence asserted |\n|---|---|---|---|---|\n")
	for _, r := range results {
		if r.Kubernetes == "" {
			fmt.Fprintf(&b, "| 1.%d | not yet tested with this version of the exporter | | | |\n", r.Minor)
			continue
		}
		fmt.Fprintf(&b, "| 1.%d | %s | %d | %d | %d |\n", r.Minor, r.Kubernetes,
			r.count(Passed, Failed, Absent), r.count(Passed), r.count(Absent))
	}
	return b.String()
}

func featureTable(results []Result) string {
	var b strings.Builder
	b.WriteString("| feature | off by default in | on from | what the exporter reports with it |\n|---|---|---|---|\n")
	for _, f := range Features() {
		off, on := cells(f, results)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Name, off, on, f.Exporter)
	}
	return b.String()
}

// cells returns the releases in which a feature is off by default, and the first
// that has it on: all later ones have it too, or they are all named. Releases of
// which it is unknown follow a question mark, and those that lack it are not named.
func cells(f Feature, results []Result) (off, on string) {
	var offIn, onIn, unknownIn []string
	for _, r := range results {
		release := fmt.Sprintf("1.%d", r.Minor)
		switch has, ok := r.Has(f); {
		case !ok:
			unknownIn = append(unknownIn, release)
		case !has:
		case stage(r.Minor, f.ID) == Off:
			offIn = append(offIn, release)
		default:
			onIn = append(onIn, release)
		}
	}
	on = strings.Join(onIn, ", ")
	switch last := len(results) - len(onIn); {
	case len(onIn) == 0:
	case onIn[0] == fmt.Sprintf("1.%d", results[last].Minor):
		on = onIn[0]
	default:
		on += " only"
	}
	if len(unknownIn) > 0 {
		on = strings.TrimSpace(on + " ? " + strings.Join(unknownIn, ", "))
	}
	return strings.Join(offIn, ", "), on
}

// Has reports whether the run has found a feature, and whether it has looked. A
// test without a probe that has passed has proved what its release should have.
func (r Result) Has(f Feature) (has, known bool) {
	if has, known = r.Features[f.ID]; known {
		return has, true
	}
	switch r.Tests[f.Test] {
	case Passed:
		return Has(r.Minor, f.ID), true
	case Absent:
		return false, true
	}
	return false, false
}
