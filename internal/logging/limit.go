// Package logging limits what clients, servers and libraries can make the
// exporter log: how many lines, and how much of their text in each.
package logging

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is what lines are counted by. There are few, so that what is kept is
// bounded.
type Kind string

// The kinds.
const (
	TLS        Kind = "tls"               // handshakes that fail
	HTTP       Kind = "http"              // other errors of the web server
	Hosts      Kind = "hosts"             // requests by host names that are not allowed
	Passwords  Kind = "passwords"         // clients that guess
	WebConfig  Kind = "web_config"        // the exporter-toolkit: its file, its listeners
	Kubernetes Kind = "kubernetes_client" // client-go
)

const (
	linesPerWindow = 10
	window         = time.Minute
	// MaxText is how much of a foreign text is logged, in bytes.
	MaxText = 1024
)

// Limit returns a logger that passes on ten lines a minute, and at the end of a
// minute how many were left out. Texts are cut to MaxText bytes, and characters
// that are not printed are escaped. It is safe for concurrent use.
func Limit(log *slog.Logger, kind Kind) *slog.Logger {
	return slog.New(&limited{next: log.Handler(), lines: &lines{kind: kind, next: log.Handler()}})
}

// limited is a handler; those that are derived from it share its lines.
type limited struct {
	next  slog.Handler
	lines *lines
}

func (l *limited) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	safe := make([]slog.Attr, len(attrs))
	for i, attr := range attrs {
		safe[i] = printable(attr)
	}
	return &limited{next: l.next.WithAttrs(safe), lines: l.lines}
}

func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{next: l.next.WithGroup(name), lines: l.lines}
}

func (l *limited) Handle(ctx context.Context, record slog.Record) error {
	if !l.lines.pass(record.Level) {
		return nil
	}
	safe := slog.NewRecord(record.Time, record.Level, Printable(record.Message), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		safe.AddAttrs(printable(attr))
		return true
	})
	return l.next.Handle(ctx, safe)
}

// lines counts those of one kind.
type lines struct {
	kind Kind
	next slog.Handler

	mu      sync.Mutex
	open    bool // a window is open: it began with its first line and ends by a timer
	passed  int
	leftOut int
	level   slog.Level // the highest of those that were left out
}

// pass reports whether a line is within the limit, and counts it.
func (l *lines) pass(level slog.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		l.open, l.passed, l.leftOut = true, 0, 0
		time.AfterFunc(window, l.end)
	}
	if l.passed < linesPerWindow {
		l.passed++
		return true
	}
	if l.leftOut++; l.leftOut == 1 || level > l.level {
		l.level = level
	}
	return false
}

// end closes the window and says what it left out.
func (l *lines) end() {
	l.mu.Lock()
	leftOut, level := l.leftOut, l.level
	l.open = false
	l.mu.Unlock()
	if leftOut > 0 {
		slog.New(l.next).Log(context.Background(), level, fmt.Sprintf("%d more lines like these in the last minute were left out", leftOut), "kind", string(l.kind))
	}
}

// printable is the attribute with its text cut and escaped.
func printable(attr slog.Attr) slog.Attr {
	value := attr.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		attr.Value = slog.StringValue(Printable(value.String()))
	case slog.KindAny:
		attr.Value = slog.StringValue(Printable(fmt.Sprint(value.Any())))
	case slog.KindGroup:
		members := value.Group()
		safe := make([]slog.Attr, len(members))
		for i, member := range members {
			safe[i] = printable(member)
		}
		attr.Value = slog.GroupValue(safe...)
	default:
		attr.Value = value
	}
	return attr
}

// Printable writes characters that are not printed as Go's source code does
// (\x1b, \n, \u202e), and cuts what is longer than MaxText bytes.
func Printable(text string) string {
	whole := len(text)
	text = text[:min(whole, MaxText)] // before it is escaped, as it may be large
	if strings.IndexFunc(text, special) >= 0 || !utf8.ValidString(text) {
		text = escaped(text)
	}
	if whole <= MaxText && len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:min(len(text), MaxText)], "") + fmt.Sprintf("… (%d bytes)", whole)
}

func special(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

func escaped(text string) string {
	var to strings.Builder
	for i, r := range text {
		switch size := utf8.RuneLen(r); {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&to, `\x%02x`, text[i])
		case special(r):
			quoted := strconv.QuoteRune(r)
			to.WriteString(quoted[1 : len(quoted)-1])
		default:
			to.WriteString(text[i : i+size])
		}
	}
	return to.String()
}
