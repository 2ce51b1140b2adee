package node

import (
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// xidCounts counts the Xids of a device: one count for each code of the table,
// and a last one for all others.
type xidCounts struct {
	watched  bool         // a source watches the Xids of the device now
	based    bool         // reported is what the source reported last
	reported []device.XID // shared with the source
	source   string       // of reported; need not be the source of the readings
	counts   []xidCount   // empty until the Xids are watched
}

// xidCount counts one code, or all the others.
type xidCount struct {
	tally
	last   time.Time // the newest error; zero: none
	grew   bool      // in this step
	labels *metric.Labels
}

// apply counts what the source has reported since the step before, which was at
// the wall time before (zero: there was none).
func (x *xidCounts) apply(d *deviceState, table []xidCode, before, now time.Time) {
	for i := range x.counts {
		x.counts[i].grew = false
	}
	x.watched = d.xids != nil
	if !x.watched {
		return
	}
	x.open(table, d.device.IsPartition(), now)
	known := x.based && x.source == d.xidSource
	earlier := x.reported
	for _, xid := range d.xids {
		var was device.XID
		for len(earlier) > 0 && earlier[0].Code <= xid.Code {
			was, earlier = earlier[0], earlier[1:]
		}
		if was.Code != xid.Code {
			was = device.XID{}
		}
		count := uint64(0)
		switch {
		case known:
			count = xidsSince(was, xid)
		case before.IsZero():
			count = xid.Count
		case xid.Last.After(before):
			count = 1
		}
		x.counts[findXID(table, xid.Code)].add(count, xid.Last, now)
	}
	x.reported, x.source, x.based = d.xids, d.xidSource, true
}

// xidsSince returns how many errors are new. A count that fell began again; if
// its last error is not newer than the one known before, it is another source's
// count of the same errors.
func xidsSince(was, is device.XID) uint64 {
	switch {
	case is.Count >= was.Count:
		return is.Count - was.Count
	case is.Last.After(was.Last):
		return is.Count
	default:
		return 0
	}
}

// open creates the counts. Those start at zero that the device may need: for a
// partition, errors of a channel alone, as errors of the whole GPU are never
// reported for its partitions.
func (x *xidCounts) open(table []xidCode, partition bool, now time.Time) {
	if x.counts != nil {
		return
	}
	x.counts = make([]xidCount, len(table)+1)
	for i := range x.counts {
		if i == len(table) || !partition || table[i].channel {
			x.counts[i].open(now)
		}
	}
}

func (a *xidCount) add(errors uint64, last, now time.Time) {
	a.open(now)
	if last.After(a.last) {
		a.last = last
	}
	if errors > 0 {
		a.total += float64(errors)
		a.grew = true
	}
}

func (x *xidCounts) label(f *families, table []xidCode, node, uuid, parent string) {
	for i := range x.counts {
		if a := &x.counts[i]; a.labels == nil && a.isOpen() {
			code := xidOther
			if i < len(table) {
				code = strconv.Itoa(table[i].code)
			}
			a.labels = metric.NewLabels(f.xidErrors.Labels, node, uuid, parent, code)
		}
	}
}

func (x *xidCounts) removeLabels() {
	for i := range x.counts {
		x.counts[i].labels = nil
	}
}
