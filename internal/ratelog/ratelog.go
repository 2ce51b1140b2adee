// Package ratelog bounds log lines that others cause, such as clients whose TLS
// handshakes fail, and libraries that log each request. Of each kind, PerMinute lines
// are written in a minute, and then the number of dropped lines.
package ratelog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// PerMinute is how many lines of a kind are written in a minute.
	PerMinute = 10
	window    = time.Minute
	// maxText is how many bytes of a text are written.
	maxText = 1 << 10
)

// Limit returns a handler that writes to next no more than PerMinute lines a minute,
// each text of at most 1 KiB. The line with the number of dropped lines has the
// attribute kind. Handlers of With and WithGroup of a logger share the limit. It is
// safe for concurrent use.
func Limit(next slog.Handler, kind string) slog.Handler {
	return &handler{next: next, limit: &limit{plain: next, kind: kind, after: time.AfterFunc}}
}

type handler struct {
	next  slog.Handler
	limit *limit
}

// limit is shared by the handlers of one kind.
type limit struct {
	plain slog.Handler // without attributes
	kind  string
	after func(time.Duration, func()) *time.Timer

	mu      sync.Mutex
	written int // in the present window; 0: there is none
	dropped int // in the present window
	worst   slog.Level
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle writes the record if it is one of the first of its minute.
func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	if !h.limit.allow(record.Level) {
		return nil
	}
	short := slog.NewRecord(record.Time, record.Level, truncate(record.Message), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		short.AddAttrs(truncateAttr(attr))
		return true
	})
	return h.next.Handle(ctx, short)
}

// WithAttrs returns a handler with the same limit.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	short := make([]slog.Attr, len(attrs))
	for i, attr := range attrs {
		short[i] = truncateAttr(attr)
	}
	return &handler{next: h.next.WithAttrs(short), limit: h.limit}
}

// WithGroup returns a handler with the same limit.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(name), limit: h.limit}
}

// allow counts a line and reports whether it may be written.
func (l *limit) allow(level slog.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == 0 {
		l.after(window, l.end)
	}
	if l.written < PerMinute {
		l.written++
		return true
	}
	if l.dropped++; l.dropped == 1 || level > l.worst {
		l.worst = level
	}
	return false
}

// end ends a window, and writes the number of lines that were dropped in it.
func (l *limit) end() {
	l.mu.Lock()
	dropped, worst := l.dropped, l.worst
	l.written, l.dropped = 0, 0
	l.mu.Unlock()
	if dropped == 0 {
		return
	}
	record := slog.NewRecord(time.Now(), worst, "log lines were dropped, because there were too many in a minute", 0) //nolint:forbidigo // the time of a line
	record.AddAttrs(slog.String("kind", l.kind), slog.Int("lines", dropped))
	_ = l.plain.Handle(context.Background(), record) // an error of the log cannot be logged
}

func truncateAttr(attr slog.Attr) slog.Attr {
	switch value := attr.Value.Resolve(); value.Kind() {
	case slog.KindString:
		return slog.String(attr.Key, truncate(value.String()))
	case slog.KindAny:
		return slog.String(attr.Key, truncate(fmt.Sprint(value.Any())))
	case slog.KindGroup:
		var group []any
		for _, member := range value.Group() {
			group = append(group, truncateAttr(member))
		}
		return slog.Group(attr.Key, group...)
	default:
		return attr
	}
}

// truncate returns the beginning of a text, as valid UTF-8.
func truncate(text string) string {
	if len(text) <= maxText {
		return strings.ToValidUTF8(text, "�")
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "�") + "…"
}
