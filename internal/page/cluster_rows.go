package page

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// ClusterFromRows makes the view of a snapshot's rows, as of a moment, as
// FromRows does for a node.
func ClusterFromRows(rows []metric.Row, at time.Time) ClusterView {
	r := newClusterReader(at)
	readRows(rows, r, clusterReaders())
	return r.finish()
}

// clusterReaders says what each family adds to a view.
func clusterReaders() map[string]func(*clusterReader, metric.Row) {
	return map[string]func(*clusterReader, metric.Row){
		"dra_claim_pending_since_timestamp_seconds": (*clusterReader).pendingSince,
		"dra_claim_pending_reason_info":             (*clusterReader).pendingReason,
		"dra_claim_pending_requested_devices":       (*clusterReader).pendingRequested,
		"dra_claim_pending_candidates":              (*clusterReader).pendingCandidates,
		"dra_claim_phase_since_timestamp_seconds":   (*clusterReader).phaseSince,

		"dra_claims":            (*clusterReader).claims,
		"dra_device_class_info": (*clusterReader).classInfo,
		"dra_class_devices":     (*clusterReader).classDevices,
		"dra_devices":           (*clusterReader).devices,
		"dra_pool_complete":     (*clusterReader).poolComplete,
		"dra_pool_slices":       (*clusterReader).poolSlices,
		"dra_capacity":          (*clusterReader).capacityTotal,
		"dra_capacity_consumed": (*clusterReader).capacityConsumed,

		"dra_claim_terminating_since_timestamp_seconds": (*clusterReader).terminating,
		"dra_claim_orphaned":                            (*clusterReader).orphaned,
		"dra_device_health_disagreement":                (*clusterReader).disagreement,
		"dra_device_taints":                             (*clusterReader).tainted,
		"dra_pod_taint_evictions_total":                 (*clusterReader).evictions,

		"dra_exporter_clock_anomalies_total":                 (*clusterReader).clockAnomalies,
		"dra_exporter_series_dropped_total":                  (*clusterReader).dropped,
		"dra_exporter_build_info":                            (*clusterReader).clusterBuild,
		"dra_exporter_source_up":                             ofSource((*sourceReader).sourceUp),
		"dra_exporter_source_error_info":                     ofSource((*sourceReader).sourceError),
		"dra_exporter_source_last_success_timestamp_seconds": ofSource((*sourceReader).sourceSuccess),
	}
}

// ofSource reads a family that both roles have.
func ofSource(read func(*sourceReader, metric.Row)) func(*clusterReader, metric.Row) {
	return func(r *clusterReader, row metric.Row) { read(&r.sourceReader, row) }
}
