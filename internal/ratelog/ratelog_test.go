package ratelog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// logText is the text of a log, to which several goroutines write.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *logText) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(line)
}

func (t *logText) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

func (t *logText) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Reset()
}

// newLog returns a log that is limited by a handler, and its text.
func newLog(limit func(slog.Handler) slog.Handler) (*slog.Logger, *logText) {
	text := &logText{}
	return slog.New(limit(slog.NewTextHandler(text, nil))), text
}

func limitTLS(next slog.Handler) slog.Handler { return Limit(next, "tls") }

// take returns the lines of the log so far, and empties it.
func take(text *logText) []string {
	defer text.Reset()
	return slices.Collect(strings.Lines(text.String()))
}

func TestTenLinesAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := newLog(limitTLS)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				for range 20 {
					log.With("address", i).WithGroup("client").Warn("TLS handshake error", "n", i)
				}
			})
		}
		all.Wait()
		if lines := take(text); len(lines) != PerMinute {
			t.Fatalf("%d lines of 2000 are written", len(lines))
		}
		log.Error("worse")
		time.Sleep(window)
		synctest.Wait()
		if lines := take(text); len(lines) != 1 || !strings.Contains(lines[0], "kind=tls lines=1991") || !strings.Contains(lines[0], "level=ERROR") {
			t.Errorf("at the end of the minute the log has %q", lines)
		}
		log.Info("again")
		if lines := take(text); len(lines) != 1 {
			t.Errorf("in the next minute there are %d lines", len(lines))
		}
		time.Sleep(window)
		synctest.Wait()
		if lines := take(text); len(lines) > 0 {
			t.Errorf("a minute with few lines ends with %q", lines)
		}
	})
}

// TestBoundOfAProcess floods a log in several ways, and checks how much is written, that
// each message is written once at least, and that all that is left out is counted.
func TestBoundOfAProcess(t *testing.T) {
	for name, c := range map[string]struct {
		flood   func(log *slog.Logger) // logs 10,000 lines
		written int
		most    string // in the line about the others
	}{
		"one message": {func(log *slog.Logger) {
			for i := range 10_000 {
				log.Warn("device is not healthy any more", "uuid", i)
			}
		}, PerMinute, `9990 × device is not healthy any more`},
		"a message with foreign text": {func(log *slog.Logger) {
			for i := range 10_000 {
				log.Warn(fmt.Sprintf("panic serving 10.0.0.%d:%d", i%256, i))
			}
		}, PerMinute, `9990 × panic serving `},
		"many components": {func(log *slog.Logger) {
			for i := range 10_000 {
				log.With("component", fmt.Sprint("c", i%50)).Warn("source is down")
			}
		}, InTotal, `198 × source is down component=c0`},
		"more messages than are distinguished": {func(log *slog.Logger) {
			for i := range 10_000 {
				log.Warn(strings.Repeat("x", i%500+1))
			}
		}, maxMessages + 1, `× others`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, text := newLog(Bound)
				for range 3 { // minutes
					c.flood(log)
					log.Error("something else fails")
					lines := take(text)
					if others := c.written == maxMessages+1; !others && !strings.Contains(lines[len(lines)-1], "something else fails") {
						t.Errorf("the flood hides another message: the last line is %q", lines[len(lines)-1])
					}
					if len(lines) < c.written || len(lines) > c.written+PerMinute {
						t.Errorf("%d lines are written, want %d", len(lines), c.written)
					}
					written := len(lines)
					time.Sleep(window)
					synctest.Wait()
					lines = take(text)
					if len(lines) != 1 || !strings.Contains(lines[0], fmt.Sprint(" lines=", 10_001-written)) || !strings.Contains(lines[0], c.most) || len(lines[0]) > 1<<11 {
						t.Errorf("after %d lines the minute ends with %q", written, lines)
					}
				}
			})
		})
	}
}

// TestFlush checks that what was left out is said at the end of a process.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := newLog(Bound)
		for range 100 {
			log.Info("event")
		}
		take(text)
		Flush(log.With("role", "node"))
		if lines := take(text); len(lines) != 1 || !strings.Contains(lines[0], "lines=90") {
			t.Errorf("at the end the log has %q", lines)
		}
		time.Sleep(2 * window)
		synctest.Wait()
		if lines := take(text); len(lines) > 0 {
			t.Errorf("after the end the log has %q", lines)
		}
		Flush(slog.New(slog.DiscardHandler))
	})
}

// TestFormOfValues checks that a bounded log writes values as the handler below it does.
func TestFormOfValues(t *testing.T) {
	var plain, bounded bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
		if attr.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return attr
	}}
	for _, log := range []*slog.Logger{slog.New(slog.NewJSONHandler(&plain, options)), slog.New(Bound(slog.NewJSONHandler(&bounded, options)))} {
		log.Info("text", "list", []string{"a", "b"}, "error", errors.New("broken"), "after", time.Second, slog.Group("group", "n", 1))
	}
	if plain.String() != bounded.String() {
		t.Errorf("got %s, want %s", bounded.String(), plain.String())
	}
}

func TestLongTexts(t *testing.T) {
	log, text := newLog(limitTLS)
	long := strings.Repeat("ä", 1<<20)
	log.Warn(long, "text", long, "error", errors.New(long), slog.Group("of", "one", long), "bytes", []byte(long), "broken", "a\xffb", "number", 7)
	if len(text.String()) > 7*(maxText+100) {
		t.Errorf("a line has %d bytes", len(text.String()))
	}
	if !utf8.Valid([]byte(text.String())) || !strings.Contains(text.String(), "number=7") {
		t.Errorf("the line is %.200q", text)
	}
	for size := maxText - 3; size < maxText+3; size++ {
		if short := truncate(strings.Repeat("x", size)+"äöü", maxText); !utf8.ValidString(short) || len(short) > maxText+len("…") {
			t.Errorf("%d bytes become %d: %q", size, len(short), short[len(short)-8:])
		}
	}
}
