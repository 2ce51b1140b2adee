// Package dcgm reads NVIDIA GPUs and their MIG devices through DCGM, NVIDIA's
// Data Center GPU Manager: from a running host engine, at an address or a unix
// socket, or from an engine embedded in this process. The library,
// libdcgm.so.4, is opened at run time. The program builds and starts without
// it; the source then reports that it is missing.
//
// A host engine fails as a whole, so it has one reader. The table in rows.go
// lists what is read, by field numbers, which are the same in every version of
// DCGM while the names of the fields are not. The engine samples the fields
// itself, in watches that are set once for each connection and each set of GPUs
// and instances. A read queries only the latest samples, in one call for each
// GPU model and kind of entity: MIG devices have other fields than GPUs, and
// profiling fields differ by model. Each query for a field that is not watched
// makes the engine write an error into its log.
//
// The source changes nothing on the node or in the engine, except for the
// groups and watches that belong to its connection and end with it. It never
// sets a policy or a configuration. It watches profiling fields only if that is
// enabled.
//
// The binding, go-dcgm, keeps its connection in package-level variables, so a
// process can have only one; a second Source fails with an error that says so.
// The binding calls the library's functions by lazily bound symbols, and
// calling one that an older library lacks would end the process, so every
// function is looked up before it is called. If a toolchain links with
// immediate binding by default, link the binary with -Wl,-z,lazy.
package dcgm

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Options configure a Source. The zero value starts an embedded engine with the
// library that the system finds.
type Options struct {
	HostEngine   string        // host:port or unix:///path of a host engine; empty: one embedded in this process
	Library      string        // path of libdcgm.so.4; empty: where the system finds it
	Profiling    bool          // watch the fields that use the GPU's profiling counters
	Interval     time.Duration // at which the engine samples fast quantities; 0: 1 s
	SlowInterval time.Duration // likewise for slow ones; 0: 30 s
	Sysfs        string        // where sysfs is mounted, for the version of the driver; empty: not read
	Log          *slog.Logger  // nil: none
	Clock        clock.Clock   // the sampler's, for the times of readings; nil: the system's
}

// complete returns the options with defaults for those that are not set.
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
