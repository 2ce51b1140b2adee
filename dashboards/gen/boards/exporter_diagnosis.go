package boards

import "github.com/grafana/grafana-foundation-sdk/go/units"

func diagnosisPanels() []panel {
	return []panel{
		timeline(8, about{
			title: "Work for diagnoses by namespace", unit: units.Short,
			reads: "Share of a core, within --pending.budget together; the five with most. No namespace: classes, and namespaces after the first 100.",
			empty: noClusterRole,
		}, over(`topk(5, sum by (cluster, namespace) (rate(dra_exporter_diagnosis_seconds_total{@exporters}[$__rate_interval])))`, "{{namespace}} {{cluster}}")),
		timeline(8, about{
			title: "Oldest claim without a diagnosis", unit: units.Seconds,
			reads: "queued: not diagnosed yet; some seconds are normal. over_limit: the diagnosis exceeds its limit.",
			empty: "all are diagnosed, or " + noClusterRole, none: noneSeen,
		}, over(`max by (cluster, cause) (time() - dra_exporter_undiagnosed_since_timestamp_seconds{@exporters})`, "{{cause}} {{cluster}}")),
		stairs(8, about{
			title: "Queued diagnoses", unit: units.Short,
			reads: "first: no reason yet; again: after a change. If it grows for minutes, raise --pending.budget.",
			empty: noClusterRole,
		}, over(`sum by (cluster, kind) (dra_exporter_queued_diagnoses{@exporters})`, "{{kind}} {{cluster}}")),
	}
}
