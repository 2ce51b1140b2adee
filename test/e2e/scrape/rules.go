package scrape

import (
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Rule says what is wrong with a page, seen after the pages before it: nothing
// when all is well. It is called with each page once, in their order.
type Rule func(*Page) []error

// Rules are those that every page of an exporter's life must keep.
func Rules(grace time.Duration) []Rule {
	return []Rule{
		CountersRise(), CountersOutlive(grace), NamespacesStay(), GaugesAreHeld, GaugesAreTheDevices, InfoIsUnique,
		SumsHold, BusySumsHold, OnlyProcessesDivide, ReasonIsOne,
	}
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
// the next.
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

// CountersOutlive says that the counters of a claim go no sooner than the grace
// after it was last seen to hold the device. A second is for the time between pages.
func CountersOutlive(grace time.Duration) Rule {
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

// claimGauges are what a claim gets at the moment, and the device's own.
func claimGauges() map[string]string {
	return map[string]string{
		"dra_claim_utilization_ratio":   "dra_device_utilization_ratio",
		"dra_claim_memory_used_bytes":   "dra_device_memory_used_bytes",
		"dra_claim_power_watts":         "dra_device_power_watts",
		"dra_claim_engine_active_ratio": "dra_device_engine_active_ratio",
	}
}

// GaugesAreHeld says that what a claim gets is only shown while it holds the
// device.
func GaugesAreHeld(p *Page) (broken []error) {
	held := map[string]bool{}
	for _, row := range p.Rows("dra_claim_held", nil) {
		held[holdOf(row)] = true
	}
	gauges := []string{"dra_claim_memory_allocated_bytes", "dra_claim_idle_since_timestamp_seconds"}
	for name := range claimGauges() {
		gauges = append(gauges, name)
	}
	for _, name := range gauges {
		for _, row := range p.Rows(name, nil) {
			if !held[holdOf(row)] {
				broken = append(broken, fmt.Errorf("%s%s is there, but the claim does not hold the device", name, row.Labels))
			}
		}
	}
	return broken
}

// GaugesAreTheDevices says that a claim's gauge is the device's own, and that
// no two claims get it whole. One that is attributed by processes is no more
// than the device's own, and the device is nobody's as a whole.
func GaugesAreTheDevices(p *Page) (broken []error) {
	for claimed, owned := range claimGauges() {
		first := map[string]Row{} // that has the device, or a part of it
		for _, row := range p.Rows(claimed, nil) {
			device := Labels{"uuid": row.Labels["uuid"]}
			if engine, has := row.Labels["engine"]; has {
				device["engine"] = engine
			}
			own, err := p.One(owned, device)
			if err != nil {
				broken = append(broken, fmt.Errorf("%s%s: the device's own: %w", claimed, row.Labels, err))
			} else if !fits(row, own.Value) {
				broken = append(broken, fmt.Errorf("%s%s is %v, the device's own %v", claimed, row.Labels, row.Value, own.Value))
			}
			if row.Labels["attribution"] == "shared" {
				continue
			}
			if other, taken := first[device.String()]; taken && (!isPart(row) || !isPart(other)) {
				broken = append(broken, fmt.Errorf("%s of %s is counted for %s and for %s", claimed, device, holdOf(other), holdOf(row)))
			}
			first[device.String()] = row
		}
	}
	return broken
}

// fits compares a claim's gauge with the device's own value.
func fits(row Row, own float64) bool {
	if isPart(row) {
		return row.Value <= own*(1+tolerance)
	}
	return row.Value == own
}

// isPart tells what the claim's processes have from what the device has.
func isPart(row Row) bool { return row.Labels["attribution"] == "process" }

// InfoIsUnique says that joins on info rows find one partner.
func InfoIsUnique(p *Page) (broken []error) {
	for name, by := range map[string][]string{
		"dra_device_info":           {"node", "uuid"},
		"dra_device_published_info": {"node", "uuid"},
		"dra_claim_info":            {"node", "namespace", "resourceclaim"},
		"dra_claim_consumer_info":   {"node", "namespace", "resourceclaim", "uuid", "pod", "container"},
	} {
		seen := map[string]bool{}
		for _, row := range p.Rows(name, nil) {
			key := Labels{}
			for _, label := range by {
				key[label] = row.Labels[label]
			}
			if seen[key.String()] {
				broken = append(broken, fmt.Errorf("%s has several rows with %s", name, key))
			}
			seen[key.String()] = true
		}
	}
	return broken
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
