package logging_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/internal/logging"
)

// transcript is a buffer that several goroutines write to.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// take returns what was written since it was last called.
func (l *transcript) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// Of a flood ten lines are logged, and at the end of the minute how many were
// not, though nothing comes any more. The next minute begins again.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to transcript
		log := logging.Limit(slog.New(slog.NewTextHandler(&to, nil)), logging.TLS)
		var clients sync.WaitGroup
		for range 20 {
			clients.Go(func() {
				for range 100 {
					log.With("client", "10.0.0.1").Info("a handshake failed")
				}
			})
		}
		clients.Wait()
		log.Error("the worst of it")
		if n := strings.Count(to.take(), "\n"); n != 10 {
			t.Errorf("%d lines of a flood", n)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		const want = `level=ERROR msg="1991 more lines like these in the last minute were left out" kind=tls` + "\n"
		if got := to.take(); !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("after a minute %q, want %q", got, want)
		}
		log.Info("calm")
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := to.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "calm") {
			t.Errorf("afterwards %q", got)
		}
	})
}

// Kinds do not count for each other.
func TestKindsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to transcript
		base := slog.New(slog.NewTextHandler(&to, nil))
		tls, http := logging.Limit(base, logging.TLS), logging.Limit(base, logging.HTTP)
		for range 100 {
			tls.Info("tls")
		}
		http.Info("http")
		if got := to.take(); strings.Count(got, "\n") != 11 || !strings.Contains(got, "msg=http") {
			t.Errorf("%q", got)
		}
		time.Sleep(2 * time.Minute)
	})
}

// Foreign text cannot fill the log, end a line or move the cursor, wherever it
// stands.
func TestTextIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, text := range []string{strings.Repeat("a", 1<<20), strings.Repeat("\x1b[2J\u202e", 1<<16), strings.Repeat("\xff", 1<<16), strings.Repeat("ü", 1<<16)} {
			var to bytes.Buffer
			log := logging.Limit(slog.New(slog.NewJSONHandler(&to, nil)), logging.HTTP).With("with", text)
			log.Info(text, "text", text, "error", errors.New(text), slog.Group("group", "text", text))
			if n := to.Len(); n > 5*2*(logging.MaxText+100) || strings.ContainsAny(to.String(), "\x1b\u202e\xff") || !utf8.ValidString(to.String()) {
				t.Errorf("%.20q becomes %d bytes: %.300q", text, n, to.String())
			}
		}
		time.Sleep(2 * time.Minute)
	})
}

func TestPrintable(t *testing.T) {
	for given, want := range map[string]string{
		"":                                   "",
		"plain — größer":                     "plain — größer",
		"a\nb\tc\x1b[2J":                     `a\nb\tc\x1b[2J`,
		"\u202egpj.exe\x9b":                  `\u202egpj.exe\x9b`,
		"a \ufffd is itself":                 "a \ufffd is itself",
		strings.Repeat("ä", logging.MaxText): strings.Repeat("ä", logging.MaxText/2) + "… (2048 bytes)",
	} {
		if got := logging.Printable(given); got != want {
			t.Errorf("%.40q becomes %.80q, want %.80q", given, got, want)
		}
	}
}
