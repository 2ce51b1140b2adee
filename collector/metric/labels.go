package metric

import (
	"strings"

	"github.com/prometheus/common/model"
)

// BundleMark is a part of the uuid of a bundle, which several devices of a claim have,
// and of no other uuid.
const BundleMark = "/claim:"

// Labels is a set of label names and values that rows share. It is immutable
// and is made once for as long as its object exists, not once a page. It keeps
// nothing but its text, because there may be a million of them.
type Labels struct {
	// text has all labels as they appear on a page, sorted by name:
	// name="value",name="value". Both text formats escape in the same way.
	text    string
	escaped bool // there are backslashes in text
	legacy  bool // all names have the character set that every format can show
}

// NewLabels pairs names with values; both have the same length. Values come
// from drivers, pods and libraries, so they are bounded, see Bounded.
func NewLabels(names []string, values ...string) *Labels {
	if len(names) != len(values) {
		panic("metric: as many values as names are needed")
	}
	const usual = 24 // the arrays of so many are not allocated, nor texts of half a kilobyte
	order, bounded, text := make([]int, 0, usual), make([]string, 0, usual), make([]byte, 0, 512)
	for i, name := range names {
		at := i
		for at > 0 && names[order[at-1]] > name {
			at--
		}
		order = append(order, 0)
		copy(order[at+1:], order[at:])
		order[at] = i
		bounded = append(bounded, Bounded(values[i]))
	}
	labels := &Labels{legacy: true}
	for n, i := range order {
		if n > 0 {
			text = append(text, ',')
		}
		if isLegacy(names[i]) {
			text = append(text, names[i]...)
		} else {
			labels.legacy = false
			text = append(appendEscaped(append(text, '"'), names[i], true), '"')
		}
		text = append(appendEscaped(append(text, `="`...), bounded[i], true), '"')
	}
	labels.text = string(text)
	labels.escaped = strings.IndexByte(labels.text, '\\') >= 0
	return labels
}

// isLegacy reports whether a name is shown without quotes, and is not escaped
// for clients that do not accept UTF-8 in names.
func isLegacy(name string) bool {
	return model.LegacyValidation.IsValidMetricName(name) && name != model.MetricNameLabel
}

// appendEscaped appends a text as both text formats escape label values; HELP of
// the text format is without the escapes of quotes.
func appendEscaped(buffer []byte, text string, quotes bool) []byte {
	start := 0
	for i := range len(text) {
		var escaped byte
		switch c := text[i]; {
		case c == '\\':
			escaped = '\\'
		case c == '\n':
			escaped = 'n'
		case c == '"' && quotes:
			escaped = '"'
		default:
			continue
		}
		buffer = append(append(buffer, text[start:i]...), '\\', escaped)
		start = i + 1
	}
	return append(buffer, text[start:]...)
}

// Get returns the value of the named label, empty if there is none.
func (l *Labels) Get(name string) string {
	for candidate, value := range l.raw {
		if candidate == name {
			return unescaped(value)
		}
	}
	return ""
}

// Each calls yield with every name and value, sorted by name.
func (l *Labels) Each(yield func(name, value string) bool) {
	for name, value := range l.raw {
		if !yield(name, unescaped(value)) {
			return
		}
	}
}

// raw calls yield with every name, and its value as it is in the text.
func (l *Labels) raw(yield func(name, escaped string) bool) {
	for rest := l.text; rest != ""; {
		var name, value string
		if rest[0] == '"' {
			end := l.quoteEnd(rest[1:])
			name, rest = unescaped(rest[1:1+end]), rest[1+end+len(`"="`):]
		} else {
			end := strings.IndexByte(rest, '=')
			name, rest = rest[:end], rest[end+len(`="`):]
		}
		end := l.quoteEnd(rest)
		value, rest = rest[:end], rest[end+1:]
		if !yield(name, value) {
			return
		}
		if rest != "" {
			rest = rest[1:] // the comma
		}
	}
}

// quoteEnd returns where the quote ends that began before the text.
func (l *Labels) quoteEnd(text string) int {
	if !l.escaped {
		return strings.IndexByte(text, '"')
	}
	end := 0
	for text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	return end
}

// unescaped reverses appendEscaped.
func unescaped(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' {
			i++
			if c = text[i]; c == 'n' {
				c = '\n'
			}
		}
		plain = append(plain, c)
	}
	return string(plain)
}
