package metric

import (
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
)

// encodeBuffer is how many bytes Encode writes at once, unless a line is longer.
const encodeBuffer = 16 << 10

// Encode writes the page in a format that expfmt has negotiated: the bytes that
// expfmt's encoders write for Gather, but without the end of OpenMetrics, # EOF.
// With created, OpenMetrics has the start of counters as lines _created. The error
// is one of w, or names families that could not be encoded.
//
// Both text formats are written here, which takes a fraction of the time. expfmt
// encodes protobuf, and families with names that some clients want to be escaped.
func (p *Page) Encode(w io.Writer, format expfmt.Format, created bool) error {
	kind := format.FormatType()
	text := textWriter{w: w, openMetrics: kind == expfmt.TypeOpenMetrics, created: created}
	ours := kind == expfmt.TypeTextPlain || text.openMetrics && format.Version() != expfmt.OpenMetricsVersion_2_0_0
	if ours {
		text.buffer = make([]byte, 0, encodeBuffer)
	}
	var options []expfmt.EncoderOption
	if created {
		options = append(options, expfmt.WithCreatedLines())
	}
	var (
		library = expfmt.NewEncoder(w, format, options...)
		labels  = messages{}
		errs    []error
	)
	for _, run := range p.runs() {
		if ours && run.legacy {
			text.family(run)
			continue
		}
		text.flush()
		if err := library.Encode(run.message(labels)); err != nil {
			errs = append(errs, err)
		}
	}
	text.flush()
	return errors.Join(append(errs, text.err)...)
}

// textWriter appends families in the text format, or in OpenMetrics.
type textWriter struct {
	w                    io.Writer
	openMetrics, created bool
	buffer               []byte
	err                  error // of w; nothing is written after it
}

func (t *textWriter) flush() {
	if t.err == nil && len(t.buffer) > 0 {
		_, t.err = t.w.Write(t.buffer)
	}
	t.buffer = t.buffer[:0]
}

// reserve makes room for so many bytes, if the buffer can have it.
func (t *textWriter) reserve(size int) {
	if len(t.buffer)+size > cap(t.buffer) {
		t.flush()
	}
}

func (t *textWriter) family(r run) {
	family, name, kind := r.family, r.family.Name, r.family.Type
	stem, total := strings.CutSuffix(name, "_total")
	if t.openMetrics && kind == Counter && total {
		name = stem
	}
	t.reserve(2*len(family.Help) + 4*len(name) + 128)
	t.buffer = append(append(append(t.buffer, "# HELP "...), name...), ' ')
	t.buffer = append(appendEscaped(t.buffer, family.Help, t.openMetrics), '\n')
	t.buffer = append(append(t.buffer, "# TYPE "...), name...)
	switch {
	case kind != Counter:
		t.buffer = append(t.buffer, " gauge\n"...)
	case t.openMetrics && !total:
		t.buffer = append(t.buffer, " unknown\n"...)
	default:
		t.buffer = append(t.buffer, " counter\n"...)
	}
	if t.openMetrics && family.unitInName() {
		t.buffer = append(append(append(t.buffer, "# UNIT "...), name...), ' ')
		t.buffer = append(appendEscaped(t.buffer, family.Unit, true), '\n')
	}
	buffer := t.buffer // a local variable: the garbage collector records writes to fields
	for i := range r.rows {
		row := &r.rows[i]
		buffer = t.sample(buffer, family.Name, "", row.Labels, row.Value)
		if t.openMetrics && t.created && kind == Counter && !row.Start.IsZero() {
			buffer = t.sample(buffer, stem, "_created", row.Labels, float64(row.Start.UnixNano())/1e9)
		}
	}
	t.buffer = buffer
}

// sample appends a line to the buffer, which is written before if the line has no room.
func (t *textWriter) sample(buffer []byte, name, suffix string, labels *Labels, value float64) []byte {
	const rest = len("{} \n") + 32 // a number has 24 characters at most
	if len(buffer)+len(name)+len(suffix)+len(labels.text)+rest > cap(buffer) {
		t.buffer = buffer
		t.flush()
		buffer = t.buffer
	}
	buffer = append(append(buffer, name...), suffix...)
	if labels.text != "" {
		buffer = append(append(append(buffer, '{'), labels.text...), '}')
	}
	return append(appendValue(append(buffer, ' '), value, t.openMetrics), '\n')
}

// appendValue appends the number as expfmt writes it: strconv's shortest %g, to which
// OpenMetrics adds .0 if it would look like an integer. Most values are integers, for
// which the shortest text is known without a search.
func appendValue(buffer []byte, value float64, openMetrics bool) []byte {
	const (
		plain = 1_000_000             // from here on, %g has an exponent
		exact = 1_000_000_000_000_000 // below, no shorter text means the same float64
	)
	integer := int64(value)
	if float64(integer) != value {
		return appendFraction(buffer, value)
	}
	if integer <= -exact || integer >= exact {
		return strconv.AppendFloat(buffer, value, 'g', -1, 64)
	}
	if -plain < integer && integer < plain {
		buffer = strconv.AppendInt(buffer, integer, 10)
		if openMetrics {
			buffer = append(buffer, ".0"...)
		}
		return buffer
	}
	if integer < 0 {
		buffer, integer = append(buffer, '-'), -integer
	}
	var digits [16]byte
	text := strconv.AppendInt(digits[:0], integer, 10)
	exponent := len(text) - 1
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	buffer = append(buffer, text[0])
	if len(text) > 1 {
		buffer = append(append(buffer, '.'), text[1:]...)
	}
	return append(buffer, 'e', '+', '0'+byte(exponent/10), '0'+byte(exponent%10))
}

// appendFraction appends a number that is not an integer. Those of few decimal places, as
// sources report them, are found by an exact division instead of a search: if n/scale is
// the value, n has its digits, because two texts of at most 15 digits never mean the same
// float64.
func appendFraction(buffer []byte, value float64) []byte {
	const (
		scale = 10_000    // the reciprocal is the smallest number that %g shows without an exponent
		limit = 1_000_000 // from here on, it has one
	)
	n := math.Round(value * scale)
	if n/scale != value || value <= -limit || value >= limit {
		return strconv.AppendFloat(buffer, value, 'g', -1, 64)
	}
	integer := int64(n)
	if integer < 0 {
		buffer, integer = append(buffer, '-'), -integer
	}
	buffer = append(strconv.AppendInt(buffer, integer/scale, 10), '.')
	rest := integer % scale
	for divisor := int64(scale / 10); rest > 0; divisor /= 10 {
		buffer = append(buffer, '0'+byte(rest/divisor))
		rest %= divisor
	}
	return buffer
}
