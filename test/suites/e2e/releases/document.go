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
	b.WriteString("| feature |")
	for _, r := range results {
		fmt.Fprintf(&b, " 1.%d |", r.Minor)
	}
	b.WriteString(" what the exporter reports with it |\n|---|" + strings.Repeat("---|", len(results)+1) + "\n")
	for _, f := range Features() {
		fmt.Fprintf(&b, "| %s |", f.Name)
		for _, r := range results {
			fmt.Fprintf(&b, " %s |", r.cell(f))
		}
		fmt.Fprintf(&b, " %s |\n", f.Exporter)
	}
	return b.String()
}

// cell returns what a run has found of a feature, in words.
func (r Result) cell(f Feature) string {
	has, known := r.Has(f)
	switch {
	case !known:
		return "?"
	case !has:
		return ""
	case stage(r.Minor, f.ID) == Off:
		return "off by default"
	}
	return "yes"
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
