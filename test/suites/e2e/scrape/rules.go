package scrape

import (
	"errors"
	"fmt"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/test/tools/invariant"
)

// Rule returns the violations on a page, given the pages before it. It is
// called once for each page, in their order.
type Rule func(*Page) []error

// Rules are the rules that every page of an exporter must follow.
func Rules(grace time.Duration) []Rule {
	return []Rule{Invariants(), CountersRise(grace), CountersKeptForGrace(grace), NamespacesStay(), OneReason}
}

// slack is the sum of the longest duration of a scrape and the greatest age of
// the exporter's snapshot at its start.
const slack = 7 * time.Second

// Invariants returns a rule that checks each page, and each two consecutive
// pages, by the rules that the program's own tests use.
func Invariants() Rule {
	var watch invariant.Watch
	return func(p *Page) []error {
		page := invariant.FromFamilies(p.sorted(), p.At)
		page.Slack = slack
		return persistentViolations(watch.Next(page))
	}
}

// PageInvariants checks the invariants of a single page.
func PageInvariants(p *Page) []error {
	return persistentViolations(invariant.Check(invariant.FromFamilies(p.sorted(), p.At)))
}

// persistentViolations omits violations that one page may have without a bug,
// because tests change a device and its partitions one after the other.
func persistentViolations(violations []invariant.Violation) (broken []error) {
	for _, v := range violations {
		if !v.Momentary {
			broken = append(broken, errors.New(v.String()))
		}
	}
	return broken
}

// start returns the start time of the process that served the page. Counters
// of another process begin again.
func start(p *Page) float64 {
	row, err := p.One("process_start_time_seconds", nil)
	if err != nil {
		return 0
	}
	return row.Value
}

// series returns a page's counters by name and labels.
func series(p *Page, prefix string) map[string]Row {
	found := map[string]Row{}
	for _, name := range p.Names(prefix) {
		if p.Families[name].GetType() != dto.MetricType_COUNTER {
			continue
		}
		for _, row := range p.Rows(name, nil) {
			found[name+row.Labels.String()] = row
		}
	}
	return found
}

// CountersRise returns a rule that a counter does not decrease between two
// pages of a process, including those of hardware: simulated hardware is never
// reset. The counters of a claim begin again if a claim of its name holds the
// device after the grace period, which may end between two pages.
func CountersRise(grace time.Duration) Rule {
	var process float64
	var before map[string]Row
	held := map[string]time.Time{} // on pages before
	return func(p *Page) (broken []error) {
		now := series(p, "dra_")
		if process == start(p) {
			for key, row := range now {
				last, ofClaim := held[holdOf(row)]
				evicted := ofClaim && strings.HasPrefix(key, "dra_claim_") && p.At.Sub(last) >= grace-time.Second
				if old, known := before[key]; known && row.Value < old.Value && !evicted {
					broken = append(broken, fmt.Errorf("%s fell from %v to %v", key, old.Value, row.Value))
				}
			}
		}
		for _, row := range p.Rows("dra_claim_held", nil) {
			held[holdOf(row)] = p.At
		}
		process, before = start(p), now
		return broken
	}
}

// CountersKeptForGrace returns a rule that the counters of a claim remain for
// at least the grace period after it last held the device. The tolerance is
// one second, for the time between pages.
func CountersKeptForGrace(grace time.Duration) Rule {
	var process float64
	var before map[string]Row
	held := map[string]time.Time{}
	return func(p *Page) (broken []error) {
		for _, row := range p.Rows("dra_claim_held", nil) {
			held[holdOf(row)] = p.At
		}
		now := series(p, "dra_claim_")
		if process == start(p) {
			for key, row := range before {
				if _, still := now[key]; !still && p.At.Sub(held[holdOf(row)]) < grace-time.Second {
					broken = append(broken, fmt.Errorf("%s went %s after it was last held", key, p.At.Sub(held[holdOf(row)])))
				}
			}
		}
		process, before = start(p), now
		return broken
	}
}

// NamespacesStay returns a rule that the totals of a namespace remain while
// the process runs.
func NamespacesStay() Rule {
	var process float64
	var before map[string]Row
	return func(p *Page) (broken []error) {
		now := series(p, "dra_namespace_")
		if process == start(p) {
			for key := range before {
				if _, still := now[key]; !still {
					broken = append(broken, fmt.Errorf("%s is gone", key))
				}
			}
		}
		process, before = start(p), now
		return broken
	}
}

func holdOf(row Row) string {
	return row.Labels["namespace"] + "/" + row.Labels["resourceclaim"] + " " + row.Labels["uuid"]
}

// DevicesStay returns a rule that every one of these devices is on the page,
// held or idle, with its values.
func DevicesStay(uuids ...string) Rule {
	return func(p *Page) (broken []error) {
		for _, uuid := range uuids {
			for _, name := range []string{"dra_device_info", "dra_device_utilization_ratio", "dra_device_memory_used_bytes"} {
				if _, err := p.One(name, Labels{"uuid": uuid}); err != nil {
					broken = append(broken, err)
				}
			}
		}
		return broken
	}
}
