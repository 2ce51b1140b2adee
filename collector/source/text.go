package source

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is how many bytes of an error's text are kept, including the mark of a
// truncation.
const maxText = 1 << 10

const cutMark = "…"

// Text makes an error's text safe to log and show: at most 1 KiB of
// valid UTF-8. Lines become clauses; other control characters, and those that change the
// direction of text or cannot be seen, are written as escapes. It costs no more for a
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

// shown is the text of one character, whose bytes are raw.
func shown(r rune, raw string) string {
	switch {
	case r == '\n':
		return "; "
	case r == utf8.RuneError:
		return "\uFFFD"
	case !unicode.IsPrint(r):
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
	switch {
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	case r < 0x100:
		return `\x` + string(digits[r>>4]) + string(digits[r&15])
	}
	return `\u` + string(digits[r>>12&15]) + string(digits[r>>8&15]) + string(digits[r>>4&15]) + string(digits[r&15])
}

// describeKind is the part of a text that does not depend on objects, amounts and times:
// the words of letters alone. Equal clauses count once, however many objects there
// are.
func describeKind(text string) string {
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
