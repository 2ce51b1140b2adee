package releases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Outcome is the result of the test of a requirement.
type Outcome string

// A test is Absent if it has asserted that the release lacks the feature.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Absent  Outcome = "absent"
	Skipped Outcome = "skipped"
	NotRun  Outcome = "not run"
)

// Result is what one run of the end-to-end tests has found.
type Result struct {
	Minor      int                `json:"-"`          // minor version of Kubernetes
	Kubernetes string             `json:"kubernetes"` // version, such as v1.37.2
	Features   map[ID]bool        `json:"features"`   // those that were probed
	Tests      map[string]Outcome `json:"tests"`      // by requirement
}

// Save writes the result to the file of its release in a folder. If the file has
// a result of the same version, tests that did not run this time keep their
// outcome.
func (r Result) Save(folder string) error {
	path := file(folder, Minor(r.Kubernetes))
	before, err := load(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if before.Kubernetes == r.Kubernetes {
		before.update(r)
		r = before
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	return nil
}

// update replaces what a later run of the same version has found.
func (r *Result) update(later Result) {
	if r.Features == nil {
		r.Features = map[ID]bool{}
	}
	if r.Tests == nil {
		r.Tests = map[string]Outcome{}
	}
	maps.Copy(r.Features, later.Features)
	maps.Copy(r.Tests, later.Tests)
}

func file(folder string, minor int) string {
	return filepath.Join(folder, fmt.Sprintf("v1.%d.json", minor))
}

func load(path string) (r Result, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read result: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("decode %s: %w", path, err)
	}
	return r, nil
}

// Load reads the results of the supported releases from a folder, the oldest
// first. A release without a file has a result without a version.
func Load(folder string) ([]Result, error) {
	var results []Result
	for minor := Oldest; minor <= Newest; minor++ {
		path := file(folder, minor)
		r, err := load(path)
		if errors.Is(err, fs.ErrNotExist) {
			results = append(results, Result{Minor: minor})
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Minor = Minor(r.Kubernetes); r.Minor != minor {
			return nil, fmt.Errorf("decode %s: it is of %s", path, r.Kubernetes)
		}
		results = append(results, r)
	}
	return results, nil
}

// count returns how many requirements have one of the outcomes.
func (r Result) count(outcomes ...Outcome) int {
	n := 0
	for _, outcome := range r.Tests {
		if slices.Contains(outcomes, outcome) {
			n++
		}
	}
	return n
}
