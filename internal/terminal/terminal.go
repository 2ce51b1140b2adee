// Package terminal holds what the commands know of terminals: whether output goes
// to one, its width, and progress on it. It also keeps foreign text from
// controlling a terminal: names of objects, messages and errors come from whoever
// may write them.
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
