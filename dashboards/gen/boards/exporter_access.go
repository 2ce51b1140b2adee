package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// accessPanels are about who may read the exporters' pages.
func accessPanels() []panel {
	return []panel{
		timeline(24, about{
			title: "Reviews by the API server per second", unit: units.Short,
			reads: "With --web.kubernetes-auth: of tokens, of the path, and of ResourceClaims of a namespace. denied: no permission; error: no answer from the API server.",
			empty: "no exporter runs with it, or " + noExporter,
		}, over(`sum by (cluster, review, outcome) (rate(dra_exporter_access_reviews_total{@exporters}[$__rate_interval])) > 0`, "{{review}} {{outcome}} {{cluster}}")),
	}
}
