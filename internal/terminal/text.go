package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON escapes as \u the invisible characters that encoding/json does not escape:
// DEL, C1 control characters, marks of direction, and characters without width. Only
// strings contain them, so the document is equivalent. Text without any is returned
// unchanged.
func EscapeJSON(text []byte) []byte {
	return rewrite(text, func(r rune) bool { return r < utf8.RuneSelf && r != 0x7f || unicode.IsPrint(r) }, appendEscape)
}

func appendEscape(text []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Appendf(text, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(text, `\u%04x`, r)
}

// JSONWriter writes the result of EscapeJSON for each Write, which must end at
// the end of a character. It is as safe for concurrent use as the Writer below
// it.
func JSONWriter(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ to io.Writer }

// Write returns the length of the given text, not of the escaped one.
func (w jsonWriter) Write(text []byte) (int, error) {
	if _, err := w.to.Write(EscapeJSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Markup replaces invisible characters by U+FFFD: control characters, marks of
// direction, which would reorder the text beside them, and characters without width.
// Spaces, tabs and line feeds stay. The markup itself must have none of these. Text
// without any is returned unchanged.
func Markup(html []byte) []byte {
	keep := func(r rune) bool {
		return r >= ' ' && r < 0x7f || r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)
	}
	return rewrite(html, keep, func(text []byte, _ rune) []byte { return utf8.AppendRune(text, unicode.ReplacementChar) })
}

// rewrite replaces the characters that are not kept. A byte that is not UTF-8
// becomes U+FFFD.
func rewrite(text []byte, keep func(rune) bool, replace func([]byte, rune) []byte) []byte {
	var out []byte
	begin := 0 // of what is not in out yet
	for at := 0; at < len(text); {
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[at:])
		}
		bad := r == utf8.RuneError && size == 1
		if bad || !keep(r) {
			out = append(out, text[begin:at]...)
			if bad {
				out = utf8.AppendRune(out, utf8.RuneError)
			} else {
				out = replace(out, r)
			}
			begin = at + size
		}
		at += size
	}
	if begin == 0 {
		return text
	}
	return append(out, text[begin:]...)
}

// Printable replaces white space, including line breaks, by blanks, and other
// characters that are not printed by U+FFFD: control characters, and those that
// change the direction of a line or cannot be seen.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}

// Wrap breaks words into lines of at most so many columns: the first begins with
// first, others with rest. A word that is too long for a line stays whole, so that
// it can be copied.
func Wrap(first, rest string, words []string, columns int) []string {
	var lines []string
	line := first
	for i, word := range words {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			lines = append(lines, strings.TrimRight(line, " "))
			line = rest + word
		default:
			line += " " + word
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}
