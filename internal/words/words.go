// Package words writes counts, lists, and numbers with their units for people, the same
// on the pages, in the commands and in reports. What a terminal has no room for has a
// short form beside it.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Count returns a number with its noun: "1 device", "2 devices".
func Count[N int | int64 | float64](n N, singular, plural string) string {
	return strconv.FormatFloat(float64(n), 'f', -1, 64) + " " + Plural(n, singular, plural)
}

// Plural returns the word for so many.
func Plural[N int | int64 | float64](n N, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}

// List returns the first names, and how many more there are: "a, b and 3 more".
func List(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Join returns all names as in a sentence: "a, b and c".
func Join(names []string, conjunction string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		return strings.Join(names[:len(names)-1], ", ") + " " + conjunction + " " + names[len(names)-1]
	}
}

// Names returns the name of each entry of a list, in its order.
func Names[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, entry := range list {
		names[i] = name(entry)
	}
	return names
}

// Fact is a fact with its label.
type Fact struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// Capital returns the text with its first letter in upper case.
func Capital(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// Sentence returns a text that begins in lower case as a sentence.
func Sentence(text string) string {
	text = Capital(text)
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// Number returns a number without trailing zeros.
func Number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Percent returns a ratio in percent.
func Percent(ratio float64) string { return fmt.Sprintf("%.0f%%", 100*ratio) }

// Watts returns a power.
func Watts(power float64) string {
	if math.Abs(power) < 10_000 {
		return fmt.Sprintf("%.0f W", power)
	}
	return scaled(power, 1000, 100, "W", "kW", "MW", "GW")
}

// Celsius returns a temperature.
func Celsius(temperature float64) string { return fmt.Sprintf("%.0f °C", temperature) }

// Bytes returns a size in the units that memory is sold in.
func Bytes(size float64) string {
	return scaled(size, 1024, 100, "B", "KiB", "MiB", "GiB", "TiB", "PiB")
}

// ShortBytes is Bytes for the cells of a terminal: two digits, "71G".
func ShortBytes(size float64) string {
	return strings.ReplaceAll(scaled(size, 1024, 9.95, "B", "K", "M", "G", "T", "P"), " ", "")
}

// Energy returns joules in the unit that electricity is sold in.
func Energy(joules float64) string {
	return scaled(joules/3600, 1000, 100, "Wh", "kWh", "MWh", "GWh")
}

// Money returns an amount with two decimals, or as many as two digits of a smaller one
// need.
func Money(amount float64, currency string) string {
	decimals := 2
	for rest := math.Abs(amount) * 100; amount != 0 && rest < 10 && decimals < 5; rest *= 10 {
		decimals++
	}
	return strconv.FormatFloat(amount, 'f', decimals, 64) + " " + currency
}

// scaled returns a value in the first unit that fits, with a decimal below a limit.
func scaled(value, step, limit float64, units ...string) string {
	unit := 0
	for math.Abs(value) >= step && unit < len(units)-1 {
		value /= step
		unit++
	}
	decimals := 0
	if value != math.Trunc(value) && math.Abs(value) < limit {
		decimals = 1
	}
	return strconv.FormatFloat(value, 'f', decimals, 64) + " " + units[unit]
}

// Seconds returns a number of seconds as a duration; more than fits as the longest one.
func Seconds(n float64) time.Duration {
	const most = float64(math.MaxInt64) / float64(time.Second)
	return time.Duration(min(max(n, 0), most-1) * float64(time.Second))
}

// Duration returns a time span with one or two units, as short as it is clear: what
// took less than 10 s has tenths.
func Duration(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return Age(d)
}

// Age is Duration without tenths, for what is known to the second.
func Age(d time.Duration) string {
	hours, minutes := int(d.Hours()), int(d.Minutes())
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%d min", minutes)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", hours, minutes%60)
	default:
		return fmt.Sprintf("%d d %d h", hours/24, hours%24)
	}
}

// ShortAge is Age for the cells of a terminal, as kubectl writes it: 42m, 3h12m, 9d03h.
func ShortAge(d time.Duration) string {
	hours, minutes := int(d.Hours()), int(d.Minutes())
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm", minutes)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", hours, minutes%60)
	case d < 1000*24*time.Hour:
		return fmt.Sprintf("%dd%02dh", hours/24, hours%24)
	default:
		return fmt.Sprintf("%dd", hours/24)
	}
}
