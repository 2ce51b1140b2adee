package page

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
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

func percent(ratio *float64) string {
	return number(ratio, func(v float64) string { return fmt.Sprintf("%.0f%%", v*100) })
}

// whole shows a count.
func whole(count *float64) string {
	return number(count, func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) })
}

func watts(power *float64) string {
	return number(power, func(v float64) string { return fmt.Sprintf("%.0f W", v) })
}

func celsius(temperature *float64) string {
	return number(temperature, func(v float64) string { return fmt.Sprintf("%.0f °C", v) })
}

// clockText shows a time of day.
func clockText(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

// size shows bytes in the units that memory is sold in.
func size(bytes *float64) string {
	return number(bytes, func(v float64) string { return scaled(v, 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB") })
}

// energy shows joules in the unit that electricity is sold in.
func energy(joules *float64) string {
	return number(joules, func(v float64) string { return scaled(v/3600, 1000, "Wh", "kWh", "MWh", "GWh") })
}

// money shows an amount with two decimals, or as many as two digits of a
// smaller one need.
func money(amount *float64, currency string) string {
	return number(amount, func(v float64) string {
		decimals := 2
		for rest := math.Abs(v) * 100; v != 0 && rest < 10 && decimals < 5; rest *= 10 {
			decimals++
		}
		return strconv.FormatFloat(v, 'f', decimals, 64) + " " + currency
	})
}

// scaled shows a value with three digits in the first unit that fits.
func scaled(v, step float64, units ...string) string {
	unit := 0
	for math.Abs(v) >= step && unit < len(units)-1 {
		v /= step
		unit++
	}
	decimals := 0
	if v != math.Trunc(v) && math.Abs(v) < 100 {
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + " " + units[unit]
}

// seconds shows an accumulated time span.
func seconds(span *float64) string {
	return number(span, func(v float64) string { return duration(time.Duration(v * float64(time.Second))) })
}

// duration shows a time span with one or two units, as short as it is clear.
func duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", math.Floor(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
	}
}

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
	switch {
	case value == nil:
		return ""
	case *value:
		return "1"
	default:
		return "0"
	}
}

// share returns the part of a whole, as the width of a bar in percent; nil if
// either is unknown or the whole is nothing.
func share(part, whole *float64) *float64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	ratio := min(max(*part / *whole, 0), 1)
	return &ratio
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
	sum := *a + *b
	return &sum
}

// orPlus adds what is known.
func orPlus(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := *a + *b
	return &sum
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

// sentence makes a sentence of a text that begins in lower case.
func sentence(text string) string {
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
