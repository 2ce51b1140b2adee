package scrape

import (
	"fmt"
	"slices"
	"strings"
)

// AttributionReasons is the closed set of dra_exporter_process_attribution.
func AttributionReasons() []string {
	return []string{"disabled", "no_pods", "no_procfs", "ok", "pid_namespace", "unsupported"}
}

// OneReason checks that exactly one reason of the closed set is 1, which says
// why processes are attributed or not.
func OneReason(p *Page) (broken []error) {
	var reasons, now []string
	for _, row := range p.Rows("dra_exporter_process_attribution", nil) {
		reasons = append(reasons, row.Labels["reason"])
		if row.Value != 0 {
			now = append(now, row.Labels["reason"])
		}
	}
	slices.Sort(reasons)
	if !slices.Equal(reasons, AttributionReasons()) || len(now) != 1 {
		broken = append(broken, fmt.Errorf("processes are attributed or not because of %q, of the reasons %s", now, strings.Join(reasons, " ")))
	}
	return broken
}
