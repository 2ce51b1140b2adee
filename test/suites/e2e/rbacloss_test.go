package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// loss is what a page lacks without a permission.
type loss struct {
	gone          []string // families without a row
	other         []string // families that have other rows, more or fewer
	maybe         []string // families that have no rows, others or the same, depending on timing
	skippedSource string   // source that is not read then, and is not up; empty: none
	description   string   // description of the loss
}

func (l loss) equals(found loss) error {
	unsure := func(family string) bool { return slices.Contains(l.maybe, family) }
	found.gone, found.other = slices.DeleteFunc(found.gone, unsure), slices.DeleteFunc(found.other, unsure)
	var errs []error
	if !slices.Equal(slices.Sorted(slices.Values(l.gone)), found.gone) {
		errs = append(errs, fmt.Errorf("gone are %q, not %q", found.gone, l.gone))
	}
	if !slices.Equal(slices.Sorted(slices.Values(l.other)), found.other) {
		errs = append(errs, fmt.Errorf("others are %q, not %q: %s", found.other, l.other, found.description))
	}
	return errors.Join(errs...)
}

// lostBetween compares the label sets of two pages, except for the families
// about the exporter itself.
func lostBetween(full, left *scrape.Page) (found loss) {
	names := map[string]bool{}
	for _, page := range []*scrape.Page{full, left} {
		for _, name := range page.Names("dra_") {
			names[name] = names[name] || !strings.HasPrefix(name, "dra_exporter_")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		had, has := rowsOf(full, name), rowsOf(left, name)
		switch {
		case !names[name]:
		case len(had) > 0 && len(has) == 0:
			found.gone = append(found.gone, name)
		case !slices.Equal(had, has):
			found.other = append(found.other, name)
			found.description += fmt.Sprintf("%s: %q, not %q\n", name, missingFrom(has, had), missingFrom(had, has))
		}
	}
	return found
}

const (
	failures  = "dra_allocation_failures_total"
	durations = "dra_allocation_duration_seconds"
)

// rowsOf returns the label sets of a family that have data: of counters, those
// above 0, and of histograms, those with observations. The cluster role's
// gauges include their values, which are constant here. Of failures only
// events are included: a pending claim counts after two seconds, and those of
// the test may last a little shorter or longer. All phases are included except
// the first: whether it is measured depends on which of two watches delivers
// first.
func rowsOf(p *scrape.Page, family string) (all []string) {
	cluster := p.Count("dra_device_info", nil) == 0
	for _, row := range p.Rows(family, nil) {
		labels := row.Labels.String()
		if family == failures && !strings.HasPrefix(row.Labels["reason"], "preparation_") && !strings.HasPrefix(row.Labels["reason"], "claim_creation_") ||
			family == durations && row.Labels["phase"] == "allocation" {
			continue
		}
		switch p.Families[family].GetType() {
		case dto.MetricType_HISTOGRAM:
			if count, _ := p.Histogram(family, row.Labels); count == 0 {
				continue
			}
		case dto.MetricType_COUNTER:
			if row.Value == 0 {
				continue
			}
		default:
			if cluster {
				labels += fmt.Sprint(" ", row.Value)
			}
		}
		all = append(all, labels)
	}
	return all
}
