//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// past is what is remembered of a GPU for as long as it is known, over looks
// for GPUs and connections to the library, so that what is told of its
// counters falls only where the hardware began anew.
type past struct {
	links    *links
	wrapped  map[uint32]wrapped // by field
	throttle throttle
	number   uint64 // of the connection in which it is read
}

// newPast is the past of a device that has not been read. What holds at one of
// its reads is taken to last up to the next, as long as its readings are not
// stale by then.
func newPast(interval time.Duration) *past {
	return &past{
		links: newLinks(), wrapped: make(map[uint32]wrapped),
		throttle: throttle{gap: device.StaleAfter(interval), seconds: make(map[uint64]float64)},
	}
}

// wrapped is a counter that is 32 bits wide: what it has been told as, less
// its last value, and that value.
type wrapped struct {
	base, last float64
	number     uint64 // of the connection in which it was last read
}

// width is where a counter of 32 bits begins anew.
const width = 1 << 32

// unfold is the value of a field's counter as if it were wide enough. A
// counter that has fallen has wrapped, once: that it wrapped again between two
// reads cannot be seen. But one that is wider than 32 bits, or has fallen from
// one connection to the next, began anew with the hardware.
func (p *past) unfold(field uint32, value float64) float64 {
	w := p.wrapped[field]
	if value < w.last {
		if w.last < width && w.number == p.number {
			w.base += width
		} else {
			w.base = 0
		}
	}
	w.last, w.number = value, p.number
	p.wrapped[field] = w
	return w.base + value
}

// throttle is for how long a GPU has been seen throttled, where it does not
// count that itself.
type throttle struct {
	gap     time.Duration      // the longest between two reads over which a reason is taken to have lasted
	seconds map[uint64]float64 // by reason, one bit each
	reasons uint64             // at the last read
	at      clock.Instant      // of it; zero: none yet
}

// observe takes in the reasons of a read. What was a reason at the read
// before is taken to have been one up to now.
func (t *throttle) observe(reasons uint64, now clock.Instant) {
	if passed := now.Since(t.at); !t.at.IsZero() && passed <= t.gap {
		for rest := t.reasons; rest != 0; rest &= rest - 1 {
			t.seconds[rest&-rest] += passed.Seconds()
		}
	}
	t.reasons, t.at = reasons, now
}

// links are the counters of single links. One that does not answer any more
// counts on with its last value, and one that begins anew from there, so that
// their sum does not fall, until all of them have fallen at once: then the
// hardware began anew.
type links struct {
	count int            // -1: not known since the last look for GPUs
	peers map[int]string // by link, since the last look for GPUs
	last  map[uint32]*counters
}

func newLinks() *links {
	l := &links{last: make(map[uint32]*counters)}
	l.recount()
	return l
}

// recount makes the number of links, and where they end, be asked for again.
func (l *links) recount() { l.count, l.peers = -1, make(map[int]string) }

// of are the last values of a field.
func (l *links) of(field uint32) *counters {
	if l.last[field] == nil {
		l.last[field] = new(counters)
	}
	return l.last[field]
}

// counters are the last values of one field, by link.
type counters struct {
	base  [nvml.NVLINK_MAX_LINKS]float64 // what a link had counted when it last began anew
	value [nvml.NVLINK_MAX_LINKS]float64 // since then
	known [nvml.NVLINK_MAX_LINKS]bool
}

// total is what a link has counted.
func (c *counters) total(link int) float64 { return c.base[link] + c.value[link] }

// sum adds up the links. It makes no difference to it how many there are now.
func (c *counters) sum() (float64, nvml.Return) {
	sum, ret := 0.0, nvml.ERROR_NOT_SUPPORTED
	for link, known := range c.known {
		if known {
			sum, ret = sum+c.total(link), nvml.SUCCESS
		}
	}
	return sum, ret
}

// replace takes in newer values. A link whose own have fallen counts on from
// what it had, unless the values of all links have: then nothing that was
// before counts.
func (c *counters) replace(newer *counters) {
	all := true
	for link, known := range c.known {
		all = all && (!known || newer.known[link] && newer.value[link] < c.value[link])
	}
	if all {
		*c = *newer
		return
	}
	for link, value := range newer.value {
		if !newer.known[link] {
			continue
		}
		if value < c.value[link] {
			c.base[link] += c.value[link]
		}
		c.value[link], c.known[link] = value, true
	}
}
