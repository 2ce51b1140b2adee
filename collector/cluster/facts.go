// Package cluster is the cluster role: how long claims are pending, in which
// phase; which references are pending, and why; what is published and free;
// what is stuck or unhealthy. Its reducer takes the changes that the API server
// delivers, and evaluates only what they concern. All but run.go is pure.
//
// A step passes changes from stage to stage: index, lifecycle, pending,
// anomalies, traces, model and rows. Each stage is a type in a file of its own.
//
// Reasons, phases and their errors are in docs/pending.md.
package cluster

import (
	"log/slog"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// Facts is the input of a step: the changes since the step before, and the
// present values of other inputs. Step only reads it.
type Facts struct {
	Changes   []Change        // in the order of the API server
	Synced    Synced          // which collections are known as a whole
	Supply    *dra.Supply     // nil: not counted yet
	Diagnoses []dra.Diagnosis // all diagnoses, also those of steps before
	Sources   []source.Status

	Headroom *dra.Headroom // nil: not computed yet

	Work *dra.DiagnosisWork // of diagnoses since the exporter started; nil: there are none
}

// Synced records which collections are known as a whole.
type Synced = dra.Synced

// Change is one event of the API server.
type Change = dra.Change

// Config is what does not change while the cluster role runs.
type Config struct {
	Version   self.Build
	Interval  time.Duration // between two steps in which nothing has changed
	MaxSeries int           // per family; 0: no cap
	Traces    bool          // traces of claims are exported; if false nothing is kept for them
	Once      bool          // everything is diagnosed before a step: what has no diagnosis will have none
}

// Snapshot is everything there is to show of one moment. It is immutable.
type Snapshot struct {
	At           clock.Instant
	Series       *metric.Snapshot // shares what has not changed with the snapshot before
	Model        *model.Cluster
	Questions    []dra.Question // to be diagnosed, the oldest reference first
	Pending      []*PendingRef  // all pending references, likewise
	Observations []Observation  // durations that ended since the step before
	Closed       []string       // classes of which no claim is left and nothing was ever observed: their histograms go
	Opened       []Observation  // of which histograms exist from now on, with nothing observed yet
	Traces       []trace.Trace  // those that came to their end since the step before
}

// Rows returns all rows, which must not be changed.
func (s *Snapshot) Rows() []metric.Row { return s.Series.Rows() }

// PendingRef is a pod's claim reference, or its request of an extended resource,
// that is not satisfied.
type PendingRef = model.PendingRef

// Observation is a duration for a histogram.
type Observation struct {
	DeviceClass, Phase  string // of a claim
	WorkloadKind, Queue string // of the start of a workload, which has neither class nor phase

	Took  time.Duration
	Trace trace.Point // the span that took so long; zero: there is none
}

// Event is something that changed and belongs into the log, once.
type Event struct {
	Level   slog.Level
	Message string
	Attrs   []slog.Attr
}
