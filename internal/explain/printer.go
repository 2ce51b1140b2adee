package explain

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// width is how many columns the text takes. A word that is longer, such as a
// device's full name, stays in one piece, so that it can be copied.
const width = 100

// printer writes lines for a terminal. Text from outside cannot move the
// cursor or change colours: what is not printable becomes U+FFFD, and any
// white space a blank.
type printer struct {
	text   strings.Builder
	styled bool // the terminal understands bold and colours
}

// The escape sequences in use.
const (
	styleBold   = "\x1b[1m"
	styleStrong = "\x1b[1;33m" // what is wrong
	styleEnd    = "\x1b[0m"
)

// heading begins a section.
func (p *printer) heading(text string) {
	if p.text.Len() > 0 {
		p.text.WriteString("\n")
	}
	p.wrapped("", "", text, styleBold)
}

// paragraph writes a text with its lines indented.
func (p *printer) paragraph(indent int, text string) {
	p.wrapped(blanks(indent), blanks(indent), text, "")
}

// item writes a text that hangs behind its mark.
func (p *printer) item(indent int, mark, text string) {
	mark = terminal.Printable(mark)
	p.wrapped(blanks(indent)+mark+" ", blanks(indent+utf8.RuneCountInString(mark)+1), text, "")
}

// wrapped breaks a text between words.
func (p *printer) wrapped(first, rest, text, style string) {
	for _, line := range broken(first, rest, text) {
		p.line(line, style)
	}
}

// broken returns the lines of a text.
func broken(first, rest, text string) []string {
	return terminal.Wrap(first, rest, splitWords(terminal.Printable(text)), width)
}

// cut writes the first lines of a text, at most so many, and returns how many it
// wrote. What is cut ends with an ellipsis.
func (p *printer) cut(first, rest, text string, most int) int {
	lines := broken(first, rest, text)
	if len(lines) > most {
		lines = lines[:most]
		last := []rune(lines[most-1])
		lines[most-1] = string(last[:min(len(last), width-2)]) + " …"
	}
	for _, line := range lines {
		p.line(line, "")
	}
	return len(lines)
}

func (p *printer) line(text, style string) {
	text = strings.TrimRight(text, " ")
	if p.styled && style != "" {
		text = style + text + styleEnd
	}
	p.text.WriteString(text + "\n")
}

// table writes rows whose cells are as wide as the widest of their column.
// The last column is text that is wrapped; columns that hold numbers are
// right aligned. The first row may be a header.
func (p *printer) table(indent int, rows [][]string, numbers ...int) {
	widths := columnWidths(rows)
	for _, row := range rows {
		row = slices.Clone(row)
		for i, cell := range row {
			row[i] = terminal.Printable(cell)
		}
		var line strings.Builder
		line.WriteString(blanks(indent))
		for i, cell := range row[:len(row)-1] {
			padding := blanks(widths[i] - utf8.RuneCountInString(cell))
			if slices.Contains(numbers, i) {
				line.WriteString(padding + cell + "  ")
			} else {
				line.WriteString(cell + padding + "  ")
			}
		}
		last, text := len(row)-1, row[len(row)-1]
		if slices.Contains(numbers, last) {
			text = blanks(widths[last]-utf8.RuneCountInString(text)) + text
			p.line(line.String()+text, "")
			continue
		}
		first := line.String()
		p.wrapped(first, blanks(min(utf8.RuneCountInString(first), width/2)), text, "")
	}
}

// splitWords splits a text at its blanks. A command between backquotes is one word,
// so that it stays on one line and can be copied, unless no line has room.
func splitWords(text string) []string {
	var all []string
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		end := wordEnd(text)
		all = append(all, text[:end])
		text = text[end:]
	}
	return all
}

func wordEnd(text string) int {
	const room = width - 20
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ':
			return i
		case '`':
			if length := strings.IndexByte(text[i+1:], '`'); length > 0 && length < room {
				i += length + 1
			}
		}
	}
	return len(text)
}

func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }
