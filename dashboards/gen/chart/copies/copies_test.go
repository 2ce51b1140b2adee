package copies

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

const alertsText = `groups:
  - name: one
    rules:
      # Threshold after=15m in "> 900": time that a pod may wait.
      - alert: Waits
        expr: waiting > 900
`

// belongs are the sets of what is there.
var belongs = sets.Belongs{
	Dashboards: map[string]string{"claims": "core"}, Alerts: map[string]string{"Waits": "core"}, Records: map[string]string{},
}

// newRepository returns a folder with a dashboard and rules, and a chart in it.
func newRepository(t *testing.T) (repository, chart string) {
	t.Helper()
	repository = t.TempDir()
	chart = filepath.Join(repository, "deploy", "dra-exporter")
	put(t, filepath.Join(repository, "dashboards", "core", "claims.json"), "{}\n")
	put(t, filepath.Join(repository, "dashboards", "core", "kustomization.yaml"), "{}\n")
	put(t, filepath.Join(repository, "alerts", "recording.yaml"), "groups: []\n")
	put(t, filepath.Join(repository, "alerts", "alerts.yaml"), alertsText)
	return repository, chart
}

// TestWrite: dashboards and recording rules are the files, alerts have places,
// and what is a copy of nothing goes.
func TestWrite(t *testing.T) {
	repository, chart := newRepository(t)
	put(t, filepath.Join(chart, "Chart.yaml"), "chart\n")
	put(t, filepath.Join(chart, "files", "dashboards", "removed.json"), "{}\n")
	put(t, filepath.Join(chart, "files", "rules", "recording.yaml"), "old\n")
	if err := Write(repository, chart, belongs); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Chart.yaml":                        "chart\n",
		"files/dashboards/core/claims.json": "{}\n",
		"files/rules/recording.yaml":        "groups: []\n",
		"files/rules/sets.yaml":             "alerts:\n    Waits: core\nrecords: {}\n",
		"files/rules/alerts.yaml":           strings.Replace(alertsText, "waiting > 900", "waiting > <<seconds Waits after>>", 1),
	}
	got := filesBelow(t, chart)
	for path, text := range want {
		if got[path] != text {
			t.Errorf("%s is\n%s\nnot\n%s", path, got[path], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d files: %v", len(got), got)
	}
	if beside := filesBelow(t, filepath.Dir(chart)); len(beside) != len(want) {
		t.Errorf("something is left beside the chart: %v", beside)
	}
}

// TestWriteAgain: a file that is right is not written again.
func TestWriteAgain(t *testing.T) {
	repository, chart := newRepository(t)
	file := filepath.Join(chart, "files", "dashboards", "core", "claims.json")
	var before os.FileInfo
	for range 2 {
		if err := Write(repository, chart, belongs); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !os.SameFile(before, after) {
			t.Error("the file was replaced")
		}
		before = after
	}
	if before.Mode().Perm()&0o044 != 0o044 {
		t.Errorf("its mode is %s", before.Mode())
	}
}

// TestWriteWhileRead: a reader sees a whole text, however many write.
func TestWriteWhileRead(t *testing.T) {
	const size = 1 << 18
	repository, chart := newRepository(t)
	source, target := filepath.Join(repository, "dashboards", "core", "claims.json"), filepath.Join(chart, "files", "dashboards", "core", "claims.json")
	for turn := range 5 {
		letter := string(rune('a' + turn))
		put(t, source, strings.Repeat(letter, size))
		var writers sync.WaitGroup
		for range 3 {
			writers.Go(func() {
				if err := Write(repository, chart, belongs); err != nil {
					t.Error(err)
				}
			})
		}
		done := make(chan struct{})
		go func() { writers.Wait(); close(done) }()
		for reading := true; reading; {
			select {
			case <-done:
				reading = false
			default:
			}
			text, err := os.ReadFile(target)
			if errors.Is(err, fs.ErrNotExist) && turn == 0 && reading {
				continue
			}
			if err != nil || len(text) != size || strings.Trim(string(text), string(text[:1])) != "" {
				t.Fatalf("turn %d: %d bytes (%v)", turn, len(text), err)
			}
			if !reading && string(text[:1]) != letter {
				t.Fatalf("turn %d: it is that of another turn", turn)
			}
		}
	}
}

// filesBelow returns the text of each file by its path in the folder.
func filesBelow(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, path))
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
