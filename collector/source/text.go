package source

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is how many bytes of an error's text are kept, the mark of what was
// cut included.
const maxText = 1 << 10

const cutMark = "…"

// Text makes an error's text fit to be logged and shown: at most 1 KiB of
// valid UTF-8. Lines become clauses; other control characters, and those that
// change the direction of text, are written as escapes. It costs no more for a
// text of any length than for one of 1 KiB.
func Text(text string) string {
	var b strings.Builder
	fits := 0 // how much of it leaves room for the mark
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		piece := shown(r, rest[:size])
		if rest = rest[size:]; r == '\n' {
			if rest = strings.TrimLeft(rest, "\r\n\t "); rest == "" {
				break
			}
		}
		if b.Len()+len(piece) > maxText {
			return b.String()[:fits] + cutMark
		}
		b.WriteString(piece)
		if b.Len() <= maxText-len(cutMark) {
			fits = b.Len()
		}
	}
	return b.String()
}

// shown is how one character, which is given as its bytes too, is written.
func shown(r rune, raw string) string {
	switch {
	case r == '\n':
		return "; "
	case r == utf8.RuneError:
		return "\uFFFD"
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return escaped(r)
	default:
		return raw
	}
}

func escaped(r rune) string {
	switch r {
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	const digits = "0123456789abcdef"
	if r < 0x100 {
		return `\x` + string(digits[r>>4]) + string(digits[r&15])
	}
	return `\u` + string(digits[r>>12&15]) + string(digits[r>>8&15]) + string(digits[r>>4&15]) + string(digits[r&15])
}

// kindOf returns the common part of texts that differ only in objects, amounts
// and times: the words that are letters alone. Clauses that say the same count
// once, however many objects there are.
func kindOf(text string) string {
	var kinds []string
	for clause := range strings.SplitSeq(text, "; ") {
		if kind := kindOfClause(clause); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, "; ")
}

func kindOfClause(clause string) string {
	words := strings.FieldsFunc(clause, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",()", r) })
	kept := words[:0]
	for _, word := range words {
		word = strings.TrimRight(word, ".:!?")
		if word != "" && strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) < 0 {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}
