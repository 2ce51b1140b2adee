package dcgmnames

import (
	"math"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Options are what a Translator is made of. All are needed.
type Options struct {
	Mode      Mode
	Interval  time.Duration // between two readings of a device
	Staleness time.Duration // how long a reading is believed
}

// Translator makes the rows of one snapshot after another. It is for one
// goroutine.
type Translator struct {
	mode    Mode
	pace    patience
	fields  []field
	columns map[*metric.Family]*column
	facts   map[*metric.Family]bool

	plan     *plan
	found    []fact // of the present snapshot; a field to save its memory
	readings readings
	meters   map[string]*meters // of the plan's devices, by uuid
	made     int                // rows, last time
}

// New returns a Translator that has seen nothing yet.
func New(o Options) *Translator {
	return &Translator{
		mode:    o.Mode,
		pace:    newPatience(o),
		fields:  fields(),
		columns: map[*metric.Family]*column{},
		facts:   map[*metric.Family]bool{},
		meters:  map[string]*meters{},
	}
}

// Rows returns the rows that say the same as those of a snapshot, family by
// family. The snapshots are given in order; now is the steady time of this
// one (clock.Instant.Elapsed), by which rates are computed. Neither the given
// rows nor those that were returned are touched afterwards. What has not
// changed since the snapshot before is not computed again: info rows are
// known by their labels' addresses.
func (t *Translator) Rows(now time.Duration, rows []metric.Row) []metric.Row {
	t.observeFacts(rows)
	t.readings.begin(t.plan)
	for family, run := range runs(rows) {
		if c := t.column(family); c != nil {
			c.read(t.plan, &t.readings, run)
		}
	}
	t.readings.derive(t.plan, t.meters, now, t.pace)
	return t.write()
}

// runs are the rows of each family, which stand next to each other.
func runs(rows []metric.Row) func(yield func(*metric.Family, []metric.Row) bool) {
	return func(yield func(*metric.Family, []metric.Row) bool) {
		for first := 0; first < len(rows); {
			end := first + 1
			for end < len(rows) && rows[end].Family == rows[first].Family {
				end++
			}
			if !yield(rows[first].Family, rows[first:end]) {
				return
			}
			first = end
		}
	}
}

func (t *Translator) column(family *metric.Family) *column {
	c, known := t.columns[family]
	if !known {
		c = newColumn(family.Name, t.mode)
		t.columns[family] = c
	}
	return c
}

// observeFacts makes a new plan where other facts hold than before.
func (t *Translator) observeFacts(rows []metric.Row) {
	t.found = t.found[:0]
	for family, run := range runs(rows) {
		if !t.isFact(family) {
			continue
		}
		for i := range run {
			if !run[i].Past || family.Name == deviceInfo {
				t.found = append(t.found, fact{family, run[i].Labels, run[i].Past})
			}
		}
	}
	if t.plan != nil && slices.Equal(t.found, t.plan.facts) {
		return
	}
	t.plan = newPlan(t.found, t.plan)
	for _, c := range t.columns {
		if c != nil {
			c.memo = nil
		}
	}
	t.keepMeters()
}

func (t *Translator) isFact(family *metric.Family) bool {
	is, known := t.facts[family]
	if !known {
		is = isFact(family.Name)
		t.facts[family] = is
	}
	return is
}

// keepMeters has one set of meters for each device of the plan, and none of
// others.
func (t *Translator) keepMeters() {
	before := t.meters
	t.meters = make(map[string]*meters, len(t.plan.devices))
	for _, d := range t.plan.devices {
		if t.meters[d.uuid] = before[d.uuid]; t.meters[d.uuid] == nil {
			t.meters[d.uuid] = &meters{}
		}
	}
}

func (t *Translator) write() []metric.Row {
	rows := make([]metric.Row, 0, t.made+t.made/16)
	for i := range t.fields {
		f := &t.fields[i]
		for d := range t.plan.devices {
			value := t.value(f, d)
			for _, s := range t.plan.series[t.plan.devices[d].first:t.plan.devices[d].end] {
				if shown := t.shareOf(f, s, value); !math.IsNaN(shown) {
					rows = append(rows, metric.Row{Family: f.family, Labels: s.labels, Value: shown * f.factor})
				}
			}
		}
	}
	t.made = len(rows)
	return rows
}

// value is what the field says of the device.
func (t *Translator) value(f *field, device int) float64 {
	value := t.readings.devices[device].values[f.of]
	if math.IsNaN(value) && f.onMIG == ofGPU {
		value = t.readings.devices[t.plan.devices[device].parent].values[f.of]
	}
	return value
}

// shareOf is what it says of the device for the user of the series: the pod's
// share or the claim's where that is known, else the device's own value.
func (t *Translator) shareOf(f *field, s series, value float64) float64 {
	if f.share == undivided {
		return value
	}
	for _, holder := range [2]int{s.pod, s.claim} {
		if holder < 0 {
			continue
		}
		if share := t.readings.holders[holder][f.share]; !math.IsNaN(share) {
			return share
		}
	}
	return value
}
