package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// detail is all lines about the item that is shown, in its newest state. An item
// that is not reported any more is shown as it was.
func (s *screen) detail(look Look) []string {
	d := detailLines{look: look, history: s.history, at: s.reading.At}
	gone := true
	for _, i := range s.views[s.current].items(&s.reading) {
		if i.key == s.shown.key {
			s.shown, gone = i, false
		}
	}
	name := s.shown.name
	if s.shown.namespace != "" {
		name = s.shown.namespace + "/" + name
	}
	d.add(styleBold, strings.TrimSuffix(s.views[s.current].name, "s")+" "+clean(name))
	if gone {
		d.add(styleWarning, "It is not reported any more; this is how it was.")
	}
	if s.shown.pending != nil {
		d.addPending(s.shown)
	} else {
		d.addUsage(s.shown)
	}
	return d.lines
}

// detailLines collects lines.
type detailLines struct {
	look    Look
	history *history
	at      time.Time
	lines   []string
}

// add adds a line of clean text.
func (d *detailLines) add(style, text string) {
	d.lines = append(d.lines, drawing{look: d.look}.line(style, text))
}

// field adds what is known under a name.
func (d *detailLines) field(name, value string) { d.styledField("", name, value) }

func (d *detailLines) styledField(style, name, value string) {
	if value == "" {
		return
	}
	const column = 14
	room := max(d.look.Width-column, 10)
	for i, line := range wrapped(clean(value), room) {
		if i > 0 {
			name = ""
		}
		d.add(style, d.look.Glyphs.fit(name, column, false)+line)
	}
}

// wrapped breaks clean text into lines, at blanks where there are any.
func wrapped(text string, columns int) []string {
	var lines []string
	for letters := []rune(text); ; {
		if len(letters) <= columns {
			return append(lines, string(letters))
		}
		end := columns
		for at := columns; at > columns/2; at-- {
			if letters[at] == ' ' {
				end = at
				break
			}
		}
		lines = append(lines, string(letters[:end]))
		letters = []rune(strings.TrimLeft(string(letters[end:]), " "))
	}
}

func (d *detailLines) number(name string, value *float64, show func(float64) string) {
	if value != nil {
		d.field(name, d.look.Glyphs.number(value, show))
	}
}

func (d *detailLines) addUsage(i *item) {
	rows := func(text func(*Row) string) string { return common(i.rows, text) }
	d.field("node", i.node)
	d.field("kind", i.kind)
	if i.state != nil {
		d.field("agent", i.state.Agent+": "+i.state.State)
		if count := i.state.Devices; count != nil {
			d.field("devices", fmt.Sprintf("%d: %d whole, %d partitions; %d held by claims", count.Devices, count.Whole, count.Partitions, count.Held))
		}
	}
	d.addDevice(i)
	d.field("class", rows(func(r *Row) string { return r.Class }))
	d.field("model", itemTitle(i))
	d.field("held by", rows(func(r *Row) string { return r.Attribution }))
	d.field("pods", strings.Join(i.pods, ", "))
	d.field("workloads", strings.Join(workloads(i.rows), ", "))
	d.styledField(styleOfHealth(i.health), "health", healthCell(i.health, i.reasons))
	d.number("utilization", i.utilization, words.Percent)
	d.number("memory", i.memory, func(used float64) string {
		if i.memorySize == nil {
			return words.Bytes(used)
		}
		return words.Bytes(used) + " of " + words.Bytes(*i.memorySize)
	})
	d.number("power", i.power, words.Watts)
	d.number("idle for", i.idle, ageText)
	d.number("held for", i.held, ageText)
	if i.cost != nil {
		d.field("cost per hour", costCell(d.look.Glyphs, i.cost, i.currency))
	}
	d.addGraphs(i)
	if len(i.rows) > 0 {
		d.add("", "")
		d.lines = append(d.lines, rowTable(d.look, i.rows, "")...)
	}
}

func (d *detailLines) addDevice(i *item) {
	device := i.device
	if device == nil {
		return
	}
	d.field("used by", i.holder())
	d.field("uuid", device.UUID)
	d.field("partition of", cmp.Or(device.ParentName, device.ParentUUID))
	d.field("driver", device.Driver)
	d.field("pool", device.Pool)
	d.number("temperature", device.Temperature, words.Celsius)
}

// workloads are the workloads of the pods of rows, with the pods' places in them,
// each once.
func workloads(rows []*Row) []string {
	var names []string
	for _, r := range rows {
		for _, user := range r.Users {
			name := user.Kind + " " + user.Workload
			if user.Place != "" {
				name += " (" + user.Place + ")"
			}
			if user.Workload != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// graphLines is the height of a graph.
const graphLines = 4

func (d *detailLines) addGraphs(i *item) {
	var keys []seriesKey
	if i.device != nil {
		keys = []seriesKey{{deviceKey: deviceKey{i.node, i.device.UUID}}}
	} else {
		for _, r := range i.rows {
			keys = append(keys, r.seriesKey())
		}
	}
	if len(keys) == 0 {
		return
	}
	columns := min(max(d.look.Width-6, 1), maxSamples)
	for _, chart := range []struct {
		name    string
		samples func(*sampleSeries) []sample
	}{
		{"utilization", func(s *sampleSeries) []sample { return s.utilization }},
		{"memory", func(s *sampleSeries) []sample { return s.memory }},
	} {
		values := d.history.mean(keys, chart.samples)
		values = values[max(len(values)-columns, 0):]
		d.add("", "")
		d.add(styleBold, chart.name+", "+summarize(values, d.history.span(len(values))))
		for line, text := range d.look.Glyphs.graph(values, columns, graphLines) {
			label := map[int]string{0: "100% ", graphLines - 1: "  0% "}[line]
			d.add("", fmt.Sprintf("%5s", label)+strings.TrimRight(text, " "))
		}
	}
}

// addPending adds why a claim is pending, and where devices are missing.
func (d *detailLines) addPending(i *item) {
	ref, reason := i.pending, pendingReasonInfo(i.pending)
	d.field("pod", ref.Namespace+"/"+ref.Pod)
	d.field("reference", ref.PodClaim)
	d.field("claim", cmp.Or(ref.Claim, "does not exist yet"))
	d.field("class", ref.Class)
	if !ref.Since.IsZero() {
		d.field("pending", "since "+ref.Since.UTC().Format(time.RFC3339))
		d.number("for", i.held, ageText)
	}
	d.add("", "")
	d.styledField(styleWarning, "reason", pendingReason(ref))
	d.field("meaning", reason.Meaning)
	d.field("remedy", strings.ReplaceAll(reason.Remedy, "`", ""))
	for i := range ref.Requests {
		d.addRequest(&ref.Requests[i])
	}
	d.add("", "")
	d.field("more", "dra-exporter explain pod "+ref.Namespace+"/"+ref.Pod)
}

// addRequest adds how many devices each stage leaves of a request, and marks the
// first that leaves too few.
func (d *detailLines) addRequest(counts *page.RequestCounts) {
	asked, title := 1.0, "request "+clean(counts.Request)
	if counts.Asked != nil {
		asked = *counts.Asked
		title += fmt.Sprintf(": %.0f asked", asked)
	}
	d.add("", "")
	d.add(styleBold, title)
	short := false
	for _, stage := range []struct {
		name  string
		count *float64
	}{
		{"published", counts.Published}, {"of the class", counts.Class}, {"selected", counts.Selectors},
		{"untainted", counts.Untainted}, {"free", counts.Free}, {"on best node", counts.BestNode},
	} {
		if stage.count == nil {
			continue
		}
		text, style := count(*stage.count), ""
		if !short && *stage.count < asked {
			short, text, style = true, text+"  too few", styleWarning
		}
		d.styledField(style, stage.name, text)
	}
}
