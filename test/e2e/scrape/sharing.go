package scrape

import (
	"fmt"
	"slices"
	"strings"
)

// tolerance is for sums of numbers that have been added in another order.
const tolerance = 1e-9

// divisible is a quantity that the processes on a device divide: the families
// that have the device's own value, and those of whom it is divided among.
type divisible struct{ device, claim, pod, unattributed string }

func divisibles() []divisible {
	return []divisible{
		{"dra_device_utilization_ratio", "dra_claim_utilization_ratio", "dra_pod_utilization_ratio", "dra_device_unattributed_utilization_ratio"},
		{"dra_device_memory_used_bytes", "dra_claim_memory_used_bytes", "dra_pod_memory_used_bytes", "dra_device_unattributed_memory_bytes"},
	}
}

// SumsHold says that what claims have of a device is no more than the device's
// own value, and so for pods, nor is it together with what nobody has. What is
// shared is the device's own and not for adding; what nobody has is a part of
// what a claim has that is alone.
func SumsHold(p *Page) (broken []error) {
	for _, quantity := range divisibles() {
		claims, pods := map[string]float64{}, map[string]float64{}
		for _, row := range p.Rows(quantity.claim, nil) {
			if row.Labels["attribution"] != "shared" {
				claims[row.Labels["uuid"]] += row.Value
			}
		}
		for _, row := range p.Rows(quantity.pod, nil) {
			pods[row.Labels["uuid"]] += row.Value
		}
		for _, row := range p.Rows(quantity.unattributed, nil) {
			pods[row.Labels["uuid"]] += row.Value
			if p.Count(quantity.claim, Labels{"uuid": row.Labels["uuid"], "attribution": "exclusive"}) == 0 {
				claims[row.Labels["uuid"]] += row.Value
			}
		}
		for _, row := range p.Rows(quantity.device, nil) {
			uuid := row.Labels["uuid"]
			for of, sum := range map[string]float64{"claims": claims[uuid], "pods": pods[uuid]} {
				if sum > row.Value*(1+tolerance) {
					broken = append(broken, fmt.Errorf("the %s of %s have %v of its %s, which is %v", of, uuid, sum, quantity.device, row.Value))
				}
			}
		}
	}
	return broken
}

// busySlack is for what a step has credited to claims by one reading, and will
// to the device by the next, in seconds.
const busySlack = 2

// BusySumsHold says that all claims together have not kept a device busy for
// longer than it was. What is shared is nobody's time.
func BusySumsHold(p *Page) (broken []error) {
	claims := map[string]float64{}
	for _, row := range p.Rows("dra_claim_busy_seconds_total", nil) {
		if row.Labels["attribution"] != "shared" {
			claims[row.Labels["uuid"]] += row.Value
		}
	}
	for _, row := range p.Rows("dra_device_busy_seconds_total", nil) {
		if sum := claims[row.Labels["uuid"]]; sum > row.Value+busySlack {
			broken = append(broken, fmt.Errorf("claims have kept %s busy for %v s, which was so for %v s", row.Labels["uuid"], sum, row.Value))
		}
	}
	return broken
}

// byProcess are the families whose attribution may be "process".
func byProcess() []string {
	return []string{
		"dra_claim_utilization_ratio", "dra_claim_memory_used_bytes",
		"dra_claim_busy_seconds_total", "dra_claim_idle_since_timestamp_seconds",
	}
}

// OnlyProcessesDivide says that nothing is attributed by processes that they do
// not tell of, that no partition is, and that a device divided among claims by
// its processes is so for what none of them has, too.
func OnlyProcessesDivide(p *Page) (broken []error) {
	parts := map[string]bool{}
	for _, row := range p.Rows("dra_device_info", nil) {
		parts[row.Labels["uuid"]] = row.Labels["parent_uuid"] != ""
	}
	for _, name := range p.Names("dra_") {
		for _, row := range p.Rows(name, Labels{"attribution": "process"}) {
			if !slices.Contains(byProcess(), name) || parts[row.Labels["uuid"]] {
				broken = append(broken, fmt.Errorf("%s%s cannot be known of processes", name, row.Labels))
			}
		}
	}
	for _, quantity := range divisibles() {
		for _, row := range slices.Concat(p.Rows(quantity.claim, Labels{"attribution": "process"}), p.Rows(quantity.pod, nil)) {
			if p.Count(quantity.unattributed, Labels{"uuid": row.Labels["uuid"]}) != 1 {
				broken = append(broken, fmt.Errorf("of the device of %s%s nobody knows what is unattributed", quantity.claim, row.Labels))
			}
		}
	}
	return broken
}

// AttributionReasons is the closed set of dra_exporter_process_attribution.
func AttributionReasons() []string {
	return []string{"disabled", "no_pods", "no_procfs", "ok", "pid_namespace", "unsupported"}
}

// ReasonIsOne says that one reason of the closed set is why processes are
// attributed or are not, and that none is where they are not.
func ReasonIsOne(p *Page) (broken []error) {
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
