// Package self has the families about the exporter itself, for every role: its
// version, the state of its sources, dropped series, pushes and reloads.
package self

import "github.com/dra-exporter/dra-exporter/collector/metric"

// Build names the build.
type Build struct {
	Version, Revision, GoVersion string
}

// Families are those that both roles have. They are made once for each role.
type Families struct {
	metric.Table
	buildInfo, sourceUp, sourceError, sourceSuccess, sourceErrors, sourceLag, sourceQueue *metric.Family

	// Dropped counts what the limits have dropped, and has no limit itself.
	Dropped *metric.Family

	labels map[rowKey]*metric.Labels // of rows so far: snapshots share rows with the same ones
}

// rowKey identifies the labels of a row. Sources, reasons and families are few.
type rowKey struct {
	family *metric.Family
	values [3]string
}

// NewFamilies makes the families.
func NewFamilies() *Families {
	f := &Families{labels: make(map[rowKey]*metric.Labels)}
	f.buildInfo = f.Add(metric.Gauge, metric.ExporterBuildInfo, "", "The running version", "version", "revision", "goversion")
	f.sourceUp = f.Add(metric.Gauge, metric.ExporterSourceUp, "", "1 if the last read of the source succeeded, else 0; absent while it is released", "source")
	f.sourceError = f.Add(metric.Gauge, metric.ExporterSourceErrorInfo, "", "Why the source is down or incomplete; absent without an error", "source", "reason")
	f.sourceSuccess = f.Add(metric.Gauge, metric.ExporterSourceLastSuccessTimestampSeconds, "seconds", "Unix time of the last successful read of the source", "source")
	f.sourceErrors = f.Add(metric.Counter, "dra_exporter_source_errors_total", "", "Errors of the source by reason: failed (reads that failed, completely or partly), implausible (readings that cannot be true and were left out)", "source", "reason")
	f.sourceLag = f.Add(metric.Gauge, "dra_exporter_source_lag_seconds", "seconds", "Age of the oldest received watch event that is not exported yet; 0 if there is none", "source")
	f.sourceQueue = f.Add(metric.Gauge, "dra_exporter_source_queued_events", "", "Watch events that were received and are not processed yet, at most 100", "source")
	f.Dropped = f.Add(metric.Counter, metric.ExporterSeriesDropped, "", "Series dropped at the limit --metrics.max-series, summed over all steps; absent if none", "family")
	return f
}

// ReadDuration is observed when it happens, and is in no snapshot.
func ReadDuration() *metric.Family {
	return &metric.Family{
		Name: metric.ExporterSourceReadDurationSeconds, Unit: "seconds", Type: metric.Histogram, Labels: []string{"source"},
		Help: "Duration of a read of the source",
	}
}

// Steps are the families about the steps of a role's reducer. They are observed
// when they happen, and are in no snapshot.
type Steps struct {
	metric.Table

	Count, Seconds *metric.Family
}

// NewSteps makes the families.
func NewSteps() *Steps {
	s := &Steps{}
	s.Count = s.Add(metric.Counter, "dra_exporter_steps_total", "", "Steps in which the exporter computed a new page from what it has read")
	s.Seconds = s.Add(metric.Counter, "dra_exporter_step_seconds_total", "seconds", "Time that these steps took")
	return s
}

// PushFamilies are the families of pushing by OTLP. They live in the registry, are
// there only where something is pushed, and belong to no snapshot. The label
// signal is "metrics" or "traces".
type PushFamilies struct {
	metric.Table
	// Up is 1 if all of the last push was taken, but for what was rejected of it;
	// absent before the first.
	Up *metric.Family
	// Exports counts exports by result: "success", "partial" (taken, but for a
	// part that the collector rejected) or "failure".
	Exports *metric.Family
	// Sent counts data points or spans of the exports that were taken.
	Sent *metric.Family
	// Duration is how long an export took, its retries included.
	Duration *metric.Family
	// LastSuccess is when an export was last taken, absent before.
	LastSuccess *metric.Family
	// Queued is how many traces wait to be exported.
	Queued *metric.Family
	// Dropped counts traces that were never exported, by reason: "queue_full",
	// "refused" (the collector will not take them, however often asked) or
	// "shutdown".
	Dropped *metric.Family
}

// NewPushFamilies makes the families.
func NewPushFamilies() *PushFamilies {
	p := &PushFamilies{}
	p.Up = p.Add(metric.Gauge, metric.ExporterOTLPUp, "", "1 if the collector accepted the whole last push, else 0; absent before the first", "signal")
	p.Exports = p.Add(metric.Counter, "dra_exporter_otlp_exports_total", "", "Exports to the collector by result: success, partial, failure", "signal", "result")
	p.Sent = p.Add(metric.Counter, "dra_exporter_otlp_sent_total", "", "Data points or spans of the exports that the collector accepted", "signal")
	p.Duration = p.Add(metric.Histogram, "dra_exporter_otlp_export_duration_seconds", "seconds", "Duration of an export with its retries", "signal")
	p.LastSuccess = p.Add(metric.Gauge, "dra_exporter_otlp_last_success_timestamp_seconds", "seconds", "Unix time of the last export that the collector accepted; absent before the first", "signal")
	p.Queued = p.Add(metric.Gauge, "dra_exporter_otlp_queued_traces", "", "Claim traces that are queued for export")
	p.Dropped = p.Add(metric.Counter, "dra_exporter_otlp_dropped_traces_total", "", "Claim traces that were discarded before export, by reason", "reason")
	return p
}

// Reload are the families of reading configuration files again, under the names
// that Prometheus' programs give them. They live in the registry, and are there
// only where a file can be reloaded.
type Reload struct {
	metric.Table

	Successful *metric.Family
	// LastSuccess is at the start of the process before the first reload.
	LastSuccess *metric.Family
}

// NewReload makes the families.
func NewReload() *Reload {
	r := &Reload{}
	r.Successful = r.Add(metric.Gauge, "dra_exporter_config_last_reload_successful", "", "1 if the last reload of the price list succeeded, 0 if the previous list is in use")
	r.LastSuccess = r.Add(metric.Gauge, "dra_exporter_config_last_reload_success_timestamp_seconds", "seconds", "Unix time of the last successful read of the price list")
	return r
}

// AccessReviews counts the reviews by which the API server decides who may read
// the pages. It lives in the registry, where --web.kubernetes-auth is on. The
// label review is "token", "path" or "namespace", outcome "allowed", "denied" or
// "error".
func AccessReviews() *metric.Family {
	return &metric.Family{
		Name: "dra_exporter_access_reviews_total", Type: metric.Counter, Labels: []string{"review", "outcome"},
		Help: "Access reviews by the API server for readers of the pages; cached decisions need none",
	}
}
