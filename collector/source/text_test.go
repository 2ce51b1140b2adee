package source_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"list pods: forbidden":       "list pods: forbidden",
		"one\ntwo\r\n\tthree\n":      "one; two\\r; three",
		"\x1b[2Jcleared\x07\x00\x7f": `\x1b[2Jcleared\x07\x00\x7f`,
		"a\tb":                       `a\tb`,
		"\u202egnp.exe":              `\u202egnp.exe`,
		"\u0085next":                 `\x85next`,
		"\u200b\u2028\ufeffseen":     `\u200b\u2028\ufeffseen`,
		"a\u00adb\u00a0c\U000e0041":  `a\xadb\xa0c\U000e0041`,
		"bad \xff byte":              "bad \uFFFD byte",
		"größer als 64 MiB":          "größer als 64 MiB",
		strings.Repeat("x", 1024):    strings.Repeat("x", 1024),
		strings.Repeat("x", 1025):    strings.Repeat("x", 1021) + "…",
		strings.Repeat("é", 600):     strings.Repeat("é", 510) + "…",
	} {
		if got := source.Text(text); got != want {
			t.Errorf("%.40q becomes %.60q (%d bytes), want %.60q", text, got, len(got), want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "\x1b[31m", strings.Repeat("\n", 3000), strings.Repeat("\xff", 2000), strings.Repeat("\u202e", 700)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := source.Text(text)
		if len(got) > 1024 || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00\x1b\u202e") || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", got)
		}
		if again := source.Text(got); again != got {
			t.Errorf("%q becomes %q when it is done again", got, again)
		}
	})
}

// A text of 64 MiB takes no more than its 1 KiB, in the status and in the log.
func TestTrackerCutsTexts(t *testing.T) {
	var log bytes.Buffer
	now := func() clock.Instant { return clock.Instant{Elapsed: time.Hour} }
	tracker := source.NewTracker("pods", slog.New(slog.NewTextHandler(&log, nil)), now, nil)
	tracker.Report(errors.New(strings.Repeat("A", 64<<20)))
	if got := tracker.Status().Message; len(got) > 1024 || !strings.HasSuffix(got, "…") {
		t.Errorf("the status has %d bytes", len(got))
	}
	if log.Len() > 1300 {
		t.Errorf("the log has %d bytes", log.Len())
	}
}

// One reason can mean several things: each is logged when it is new, however
// often the texts change to and fro, and with whatever names in them.
func TestTrackerLogsMeanings(t *testing.T) {
	var log bytes.Buffer
	now := clock.Instant{Wall: time.Unix(1000, 0), Elapsed: time.Hour}
	tracker := source.NewTracker("pods", slog.New(slog.NewTextHandler(&log, nil)), func() clock.Instant { return now }, nil)
	exhausted := func(text string, args ...any) error {
		return &source.Failure{Reason: source.ReasonResourceExhausted, Err: fmt.Errorf(text, args...)}
	}
	report := func(what string, lines int, errs ...error) {
		t.Helper()
		log.Reset()
		for _, err := range errs {
			now = now.Add(time.Second)
			tracker.Report(err)
		}
		if got := strings.Count(log.String(), "\n"); got != lines {
			t.Errorf("%s: %d lines, want %d:\n%s", what, got, lines, log.String())
		}
	}
	busy, large := exhausted("the server asks for patience"), exhausted("the answer is larger than 32 MiB")
	report("down", 1, busy)
	report("the same reason with another meaning", 1, large)
	report("the same meaning with another amount and name", 0,
		exhausted("the answer is larger than 31 MiB"), exhausted("the answer is larger than 32 MiB: a/b-1"))
	var many []error
	for range 100 {
		many = append(many, busy, large)
	}
	report("to and fro", 0, many...)
	for range 35 {
		many = append(many[:0:0], busy, busy)
		now = now.Add(time.Second)
		tracker.Report(busy)
	}
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("what stays is logged again: %d lines, want 1:\n%s", got, log.String())
	}
	many = nil
	for i := range 100 {
		many = append(many, exhausted("%s is exhausted", strings.Repeat("a", i+1)))
	}
	report("a hundred meanings", 6, many...)
}
