package changes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const repository = "../../../.."

const changelog = `# Changelog

Entries are [CHANGE] or others.

## Unreleased

* [FEATURE] node: reads "new" devices: all.

## 1.2.3 / 2026-12-01

A sentence.

* [CHANGE] chart: another default.
* [ENHANCEMENT] web: faster.
* [BUGFIX] top: ` + "`--once`" + ` ends.

## 1.2.2 / 2026-11-01

* [FEATURE] old: old.
`

func TestRead(t *testing.T) {
	for version, want := range map[string][]Change{
		"1.2.3":      {{"changed", "chart: another default."}, {"changed", "web: faster."}, {"fixed", "top: `--once` ends."}},
		"1.2.2":      {{"added", "old: old."}},
		"1.3.0-rc.1": {{"added", `node: reads "new" devices: all.`}},
	} {
		if got, err := Read(changelog, version); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q (%v)", version, got, err)
		}
	}
	for _, wrong := range []string{"", "## Unreleased\n\nNothing.\n", "## 1.2.3\n\n* no kind\n", "## 1.2.3\n\n* [NEW] of no kind\n"} {
		if got, err := Read(wrong, "1.2.3"); err == nil {
			t.Errorf("%q has %q", wrong, got)
		}
	}
}

// TestAnnotate: the chart of the next version has an entry for each one of
// CHANGELOG.md, and all that it had before.
func TestAnnotate(t *testing.T) {
	read := func(path ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(append([]string{repository}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	all, err := Read(read("CHANGELOG.md"), "99.0.0")
	if err != nil {
		t.Fatal(err)
	}
	type metadata struct {
		Fields      map[string]any    `yaml:",inline"`
		Annotations map[string]string `yaml:"annotations"`
	}
	var before metadata
	chart := read("deploy", "helm", "dra-exporter", "Chart.yaml")
	if err := yaml.Unmarshal([]byte(chart), &before); err != nil {
		t.Fatal(err)
	}
	for version, prerelease := range map[string]string{"99.0.0": "false", "99.0.0-rc.1": "true"} {
		text, err := Annotate([]byte(chart), all, version)
		if err != nil {
			t.Fatal(err)
		}
		var after metadata
		if err := yaml.Unmarshal(text, &after); err != nil {
			t.Fatal(err)
		}
		if len(after.Fields) != len(before.Fields) || len(after.Annotations) != len(before.Annotations)+2 {
			t.Errorf("%d fields and %d annotations become %d and %d", len(before.Fields), len(before.Annotations), len(after.Fields), len(after.Annotations))
		}
		if got := after.Annotations["artifacthub.io/prerelease"]; got != prerelease {
			t.Errorf("%s: prerelease is %s", version, got)
		}
		var got []Change
		if err := yaml.Unmarshal([]byte(after.Annotations["artifacthub.io/changes"]), &got); err != nil || !slices.Equal(got, all) {
			t.Errorf("%q is not %q (%v)", got, all, err)
		}
	}
	if lines := strings.Count(read("CHANGELOG.md"), "\n* ["); len(all) > lines {
		t.Errorf("%d entries become %d changes", lines, len(all))
	}
	for _, wrong := range []string{"", "name: x", "annotations: {", "annotations: [x]"} {
		if _, err := Annotate([]byte(wrong), all, "99.0.0"); err == nil {
			t.Errorf("%q is annotated without an error", wrong)
		}
	}
}
