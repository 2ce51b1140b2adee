// Package ratelog bounds log lines that others cause: devices, drivers, objects of users,
// files, clients whose TLS handshakes fail, and libraries that log each request. What is
// too much in a minute is left out, and counted in a line at its end.
package ratelog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// PerMinute is how many lines of a kind, or with one message, are written in a minute.
	PerMinute = 10
	// InTotal is how many lines Bound writes in a minute, beside the first one of each
	// message.
	InTotal = 100
	// maxMessages is how many messages Bound distinguishes in a minute. All others count as
	// one.
	maxMessages = 100
	window      = time.Minute
	// maxText is how many bytes of a text Limit writes, and maxOwnText Bound, whose lines
	// include the stack of a panic.
	maxText    = 1 << 10
	maxOwnText = 16 << 10
	// maxKey is how many bytes of a message, or of the attributes of a logger, distinguish
	// it from others.
	maxKey = 128
	// maxNamed is how many messages the line about dropped lines names.
	maxNamed = 5
)

// Bound returns a handler for all lines of a process. Of lines with the same message, from
// loggers with the same attributes (of With), it writes PerMinute lines a minute. Of all
// lines it writes InTotal a minute, and then only the first one with each message, so that
// a flood of some hides no others, up to 100 messages. Messages that differ only from their first digit on
// count as the same. Each text has at most 16 KiB. It is safe for concurrent use.
func Bound(next slog.Handler) slog.Handler {
	return &handler{next: next, limit: &limit{plain: next, most: InTotal, text: maxOwnText, messages: make(map[string]*lines)}}
}

// Limit returns a handler that writes to next no more than PerMinute lines a minute,
// each text of at most 1 KiB. The line with the number of dropped lines has the
// attribute kind. Handlers of With and WithGroup of a logger share the limit. It is
// safe for concurrent use.
func Limit(next slog.Handler, kind string) slog.Handler {
	return &handler{next: next, limit: &limit{plain: next, kind: kind, most: PerMinute, text: maxText, messages: make(map[string]*lines)}}
}

// Flush writes now how many lines were left out, for the end of a process. The logger is
// one of Bound or Limit.
func Flush(log *slog.Logger) {
	if h, ok := log.Handler().(*handler); ok {
		h.limit.end()
	}
}

type handler struct {
	next  slog.Handler
	limit *limit
	key   string // of the attributes
}

// limit is shared by the handlers of one kind, or of a process.
type limit struct {
	plain slog.Handler // without attributes
	kind  string       // of all lines; empty: messages are distinguished
	most  int          // lines in a window
	text  int          // bytes

	mu       sync.Mutex
	timer    *time.Timer // ends the present window; nil: there is none
	written  int         // in the present window
	messages map[string]*lines
}

// lines are those of one message in the present window.
type lines struct {
	written, dropped int
	worst            slog.Level // of the dropped ones
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle writes the record if it is one of the first of its minute.
func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	if !h.limit.allow(h.messageKey(record.Message), record.Level) {
		return nil
	}
	short := slog.NewRecord(record.Time, record.Level, truncate(record.Message, h.limit.text), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		short.AddAttrs(truncateAttr(attr, h.limit.text))
		return true
	})
	return h.next.Handle(ctx, short)
}

// WithAttrs returns a handler with the same limit.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	short, key := make([]slog.Attr, len(attrs)), h.key
	for i, attr := range attrs {
		short[i] = truncateAttr(attr, h.limit.text)
		if len(key) < maxKey {
			key += " " + shorten(short[i].String(), maxKey)
		}
	}
	return &handler{next: h.next.WithAttrs(short), limit: h.limit, key: key}
}

// WithGroup returns a handler with the same limit.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(name), limit: h.limit, key: h.key}
}

// messageKey returns what distinguishes a message from others: foreign ones contain
// addresses and numbers.
func (h *handler) messageKey(message string) string {
	if h.limit.kind != "" {
		return ""
	}
	if digit := strings.IndexAny(message, "0123456789"); digit > 0 {
		message = message[:digit]
	}
	return shorten(message, maxKey) + h.key
}

// allow counts a line and reports whether it may be written.
func (l *limit) allow(key string, level slog.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		l.timer = time.AfterFunc(window, l.end)
	}
	count, ok := l.messages[key]
	if !ok {
		if len(l.messages) >= maxMessages {
			key = "others"
		}
		if count, ok = l.messages[key]; !ok {
			count = &lines{}
			l.messages[key] = count
		}
	}
	if count.written < PerMinute && (l.written < l.most || count.written == 0) {
		count.written++
		l.written++
		return true
	}
	if count.dropped++; count.dropped == 1 || level > count.worst {
		count.worst = level
	}
	return false
}

// end ends a window, and writes the number of lines that were dropped in it.
func (l *limit) end() {
	l.mu.Lock()
	messages := l.messages
	l.messages, l.written = make(map[string]*lines), 0
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = nil
	l.mu.Unlock()
	dropped, worst := 0, slog.LevelDebug
	for _, count := range messages {
		if count.dropped > 0 {
			dropped, worst = dropped+count.dropped, max(worst, count.worst)
		}
	}
	if dropped == 0 {
		return
	}
	record := slog.NewRecord(time.Now(), worst, "log lines were dropped, because there were too many in a minute", 0) //nolint:forbidigo // the time of a line
	if l.kind != "" {
		record.AddAttrs(slog.String("kind", l.kind))
	} else {
		record.AddAttrs(slog.String("most", mostDropped(messages)))
	}
	record.AddAttrs(slog.Int("lines", dropped))
	_ = l.plain.Handle(context.Background(), record) // an error of the log cannot be logged
}

// mostDropped names the messages with the most dropped lines, with their numbers.
func mostDropped(messages map[string]*lines) string {
	keys := slices.SortedFunc(maps.Keys(messages), func(a, b string) int {
		return cmp.Or(cmp.Compare(messages[b].dropped, messages[a].dropped), strings.Compare(a, b))
	})
	var named []string
	for _, key := range keys[:min(len(keys), maxNamed)] {
		if messages[key].dropped > 0 {
			named = append(named, fmt.Sprintf("%d × %s", messages[key].dropped, key))
		}
	}
	return strings.Join(named, "; ")
}

func truncateAttr(attr slog.Attr, most int) slog.Attr {
	switch value := attr.Value.Resolve(); value.Kind() {
	case slog.KindString:
		return slog.String(attr.Key, truncate(value.String(), most))
	case slog.KindAny:
		// What is short keeps its form: JSON has lists.
		if text := fmt.Sprint(value.Any()); len(text) > most || !utf8.ValidString(text) {
			return slog.String(attr.Key, truncate(text, most))
		}
		return slog.Attr{Key: attr.Key, Value: value}
	case slog.KindGroup:
		var group []any
		for _, member := range value.Group() {
			group = append(group, truncateAttr(member, most))
		}
		return slog.Group(attr.Key, group...)
	default:
		return attr
	}
}

// truncate returns the beginning of a text, as valid UTF-8.
func truncate(text string, most int) string {
	short := shorten(text, most)
	if len(short) < len(text) {
		return strings.ToValidUTF8(short, "�") + "…"
	}
	return strings.ToValidUTF8(short, "�")
}

// shorten returns at most the given number of bytes of a text, without a part of a
// character at the end.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
