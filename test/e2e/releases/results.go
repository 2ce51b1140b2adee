package releases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	Kubernetes string             `json:"kubernetes"` // version, such as v1.37.2
	Features   map[ID]bool        `json:"features"`   // those that were probed
	Tests      map[string]Outcome `json:"tests"`      // by requirement
}

// Save writes the result to a file.
func (r Result) Save(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	return nil
}

// Load reads the result of each release from a folder, the oldest first. Every
// supported release must have one.
func Load(folder string) ([]Result, error) {
	var results []Result
	for minor := Oldest; minor <= Newest; minor++ {
		path := filepath.Join(folder, fmt.Sprintf("v1.%d.json", minor))
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no result of Kubernetes 1.%d (run make e2e-matrix): %w", minor, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read result: %w", err)
		}
		var r Result
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("decode %s: %w", path, err)
		}
		if Minor(r.Kubernetes) != minor {
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
