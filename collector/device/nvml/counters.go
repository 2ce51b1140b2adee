//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// counterHistory is what is kept of a GPU for as long as it is known, across
// discoveries and connections to the library, so that its counters fall only
// where the hardware started again from zero.
type counterHistory struct {
	links    *linkHistory
	wrapping map[uint32]wrappingCounter // by field
	throttle throttleTimes
	number   uint64 // of the connection in which it is read
}

// newCounterHistory is the history of a device that has not been read. What holds at
// one read is assumed to last until the next, unless its readings are stale by
// then.
func newCounterHistory(interval time.Duration) *counterHistory {
	return &counterHistory{
		links: newLinkHistory(), wrapping: make(map[uint32]wrappingCounter),
		throttle: throttleTimes{gap: device.StaleAfter(interval), seconds: make(map[uint64]float64)},
	}
}

// wrappingCounter is a counter that is 32 bits wide: the difference between the
// reported and the last read value, and the last read value.
type wrappingCounter struct {
	base, last float64
	number     uint64 // of the connection in which it was last read
	doubts     int    // reads in a row that had a value that is not believed
}

const (
	// width is the value at which a counter of 32 bits wraps to 0.
	width = 1 << 32
	// mostWraps is by how many widths a wider counter grows at most between two reads.
	mostWraps = 1 << 10
	// lastingDoubts is in how many reads a value that is likely wrong has to be read
	// before it is believed.
	lastingDoubts = 3
)

// extend returns the value of a field's counter as if it were wide enough. A
// counter that has fallen has wrapped once: a second wrap between two reads
// cannot be detected. A counter that is wider than 32 bits, or has fallen from
// one connection to the next, was reset with the hardware. A blank (no bit is set,
// or each) and a leap are not believed before they have lasted: they would look like
// a wrap.
func (p *counterHistory) extend(field uint32, value float64) float64 {
	w := p.wrapping[field]
	blank := value == 0 || value == width-1 || value >= width*width-width
	if w.last > 0 && value != w.last && (blank || value > w.last+mostWraps*width) && w.doubts < lastingDoubts {
		w.doubts++
		p.wrapping[field] = w
		return device.Implausible()
	}
	if value < w.last {
		if w.last < width && w.number == p.number {
			w.base += width
		} else {
			w.base = 0
		}
	}
	w.last, w.number, w.doubts = value, p.number, 0
	p.wrapping[field] = w
	return w.base + value
}

// throttleTimes is for how long a GPU has been seen throttled, where it does not
// count that itself.
type throttleTimes struct {
	gap     time.Duration      // the longest between two reads during which a reason is assumed to have lasted
	seconds map[uint64]float64 // by reason, one bit each
	reasons uint64             // at the last read
	at      clock.Instant      // of it; zero: none yet
}

// knownReasons are the bits of throttle reasons that the library may have: it has nine.
const knownReasons = 1<<16 - 1

// observe applies the throttle reasons of a read. A reason of the read before is
// assumed to have lasted until now.
func (t *throttleTimes) observe(reasons uint64, now clock.Instant) {
	if passed := now.Since(t.at); !t.at.IsZero() && passed <= t.gap {
		for rest := t.reasons; rest != 0; rest &= rest - 1 {
			t.seconds[rest&-rest] += passed.Seconds()
		}
	}
	t.reasons, t.at = reasons, now
}

// linkHistory holds the counters of single links. A link that cannot be read any
// more keeps its last value, and one that starts again from zero is added to it,
// so that the sum does not fall. It falls only if all links fall in one read:
// then the hardware was reset.
type linkHistory struct {
	count int            // -1: not known since the last look for GPUs
	peers map[int]string // by link, since the last look for GPUs
	last  map[uint32]*linkCounters
}

func newLinkHistory() *linkHistory {
	l := &linkHistory{last: make(map[uint32]*linkCounters)}
	l.forgetTopology()
	return l
}

// forgetTopology makes the next read query the number of links and their peers
// again.
func (l *linkHistory) forgetTopology() { l.count, l.peers = -1, make(map[int]string) }

// of are the last values of a field.
func (l *linkHistory) of(field uint32) *linkCounters {
	if l.last[field] == nil {
		l.last[field] = new(linkCounters)
	}
	return l.last[field]
}

// linkCounters are the counters of one field, by link.
type linkCounters struct {
	base     [nvml.NVLINK_MAX_LINKS]float64 // what a link had counted before its last reset
	counters [nvml.NVLINK_MAX_LINKS]device.RawCounter
	at       clock.Instant // of the last read
	doubtful bool          // it is not known whether a link was reset
}

// linkValues are the values of one field in one read, by link.
type linkValues struct {
	value [nvml.NVLINK_MAX_LINKS]float64
	known [nvml.NVLINK_MAX_LINKS]bool
}

// total is what a link has counted, if it is known.
func (c *linkCounters) total(link int) (float64, bool) {
	value, ok := c.counters[link].Value()
	return c.base[link] + value, ok
}

// sum adds up the links. It makes no difference to it how many there are now.
func (c *linkCounters) sum() (float64, nvml.Return) {
	if c.doubtful {
		return device.Implausible(), nvml.SUCCESS
	}
	sum, ret := 0.0, nvml.ERROR_NOT_SUPPORTED
	for link := range c.counters {
		if total, ok := c.total(link); ok {
			sum, ret = sum+total, nvml.SUCCESS
		}
	}
	return sum, ret
}

// apply applies the values of a read, unless it has been applied. A link that was reset
// adds to what it had, unless all links were: then the older values are discarded.
func (c *linkCounters) apply(newer *linkValues, at clock.Instant) {
	if c.at == at {
		return
	}
	c.at, c.doubtful = at, false
	var ended [nvml.NVLINK_MAX_LINKS]float64
	all := true
	for link, known := range newer.known {
		_, counted := c.counters[link].Value()
		if known {
			var ok bool
			ended[link], ok = c.counters[link].Apply(newer.value[link])
			c.doubtful = c.doubtful || !ok
		}
		all = all && (!counted || ended[link] > 0)
	}
	for link := range ended {
		if c.base[link] += ended[link]; all {
			c.base[link] = 0
		}
	}
}
