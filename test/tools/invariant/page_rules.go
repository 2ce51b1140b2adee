package invariant

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

func uniqueSeries(v *view, f *findings) {
	seed := maphash.MakeSeed()
	for _, name := range v.names {
		rows := v.families[name]
		if len(rows) < 2 {
			continue
		}
		seen := make(map[uint64]int, len(rows))
		for i, row := range rows {
			sum := hashOf(seed, row)
			first, twice := seen[sum]
			seen[sum] = i
			if twice && seriesText(rows[first]) == seriesText(row) {
				f.add(row.Labels.Get("uuid"), nil, "%s is on the page twice, with %v and with %v", short(seriesText(row)), rows[first].Value, row.Value)
			}
		}
	}
}

// hashOf returns the same value for the same labels in any order.
func hashOf(seed maphash.Seed, row Series) uint64 {
	sum := uint64(0)
	for name, value := range row.Labels.Each {
		sum += maphash.String(seed, name)*31 ^ maphash.String(seed, value)
	}
	return sum
}

// seriesText returns the series as in an exposition, labels sorted by name.
func seriesText(row Series) string {
	var labels []string
	for name, value := range row.Labels.Each {
		labels = append(labels, name+`="`+value+`"`)
	}
	slices.Sort(labels)
	return row.Name + "{" + strings.Join(labels, ",") + "}"
}

// infoKeys are the labels by which queries join each info family.
func infoKeys() map[string][]string {
	return map[string][]string{
		metric.DeviceInfo:          {"node", "uuid"},
		metric.DeviceHardwareInfo:  {"node", "uuid"},
		metric.DevicePublishedInfo: {"node", "uuid"},
		metric.DevicePartitionInfo: {"node", "uuid"},
		metric.DeviceTopologyInfo:  {"node", "uuid"},
		metric.ClaimInfo:           {"node", "namespace", "resourceclaim"},
		metric.ClaimTopologyInfo:   {"node", "namespace", "resourceclaim", "between"},
		metric.PodTopologyInfo:     {"node", "namespace", "pod", "between"},
		metric.ClaimConsumerInfo:   {"node", "namespace", "resourceclaim", "uuid", "pod", "container"},
	}
}

func uniqueInfo(v *view, f *findings) {
	for family, labels := range infoKeys() {
		seen := map[[6]string]bool{}
		for _, row := range v.families[family] {
			var key [6]string
			for i, label := range labels {
				key[i] = row.Labels.Get(label)
			}
			if seen[key] {
				f.add(row.Labels.Get("uuid"), nil, "%s has several rows with the same %s: %s", family, strings.Join(labels, ", "), short(strings.Join(key[:len(labels)], ", ")))
			}
			seen[key] = true
		}
	}
}

func valueRange(v *view, f *findings) {
	for _, name := range v.names {
		low, high, says := math.Inf(-1), math.Inf(1), "which is not a number"
		switch {
		case strings.HasSuffix(name, "_ratio"):
			low, high, says = 0, 1+tolerance, "which is not from 0 to 1"
		case isCounter(name):
			low, says = 0, "which is impossible for a counter"
		}
		for _, row := range v.families[name] {
			if x := row.Value; math.IsNaN(x) || math.IsInf(x, 0) || x < low || x > high {
				f.add(row.Labels.Get("uuid"), nil, "%s is %v, %s", short(seriesText(row)), x, says)
			}
		}
	}
}

// isQuantity reports whether a family is measured by hardware. Others are Kubernetes'
// information on a device: holders and their times, allocations, names, health reported
// by other sources.
func isQuantity(family string, row Series) bool {
	switch {
	case strings.HasSuffix(family, "_info"), family == metric.DeviceHolders:
		return false
	case family == metric.DeviceHealthy:
		return row.Labels.Get("by") == "hardware"
	case strings.HasPrefix(family, ofClaim):
		return row.Labels.Get("attribution") != ""
	case strings.HasPrefix(family, ofDevice):
		return hasLabel(row, "parent_uuid")
	default:
		return strings.HasPrefix(family, ofPod)
	}
}

func hasLabel(row Series, label string) bool {
	for name := range row.Labels.Each {
		if name == label {
			return true
		}
	}
	return false
}

func hardwareKnown(v *view, f *findings) {
	if !v.whole(metric.DeviceInfo) {
		return
	}
	families := map[string]*names{} // of each device, those that it should not have
	for _, name := range v.names {
		for _, row := range v.families[name] {
			uuid := row.Labels.Get("uuid")
			if uuid == "" || v.devices[uuid].source != "" || !isQuantity(name, row) {
				continue
			}
			if _, listed := v.devices[uuid]; !listed && isCounter(name) {
				continue // counters of a claim may be shown one step longer than its device
			}
			if families[uuid] == nil {
				families[uuid] = &names{}
			}
			families[uuid].add(name)
		}
	}
	for uuid, found := range families {
		f.add(uuid, namesOf(v.holders[uuid]).first, "the hardware of %s is unknown (its dra_device_info has no source, or is not there), but it has %s", short(uuid), found)
	}
}

func holdersAgree(v *view, f *findings) {
	if !v.whole(metric.ClaimHeld) || !v.whole(metric.DeviceHolders) {
		return
	}
	counted := map[string]bool{}
	for _, row := range v.families[metric.DeviceHolders] {
		uuid := row.Labels.Get("uuid")
		if row.Labels.Get("kind") != "claim" {
			continue
		}
		counted[uuid] = true
		if held := len(v.holders[uuid]); float64(held) != row.Value {
			f.add(uuid, namesOf(v.holders[uuid]).first, "dra_device_holders counts %v claims that hold %s, and dra_claim_held has %d", row.Value, short(uuid), held)
		}
	}
	for uuid, claims := range v.holders {
		if !counted[uuid] {
			f.add(uuid, namesOf(claims).first, "claims hold %s, which has no row of dra_device_holders", short(uuid))
		}
	}
}

func gaugesHeld(v *view, f *findings) {
	if !v.whole(metric.ClaimHeld) {
		return
	}
	for _, name := range v.names {
		if !strings.HasPrefix(name, ofClaim) || isCounter(name) || strings.HasSuffix(name, "_info") {
			continue
		}
		for _, row := range v.families[name] {
			if h := holdOf(row); h.uuid != "" && !v.held[h] {
				f.add(h.uuid, []string{h.String()}, "%s has %s of %s, which it does not hold", short(h.String()), name, short(h.uuid))
			}
		}
	}
}

func exclusiveHolder(v *view, f *findings) {
	type account struct{ uuid, attribution string }
	type found struct{ claims, families names }
	var order []account
	alone := map[account]*found{}
	for _, name := range v.names {
		if !strings.HasPrefix(name, ofClaim) || isCounter(name) {
			continue // counters of an earlier attribution stay on the page
		}
		for _, row := range v.families[name] {
			a := account{row.Labels.Get("uuid"), row.Labels.Get("attribution")}
			if a.attribution != "exclusive" && a.attribution != "partition" {
				continue
			}
			if alone[a] == nil {
				order, alone[a] = append(order, a), &found{}
			}
			alone[a].claims.add(holdOf(row).claim.String())
			alone[a].families.add(name)
		}
	}
	beside := v.heldBeside()
	for _, a := range order {
		if but := v.whyNotExclusive(a.uuid, a.attribution, beside); but != "" {
			who := alone[a]
			holders := namesOf(v.holders[a.uuid])
			f.add(a.uuid, slices.Concat(who.claims.first, holders.first), "%s as %s of %s for %s, but %s", &who.families, a.attribution, short(a.uuid), &who.claims, but)
		}
	}
}

// whyNotExclusive returns why no claim can have the attribution on the device; empty
// if one can.
func (v *view) whyNotExclusive(uuid, attribution string, beside map[string]string) string {
	device, claims := v.devices[uuid], v.holders[uuid]
	switch {
	case len(claims) > 1:
		return fmt.Sprintf("%d claims hold the device: %s", len(claims), namesOf(claims))
	case device.plugins > 0:
		return fmt.Sprintf("pods hold it through a device plugin, too: %d", device.plugins)
	case beside[uuid] != "":
		return fmt.Sprintf("%s is held too, which is its parent or its partition", short(beside[uuid]))
	case device.source != "" && (device.parent != "") != (attribution == "partition"):
		return fmt.Sprintf("its parent_uuid is %q", short(device.parent))
	default:
		return ""
	}
}

// heldBeside returns, for each device, its parent or one of its partitions that
// is held: then no claim holds the device exclusively.
func (v *view) heldBeside() map[string]string {
	isHeld := func(uuid string) bool { return len(v.holders[uuid]) > 0 || v.devices[uuid].plugins > 0 }
	beside := map[string]string{}
	for uuid, device := range v.devices {
		if device.parent == "" {
			continue
		}
		if isHeld(uuid) && (beside[device.parent] == "" || uuid < beside[device.parent]) {
			beside[device.parent] = uuid
		}
		if isHeld(device.parent) {
			beside[uuid] = device.parent
		}
	}
	return beside
}

// byProcess reports whether the quantity is known by process: it has an
// unattributed part, or follows from one that has.
func byProcess(quantity string) bool {
	switch quantity {
	case "utilization_ratio", "memory_used_bytes", "busy_seconds_total", "idle_since_timestamp_seconds":
		return true
	default:
		return false
	}
}

func processSplit(v *view, f *findings) {
	for _, u := range v.uses {
		family := ofClaim + u.quantity
		_, unattributed := Counterparts(family)
		var split names
		for _, s := range u.shares {
			if s.attribution == "process" {
				split.add(s.String())
			}
		}
		switch {
		case split.count == 0:
		case !byProcess(u.quantity):
			f.add(u.uuid, split.first, "%s of %s for %s is attributed by process, but this quantity is not known per process", family, short(u.uuid), &split)
		case v.devices[u.uuid].parent != "":
			f.add(u.uuid, split.first, "%s of the partition %s for %s is attributed by process, but processes are not known per partition", family, short(u.uuid), &split)
		}
		gauge := !isCounter(u.quantity) && u.quantity != "idle_since_timestamp_seconds"
		if gauge && split.count+len(u.pods) > 0 && !u.measured && v.whole(unattributed) {
			f.add(u.uuid, split.first, "%s of %s is split by processes, but the device has no %s", family, short(u.uuid), unattributed)
		}
	}
}
