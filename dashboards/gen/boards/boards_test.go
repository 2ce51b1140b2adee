package boards

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/lint"
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
	known := map[string]bool{}
	for _, b := range All() {
		known[b.File()] = true
		text, err := os.ReadFile(filepath.Join(committed, b.File()))
		if err != nil {
			t.Errorf("make dashboards: %v", err)
			continue
		}
		if !bytes.Equal(text, generated(t, b)) {
			t.Errorf("%s is not what the code writes: make dashboards", b.File())
		}
	}
	files, err := filepath.Glob(filepath.Join(committed, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[filepath.Base(file)] {
			t.Errorf("no board writes %s", filepath.Base(file))
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
