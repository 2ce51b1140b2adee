// Package dcgmnames exports a node under the names, labels, types and units of
// dcgm-exporter, so that dashboards, alerts and autoscalers for it continue to work.
// docs/dcgm-names.md lists the differences.
//
// The devices of a node and the containers that use them determine which series exist
// (plan). For each snapshot, readings are the values of the devices, and of the
// processes of their users; more are derived from them, and series are made of these.
package dcgmnames

import (
	"fmt"
	"math"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// Mode is the value that pods get of a shared device.
type Mode uint8

// The modes. Copy is what dcgm-exporter does under DRA: every pod has the value of
// the whole device. (Since March 2026, --kubernetes-virtual-gpus splits utilization and
// memory between pods of device plugins.) With Split a pod has its own share of
// utilization and memory if its processes are known, and else the device's value.
const (
	Copy Mode = iota
	Split
)

func (m Mode) String() string { return [...]string{Copy: "copy", Split: "split"}[m] }

// ParseMode is the inverse of String.
func ParseMode(name string) (Mode, error) {
	for _, mode := range []Mode{Copy, Split} {
		if name == mode.String() {
			return mode, nil
		}
	}
	return 0, fmt.Errorf("parse the mode of DCGM names: %q is neither copy nor split", name)
}

// Options configure a Translator. All are required.
type Options struct {
	Mode      Mode
	Interval  time.Duration // between two readings of a device
	Staleness time.Duration // readings that are older are not used
}

// newTiming waits for growth until the next reading is due: readings of a device that
// answers are an interval apart or a little more, or seconds if the interval is short
// and the device slow.
func newTiming(o Options) meterTiming {
	return meterTiming{quiet: max(2*o.Interval, 3*time.Second), stale: o.Staleness}
}

// Translator converts one snapshot after another. It is not safe for concurrent use.
type Translator struct {
	mode   Mode
	timing meterTiming
	fields []field
	table  *sourceTable

	plan     *plan // nil: there was no snapshot
	readings readings
	meters   map[string]*meters // of the plan's devices, by uuid
	made     int                // rows, last time
}

// New returns a Translator without a snapshot.
func New(o Options) *Translator {
	return &Translator{mode: o.Mode, timing: newTiming(o), fields: fields(), table: newSourceTable(), meters: map[string]*meters{}}
}

// Rows returns the rows of a node under the names of dcgm-exporter, family by family.
// The nodes are given in order; now is the steady time of this one
// (clock.Instant.Elapsed), by which rates are computed. The returned rows are not
// changed afterwards. Series are planned again only if the node has other devices, or
// others use them.
func (t *Translator) Rows(now time.Duration, n *model.Node) []metric.Row {
	if t.plan != nil && t.plan.matches(n) {
		t.plan.node = n
	} else {
		t.plan = newPlan(n, t.plan)
		t.keepMeters()
	}
	t.readings.read(t.plan, n, t.table, t.mode)
	t.readings.derive(t.plan, t.meters, now, t.timing)
	return t.write()
}

// keepMeters adds meters for new devices of the plan, and removes those of other devices.
func (t *Translator) keepMeters() {
	previous := t.meters
	t.meters = make(map[string]*meters, len(t.plan.devices))
	for _, d := range t.plan.devices {
		if t.meters[d.uuid] = previous[d.uuid]; t.meters[d.uuid] == nil {
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
				if shown := t.holderShare(f, s, value); !math.IsNaN(shown) {
					rows = append(rows, metric.Row{Family: f.family, Labels: s.labels, Value: shown * f.factor})
				}
			}
		}
	}
	t.made = len(rows)
	return rows
}

// value returns the value of the field for the device.
func (t *Translator) value(f *field, device int) float64 {
	value := t.readings.devices[device].values[f.of]
	if math.IsNaN(value) && f.onMIG == ofGPU {
		value = t.readings.devices[t.plan.devices[device].parent].values[f.of]
	}
	return value
}

// holderShare returns the value for the user of the series: the pod's share or the
// claim's if that is known, else the device's own value.
func (t *Translator) holderShare(f *field, s series, value float64) float64 {
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
