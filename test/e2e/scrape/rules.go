package scrape

import (
	"errors"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/internal/invariant"
)

// Rule says what is wrong with a page, seen after the pages before it: nothing
// when all is well. It is called with each page once, in their order.
type Rule func(*Page) []error

// Rules are those that every page of an exporter's life must keep.
func Rules(grace time.Duration) []Rule {
	return []Rule{Invariants(), CountersRise(), CountersKeptForGrace(grace), NamespacesStay(), OneReason}
}

// slack is how long an answer may take, and how old the exporter's snapshot may
// be when its page is asked for.
const slack = 7 * time.Second

// Invariants holds each page, and each two that follow each other, to the rules
// that the program's own tests and `check agent` use.
func Invariants() Rule {
	var watch invariant.Watch
	return func(p *Page) []error {
		page := invariant.FromFamilies(p.sorted(), p.At)
		page.Slack = slack
		return persistentViolations(watch.Next(page))
	}
}

// PageInvariants are those rules that are about a page by itself.
func PageInvariants(p *Page) []error {
	return persistentViolations(invariant.Check(invariant.FromFamilies(p.sorted(), p.At)))
}

// persistentViolations leaves out what one page may have without a bug: tests set what a
// device and its partitions show one after the other. `check agent`, which these
// tests run too, looks whether it lasts.
func persistentViolations(violations []invariant.Violation) (broken []error) {
	for _, v := range violations {
		if !v.Momentary {
			broken = append(broken, errors.New(v.String()))
		}
	}
	return broken
}

// start is when the process began that served the page: with another process
// its counters begin anew.
func start(p *Page) float64 {
	row, err := p.One("process_start_time_seconds", nil)
	if err != nil {
		return 0
	}
	return row.Value
}

// series are a page's counters by name and labels.
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

// CountersRise says that a counter never falls from one page of a process to
// the next, be it one of the hardware's: simulated hardware is never reset.
func CountersRise() Rule {
	var process float64
	var before map[string]Row
	return func(p *Page) (broken []error) {
		now := series(p, "dra_")
		if process == start(p) {
			for key, row := range now {
				if old, known := before[key]; known && row.Value < old.Value {
					broken = append(broken, fmt.Errorf("%s fell from %v to %v", key, old.Value, row.Value))
				}
			}
		}
		process, before = start(p), now
		return broken
	}
}

// CountersKeptForGrace says that the counters of a claim go no sooner than the grace
// after it was last seen to hold the device. A second is for the time between pages.
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

// NamespacesStay says that the totals of a namespace are never taken away while
// the process lives.
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

// DevicesStay says that every one of these devices is on the page, held or
// idle, with what it does.
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
