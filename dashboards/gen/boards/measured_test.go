package boards

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// measurements is the table that make boards-pictures writes: a line for each board,
// with the hash of the file that was drawn.
const measurements = "../../../test/tools/boards/measured.csv"

// hashLength is how many digits of the SHA-256 of a board's file the table has.
const hashLength = 12

// TestBoardsAreMeasured: the table is of the boards as they are. It fails when a board
// has changed since it was drawn: its new pictures have to be looked at.
func TestBoardsAreMeasured(t *testing.T) {
	file, err := os.Open(measurements)
	if err != nil {
		t.Fatalf("make boards-pictures: %v", err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatalf("read %s: %v", measurements, err)
	}
	hashes := map[string]string{}
	name, hash := slices.Index(lines[0], "board"), slices.Index(lines[0], "json")
	if name < 0 || hash < 0 {
		t.Fatalf("%s has no columns board and json: %v", measurements, lines[0])
	}
	for _, line := range lines[1:] {
		hashes[line[name]] = line[hash]
	}
	for _, set := range sets.All() {
		for _, dashboard := range set.Dashboards {
			board := set.Name + "/" + dashboard
			text, err := os.ReadFile(filepath.Join(committed, board+".json"))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(text)
			if want := hex.EncodeToString(sum[:])[:hashLength]; hashes[board] != want {
				t.Errorf("%s is %s, and was measured as %q: run make boards-pictures BOARDS_FLAGS=--boards=%[1]s, and look at dist/boards/live", board, want, hashes[board])
			}
			delete(hashes, board)
		}
	}
	for board := range hashes {
		t.Errorf("%s was measured, and is no board any more: run make boards-pictures", board)
	}
}
