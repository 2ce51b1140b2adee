package self

import "github.com/dra-exporter/dra-exporter/collector/metric"

// Push are the families of pushing by OTLP. They are in the registry if pushing
// is enabled, and belong to no snapshot. The label signal is "metrics" or
// "traces".
type Push struct {
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

// NewPush makes the families.
func NewPush() *Push {
	family := func(kind metric.Type, name, unit, help string, labels ...string) *metric.Family {
		return &metric.Family{Name: name, Unit: unit, Help: help, Type: kind, Labels: labels}
	}
	return &Push{
		Up:          family(metric.Gauge, "dra_exporter_otlp_up", "", "1 if the collector took all of the last push; absent before the first", "signal"),
		Exports:     family(metric.Counter, "dra_exporter_otlp_exports_total", "", "Exports to the collector, by how they ended: taken, taken but for a part, or not", "signal", "result"),
		Sent:        family(metric.Counter, "dra_exporter_otlp_sent_total", "", "Data points or spans of the exports that the collector took", "signal"),
		Duration:    family(metric.Histogram, "dra_exporter_otlp_export_duration_seconds", "seconds", "Time that one export took, with its retries; classic buckets and native", "signal"),
		LastSuccess: family(metric.Gauge, "dra_exporter_otlp_last_success_timestamp_seconds", "seconds", "When the collector last took an export; absent before it has", "signal"),
		Queued:      family(metric.Gauge, "dra_exporter_otlp_queued_traces", "", "Traces of claims that wait to be exported"),
		Dropped:     family(metric.Counter, "dra_exporter_otlp_dropped_traces_total", "", "Traces of claims that were never exported, by reason", "reason"),
	}
}

// All returns the families, for the documentation and for checks.
func (p *Push) All() []*metric.Family {
	return []*metric.Family{p.Up, p.Exports, p.Sent, p.Duration, p.LastSuccess, p.Queued, p.Dropped}
}
