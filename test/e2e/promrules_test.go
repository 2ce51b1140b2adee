package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	recordingRules = "../../alerts/recording.yaml"
	alertRules     = "../../alerts/alerts.yaml"
)

// replacement is a text of a rule file and what a test has in its place, since it
// cannot wait for as long as a person should.
type replacement struct {
	shipped, here string
	times         int // that it is there; 0: once
}

// ownPace are the groups of recording rules that are not evaluated as often as a
// server does by default, and how often.
func ownPace() map[string]string {
	return map[string]string{
		"dra-exporter.accounting": "5m",
		"dra-exporter.errors":     "5m",
		"dra-exporter.latencies":  "1m",
	}
}

// shippedRules are the recording rules, all to be evaluated as often as others.
func shippedRules(t *testing.T) string {
	t.Helper()
	return ruleFile(t, recordingRules, anyPace()...)
}

// anyPace has all groups evaluated at one pace, and what is compared with five
// minutes ago with twenty seconds ago.
func anyPace() (all []replacement) {
	all = append(all, replacement{"[1m] offset 4m30s", "[10s] offset 15s", 4})
	for group, every := range ownPace() {
		name := "- name: " + group + "\n"
		all = append(all, replacement{name + "    interval: " + every + "\n", name, 1})
	}
	return all
}

// ruleFile copies a rule file with these replacements. Each has to be found as
// often as it says: what a test runs is what is shipped, but for what it says here.
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
