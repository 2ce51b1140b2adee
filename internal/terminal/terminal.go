// Package terminal keeps foreign text from doing more on a terminal than be
// read: names of objects, messages and errors come from whoever may write them.
package terminal

import (
	"strings"
	"unicode"
)

// Printable makes a blank of white space, line ends included, and U+FFFD of
// whatever else is not printed: control characters, and those that change the
// direction of a line or cannot be seen.
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
