package nvml

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Options are what the source can be told. The zero value is what it does by
// itself.
type Options struct {
	Library   string        // path of libnvidia-ml.so.1; empty: where the system finds it
	Links     bool          // read each NVLink by itself, not only their sum
	Profiling bool          // read engine activity (GPM)
	Interval  time.Duration // between two fast reads; 0: the sampler's default
	Sysfs     string        // where sysfs is mounted; empty: /sys
	Clock     clock.Clock   // the sampler's: readings have times of it; nil: one of its own

	// Processes says, at each read, whether to list the processes that use
	// a GPU. It must be safe for concurrent use; nil: they are not listed.
	Processes func() bool
}
