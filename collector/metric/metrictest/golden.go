package metrictest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//nolint:gochecknoglobals // go test parses its flags before any test runs
var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// CompareGolden fails the test if the text is not that of the golden file,
// and names the first line that differs. With -update it writes the file.
func CompareGolden(t testing.TB, path, text string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("make the folder of a golden file: %v", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatalf("write a golden file: %v", err)
		}
		return
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read a golden file (go test -update writes it): %v", err)
	}
	if string(golden) == text {
		return
	}
	want, got := strings.Split(string(golden), "\n"), strings.Split(text, "\n")
	for i := 0; i < max(len(want), len(got)); i++ {
		if w, g := line(want, i), line(got, i); w != g {
			t.Errorf("%s:%d differs\nwant %s\ngot  %s\nall of it:\n%s", path, i+1, w, g, text)
			return
		}
	}
}

func line(lines []string, i int) string {
	if i >= len(lines) {
		return "(nothing)"
	}
	return lines[i]
}
