package releases

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write the document")

const documentPath = "../../../../docs/compatibility.md"

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

// TestCells: the document says in which releases a feature is, and of which that
// is unknown.
func TestCells(t *testing.T) {
	feature := func(id ID) Feature {
		features := Features()
		return features[slices.IndexFunc(features, func(f Feature) bool { return f.ID == id })]
	}
	probed := func(id ID, has string) (results []Result) {
		for i, r := range has {
			result := Result{Minor: Oldest + i}
			if r != '?' {
				result.Features = map[ID]bool{id: r == '+'}
			}
			results = append(results, result)
		}
		return results
	}
	for _, test := range []struct {
		id           ID
		has, off, on string
	}{
		{AdminAccess, "++++", "", "1.34"},
		{ConsumableCapacity, "++++", "1.34, 1.35", "1.36"},
		{ImplicitResources, "-+++", "", "1.35"},
		{PoolStatus, "---+", "1.37", ""},
		{PoolStatus, "----", "", ""},
		{AdminAccess, "+-+-", "", "1.34, 1.36 only"},
		{AdminAccess, "++--", "", "1.34, 1.35 only"},
		{AdminAccess, "+?++", "", "1.34, 1.36, 1.37 only ? 1.35"},
		{ConsumableCapacity, "??++", "", "1.36 ? 1.34, 1.35"},
		{ConsumableCapacity, "????", "", "? 1.34, 1.35, 1.36, 1.37"},
	} {
		if off, on := cells(feature(test.id), probed(test.id, test.has)); off != test.off || on != test.on {
			t.Errorf("%s %s: off %q, on %q, want %q and %q", test.id, test.has, off, on, test.off, test.on)
		}
	}
}

// TestResults: no requirement has failed in a saved run, and each run has found
// no feature that its release should lack, and has missed none.
func TestResults(t *testing.T) {
	results, err := Load("results")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Kubernetes == "" {
			continue
		}
		for test, outcome := range r.Tests {
			if outcome != Passed && outcome != Absent {
				t.Errorf("%s: %s: %s", r.Kubernetes, test, outcome)
			}
		}
		for _, f := range Features() {
			if found, probed := r.Features[f.ID]; probed && found != Has(r.Minor, f.ID) {
				t.Errorf("%s: %s was found: %t", r.Kubernetes, f.Name, found)
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

// TestSave: a later run of the same version updates the result, one of another
// version replaces it.
func TestSave(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	for _, r := range []Result{
		{Kubernetes: "v1.37.1", Tests: map[string]Outcome{"TestOld": Passed}},
		{Kubernetes: "v1.37.2", Features: map[ID]bool{PodsAPI: true}, Tests: map[string]Outcome{"TestA": Failed, "TestB": Absent}},
		{Kubernetes: "v1.37.2", Features: map[ID]bool{PodGroups: true}, Tests: map[string]Outcome{"TestA": Passed}},
	} {
		if err := r.Save(folder); err != nil {
			t.Fatal(err)
		}
	}
	results, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := Result{
		Minor: 37, Kubernetes: "v1.37.2", Features: map[ID]bool{PodsAPI: true, PodGroups: true},
		Tests: map[string]Outcome{"TestA": Passed, "TestB": Absent},
	}
	if got := results[len(results)-1]; !reflect.DeepEqual(got, want) {
		t.Errorf("the result is %+v, want %+v", got, want)
	}
	if first := results[0]; first.Kubernetes != "" || first.Minor != Oldest {
		t.Errorf("the result of a release that was not tested is %+v", first)
	}
}
