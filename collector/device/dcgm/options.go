package dcgm

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Options are what the source can be told. The zero value starts an embedded
// engine with the library that the system finds.
type Options struct {
	HostEngine   string        // host:port or unix:///path of a host engine; empty: one embedded in this process
	Library      string        // path of libdcgm.so.4; empty: where the system finds it
	Profiling    bool          // watch the fields that take the GPU's profiling counters
	Interval     time.Duration // at which the engine samples fast quantities: 1 s
	SlowInterval time.Duration // likewise slow ones: 30 s
	Log          *slog.Logger  // nil: none
	Clock        clock.Clock   // the sampler's: readings have times of it; nil: one of its own
}

// complete returns the options with what was left out.
func (o Options) complete() Options {
	o.Interval = cmp.Or(o.Interval, time.Second)
	o.SlowInterval = cmp.Or(o.SlowInterval, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o
}
