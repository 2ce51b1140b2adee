package metrictest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// mostLines is how many lines of a difference are printed.
const mostLines = 10

// CompareGolden fails the test if the text is not that of the golden file. It prints
// the first lines that differ, and the command that writes the file. With -update it
// writes the file.
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
	test, _, _ := strings.Cut(t.Name(), "/")
	t.Errorf("%s:%s\nif this is as it should be: go test . -run '^%s$' -update", path, difference(strings.Split(string(golden), "\n"), strings.Split(text, "\n")), test)
}

// difference returns the number of the first line that differs, and the lines from
// there to the last that differs: those of want after a minus sign, those of got after
// a plus sign, not all of very many.
func difference(want, got []string) string {
	first, last := 0, 0 // lines that are equal, at the begin and at the end
	for first < min(len(want), len(got)) && want[first] == got[first] {
		first++
	}
	for last < min(len(want), len(got))-first && want[len(want)-1-last] == got[len(got)-1-last] {
		last++
	}
	var lines []string
	for i := first; i < len(want)-last; i++ {
		lines = append(lines, "-"+want[i])
	}
	removed := len(lines)
	for i := first; i < len(got)-last; i++ {
		lines = append(lines, "+"+got[i])
	}
	if more := len(lines) - mostLines; more > 0 {
		kept := min(removed, max(mostLines/2, mostLines-len(lines)+removed))
		lines = append(lines[:kept:kept], lines[removed:removed+mostLines-kept]...)
		lines = append(lines, fmt.Sprintf("and %d lines more", more))
	}
	return fmt.Sprintf("%d differs\n%s", first+1, strings.Join(lines, "\n"))
}
