package scrape

import (
	"fmt"
	"slices"
)

// AttributionReasons is the closed set of dra_exporter_process_attribution.
func AttributionReasons() []string {
	return []string{"disabled", "no_pods", "no_procfs", "ok", "pid_namespace", "unsupported"}
}

// OneReason checks that exactly one reason of the closed set is 1, which says
// why processes are attributed or not. The others have rows at the level full only.
func OneReason(p *Page) (broken []error) {
	var unknown, now []string
	for _, row := range p.Rows("dra_exporter_process_attribution", nil) {
		if !slices.Contains(AttributionReasons(), row.Labels["reason"]) {
			unknown = append(unknown, row.Labels["reason"])
		}
		if row.Value != 0 {
			now = append(now, row.Labels["reason"])
		}
	}
	if len(unknown) > 0 || len(now) != 1 {
		broken = append(broken, fmt.Errorf("processes are attributed or not because of %q; not in the closed set: %q", now, unknown))
	}
	return broken
}
