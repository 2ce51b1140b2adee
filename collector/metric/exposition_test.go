package metric_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// scheme is a scrape format with all that a client may ask for.
type scheme struct {
	format  expfmt.Format
	created bool
}

func allSchemes() []scheme {
	var all []scheme
	for _, format := range append(expfmt.DefaultOpenMetricsAcceptedFormats(), expfmt.FmtOpenMetrics_2_0_0) {
		if kind := format.FormatType(); kind == expfmt.TypeProtoText || kind == expfmt.TypeProtoCompact {
			continue // protobuf adds random spaces to these
		}
		for _, escaping := range []string{"", "allow-utf-8", "underscores", "dots", "values"} {
			if escaping != "" {
				escaping = "; escaping=" + escaping
			}
			all = append(all, scheme{format + expfmt.Format(escaping), true}, scheme{format + expfmt.Format(escaping), false})
		}
	}
	return all
}

// choices derives a page from bytes. Those that are missing are zero.
type choices struct {
	data  []byte
	lines int
}

func (c *choices) bytes(n int) []byte {
	taken := make([]byte, n)
	c.data = c.data[copy(taken, c.data):]
	return taken
}

func (c *choices) below(n int) int { return int(c.bytes(1)[0]) % n }

func (c *choices) oneOf(texts ...string) string { return texts[c.below(len(texts))] }

func (c *choices) text() string {
	if c.below(3) > 0 {
		return c.oneOf("", "GPU-1", "a b", "ü€", `C:\x`, "line\nline", `"quoted"`, `\"`, `\\`, "\xff", "a,b=\"c\"", "\x00", "\u2028")
	}
	return string(c.bytes(c.below(40)))
}

func (c *choices) name() string {
	if c.below(8) == 0 {
		return c.text()
	}
	return c.oneOf("dra_a_bytes", "dra_a_bytes_total", "dra_b_total", "dra:c", "_total", "dra_d_seconds", "x_created", "dra.e_total", "é")
}

func (c *choices) label() string {
	if c.below(8) == 0 {
		return c.text()
	}
	return c.oneOf("uuid", "namespace", "le", "a", "Zz", "__name__", "with:colon", "with.dot")
}

func (c *choices) value() float64 {
	switch c.below(8) {
	case 0:
		return math.Float64frombits(binary.LittleEndian.Uint64(c.bytes(8)))
	case 1:
		return []float64{0, 1, -1, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64}[c.below(9)]
	case 2: // integers of any length
		return float64(int64(binary.LittleEndian.Uint64(c.bytes(8))) >> c.below(64))
	case 3: // decimals
		return float64(int32(binary.LittleEndian.Uint32(c.bytes(4)))>>c.below(32)) / math.Pow10(c.below(20))
	case 4: // around powers of ten, where %g changes
		return math.Pow10(c.below(24)-4) + float64(c.below(3)-1)
	default:
		return float64(c.below(200))
	}
}

func (c *choices) start() time.Time {
	if c.below(2) == 0 {
		return time.Time{}
	}
	return time.Unix(int64(binary.LittleEndian.Uint32(c.bytes(4))), int64(binary.LittleEndian.Uint32(c.bytes(4)))%1e9)
}

// page returns rows, and the messages that expfmt needs to encode the same, which know
// nothing of Labels and Page.
func (c *choices) page(families, rows int) ([]metric.Row, []*dto.MetricFamily) {
	var (
		all      []metric.Row
		messages []*dto.MetricFamily
	)
	for len(messages) < families && len(c.data) > 0 {
		family := &metric.Family{Name: c.name(), Help: c.text(), Unit: c.oneOf("", "bytes", "seconds", "watts"), Type: metric.Type(c.below(2))}
		message := &dto.MetricFamily{Name: &family.Name, Help: &family.Help, Type: dto.MetricType_GAUGE.Enum()}
		if family.Type == metric.Counter {
			message.Type = dto.MetricType_COUNTER.Enum()
		}
		if family.Unit != "" && strings.HasSuffix(strings.TrimSuffix(family.Name, "_total"), "_"+family.Unit) {
			message.Unit = &family.Unit
		}
		for range 1 + c.below(rows) {
			row, one := c.row(family)
			all, message.Metric = append(all, row), append(message.Metric, one)
		}
		messages = append(messages, message)
		c.lines += len(message.Metric)
	}
	slices.SortStableFunc(messages, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, messages
}

func (c *choices) row(family *metric.Family) (metric.Row, *dto.Metric) {
	var (
		names, values []string
		message       = &dto.Metric{}
	)
	for range c.below(6) {
		name, value := c.label(), c.text()
		if slices.Contains(names, name) {
			continue
		}
		names, values = append(names, name), append(values, value)
		message.Label = append(message.Label, &dto.LabelPair{Name: &name, Value: proto.String(strings.ToValidUTF8(value, "\uFFFD"))})
	}
	slices.SortFunc(message.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	row := metric.Row{Family: family, Labels: metric.NewLabels(names, values...), Value: c.value()}
	if family.Type != metric.Counter {
		message.Gauge = &dto.Gauge{Value: &row.Value}
		return row, message
	}
	message.Counter = &dto.Counter{Value: &row.Value}
	if row.Start = c.start(); !row.Start.IsZero() {
		message.Counter.CreatedTimestamp = timestamppb.New(row.Start)
	}
	return row, message
}

// checkExposition compares the page with what expfmt writes of the messages.
func checkExposition(t *testing.T, schemes []scheme, rows []metric.Row, messages []*dto.MetricFamily) {
	t.Helper()
	page := metric.NewPage(rows)
	for _, scheme := range schemes {
		var got, want bytes.Buffer
		var options []expfmt.EncoderOption
		if scheme.created {
			options = append(options, expfmt.WithCreatedLines())
		}
		encoder, failed := expfmt.NewEncoder(&want, scheme.format, options...), false
		for _, message := range messages {
			failed = encoder.Encode(message) != nil || failed
		}
		if err := page.Encode(&got, scheme.format, scheme.created); (err != nil) != failed {
			t.Fatalf("%s: error %v, of expfmt: %v", scheme.format, err, failed)
		}
		if bytes.Equal(got.Bytes(), want.Bytes()) {
			continue
		}
		lines, expected := strings.Split(got.String(), "\n"), strings.Split(want.String(), "\n")
		for i := range min(len(lines), len(expected)) {
			if lines[i] != expected[i] {
				t.Fatalf("%s, created %v: line %d is\n%q, not\n%q", scheme.format, scheme.created, i+1, lines[i], expected[i])
			}
		}
		t.Fatalf("%s, created %v: %d lines, not %d", scheme.format, scheme.created, len(lines), len(expected))
	}
	checkGathered(t, page, messages)
}

// checkGathered compares the messages of the page with those that it was made of.
func checkGathered(t *testing.T, page *metric.Page, messages []*dto.MetricFamily) {
	t.Helper()
	for i, families := 0, gather(t, page); i < len(messages); i++ {
		if !proto.Equal(families[i], messages[i]) && !hasNaN(messages[i]) {
			t.Fatalf("gathered\n%v, not\n%v", families[i], messages[i])
		}
	}
}

func gather(t *testing.T, page *metric.Page) []*dto.MetricFamily {
	t.Helper()
	families, err := page.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// hasNaN: a NaN with another payload is not equal, but shown in the same way.
func hasNaN(family *dto.MetricFamily) bool {
	return slices.ContainsFunc(family.Metric, func(m *dto.Metric) bool {
		return math.IsNaN(m.GetGauge().GetValue()) || math.IsNaN(m.GetCounter().GetValue())
	})
}

// FuzzExposition compares pages of any names, labels, values and starts with
// the encoders of expfmt, each page in the one format that the input chooses.
func FuzzExposition(f *testing.F) {
	schemes := allSchemes()
	for seed := range len(schemes) {
		f.Add(uint8(seed), randomBytes(uint64(seed), 400))
	}
	f.Fuzz(func(t *testing.T, chosen uint8, data []byte) {
		rows, messages := (&choices{data: data}).page(4, 4)
		at := int(chosen) % len(schemes)
		checkExposition(t, schemes[at:at+1], rows, messages)
	})
}

func randomBytes(seed uint64, n int) []byte {
	data := make([]byte, n)
	random := rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed)))
	_, _ = random.Read(data) // it never fails
	return data
}

// TestExposition does the same for 20,000 rows of random pages, or as many as
// DRA_EXPORTER_EXPOSITION says; `make soak` has ten million. Each page has some of the
// formats in turn.
func TestExposition(t *testing.T) {
	wanted, seed := 20_000, uint64(1)
	if text := os.Getenv("DRA_EXPORTER_EXPOSITION"); text != "" {
		var err error
		if wanted, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		seed = rand.Uint64()
	}
	const turns = 7
	for rows := 0; rows < wanted; seed++ {
		var schemes []scheme
		for i, scheme := range allSchemes() {
			if uint64(i)%turns == seed%turns {
				schemes = append(schemes, scheme)
			}
		}
		c := &choices{data: randomBytes(seed, 64<<10)}
		page, messages := c.page(60, 60)
		checkExposition(t, schemes, page, messages)
		if t.Failed() {
			t.Fatalf("the page of seed %d", seed)
		}
		rows += c.lines
	}
}

// TestExecutions does the same for small pages, each in one format, as FuzzExposition
// does, but faster: for 20,000 of them, or up to a hundred million, if
// DRA_EXPORTER_EXECUTIONS names a file. The file has the number of the next execution,
// from which a later run continues.
func TestExecutions(t *testing.T) {
	next, wanted, state := uint64(0), uint64(20_000), os.Getenv("DRA_EXPORTER_EXECUTIONS")
	if state != "" {
		saved, err := os.ReadFile(state)
		if err == nil {
			next, err = strconv.ParseUint(strings.TrimSpace(string(saved)), 10, 64)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		wanted = 100_000_000
	}
	const part = 100_000
	schemes := allSchemes()
	for ; next < wanted; next++ {
		if state != "" && next%part == 0 {
			if err := os.WriteFile(state, strconv.AppendUint(nil, next, 10), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		size := 8 * (1 + next%9) // most pages are small, some have four families
		if next%16 == 0 {
			size = 8 * (1 + next/16%61)
		}
		c := &choices{data: randomBytes(next, int(size))}
		at := c.below(len(schemes))
		page, messages := c.page(4, 4)
		checkExposition(t, schemes[at:at+1], page, messages)
		if t.Failed() {
			t.Fatalf("execution %d", next)
		}
	}
}

// TestValues compares values alone with strconv, of which there are more than on pages.
func TestValues(t *testing.T) {
	family := &metric.Family{Name: "a", Help: "A"}
	labels := metric.NewLabels(nil)
	c := &choices{data: randomBytes(2, 1<<20)}
	var rows []metric.Row
	for len(c.data) > 0 {
		rows = append(rows, metric.Row{Family: family, Labels: labels, Value: c.value()})
	}
	for _, format := range []expfmt.Format{expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0} {
		lines := linesOf(t, rows, format)
		for i, row := range rows {
			want := strconv.FormatFloat(row.Value, 'g', -1, 64)
			if row.Value == 0 {
				want = "0" // also if it is negative
			}
			if format != expfmt.FmtText && !strings.ContainsAny(want, "e.IN") {
				want += ".0"
			}
			if lines[i] != "a "+want {
				t.Fatalf("%s: %q, not %q", format, lines[i], "a "+want)
			}
		}
	}
}

// linesOf returns the lines of rows of one family without those of its description.
func linesOf(t *testing.T, rows []metric.Row, format expfmt.Format) []string {
	t.Helper()
	var text bytes.Buffer
	if err := metric.NewPage(rows).Encode(&text, format, false); err != nil {
		t.Fatal(err)
	}
	return strings.Split(text.String(), "\n")[2:]
}

// TestEscaping compares label values, of which most characters have to be escaped, with
// the replacements of the formats' specifications, and reads them back.
func TestEscaping(t *testing.T) {
	const count = 50_000
	random := rand.New(rand.NewPCG(1, 2))
	family := &metric.Family{Name: "a", Help: "A"}
	parts := []string{`\`, `"`, "\n", `n`, `\"`, `\n`, ",", "=", "}", "b", "é", "\xff", "\r", "\x00"}
	values, rows := make([]string, count), make([]metric.Row, count)
	for i := range rows {
		for range random.IntN(8) {
			values[i] += parts[random.IntN(len(parts))]
		}
		rows[i] = metric.Row{Family: family, Labels: metric.NewLabels([]string{"l"}, values[i])}
	}
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	for format, zero := range map[expfmt.Format]string{expfmt.FmtText: "0", expfmt.FmtOpenMetrics_1_0_0: "0.0"} {
		lines := linesOf(t, rows, format)
		for i, value := range values {
			valid := strings.ToValidUTF8(value, "\uFFFD")
			if want := `a{l="` + escape.Replace(valid) + `"} ` + zero; lines[i] != want {
				t.Fatalf("%s: %q is %q, not %q", format, value, lines[i], want)
			}
			if got := rows[i].Labels.Get("l"); got != valid {
				t.Fatalf("%q is read as %q", value, got)
			}
		}
	}
}

// TestWritesAreBounded checks that Encode writes blocks, not lines, and none that is
// larger than its buffer.
func TestWritesAreBounded(t *testing.T) {
	rows, _ := (&choices{data: randomBytes(3, 256<<10)}).page(2000, 60)
	for _, format := range []expfmt.Format{expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0} {
		plain := slices.DeleteFunc(slices.Clone(rows), func(row metric.Row) bool { return row.Family.Name != "dra_b_total" || !legacy(row.Labels) })
		w := &writes{}
		if err := metric.NewPage(plain).Encode(w, format, true); err != nil {
			t.Fatal(err)
		}
		if w.bytes == 0 || w.largest > 16<<10 || w.count > w.bytes/(12<<10)+1 {
			t.Errorf("%d bytes in %d writes, of %d at most", w.bytes, w.count, w.largest)
		}
	}
}

func legacy(labels *metric.Labels) bool {
	for name := range labels.Each {
		if !slices.Contains([]string{"uuid", "namespace", "le", "a", "Zz", "with:colon"}, name) {
			return false
		}
	}
	return true
}

type writes struct{ count, bytes, largest int }

func (w *writes) Write(p []byte) (int, error) {
	w.count, w.bytes, w.largest = w.count+1, w.bytes+len(p), max(w.largest, len(p))
	return len(p), nil
}

// TestLabelsOfAnyText checks that labels return what they were made of.
func TestLabelsOfAnyText(t *testing.T) {
	c := &choices{data: randomBytes(4, 64<<10)}
	for len(c.data) > 0 {
		want := map[string]string{}
		for range c.below(6) {
			want[c.label()] = strings.ToValidUTF8(c.text(), "\uFFFD")
		}
		var names, values []string
		for name, value := range want {
			names, values = append(names, name), append(values, value)
		}
		labels, got := metric.NewLabels(names, values...), map[string]string{}
		for name, value := range labels.Each {
			got[name] = value
			if labels.Get(name) != value {
				t.Fatalf("%q is %q and %q", name, value, labels.Get(name))
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%q, not %q", got, want)
		}
		for name, value := range want {
			if got[name] != value {
				t.Fatalf("%q, not %q", got, want)
			}
		}
	}
}
