package boards

import "github.com/grafana/grafana-foundation-sdk/go/units"

func diagnosisPanels() []panel {
	return []panel{
		timeline(8, about{
			title: "Work for diagnoses by namespace", unit: units.Short,
			reads: "Share of a core for the diagnosis of pending claims: the five namespaces with most. Their sum stays within --pending.budget. The line without a namespace has device classes and namespaces after the first 100.",
			empty: noClusterRole,
		}, over(`topk(5, sum by (cluster, namespace) (rate(dra_exporter_diagnosis_seconds_total{@exporters}[$__rate_interval])))`, "{{namespace}} {{cluster}}")),
		timeline(8, about{
			title: "Oldest claim without a diagnosis", unit: units.Seconds,
			reads: "Age of the oldest pending claim without a diagnosis. queued: not diagnosed yet; some seconds are normal. over_limit: its diagnosis exceeds its limit.",
			empty: "all pending claims are diagnosed, or " + noClusterRole, none: noneSeen,
		}, over(`max by (cluster, cause) (time() - dra_exporter_undiagnosed_since_timestamp_seconds{@exporters})`, "{{cause}} {{cluster}}")),
		stairs(8, about{
			title: "Queued diagnoses", unit: units.Short,
			reads: "first: of pending claims that have no reason yet; again: after a change. A queue that grows for minutes needs more --pending.budget.",
			empty: noClusterRole,
		}, over(`sum by (cluster, kind) (dra_exporter_queued_diagnoses{@exporters})`, "{{kind}} {{cluster}}")),
	}
}
