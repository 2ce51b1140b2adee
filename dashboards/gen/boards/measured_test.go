package boards

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// measurements is the table that make boards-pictures writes: a line for each board,
// with the hash of the file that was drawn.
const measurements = "../../../test/tools/boards/measured.csv"

// hashLength is how many digits of the SHA-256 of a board's file the table has.
const hashLength = 12

// pictures is the table of the documents' pictures: with which content of which files
// each was drawn.
const pictures = "../../../docs/images/sources.csv"

// TestPicturesAreNew fails when what a picture of the documents shows has changed since
// it was drawn.
func TestPicturesAreNew(t *testing.T) {
	images, err := filepath.Glob("../../../docs/images/*.png")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]bool{}
	for _, line := range readTable(t, pictures)[1:] {
		picture, files, want := line[0], strings.Fields(line[1]), line[2]
		drawn[picture] = true
		sum := sha256.New()
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join("../../..", file))
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(text)
		}
		target := "make pictures"
		if strings.HasPrefix(files[0], "dashboards/") {
			target = "make boards-pictures BOARDS_FLAGS=--boards=" + strings.TrimSuffix(strings.TrimPrefix(files[0], "dashboards/"), ".json")
		}
		if hex.EncodeToString(sum.Sum(nil))[:hashLength] != want {
			t.Errorf("docs/images/%s.png is older than %s: %s, and look at it", picture, files, target)
		}
	}
	for _, image := range images {
		if name := strings.TrimSuffix(filepath.Base(image), ".png"); !drawn[name] {
			t.Errorf("%s has no line in %s", image, pictures)
		}
	}
	if len(images) != len(drawn) {
		t.Errorf("%d pictures, and %d lines in %s", len(images), len(drawn), pictures)
	}
}

// readTable returns the lines of a CSV file, the first of which has the names.
func readTable(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return lines
}

// TestBoardsAreMeasured: the table is of the boards as they are. It fails when a board
// has changed since it was drawn: its new pictures have to be looked at.
func TestBoardsAreMeasured(t *testing.T) {
	lines := readTable(t, measurements)
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
