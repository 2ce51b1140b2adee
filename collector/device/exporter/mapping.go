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
	"github.com/dra-exporter/dra-exporter/collector/exposition"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	maxDevices  = 1024
	maxIdentity = 128 // bytes of a part of an identity
	maxChoices  = 4 * maxDevices
)

// choices are the rules that give readings of devices, of several that can, and the
// namings of devices. The rule that gave a reading first gives it as long as the device
// has its naming: while its series is missing there is none, because that of another
// metric may count from another origin. When the exporter was replaced by one with
// another naming, another rule may follow, with another origin.
type choices struct {
	rules   map[choiceKey]choice
	namings map[string]string // that devices showed last, by what identifies them on their page
}

func newChoices() choices {
	return choices{rules: make(map[choiceKey]choice), namings: make(map[string]string)}
}

// choice is the rule that gives a reading, the naming that the device had then, and
// the origin of what the rule gives.
type choice struct {
	rule   *metricRule
	naming string
	origin uint8
}

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
	byKey     map[string]int              // index of a device
	shown     map[int]string              // the namings that devices show on this page
	values    map[valueKey][]*seriesValue // of each rule that can give a reading, in their order
	order     []valueKey
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
		byKey: make(map[string]int), shown: make(map[int]string), values: make(map[valueKey][]*seriesValue),
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
	for at, naming := range m.shown {
		c.rename(deviceName(m.devices[at].Device), naming)
	}
	for _, key := range m.order {
		observation := &m.devices[key.device]
		chosen := choiceKey{deviceName(observation.Device), key.quantity, key.details}
		v := c.value(chosen, m.usable(key))
		if v == nil {
			continue
		}
		if reading, ok := v.reading(key, chosen.device, &m.problems); ok {
			reading.Origin = c.choose(chosen, v.rule, rules)
			observation.Readings = append(observation.Readings, reading)
		}
	}
	return m.devices, had, m.problems.err()
}

// usable are the values of a reading, without those of metrics that mean something
// only under a naming that the page does not show for the device.
func (m *mapping) usable(key valueKey) []*seriesValue {
	return slices.DeleteFunc(m.values[key], func(v *seriesValue) bool {
		return v.rule.needsNaming != "" && v.rule.needsNaming != m.shown[key.device]
	})
}

// rename notes the naming of a device.
func (c choices) rename(device, naming string) {
	if _, ok := c.namings[device]; ok || len(c.namings) < maxChoices {
		c.namings[device] = naming
	}
}

// value returns the value of the rule that gives a reading, or of the first one that
// may; nil: there is none.
func (c choices) value(key choiceKey, values []*seriesValue) *seriesValue {
	previous, ok := c.rules[key]
	at := slices.IndexFunc(values, func(v *seriesValue) bool { return v.rule == previous.rule })
	switch {
	case at >= 0:
		return values[at]
	case len(values) == 0, ok && previous.naming == c.namings[key.device]:
		return nil
	}
	return values[0]
}

// choose notes the rule that gives a reading, if another one could, and returns the
// origin of the reading.
func (c choices) choose(key choiceKey, rule *metricRule, rules *rules) uint16 {
	previous, ok := c.rules[key]
	origin := previous.origin
	if ok && previous.rule != rule {
		origin++
	}
	isOther := func(other metricRule) bool { return other.quantity == key.quantity && other.metric != rule.metric }
	if ok || len(c.rules) < maxChoices && slices.ContainsFunc(rules.metrics, isOther) {
		c.rules[key] = choice{rule, c.namings[key.device], origin}
	}
	return uint16(origin)
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
	window, fresh := measured(s.Series, m.window, m.now)
	if !fresh {
		return false
	}
	if key.device, ok = m.device(s); !ok {
		return false
	}
	if rule.showsNaming != "" && m.shown[key.device] == "" {
		m.shown[key.device] = rule.showsNaming
	}
	values := m.values[key]
	if len(values) == 0 {
		for i, detail := range key.details {
			key.details[i] = strings.Clone(detail) // as in keep
		}
		m.order = append(m.order, key)
	}
	if len(values) == 0 || values[len(values)-1].rule != rule {
		values = append(values, &seriesValue{rule: rule, parts: make(map[string]*partValue)})
		m.values[key] = values
	}
	values[len(values)-1].add(s, number, window)
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

// measured is when a value was measured: at its time stamp, or else in the window of the
// page. A value that is older than those of other sources may be is not fresh.
func measured(s exposition.Series, window device.Window, now clock.Instant) (device.Window, bool) {
	if !s.Stamped {
		return window, true
	}
	age := max(now.Wall.Sub(time.UnixMilli(s.Timestamp)), 0)
	at := now.Elapsed - age
	return device.Window{From: at, To: at}, age <= maxAge
}

// device returns the index of the device of a series. A series that does not say
// which device it is of is left out.
func (m *mapping) device(s series) (int, bool) {
	field := func(f identityField) string { return strings.TrimSpace(s.get(m.rules.labels[f])) }
	d := device.Device{
		UUID: field(fieldUUID), Vendor: cmp.Or(field(fieldVendor), m.rules.vendor), Model: field(fieldModel), DriverVersion: field(fieldDriverVersion),
		Profile: field(fieldProfile), Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		Hardware: device.Hardware{Serial: field(fieldSerial), BoardPartNumber: field(fieldPartNumber), VBIOS: field(fieldVBIOS)},
	}
	address := field(fieldPCIAddress)
	if name := field(fieldName); name != "" {
		d.Published = device.PublishedName{Driver: m.rules.driver, Device: name}
	}
	for _, text := range []string{d.UUID, address, d.Vendor, d.Model, d.DriverVersion, d.Profile, d.Published.Device} {
		if text != "" && !isText(text, maxIdentity) {
			m.problems.add("%s: a label that identifies the device is not text of at most %d bytes", s.Name, maxIdentity)
			return 0, false
		}
	}
	if d.PCIBusID = device.PCIAddress(address); address != "" && d.PCIBusID == "" {
		m.problems.add("%s: %q is not a PCI address", s.Name, address)
		return 0, false
	}
	if instance := field(fieldGPUInstance); instance != "" && !partition(&d, instance) {
		m.problems.add("%s: %q is not the number of a GPU instance", s.Name, instance)
		return 0, false
	}
	key := deviceName(d)
	if key == "" {
		return 0, false
	}
	at, ok := m.byKey[key]
	if !ok {
		if at = len(m.devices); at == maxDevices {
			m.problems.add("the page has more than %d devices", maxDevices)
			return 0, false
		}
		m.byKey[key] = at
		m.devices = append(m.devices, device.Observation{Device: d})
		return at, true
	}
	previous := &m.devices[at].Device
	previous.PCIBusID = cmp.Or(previous.PCIBusID, d.PCIBusID)
	previous.Model = cmp.Or(previous.Model, d.Model)
	previous.DriverVersion = cmp.Or(previous.DriverVersion, d.DriverVersion)
	previous.Profile = cmp.Or(previous.Profile, d.Profile)
	previous.Hardware = previous.Hardware.With(d.Hardware)
	return at, true
}

// partition makes a device the MIG partition of a GPU instance. Exporters give the
// values of the instance as a whole, which has one compute instance as the DRA
// driver creates it: number 0.
func partition(d *device.Device, instance string) bool {
	number, err := strconv.Atoi(instance)
	if err != nil || number < 0 || d.UUID == "" {
		return false
	}
	d.ParentUUID, d.GPUInstance, d.ComputeInstance = d.UUID, number, 0
	d.UUID = fmt.Sprintf("MIG-%s/%d/0", d.ParentUUID, number)
	return true
}

// keep copies the texts of a device, which are parts of the page: they would keep all
// of it in memory.
func keep(d *device.Device) {
	for _, text := range []*string{&d.UUID, &d.ParentUUID, &d.PCIBusID, &d.Vendor, &d.Model, &d.DriverVersion, &d.Profile, &d.Published.Device, &d.PublishedParent,
		&d.Hardware.Serial, &d.Hardware.BoardPartNumber, &d.Hardware.VBIOS} {
		*text = strings.Clone(*text)
	}
}

// deviceName is what identifies a device on its page; empty if nothing does.
func deviceName(d device.Device) string { return cmp.Or(d.UUID, d.PCIBusID, d.Published.Device) }

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
		result, ok := m.relabeled[i][joined]
		if !ok {
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
	text, ok := d.values[text]
	return text, ok
}

// missing are the required metrics that a page lacks, and since when.
type missing map[string]time.Time

// update returns an error that names the required metrics of which no rule had a
// reading. Of those that are the same under different namings, a page has one.
func (m missing) update(rules *rules, had []bool, now time.Time) error {
	present := make(map[string]bool)
	for i, rule := range rules.metrics {
		present[rule.metric] = present[rule.metric] || had[i]
	}
	var lacking problems
	for _, rule := range rules.metrics {
		names := rules.renamed(rule)
		if slices.ContainsFunc(names, func(name string) bool { return present[name] }) {
			delete(m, rule.metric)
			continue
		}
		if !rule.required {
			continue
		}
		start, ok := m[rule.metric]
		if !ok {
			start = now
			m[rule.metric] = now
		}
		present[rule.metric] = true // once
		lacking.add("the page lacks %s of any device since %s: has the exporter, or its configuration, changed?", strings.Join(names, " and "), start.UTC().Format(time.RFC3339))
	}
	if err := lacking.err(); err != nil {
		return &source.Failure{Reason: source.ReasonInvalid, Err: err}
	}
	return nil
}
