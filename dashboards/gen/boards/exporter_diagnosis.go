package boards

import "github.com/grafana/grafana-foundation-sdk/go/units"

func diagnosisPanels() []panel {
	return []panel{
		timeline(12, about{
			title: "Work for diagnoses by namespace", unit: units.Short,
			reads: "Share of a core that finding out why claims are pending takes: the five namespaces with most. All together stay within --pending.budget. The line without a namespace has device classes and namespaces beyond the first 100.",
			empty: noClusterRole,
		}, over(`topk(5, sum by (cluster, namespace) (rate(dra_exporter_diagnosis_seconds_total{@exporters}[$__rate_interval])))`, "{{namespace}} {{cluster}}")),
		timeline(12, about{
			title: "Oldest claim without a diagnosis", unit: units.Seconds,
			reads: "How long the oldest pending claim has had no diagnosis. queued: its turn has not come; some seconds are normal. over_limit: its diagnosis needs more work than it is given.",
			empty: "all pending claims are diagnosed, or " + noClusterRole, none: noneSeen,
		}, over(`max by (cluster, cause) (time() - dra_exporter_undiagnosed_since_timestamp_seconds{@exporters})`, "{{cause}} {{cluster}}")),
	}
}
