// Package exposition parses lines of Prometheus' text format. Its work and its memory
// are linear in the length of a line, which Prometheus' own parser does not promise: it
// compares each label with all before it. A line beyond a limit is an error.
package exposition

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a line.
const (
	MaxLine   = 64 << 10 // bytes
	MaxLabels = 128      // of a series
)

// Series is one series of a page with its value. Its texts may be parts of the line.
type Series struct {
	Name      string
	Labels    Labels
	Value     float64
	Timestamp int64 // Unix milliseconds
	Stamped   bool  // there is a time stamp
}

// Label is a name with its value.
type Label struct{ Name, Value string }

// Labels are the labels of a series in the order of the line, each name once.
type Labels []Label

// Get returns the value of a label, empty without it.
func (l Labels) Get(name string) string {
	for _, label := range l {
		if label.Name == name {
			return label.Value
		}
	}
	return ""
}

// Each calls yield with every name and value.
func (l Labels) Each(yield func(name, value string) bool) {
	for _, label := range l {
		if !yield(label.Name, label.Value) {
			return
		}
	}
}

// Name returns the name of the metric of a line that is a series, without parsing the
// rest; empty for other lines.
func Name(line string) string {
	line = strings.TrimLeft(line, " \t")
	if rest, ok := strings.CutPrefix(line, `{"`); ok { // a name that is not in the old character set
		name, _, _ := strings.Cut(rest, `"`)
		return name
	}
	if strings.HasPrefix(line, "#") {
		return ""
	}
	end := strings.IndexAny(line, "{ \t\r\n")
	if end < 0 {
		end = len(line)
	}
	return line[:end]
}

// Type returns the metric and the type that a line states; false for other lines.
func Type(line string) (name, kind string, ok bool) {
	line, ok = strings.CutPrefix(strings.TrimLeft(line, " \t"), "#")
	if !ok || len(line) > MaxLine {
		return "", "", false
	}
	words := strings.Fields(line)
	if len(words) != 3 || words[0] != "TYPE" {
		return "", "", false
	}
	return words[1], strings.ToLower(words[2]), true
}

// Parse parses the line of a series, which may end with a line feed. An exemplar, as
// in OpenMetrics, is an error.
func Parse(line string) (Series, error) {
	line = strings.TrimSuffix(line, "\n")
	if len(line) > MaxLine {
		return Series{}, fmt.Errorf("it has more than %d bytes", MaxLine)
	}
	p := parser{rest: strings.TrimLeft(line, " \t")}
	if !strings.HasPrefix(p.rest, "{") {
		p.series.Name = p.word(true)
		p.skip()
	}
	if err := p.labels(); err != nil {
		return Series{}, err
	}
	if p.series.Name == "" {
		return Series{}, errors.New("it has no name of a metric")
	}
	return p.series, p.value()
}

// parser parses what is left of a line.
type parser struct {
	rest   string
	series Series
}

func (p *parser) skip() { p.rest = strings.TrimLeft(p.rest, " \t") }

// take takes one byte, if it is the next one.
func (p *parser) take(next byte) bool {
	if p.rest == "" || p.rest[0] != next {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// labels takes all between braces, if there are any: labels, and the name of the
// metric, if it is in quotes.
func (p *parser) labels() error {
	if !p.take('{') {
		return nil
	}
	for {
		if p.skip(); p.take('}') {
			p.skip()
			return nil
		}
		if err := p.label(); err != nil {
			return err
		}
		if p.skip(); !p.take(',') && !strings.HasPrefix(p.rest, "}") {
			return errors.New("a label is not followed by a comma or a brace")
		}
	}
}

func (p *parser) label() error {
	quoted := strings.HasPrefix(p.rest, `"`)
	name, err := p.word(false), error(nil)
	if quoted {
		name, err = p.quoted()
	}
	switch {
	case err != nil:
		return err
	case name == "":
		return errors.New("the name of a label is missing or not valid")
	}
	if p.skip(); !p.take('=') {
		if !quoted || p.series.Name != "" {
			return errors.New("a label has no value")
		}
		p.series.Name = name
		return nil
	}
	p.skip()
	value, err := p.quoted()
	switch {
	case err != nil:
		return err
	case name == "__name__":
		return errors.New("the label __name__ is reserved")
	case len(p.series.Labels) == MaxLabels:
		return fmt.Errorf("it has more than %d labels", MaxLabels)
	}
	for _, label := range p.series.Labels {
		if label.Name == name {
			return errors.New("a label is there twice")
		}
	}
	if p.series.Labels == nil {
		p.series.Labels = make(Labels, 0, 4)
	}
	p.series.Labels = append(p.series.Labels, Label{name, value})
	return nil
}

// word takes a name without quotes; empty without one.
func (p *parser) word(metric bool) string {
	end := 0
	for end < len(p.rest) {
		c := p.rest[end]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (c != ':' || !metric) && (c < '0' || c > '9' || end == 0) {
			break
		}
		end++
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// quoted takes valid UTF-8 in quotes.
func (p *parser) quoted() (string, error) {
	if !p.take('"') {
		return "", errors.New("a label has no value in quotes")
	}
	end, escapes := 0, false
	for ; ; end++ {
		if end >= len(p.rest) {
			return "", errors.New("it ends within quotes")
		}
		if p.rest[end] == '"' {
			break
		}
		if p.rest[end] == '\\' {
			escapes = true
			end++
		}
	}
	text := p.rest[:end]
	p.rest = p.rest[end+1:]
	if !utf8.ValidString(text) {
		return "", errors.New("a text is not valid UTF-8")
	}
	if !escapes {
		return text, nil
	}
	return unescaped(text)
}

func unescaped(text string) (string, error) {
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			plain.WriteByte(text[i])
			continue
		}
		i++ // quoted has read a byte after each backslash
		switch text[i] {
		case '\\', '"':
			plain.WriteByte(text[i])
		case 'n':
			plain.WriteByte('\n')
		default:
			return "", errors.New("a text has an escape that is not known")
		}
	}
	return plain.String(), nil
}

// value takes the value and the time stamp, which end the line.
func (p *parser) value() (err error) {
	number, stamp, ok := strings.Cut(strings.ReplaceAll(p.rest, "\t", " "), " ")
	if strings.ContainsAny(number, "pP_") { // Go's numbers, but not Prometheus'
		return errors.New("the value is no number")
	}
	if p.series.Value, err = strconv.ParseFloat(number, 64); err != nil {
		return errors.New("the value is no number")
	}
	if !ok {
		return nil
	}
	if p.series.Timestamp, err = strconv.ParseInt(strings.TrimLeft(stamp, " "), 10, 64); err != nil {
		return errors.New("the time stamp is no number")
	}
	p.series.Stamped = true
	return nil
}
