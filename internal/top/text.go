package top

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/internal/words"
)

// clean replaces characters of foreign text that a terminal does not show in
// one column: white space becomes a blank, and whatever is no letter of a
// script that is written so, no currency and not ASCII becomes a question mark.
// Nothing can move the cursor, change colours or turn the direction of the
// line.
func clean(text string) string {
	harmless := func(r rune) bool { return r >= ' ' && r < 0x7f }
	if strings.IndexFunc(text, func(r rune) bool { return !harmless(r) }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case harmless(r):
			return r
		case r == utf8.RuneError || r >= 0x3000: // full-width forms of letters lie there
			return '?'
		case unicode.IsSpace(r) && r != 0x85:
			return ' '
		case unicode.Is(unicode.Sc, r), r == '°', r == 'µ', r == '·', r == '–', r == '…':
			return r
		case unicode.IsLetter(r) && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic):
			return r
		default:
			return '?'
		}
	}, text)
}

// Glyphs are the characters of the table.
type Glyphs struct {
	Absent string // for unknown values
	Cut    string // where text was cut off
	Blocks []rune // parts of a bar's cell, from almost empty to full
	Levels []rune // likewise, of a graph's cell
}

// unicodeGlyphs is for terminals that can show more than ASCII.
func unicodeGlyphs() Glyphs {
	return Glyphs{"–", "…", []rune("▏▎▍▌▋▊▉█"), []rune("▁▂▃▄▅▆▇█")}
}

// asciiGlyphs is for other terminals.
func asciiGlyphs() Glyphs { return Glyphs{"-", "~", []rune("#"), []rune("#")} }

// width is how many columns clean text takes.
func width(text string) int { return utf8.RuneCountInString(text) }

// cut shortens clean text to a number of columns.
func (g Glyphs) cut(text string, columns int) string {
	if width(text) <= columns {
		return text
	}
	if columns <= 0 {
		return ""
	}
	return string([]rune(text)[:columns-1]) + g.Cut
}

// fit cuts or pads clean text to this width.
func (g Glyphs) fit(text string, columns int, right bool) string {
	text = g.cut(text, columns)
	blanks := strings.Repeat(" ", max(columns-width(text), 0))
	if right {
		return blanks + text
	}
	return text + blanks
}

// bar draws a ratio in so many columns. What is busy at all is seen to be.
func (g Glyphs) bar(ratio float64, columns int) string {
	if math.IsNaN(ratio) {
		ratio = 0
	}
	ratio = min(max(ratio, 0), 1)
	steps := len(g.Blocks)
	filled := int(math.Round(ratio * float64(columns*steps)))
	if filled == 0 && ratio > 0 {
		filled = 1
	}
	drawn := strings.Repeat(string(g.Blocks[steps-1]), filled/steps)
	if rest := filled % steps; rest > 0 {
		drawn += string(g.Blocks[rest-1])
	}
	return g.fit(drawn, columns, false)
}

// number shows a value that may be unknown.
func (g Glyphs) number(value *float64, show func(float64) string) string {
	if value == nil || math.IsNaN(*value) || math.IsInf(*value, 0) {
		return g.Absent
	}
	return show(*value)
}

// deviceTitle is a profile, of partitions, and a model without its vendor: the
// end is what is cut off.
func deviceTitle(model, profile string) string {
	for _, vendor := range []string{"NVIDIA ", "AMD ", "Intel "} {
		model = strings.TrimPrefix(model, vendor)
	}
	return strings.TrimSpace(profile + " " + model)
}

// shortAge shows a number of seconds in a cell.
func shortAge(seconds float64) string { return words.ShortAge(words.Seconds(seconds)) }

// ageText shows a number of seconds elsewhere.
func ageText(seconds float64) string { return words.Age(words.Seconds(seconds)) }
