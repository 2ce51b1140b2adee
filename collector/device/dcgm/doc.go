// Package dcgm reads NVIDIA GPUs and their MIG devices through DCGM, NVIDIA's
// Data Center GPU Manager: from a host engine that runs already, at an address
// or a unix socket, or from one embedded in this process. The library,
// libdcgm.so.4, is opened at run time: the program builds and starts without
// it, and the source then says that it is missing.
//
// All of an engine shares one fate, so there is one reader for it. What is
// read is one table, in rows.go, by the numbers of the fields, which are the
// same in every version of DCGM while their names are not. The engine samples
// them by itself, in watches that are set once for each connection and each
// set of GPUs and instances. A read asks for the latest samples only, in one
// call for each model of GPU and kind of entity: MIG devices have other fields
// than GPUs, profiling fields differ by model, and asking an entity for a field
// that nobody watches of it makes the engine write an error into its log, every
// time.
//
// Nothing on the node or in the engine is changed, but for the groups and
// watches that belong to the connection and end with it. No policy and no
// configuration is ever set. Profiling fields are watched only when asked for.
//
// The binding, go-dcgm, keeps its connection in package-level variables, so
// there can be one at a time in a process; a second Source says so. It calls
// the library's functions by lazily bound symbols, and one that an older
// library lacks would end the process: all that are called are looked up
// first. A binary that a toolchain links with immediate binding by default
// must be linked with -Wl,-z,lazy.
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
