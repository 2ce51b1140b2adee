package helm

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write what the chart copies, the thresholds of its values, and README.md")

// TestCopies: a chart cannot read files outside of its folder, so it has
// copies of dashboards and rules, which must be identical, except that alerts
// have places for the values of their thresholds. With -update they are
// rewritten.
func TestCopies(t *testing.T) {
	for folder, pattern := range map[string]string{"dashboards": "dashboards/*.json", "rules": "alerts/*.yaml"} {
		sources, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(sources) == 0 {
			t.Fatalf("no %s (%v)", pattern, err)
		}
		want := map[string]string{}
		for _, source := range sources {
			want[filepath.Base(source)] = read(t, source)
		}
		if folder == "rules" {
			want["alerts.yaml"] = withPlaces(t, markedRules(t))
		}
		copies := filepath.Join(chart, "files", folder)
		if *update {
			write(t, copies, want)
		}
		entries, err := os.ReadDir(copies)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if _, ok := want[entry.Name()]; !ok {
				t.Errorf("files/%s/%s is a copy of nothing; run `make chart`", folder, entry.Name())
			}
		}
		for name, text := range want {
			if got, err := os.ReadFile(filepath.Join(copies, name)); err != nil || string(got) != text {
				t.Errorf("files/%s/%s is not what it is a copy of; run `make chart` (%v)", folder, name, err)
			}
		}
	}
}

// write writes these files to a folder and removes all others.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
