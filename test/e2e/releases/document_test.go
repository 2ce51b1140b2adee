package releases

import (
	"flag"
	"os"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write the document")

const documentPath = "../../../docs/compatibility.md"

// TestDocument: docs/compatibility.md has the results of the last run of each
// release.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	results, err := Load("results")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Document(string(text), results)
	if err != nil {
		t.Fatal(err)
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the results: run `make docs`", documentPath)
	}
	if err := os.WriteFile(documentPath, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestResults: no requirement has failed in a saved run, and each run has found
// the features of its release and no others.
func TestResults(t *testing.T) {
	results, err := Load("results")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for test, outcome := range r.Tests {
			if outcome != Passed && outcome != Absent {
				t.Errorf("%s: %s: %s", r.Kubernetes, test, outcome)
			}
		}
		for _, f := range Features() {
			switch has, known := r.Has(f); {
			case !known:
				t.Errorf("%s: %s was not looked for", r.Kubernetes, f.Name)
			case has != Has(Minor(r.Kubernetes), f.ID):
				t.Errorf("%s: %s was found: %t", r.Kubernetes, f.Name, has)
			}
		}
	}
}

// TestFeatureStages: a feature that a release has is in all later ones, and is
// not turned off again.
func TestFeatureStages(t *testing.T) {
	var ids []ID
	for _, f := range Features() {
		if slices.Contains(ids, f.ID) {
			t.Errorf("%s is there twice", f.ID)
		}
		ids = append(ids, f.ID)
		if !slices.IsSorted(f.Stages[:]) {
			t.Errorf("%s: %v goes back", f.ID, f.Stages)
		}
		if f.Probe.IsZero() && f.Test == "" {
			t.Errorf("%s has neither a probe nor a test", f.ID)
		}
	}
}
