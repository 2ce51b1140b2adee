// Package self is what the exporter says of itself, in every role: which
// version runs, how its sources are, and what did not fit on a page.
package self

import "github.com/dra-exporter/dra-exporter/collector/metric"

// Version names the build.
type Version struct {
	Version, Revision, GoVersion string
}

// Families are those that both roles have. They are made once for each role.
type Families struct {
	buildInfo, sourceUp, sourceError, sourceSuccess, sourceErrors, sourceLag, sourceQueue *metric.Family

	// Dropped tells what the caps have dropped, and has no cap itself.
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
		sourceUp:      gauge("dra_exporter_source_up", "", "1 if the last read of the source succeeded, else 0", "source"),
		sourceError:   gauge("dra_exporter_source_error_info", "", "Why the source is down or incomplete; absent without an error", "source", "reason"),
		sourceSuccess: gauge("dra_exporter_source_last_success_timestamp_seconds", "seconds", "Unix time of the last successful read of the source", "source"),
		sourceErrors:  counter("dra_exporter_source_errors_total", "Reads of the source that failed, completely or partly", "source"),
		sourceLag:     gauge("dra_exporter_source_lag_seconds", "seconds", "Age of the oldest received watch event that is not exported yet; 0 if there is none", "source"),
		sourceQueue:   gauge("dra_exporter_source_queued_events", "", "Watch events that were received and are not processed yet, at most 100", "source"),
		Dropped:       counter("dra_exporter_series_dropped_total", "Series dropped at the limit --metrics.max-series, summed over all steps; absent if none", "family"),
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
		Help: "Duration of a read of the source",
	}
}
