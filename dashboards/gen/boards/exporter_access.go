package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// accessPanels are about who may read the exporters' pages.
func accessPanels() []panel {
	return []panel{
		timeline(24, about{
			title: "Reviews by the API server per second", unit: units.Short,
			reads: "With --web.kubernetes-auth: reviews of tokens, of the permission to get the path, and of the permission to get ResourceClaims of a namespace. denied: a client without permission; error: no answer from the API server.",
			empty: "no exporter runs with --web.kubernetes-auth, or " + noExporter,
		}, over(`sum by (cluster, review, outcome) (rate(dra_exporter_access_reviews_total{@exporters}[$__rate_interval])) > 0`, "{{review}} {{outcome}} {{cluster}}")),
	}
}
