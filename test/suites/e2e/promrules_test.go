package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	recordingRules = "../../../alerts/recording.yaml"
	alertRules     = "../../../alerts/alerts.yaml"
)

// replacement is a text of a rule file and its replacement in a test, which
// cannot wait for as long as the rule does.
type replacement struct {
	shipped, here string
	times         int // how often the text occurs; 0: once
}

// ownPace returns the groups of recording rules with an interval of their own,
// and the interval.
func ownPace() map[string]string {
	return map[string]string{
		"dra-exporter.accounting":       "5m",
		"dra-exporter.errors":           "5m",
		"dra-exporter.incidents":        "5m",
		"dra-exporter.latencies":        "1m",
		"dra-exporter.reliability":      "5m",
		"dra-exporter.workload-devices": "1m",
	}
}

// shippedRules returns the recording rules, all with the default interval.
func shippedRules(t *testing.T) string {
	t.Helper()
	return ruleFile(t, recordingRules, anyPace()...)
}

// anyPace replaces the intervals of all groups, and compares with twenty
// seconds ago instead of five minutes.
func anyPace() (all []replacement) {
	all = append(all, replacement{"[1m] offset 4m30s", "[10s] offset 15s", 4})
	for group, every := range ownPace() {
		name := "- name: " + group + "\n"
		all = append(all, replacement{name + "    interval: " + every + "\n", name, 1})
	}
	return all
}

// ruleFile copies a rule file with these replacements. Each must occur as
// often as it says, so that the test runs the shipped file except for them.
func ruleFile(t *testing.T, path string, replacements ...replacement) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := replaced(string(text), replacements)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	file := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func replaced(text string, replacements []replacement) (string, error) {
	for _, r := range replacements {
		if count, want := strings.Count(text, r.shipped), max(1, r.times); count != want {
			return "", fmt.Errorf("%q is there %d times, not %d", r.shipped, count, want)
		}
		text = strings.ReplaceAll(text, r.shipped, r.here)
	}
	return text, nil
}
