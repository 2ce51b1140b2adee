//go:build cgo

package nvml

import (
	"time"

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
