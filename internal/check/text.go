package check

import (
	"strings"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Style is what the reader's terminal can show.
type Style struct {
	Colour  bool // and signs beyond ASCII
	Columns int  // 0: 100
}

// mark is what stands before a finding.
type mark struct{ sign, word, colour string }

func (o Outcome) mark() mark {
	return map[Outcome]mark{OK: {"✓", "ok  ", "\x1b[32m"}, Warning: {"!", "WARN", "\x1b[1;33m"}, Failure: {"✗", "FAIL", "\x1b[1;31m"}, Skipped: {"-", "skip", "\x1b[2m"}}[o]
}

const (
	plain = "\x1b[0m"
	bold  = "\x1b[1m"
)

// Text writes the report for a person: a heading for each area, a line for
// each finding, and below what is not well the remedy; once below several in a
// row that have the same.
func (r *Report) Text(style Style) string {
	p := &printer{style: style, subjects: r.subjectWidth()}
	if p.style.Columns == 0 {
		p.style.Columns = 100
	}
	last := ""
	for i, finding := range r.Findings {
		if finding.Area != last {
			p.heading(finding.Area)
			last = finding.Area
		}
		if i+1 < len(r.Findings) && sameRemedy(finding, r.Findings[i+1]) {
			finding.Remedy = ""
		}
		p.finding(finding)
	}
	p.text.WriteString("\n")
	p.wrapped("", "", r.summary())
	return p.text.String()
}

func sameRemedy(a, b Finding) bool {
	return a.Area == b.Area && a.Remedy == b.Remedy && a.Page == b.Page
}

// summary counts.
func (r *Report) summary() string {
	parts := []string{words.Count(r.Count(OK), "check passed", "checks passed")}
	for _, row := range []struct {
		outcome          Outcome
		singular, plural string
	}{{Warning, "warning", "warnings"}, {Failure, "failure", "failures"}, {Skipped, "skipped", "skipped"}} {
		if n := r.Count(row.outcome); n > 0 {
			parts = append(parts, words.Count(n, row.singular, row.plural))
		}
	}
	return strings.Join(parts, ", ") + "."
}

// subjectWidth is the width of the column of subjects. A subject that is
// longer than most pushes its own text aside.
func (r *Report) subjectWidth() int {
	const most = 26
	width := 0
	for _, finding := range r.Findings {
		if n := utf8.RuneCountInString(finding.Subject); n <= most {
			width = max(width, n)
		}
	}
	return width
}

// printer writes lines. What comes from outside cannot move the cursor or
// change colours.
type printer struct {
	text     strings.Builder
	style    Style
	subjects int
}

func (p *printer) heading(text string) {
	if p.text.Len() > 0 {
		p.text.WriteString("\n")
	}
	text = terminal.Printable(text)
	if !strings.Contains(text, "://") {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if p.style.Colour {
		text = bold + text + plain
	}
	p.text.WriteString(text + "\n")
}

func (p *printer) finding(f Finding) {
	mark, sign := f.Outcome.mark(), ""
	subject := terminal.Printable(f.Subject)
	padding := strings.Repeat(" ", max(0, p.subjects-utf8.RuneCountInString(subject)))
	if p.style.Colour {
		sign = mark.sign
	} else {
		sign = mark.word
	}
	first := "  " + sign + " " + subject + padding + "  "
	indent := strings.Repeat(" ", utf8.RuneCountInString(sign)+3+p.subjects+2)
	body := p.lines(first, indent, f.Text)
	if p.style.Colour {
		body = strings.Replace(body, sign, mark.colour+sign+plain, 1)
	}
	p.text.WriteString(body)
	if f.Remedy == "" {
		return
	}
	arrow := "-> "
	if p.style.Colour {
		arrow = "→ "
	}
	behind := indent + strings.Repeat(" ", utf8.RuneCountInString(arrow))
	p.wrapped(indent+arrow, behind, f.Remedy)
	if page := f.reference(); page != "" {
		p.text.WriteString(behind + terminal.Printable(page) + "\n")
	}
}

func (p *printer) wrapped(first, rest, text string) { p.text.WriteString(p.lines(first, rest, text)) }

// lines breaks a text between words.
func (p *printer) lines(first, rest, text string) string {
	lines := terminal.Wrap(first, rest, strings.Fields(terminal.Printable(text)), p.style.Columns)
	return strings.Join(lines, "\n") + "\n"
}
