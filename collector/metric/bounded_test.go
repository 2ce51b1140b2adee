package metric_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

const longest = metric.MaxValue

func labelled(value string) string { return metric.NewLabels([]string{"model"}, value).Get("model") }

// A value of any length and of any bytes becomes a label value that is bounded
// and valid, and those that differ go on doing so.
func TestValuesAreBounded(t *testing.T) {
	for name, value := range map[string]string{
		"as long as may be":     strings.Repeat("x", longest),
		"one byte too long":     strings.Repeat("x", longest+1),
		"a mebibyte":            strings.Repeat("x", 1<<20),
		"wide characters":       strings.Repeat("€", 1<<18),
		"nothing but bad bytes": strings.Repeat("\xff", 1<<20),
		"bad bytes, each alone": strings.Repeat("a\xff", longest/2),
		"continuations alone":   strings.Repeat("\x80", 1<<12),
	} {
		got := labelled(value)
		if len(got) > longest || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, valid %v", name, len(got), utf8.ValidString(got))
		}
		whole := strings.ToValidUTF8(value, "\uFFFD")
		if len(whole) <= longest && got != whole {
			t.Errorf("%s: it fits and is changed to %q", name, got)
		}
		if len(whole) > longest && got == labelled(value+"x") {
			t.Errorf("%s: two values became one", name)
		}
	}
}

func FuzzBounded(f *testing.F) {
	for _, piece := range []string{"x", "€", "\xff", "\xe2\x82", "\x00\n", ""} {
		f.Add(piece, uint16(longest))
	}
	f.Fuzz(func(t *testing.T, piece string, times uint16) {
		if len(piece) > 64 {
			t.Skip("pieces of any length come by repetition")
		}
		got := labelled(strings.Repeat(piece, int(times)))
		if len(got) > longest || !utf8.ValidString(got) {
			t.Errorf("%q %d times: %d bytes, valid %v", piece, times, len(got), utf8.ValidString(got))
		}
	})
}
