package exporter

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	maxDevices  = 1024
	maxIdentity = 128 // bytes of a part of an identity
	maxChoices  = 4 * maxDevices
)

// choices are the rules that give readings of devices, of several that can. The rule that
// gave a reading first gives it as long as the page is read: while its series is missing
// there is none, because that of another metric may count from another origin.
type choices map[choiceKey]*metricRule

// choiceKey is a reading of a device, by what identifies the device on its page.
type choiceKey struct {
	device   string
	quantity device.Quantity
	details  [2]string
}

// mapping maps one page to devices and their readings.
type mapping struct {
	rules     *rules
	window    device.Window // of the values without a time stamp
	now       clock.Instant
	holders   map[string]bool
	relabeled []map[string]replaced // by rule and the joined values
	devices   []device.Observation
	byKey     map[string]int // index of a device
	values    map[valueKey]*value
	order     []valueKey
	choices   choices
	problems  problems
}

// replaced is what a rule of relabeling makes of a value.
type replaced struct {
	matches bool
	text    string
}

// mapPage returns the devices of a page with their readings, in the order in which
// the rules and the page name them, and which rules had a reading. An error says
// what was left out.
func (c choices) mapPage(rules *rules, families map[string]*family, window device.Window, now clock.Instant) (devices []device.Observation, had []bool, err error) {
	m := &mapping{
		rules: rules, window: window, now: now, holders: holderLabels(), relabeled: make([]map[string]replaced, len(rules.relabel)),
		byKey: make(map[string]int), values: make(map[valueKey]*value), choices: c,
	}
	for i := range m.relabeled {
		m.relabeled[i] = make(map[string]replaced)
	}
	if info := families[rules.info]; info != nil {
		for _, parsed := range info.series {
			if s := (series{Series: parsed}); m.relabel(&s) {
				m.device(s)
			}
		}
	}
	had = make([]bool, len(rules.metrics))
	for i := range rules.metrics {
		rule := &rules.metrics[i]
		family := families[rule.metric]
		if family == nil {
			continue
		}
		for _, parsed := range family.series {
			if m.add(rule, family.kind, series{Series: parsed, holders: m.holders}) {
				had[i] = true
			}
		}
	}
	for i := range m.devices {
		keep(&m.devices[i].Device)
	}
	for _, key := range m.order {
		one := &m.devices[key.device]
		if reading, ok := m.values[key].reading(key, nameOf(one.Device), &m.problems); ok {
			one.Readings = append(one.Readings, reading)
			c.choose(m.choice(key), m.values[key].rule, rules)
		}
	}
	return m.devices, had, m.problems.err()
}

// choose notes the rule that gives a reading, if another one could.
func (c choices) choose(key choiceKey, rule *metricRule, rules *rules) {
	isOther := func(other metricRule) bool { return other.quantity == key.quantity && other.metric != rule.metric }
	if len(c) < maxChoices && slices.ContainsFunc(rules.metrics, isOther) {
		c[key] = rule
	}
}

func (m *mapping) choice(key valueKey) choiceKey {
	return choiceKey{nameOf(m.devices[key.device].Device), key.quantity, key.details}
}

// add adds one series to the reading that it belongs to, if to any.
func (m *mapping) add(rule *metricRule, kind string, s series) bool {
	if !m.relabel(&s) || slices.ContainsFunc(rule.match, func(c condition) bool { return !c.regex.MatchString(s.get(c.label)) }) {
		return false
	}
	key := valueKey{quantity: rule.quantity}
	for i, detail := range rule.details {
		text, ok := detail.of(s)
		if !ok {
			return false
		}
		if text != "" && !isText(text, maxDetail) {
			m.problems.add("%s: the label %s is not text of at most %d bytes", rule.metric, detail.label, maxDetail)
			return false
		}
		key.details[i] = text
	}
	number, ok := m.number(rule, kind, s.Value)
	if !ok {
		return false
	}
	measured, fresh := m.measured(s)
	if !fresh {
		return false
	}
	if key.device, ok = m.device(s); !ok {
		return false
	}
	if chosen := m.choices[m.choice(key)]; chosen != nil && chosen != rule {
		return true
	}
	v := m.values[key]
	if v == nil {
		v = &value{rule: rule, parts: make(map[string]*part)}
		for i, detail := range key.details {
			key.details[i] = strings.Clone(detail) // as in keep
		}
		m.values[key] = v
		m.order = append(m.order, key)
	}
	if v.rule == rule { // otherwise an earlier rule has the reading: this is its alternative
		v.add(s, number, measured)
	}
	return true
}

// number is a value in the base unit. Values that mean nothing are left out.
func (m *mapping) number(rule *metricRule, kind string, number float64) (float64, bool) {
	if !slices.Contains([]string{"", "gauge", "counter", "untyped", "unknown"}, kind) {
		m.problems.add("%s is a %s: only gauges and counters are read", rule.metric, source.Text(kind))
		return 0, false
	}
	if math.IsNaN(number) || math.IsInf(number, 0) || slices.Contains(m.rules.blanks, number) {
		return 0, false
	}
	number = rule.unit.base(number)
	return number, !math.IsInf(number, 0)
}

// measured is when a value was measured: at its time stamp, if it has one. A value
// that is older than those of other sources may be is not fresh.
func (m *mapping) measured(s series) (device.Window, bool) {
	if !s.Stamped {
		return m.window, true
	}
	age := max(m.now.Wall.Sub(time.UnixMilli(s.Timestamp)), 0)
	at := m.now.Elapsed - age
	return device.Window{From: at, To: at}, age <= maxAge
}

// device returns the index of the device of a series. A series that does not say
// which device it is of is left out.
func (m *mapping) device(s series) (int, bool) {
	field := func(f identityField) string { return strings.TrimSpace(s.get(m.rules.labels[f])) }
	one := device.Device{
		UUID: field(fieldUUID), Vendor: cmp.Or(field(fieldVendor), m.rules.vendor), Model: field(fieldModel), DriverVersion: field(fieldDriverVersion),
		Profile: field(fieldProfile), Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
	}
	address := field(fieldPCIAddress)
	if name := field(fieldName); name != "" {
		one.Published = device.PublishedName{Driver: m.rules.driver, Device: name}
	}
	for _, text := range []string{one.UUID, address, one.Vendor, one.Model, one.DriverVersion, one.Profile, one.Published.Device} {
		if text != "" && !isText(text, maxIdentity) {
			m.problems.add("%s: a label that identifies the device is not text of at most %d bytes", s.Name, maxIdentity)
			return 0, false
		}
	}
	if one.PCIBusID = device.PCIAddress(address); address != "" && one.PCIBusID == "" {
		m.problems.add("%s: %q is not a PCI address", s.Name, address)
		return 0, false
	}
	if instance := field(fieldGPUInstance); instance != "" && !partition(&one, instance) {
		m.problems.add("%s: %q is not the number of a GPU instance", s.Name, instance)
		return 0, false
	}
	key := nameOf(one)
	if key == "" {
		return 0, false
	}
	at, known := m.byKey[key]
	if !known {
		if at = len(m.devices); at == maxDevices {
			m.problems.add("the page has more than %d devices", maxDevices)
			return 0, false
		}
		m.byKey[key] = at
		m.devices = append(m.devices, device.Observation{Device: one})
		return at, true
	}
	before := &m.devices[at].Device
	before.PCIBusID = cmp.Or(before.PCIBusID, one.PCIBusID)
	before.Model = cmp.Or(before.Model, one.Model)
	before.DriverVersion = cmp.Or(before.DriverVersion, one.DriverVersion)
	before.Profile = cmp.Or(before.Profile, one.Profile)
	return at, true
}

// partition makes a device the MIG partition of a GPU instance. Exporters give the
// values of the instance as a whole, which has one compute instance as the DRA
// driver creates it: number 0.
func partition(one *device.Device, instance string) bool {
	number, err := strconv.Atoi(instance)
	if err != nil || number < 0 || one.UUID == "" {
		return false
	}
	one.ParentUUID, one.GPUInstance, one.ComputeInstance = one.UUID, number, 0
	one.UUID = fmt.Sprintf("MIG-%s/%d/0", one.ParentUUID, number)
	return true
}

// keep copies the texts of a device, which are parts of the page: they would keep all
// of it in memory.
func keep(one *device.Device) {
	for _, text := range []*string{&one.UUID, &one.ParentUUID, &one.PCIBusID, &one.Vendor, &one.Model, &one.DriverVersion, &one.Profile, &one.Published.Device} {
		*text = strings.Clone(*text)
	}
}

// nameOf is what identifies a device on its page; empty if nothing does.
func nameOf(d device.Device) string { return cmp.Or(d.UUID, d.PCIBusID, d.Published.Device) }

// isText reports whether foreign text is shown: valid, short and without control
// characters.
func isText(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// relabel applies the rules of relabeling, and reports whether the series stays.
func (m *mapping) relabel(s *series) bool {
	for i := range m.rules.relabel {
		rule := &m.rules.relabel[i]
		joined := ""
		for j, label := range rule.source {
			if j > 0 {
				joined += rule.separator
			}
			joined += s.get(label)
		}
		result, known := m.relabeled[i][joined]
		if !known {
			result = rule.apply(joined)
			m.relabeled[i][joined] = result
		}
		switch {
		case rule.action == "keep" && !result.matches, rule.action == "drop" && result.matches:
			return false
		case rule.action == "replace" && result.matches:
			s.added = append(s.added, addedLabel{rule.target, result.text})
		}
	}
	return true
}

func (r *relabeling) apply(joined string) replaced {
	at := r.regex.FindStringSubmatchIndex(joined)
	if at == nil {
		return replaced{}
	}
	return replaced{true, string(r.regex.ExpandString(nil, r.replacement, joined, at))}
}

// of returns the detail of a series, and whether the series has one.
func (d detail) of(s series) (string, bool) {
	if d.label == "" {
		return d.fixed, true
	}
	text := s.get(d.label)
	if d.values == nil {
		return text, text != ""
	}
	text, known := d.values[text]
	return text, known
}

// missing are the required metrics that a page lacks, and since when.
type missing map[string]time.Time

// update returns an error that names the required metrics of which no rule had a
// reading.
func (m missing) update(rules *rules, had []bool, now time.Time) error {
	present := make(map[string]bool)
	for i, rule := range rules.metrics {
		present[rule.metric] = present[rule.metric] || had[i]
	}
	var lacking problems
	for _, rule := range rules.metrics {
		if present[rule.metric] {
			delete(m, rule.metric)
			continue
		}
		if !rule.required {
			continue
		}
		since, known := m[rule.metric]
		if !known {
			since = now
			m[rule.metric] = now
		}
		present[rule.metric] = true // once
		lacking.add("the page lacks %s of any device since %s: has the exporter, or its configuration, changed?", rule.metric, since.UTC().Format(time.RFC3339))
	}
	if err := lacking.err(); err != nil {
		return &source.Failure{Reason: source.ReasonInvalid, Err: err}
	}
	return nil
}
