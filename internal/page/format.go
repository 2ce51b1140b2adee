package page

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/words"
)

// absent is shown for unknown values.
const absent = "–"

// number shows a value that may be unknown.
func number(value *float64, show func(float64) string) string {
	if value == nil {
		return absent
	}
	return show(*value)
}

func percent(ratio *float64) string { return number(ratio, words.Percent) }

// whole shows a count.
func whole(count *float64) string { return number(count, words.Number) }

func size(bytes *float64) string { return number(bytes, words.Bytes) }

func money(amount *float64, currency string) string {
	return number(amount, func(v float64) string { return words.Money(v, currency) })
}

// seconds shows an accumulated time span.
func seconds(span *float64) string {
	return number(span, func(v float64) string { return words.Duration(words.Seconds(v)) })
}

// clockText shows a time of day.
func clockText(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

// exact writes a value as the exposition does, for programs that read the
// page; empty where it is unknown.
func exact(value *float64) string {
	if value == nil {
		return ""
	}
	return strconv.FormatFloat(*value, 'g', -1, 64)
}

// flag writes 1 or 0 for programs that read the page; empty: unknown.
func flag(value *bool) string {
	if value == nil {
		return ""
	}
	return map[bool]string{true: "1", false: "0"}[*value]
}

// share returns the part of a whole, as the width of a bar in percent; nil if
// either is unknown or the whole is nothing.
func share(part, whole *float64) *float64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	return new(min(max(*part / *whole, 0), 1))
}

// since is the time from then to at; false if then is not known.
func since(at, then time.Time) (time.Duration, bool) {
	return max(at.Sub(then), 0), !then.IsZero()
}

// plus returns the sum; nil if one of the two is unknown.
func plus(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// orPlus adds what is known.
func orPlus(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}

// first puts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// natural compares names so that gpu-2 comes before gpu-10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := countDigits(a), countDigits(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if order := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n), cmp.Compare(x, y)); order != 0 {
			return order
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

// countDigits is how many digits the text begins with.
func countDigits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }
