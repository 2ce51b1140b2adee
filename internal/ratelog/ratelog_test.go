package ratelog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// newFakeLog returns a limited log, its text, and a function that ends its window.
func newFakeLog() (log *slog.Logger, text *bytes.Buffer, end func()) {
	text = &bytes.Buffer{}
	limited := Limit(slog.NewTextHandler(text, nil), "tls").(*handler)
	var ends func()
	limited.limit.after = func(d time.Duration, f func()) *time.Timer {
		if d != time.Minute {
			panic(d)
		}
		ends = f
		return nil
	}
	return slog.New(limited), text, func() { ends() }
}

func TestTenLinesAMinute(t *testing.T) {
	log, text, end := newFakeLog()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for range 20 {
				log.With("address", i).WithGroup("client").Warn("TLS handshake error", "n", i)
			}
		})
	}
	all.Wait()
	if lines := strings.Count(text.String(), "\n"); lines != PerMinute {
		t.Fatalf("%d lines of 2000 are written", lines)
	}
	log.Error("worse")
	text.Reset()
	end()
	if line := text.String(); !strings.Contains(line, "kind=tls lines=1991") || !strings.Contains(line, "level=ERROR") || strings.Count(line, "\n") != 1 {
		t.Errorf("at the end of the minute the log has %q", line)
	}
	text.Reset()
	log.Info("again")
	if lines := strings.Count(text.String(), "\n"); lines != 1 {
		t.Errorf("in the next minute there are %d lines", lines)
	}
	text.Reset()
	end()
	if text.Len() > 0 {
		t.Errorf("a minute with few lines ends with %q", text)
	}
}

func TestLongTexts(t *testing.T) {
	log, text, _ := newFakeLog()
	long := strings.Repeat("ä", 1<<20)
	log.Warn(long, "text", long, "error", errors.New(long), slog.Group("of", "one", long), "bytes", []byte(long), "broken", "a\xffb", "number", 7)
	if text.Len() > 7*(maxText+100) {
		t.Errorf("a line has %d bytes", text.Len())
	}
	if !utf8.Valid(text.Bytes()) || !strings.Contains(text.String(), "number=7") {
		t.Errorf("the line is %.200q", text)
	}
	for size := maxText - 3; size < maxText+3; size++ {
		if short := truncate(strings.Repeat("x", size) + "äöü"); !utf8.ValidString(short) || len(short) > maxText+len("…") {
			t.Errorf("%d bytes become %d: %q", size, len(short), short[len(short)-8:])
		}
	}
}

func TestWindowEndsByItself(t *testing.T) {
	limited := Limit(slog.NewTextHandler(&bytes.Buffer{}, nil), "tls").(*handler)
	ended := make(chan string, 1)
	limited.limit.after = func(_ time.Duration, f func()) *time.Timer {
		return time.AfterFunc(0, func() { f(); ended <- fmt.Sprint(limited.limit.dropped) })
	}
	slog.New(limited).Info("one")
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the window does not end")
	}
}
