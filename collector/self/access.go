package self

import "github.com/dra-exporter/dra-exporter/collector/metric"

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
