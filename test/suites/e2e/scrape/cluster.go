package scrape

import (
	"fmt"
	"slices"
	"time"
)

// ClusterRules are the rules that every page of the cluster role must follow.
func ClusterRules() []Rule {
	return []Rule{CountersRise(0), HistogramsRise(), StartTimesStay(), PendingIsConsistent, StagesNarrow, DeviceStatesComplete}
}

// HistogramsRise returns a rule that the histograms of the exporter do not
// lose observations while the process runs.
func HistogramsRise() Rule {
	var process float64
	var before map[string]float64
	return func(p *Page) (broken []error) {
		now := map[string]float64{}
		for _, name := range p.Names("dra_") {
			for _, m := range p.Families[name].GetMetric() {
				if m.Histogram != nil {
					now[name+labelsOf(m).String()] = float64(m.Histogram.GetSampleCount())
				}
			}
		}
		if process == start(p) {
			for key, old := range before {
				if now[key] < old {
					broken = append(broken, fmt.Errorf("the count of %s fell from %v to %v", key, old, now[key]))
				}
			}
		}
		process, before = start(p), now
		return broken
	}
}

// startTimeFamilies are the families whose values are start times.
func startTimeFamilies() []string {
	return []string{"dra_claim_pending_since_timestamp_seconds", "dra_claim_phase_since_timestamp_seconds", "dra_claim_terminating_since_timestamp_seconds"}
}

// StartTimesStay returns a rule that a start time does not move back, and is
// not in the future. It applies over restarts too, because these times are the
// API server's.
func StartTimesStay() Rule {
	before := map[string]float64{}
	return func(p *Page) (broken []error) {
		now := map[string]float64{}
		for _, name := range startTimeFamilies() {
			for _, row := range p.Rows(name, nil) {
				key := name + row.Labels.String()
				now[key] = row.Value
				if old, known := before[key]; known && row.Value < old {
					broken = append(broken, fmt.Errorf("%s moved from %v back to %v", key, old, row.Value))
				}
				if ahead := row.Value - float64(p.At.Add(time.Second).Unix()); ahead > 1 {
					broken = append(broken, fmt.Errorf("%s is %v s in the future", key, ahead))
				}
			}
		}
		before = now
		return broken
	}
}

// Reasons is the closed set of metrics.md.
func Reasons() []string {
	return []string{
		"claim_missing", "claim_not_created", "claim_unusable", "quota", "no_device_class", "no_matching_device", "tainted", "insufficient_devices",
		"fragmented", "compute_domain", "gang_quorum", "constraints_unsatisfiable", "pool_incomplete", "binding_conditions", "other_constraints", "scheduling_gated", "queue_quota",
		"undetermined", "pending_diagnosis", "unknown",
	}
}

func pendingRef(row Row) string {
	return row.Labels["namespace"] + "/" + row.Labels["pod"] + " " + row.Labels["pod_claim"]
}

// PendingIsConsistent checks that each pending claim reference has one row, and one
// reason of the closed set, and that no other reference has a reason or requests.
func PendingIsConsistent(p *Page) (broken []error) {
	waiting, reasoned := map[string]int{}, map[string]int{}
	for _, row := range p.Rows("dra_claim_pending_since_timestamp_seconds", nil) {
		waiting[pendingRef(row)]++
	}
	for _, row := range p.Rows("dra_claim_pending_reason_info", nil) {
		reasoned[pendingRef(row)]++
		if !slices.Contains(Reasons(), row.Labels["reason"]) {
			broken = append(broken, fmt.Errorf("%s waits for the reason %q", pendingRef(row), row.Labels["reason"]))
		}
	}
	for ref, rows := range waiting {
		if rows != 1 || reasoned[ref] != 1 {
			broken = append(broken, fmt.Errorf("%s has %d rows since when it waits, and %d reasons", ref, rows, reasoned[ref]))
		}
	}
	for ref := range reasoned {
		if waiting[ref] == 0 {
			broken = append(broken, fmt.Errorf("%s has a reason and does not wait", ref))
		}
	}
	for _, row := range p.Rows("dra_claim_pending_candidates", nil) {
		if waiting[pendingRef(row)] == 0 {
			broken = append(broken, fmt.Errorf("%s has requests and does not wait", pendingRef(row)))
		}
	}
	return broken
}

// Stages are the stages of a request, in their order.
func Stages() []string {
	return []string{"published", "class", "selectors", "untainted", "free", "best_node"}
}

// StagesNarrow checks that no stage of a request leaves more devices than the
// one before.
func StagesNarrow(p *Page) (broken []error) {
	requests := map[string]map[string]float64{}
	for _, row := range p.Rows("dra_claim_pending_candidates", nil) {
		key := pendingRef(row) + " " + row.Labels["request"]
		if requests[key] == nil {
			requests[key] = map[string]float64{}
		}
		requests[key][row.Labels["stage"]] = row.Value
	}
	for key, request := range requests {
		if len(request) != len(Stages()) {
			broken = append(broken, fmt.Errorf("the request %s has the stages %v", key, request))
			continue
		}
		for i, stage := range Stages()[1:] {
			if previous := Stages()[i]; request[stage] > request[previous] || request[stage] < 0 {
				broken = append(broken, fmt.Errorf("the request %s has %v at %s and %v at %s", key, request[previous], previous, request[stage], stage))
			}
		}
	}
	return broken
}

// DeviceStatesComplete checks that devices are counted in all states or in none. Of a pool
// without unavailable devices there is no row of 0.
func DeviceStatesComplete(p *Page) (broken []error) {
	for name, all := range map[string][]string{"dra_devices": {"allocated", "free"}, "dra_class_devices": {"allocated", "free", "unavailable"}} {
		states := map[string]int{}
		for _, row := range p.Rows(name, nil) {
			rest := Labels{}
			for label, value := range row.Labels {
				if label != "state" {
					rest[label] = value
				}
			}
			states[rest.String()] += 0
			if slices.Contains(all, row.Labels["state"]) {
				states[rest.String()]++
			}
		}
		for key, n := range states {
			if n != len(all) {
				broken = append(broken, fmt.Errorf("%s%s has %d states", name, key, n))
			}
		}
	}
	return broken
}
