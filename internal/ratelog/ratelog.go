// Package ratelog bounds what is logged at the instigation of others: clients that
// cannot shake hands, libraries that complain about each request. Of each kind of
// line so many are written a minute, and then how many were left out.
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

// Limit returns a handler that writes to next no more than PerMinute lines a
// minute, each text of at most 1 KiB. kind is what the lines are about; what was
// left out is counted in a line that has it. The handlers that With and WithGroup
// of a logger make share the limit. It is safe for concurrent use.
func Limit(next slog.Handler, kind string) slog.Handler {
	return &handler{next: next, limit: &limit{plain: next, kind: kind, after: time.AfterFunc}}
}

type handler struct {
	next  slog.Handler
	limit *limit
}

// limit is what the handlers of one kind share.
type limit struct {
	plain slog.Handler // without attributes
	kind  string
	after func(time.Duration, func()) *time.Timer

	mu      sync.Mutex
	written int // in the present window; 0: there is none
	left    int // out
	worst   slog.Level
}

// Enabled is next's.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle writes the record if it is one of the first of its minute.
func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	if !h.limit.take(record.Level) {
		return nil
	}
	short := slog.NewRecord(record.Time, record.Level, cut(record.Message), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		short.AddAttrs(shortened(attr))
		return true
	})
	return h.next.Handle(ctx, short)
}

// WithAttrs is a handler of the same limit.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	short := make([]slog.Attr, len(attrs))
	for i, attr := range attrs {
		short[i] = shortened(attr)
	}
	return &handler{next: h.next.WithAttrs(short), limit: h.limit}
}

// WithGroup is a handler of the same limit.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(name), limit: h.limit}
}

// take reports whether one more line may be written.
func (l *limit) take(level slog.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == 0 {
		l.after(window, l.end)
	}
	if l.written < PerMinute {
		l.written++
		return true
	}
	if l.left++; l.left == 1 || level > l.worst {
		l.worst = level
	}
	return false
}

// end ends a window, and says what was left out in it.
func (l *limit) end() {
	l.mu.Lock()
	left, worst := l.left, l.worst
	l.written, l.left = 0, 0
	l.mu.Unlock()
	if left == 0 {
		return
	}
	record := slog.NewRecord(time.Now(), worst, "log lines were dropped, because there were too many in a minute", 0) //nolint:forbidigo // the time of a line
	record.AddAttrs(slog.String("kind", l.kind), slog.Int("lines", left))
	_ = l.plain.Handle(context.Background(), record) // there is nobody to tell that a log cannot be written
}

func shortened(attr slog.Attr) slog.Attr {
	switch value := attr.Value.Resolve(); value.Kind() {
	case slog.KindString:
		return slog.String(attr.Key, cut(value.String()))
	case slog.KindAny:
		return slog.String(attr.Key, cut(fmt.Sprint(value.Any())))
	case slog.KindGroup:
		var group []any
		for _, member := range value.Group() {
			group = append(group, shortened(member))
		}
		return slog.Group(attr.Key, group...)
	default:
		return attr
	}
}

// cut is the beginning of a text, as valid UTF-8.
func cut(text string) string {
	if len(text) <= maxText {
		return strings.ToValidUTF8(text, "�")
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "�") + "…"
}
