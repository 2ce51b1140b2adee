// Package self has the metrics about the exporter itself, in every role: its
// version, the state of its sources, and dropped rows.
package self

import "github.com/dra-exporter/dra-exporter/collector/metric"

// Version names the build.
type Version struct {
	Version, Revision, GoVersion string
}

// Families are those that both roles have. They are made once for each role.
type Families struct {
	buildInfo, sourceUp, sourceError, sourceSuccess, sourceErrors, sourceLag, sourceQueue *metric.Family

	// Dropped counts the rows that the caps have dropped. It has no cap itself.
	Dropped *metric.Family
}

// NewFamilies makes the families.
func NewFamilies() *Families {
	gauge := func(name, unit, help string, labels ...string) *metric.Family {
		return &metric.Family{Name: name, Unit: unit, Help: help, Type: metric.Gauge, Labels: labels}
	}
	counter := func(name, help string, labels ...string) *metric.Family {
		return &metric.Family{Name: name, Help: help, Type: metric.Counter, Labels: labels}
	}
	return &Families{
		buildInfo:     gauge("dra_exporter_build_info", "", "The running version", "version", "revision", "goversion"),
		sourceUp:      gauge("dra_exporter_source_up", "", "1 if the last attempt to read the source succeeded", "source"),
		sourceError:   gauge("dra_exporter_source_error_info", "", "Why the source is down, or what is amiss though it is up; absent when well", "source", "reason"),
		sourceSuccess: gauge("dra_exporter_source_last_success_timestamp_seconds", "seconds", "When the source was last read with success", "source"),
		sourceErrors:  counter("dra_exporter_source_errors_total", "Attempts to read the source that failed, wholly or in part", "source"),
		sourceLag:     gauge("dra_exporter_source_lag_seconds", "seconds", "Time since the oldest event of the watch was received that is not shown yet; 0 when all are shown", "source"),
		sourceQueue:   gauge("dra_exporter_source_queued_events", "", "Events of the watch that were received and wait to be processed, at most 100", "source"),
		Dropped:       counter("dra_exporter_series_dropped_total", "Rows that did not fit under the family's cap, summed over all steps; absent where none were", "family"),
	}
}

// All returns the families, for the documentation and for checks.
func (f *Families) All() []*metric.Family {
	return []*metric.Family{f.buildInfo, f.sourceUp, f.sourceError, f.sourceSuccess, f.sourceErrors, f.sourceLag, f.sourceQueue, f.Dropped}
}

// ReadDuration is the one family that no snapshot holds: how long sources
// take is observed as it happens.
func ReadDuration() *metric.Family {
	return &metric.Family{
		Name: "dra_exporter_source_read_duration_seconds", Unit: "seconds", Type: metric.Histogram, Labels: []string{"source"},
		Help: "Time that one read of the source took; classic buckets and native",
	}
}
