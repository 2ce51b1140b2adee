package explain

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Commands stay on one line, so that they can be copied; a command that is too
// long for any line is broken like other text.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"a  b ":                                "a|b",
		"see `kubectl get x -o yaml`:":         "see|`kubectl get x -o yaml`:",
		"(`a b`), c":                           "(`a b`),|c",
		"one ` alone":                          "one|`|alone",
		"`" + strings.Repeat("x ", 60) + "` y": "`x" + strings.Repeat("|x", 59) + "|`|y",
	} {
		if got := strings.Join(splitWords(text), "|"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// For any text, no line moves the cursor, none is too wide except for a single
// long word, and no word is lost.
func FuzzPrinter(f *testing.F) {
	f.Add("plain words", 4)
	f.Add("\x1b[31mred\x07 `a b` \u202e\xff", 0)
	f.Add(strings.Repeat("long ", 80)+strings.Repeat("x", 300), 12)
	f.Fuzz(func(t *testing.T, text string, indent int) {
		indent = min(max(indent, 0), 40)
		p := &printer{}
		p.item(indent, "-", text)
		var kept []string
		for line := range strings.Lines(p.text.String()) {
			line = strings.TrimSuffix(line, "\n")
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != unicode.ReplacementChar }) {
				t.Errorf("not printable: %q", line)
			}
			if utf8.RuneCountInString(line) > width && len(splitWords(strings.TrimPrefix(strings.TrimLeft(line, " "), "- "))) > 1 {
				t.Errorf("too wide: %q", line)
			}
			kept = append(kept, strings.Fields(line)...)
		}
		want := append([]string{"-"}, strings.Fields(terminal.Printable(text))...)
		if strings.Join(kept, " ") != strings.Join(want, " ") {
			t.Errorf("%q became %q", want, kept)
		}
	})
}

// TestMarksAndCells: names are marks of items and cells of tables, too.
func TestMarksAndCells(t *testing.T) {
	const name = "x\x1b[2J\u202e\nforged: 1"
	p := &printer{}
	p.item(2, name, "text")
	p.table(2, [][]string{{name, name}, {"a", name}}, 1)
	p.table(2, [][]string{{name}})
	text := p.text.String()
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) || strings.Contains(text, "\nforged") {
		t.Errorf("%+q", text)
	}
}

func TestSpan(t *testing.T) {
	for _, test := range []struct {
		seconds int64
		want    string
	}{{-5, "0 s"}, {0, "0 s"}, {119, "119 s"}, {120, "2 min"}, {3599, "59 min"}, {3600, "1 h 0 min"}, {90061, "1 d 1 h"}} {
		if got := words.Age(time.Duration(test.seconds) * time.Second); got != test.want {
			t.Errorf("%d seconds: %s, want %s", test.seconds, got, test.want)
		}
	}
}
