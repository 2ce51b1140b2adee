package node

import (
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// xidLog is what was heard of a unit's Xids: one account for each code of
// the table, and a last one for all others.
type xidLog struct {
	listening bool         // somebody listens now
	based     bool         // told is what the source told last
	told      []device.XID // shared with the source
	source    string       // that told it, which need not be that of the sample
	accounts  []xidAccount // empty until somebody listens
}

// An xidAccount counts one code, or all the others.
type xidAccount struct {
	tally
	last   time.Time // the newest error; zero: none
	grown  uint64    // step in which it last counted one
	labels *metric.Labels
}

// hear takes in what the source says by now. At the step before, at the wall
// time given (zero: there was none), everything said until then was counted.
func (x *xidLog) hear(d *deviceState, table []xidCode, step uint64, before, now time.Time) {
	x.listening = d.xidCounts != nil
	if !x.listening {
		return
	}
	x.open(table, d.device.IsPartition(), now)
	known := x.based && x.source == d.xidSource
	earlier := x.told
	for _, xid := range d.xidCounts {
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
		x.accounts[findXID(table, xid.Code)].count(count, xid.Last, step, now)
	}
	x.told, x.source, x.based = d.xidCounts, d.xidSource, true
}

// xidsSince is how many errors are new. A count that fell began anew; where
// its last error is no newer than the one known before, it is another's count
// of the same errors.
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

// open makes the accounts, and those exist from zero that the device can be
// expected to need: of a partition, errors of a channel alone, because what
// befalls the whole GPU is never told of its partitions.
func (x *xidLog) open(table []xidCode, partition bool, now time.Time) {
	if x.accounts != nil {
		return
	}
	x.accounts = make([]xidAccount, len(table)+1)
	for i := range x.accounts {
		if i == len(table) || !partition || table[i].channel {
			x.accounts[i].open(now)
		}
	}
}

func (a *xidAccount) count(errors uint64, last time.Time, step uint64, now time.Time) {
	a.open(now)
	if last.After(a.last) {
		a.last = last
	}
	if errors > 0 {
		a.total += float64(errors)
		a.grown = step
	}
}

// rest is for a step in which no sample tells of the device.
func (x *xidLog) rest() { x.listening = false }

func (x *xidLog) label(f *families, table []xidCode, node, uuid, parent string) {
	for i := range x.accounts {
		if a := &x.accounts[i]; a.labels == nil && a.isOpen() {
			code := xidOther
			if i < len(table) {
				code = strconv.Itoa(table[i].code)
			}
			a.labels = metric.NewLabels(f.xidErrors.Labels, node, uuid, parent, code)
		}
	}
}

func (x *xidLog) forgetLabels() {
	for i := range x.accounts {
		x.accounts[i].labels = nil
	}
}
