package self

import "github.com/dra-exporter/dra-exporter/collector/metric"

// AccessReviews counts the reviews by which the API server authorizes readers
// of the pages. It is in the registry if --web.kubernetes-auth is on. The label
// review is "token", "path" or "namespace", outcome "allowed", "denied" or
// "error".
func AccessReviews() *metric.Family {
	return &metric.Family{
		Name: "dra_exporter_access_reviews_total", Type: metric.Counter, Labels: []string{"review", "outcome"},
		Help: "Reviews by the API server of who may read the pages; what is remembered needs none",
	}
}
