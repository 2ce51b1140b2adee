package boards

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/lint"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// committed is the folder of the dashboards that people import.
const committed = "../.."

func generated(t *testing.T, b Board) []byte {
	t.Helper()
	text, err := b.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBoardsPassTheLint(t *testing.T) {
	for _, b := range All() {
		t.Run(b.UID, func(t *testing.T) {
			problems, err := lint.Check(generated(t, b))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}

func TestLinksLeadToBoards(t *testing.T) {
	var texts [][]byte
	for _, b := range All() {
		texts = append(texts, generated(t, b))
	}
	problems, err := lint.CheckLinks(texts...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// TestFilesAreGenerated: `make dashboards` writes the files. The test fails if one
// of them was edited, or was not written again.
func TestFilesAreGenerated(t *testing.T) {
	want := map[string][]byte{}
	texts := map[string][]byte{}
	for _, b := range All() {
		texts[b.Name()] = generated(t, b)
	}
	for _, set := range sets.All() {
		want[filepath.Join(set.Name, "kustomization.yaml")] = set.Kustomization()
		for _, name := range set.Dashboards {
			want[filepath.Join(set.Name, name+".json")] = texts[name]
		}
	}
	for _, file := range slices.Sorted(maps.Keys(want)) {
		text, err := os.ReadFile(filepath.Join(committed, file))
		if err != nil {
			t.Errorf("make dashboards: %v", err)
			continue
		}
		if !bytes.Equal(text, want[file]) {
			t.Errorf("%s is not what the code writes: make dashboards", file)
		}
	}
	for _, pattern := range []string{"*/*.json", "*.json", "*/kustomization.yaml", "kustomization.yaml"} {
		files, err := filepath.Glob(filepath.Join(committed, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name, err := filepath.Rel(committed, file)
			if err != nil {
				t.Fatal(err)
			}
			if want[name] == nil {
				t.Errorf("nothing writes %s", name)
			}
		}
	}
}

// TestBoardsAreAlwaysTheSame: a file that changes by itself would be drift.
func TestBoardsAreAlwaysTheSame(t *testing.T) {
	first, second := All(), All()
	for i := range first {
		if !bytes.Equal(generated(t, first[i]), generated(t, second[i])) {
			t.Errorf("%s is another each time", first[i].UID)
		}
	}
}
