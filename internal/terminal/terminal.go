// Package terminal detects terminals and their width, and shows progress. It
// also prevents foreign text from controlling a terminal: names of objects,
// messages and errors may contain any character.
package terminal

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Is reports whether the writer is a terminal.
func Is(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Styled reports whether bold text and colours may be written there: to a
// character device, unless NO_COLOR is set or TERM is dumb.
func Styled(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Columns is the width of text for the terminal, by COLUMNS or by the terminal
// itself, between 60 and 140; 0: the writer is no terminal.
func Columns(w io.Writer) int {
	const narrowest, widest = 60, 140
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 {
		return 0
	}
	if given, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && given != 0 {
		width = given
	}
	return min(max(width, narrowest), widest)
}
