package invariant

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// tolerance is relative. It is needed for sums of numbers that were added in another
// order; other numbers of one page are exact.
const tolerance = 1e-9

func exceeds(sum, own float64) bool { return sum > own*(1+tolerance) }

func deviceValue(v *view, f *findings) {
	for _, u := range v.uses {
		if isCounter(u.quantity) || u.quantity == "idle_since_timestamp_seconds" || !v.whole(ofDevice+u.quantity) {
			continue
		}
		for _, s := range u.shares {
			switch {
			case !u.known:
				f.add(u.uuid, []string{s.String()}, "%s of %s has a value for %s, but the device has no %s", ofClaim+u.quantity+u.detailsText(), short(u.uuid), short(s.String()), ofDevice+u.quantity)
			case s.whole() && s.value != u.own:
				f.add(u.uuid, []string{s.String()}, "%s of %s is %v for %s (%s), but the device's own is %v", ofClaim+u.quantity+u.detailsText(), short(u.uuid), s.value, short(s.String()), s.attribution, u.own)
			}
		}
	}
}

// detailsText renders the part of the device that a use is about.
func (u *use) detailsText() string {
	if u.details == "" {
		return ""
	}
	return " (" + short(strings.TrimSpace(u.details)) + ")"
}

func claimsWithinDevice(v *view, f *findings) {
	for _, u := range v.uses {
		if !u.known || !isSummed(u.quantity) {
			continue
		}
		sum, parts, alone := u.sum(), u.shares, false
		for _, s := range u.shares {
			alone = alone || s.attribution == "exclusive"
		}
		rest := ""
		if u.measured && !alone { // an exclusive holder also has the unattributed part
			sum += u.unattributed
			rest = fmt.Sprintf(", and %v is unattributed", u.unattributed)
		}
		if exceeds(sum, u.own) {
			names, text := described(parts)
			f.add(u.uuid, names, "the claims of %s have %v of %s, which is %v: %s%s", short(u.uuid), sum, ofDevice+u.quantity+u.detailsText(), u.own, text, rest)
		}
	}
}

func podsWithinDevice(v *view, f *findings) {
	for _, u := range v.uses {
		if !u.known || len(u.pods) == 0 {
			continue
		}
		sum := u.unattributed
		for _, pod := range u.pods {
			sum += pod.value
		}
		if exceeds(sum, u.own) {
			_, text := described(u.pods)
			f.add(u.uuid, nil, "the pods of %s have %v of %s, which is %v: %s, and %v is unattributed", short(u.uuid), sum, ofDevice+u.quantity+u.detailsText(), u.own, text, u.unattributed)
		}
	}
}

// described returns the claims of the shares that are added, and a text with
// their values.
func described(shares []share) (claims []string, text string) {
	var who, each names
	for i := range shares {
		s := &shares[i]
		switch {
		case s.attribution == shared:
			continue
		case who.count >= maxNames: // further names are only counted
			who.count, each.count = who.count+1, each.count+1
			continue
		}
		says := fmt.Sprintf("%s %v", short(s.String()), s.value)
		if s.attribution != "" {
			says += " (" + short(s.attribution) + ")"
		}
		who.add(s.String())
		each.add(says)
	}
	if each.count == 0 {
		return nil, "none of it for a claim"
	}
	return who.first, each.String()
}

// isAbsolute reports whether a device has as much of a quantity as its
// partitions together, or more. Shares of time, in contrast, are separate for
// each partition.
func isAbsolute(family string) bool {
	return strings.HasSuffix(family, "_bytes") || strings.HasSuffix(family, "_watts")
}

// parentKey is one quantity of a device that is partitioned.
type parentKey struct{ family, parent, details string }

func partitionsWithinParent(v *view, f *findings) {
	instances := v.instances()
	for _, name := range v.names {
		if strings.HasPrefix(name, ofDevice) && isAbsolute(name) {
			partsOfDevices(name, v.families[name], instances, f)
		}
	}
	v.claimsOfPartitions(f)
}

// instances returns the GPU instances of the partitions that are placed.
// Compute instances of one GPU instance share its memory.
func (v *view) instances() map[string]string {
	instances := map[string]string{}
	for _, row := range v.families[metric.DevicePartitionInfo] {
		instances[row.Labels.Get("uuid")] = row.Labels.Get("gpu_instance_id")
	}
	return instances
}

// partsOfDevices compares the devices' own values. Of partitions in one
// instance the largest counts.
func partsOfDevices(family string, rows []Series, instances map[string]string, f *findings) {
	largest := map[parentKey]map[string]float64{} // of each instance
	own := map[parentKey]float64{}
	for _, row := range rows {
		uuid, parent, details := row.Labels.Get("uuid"), row.Labels.Get("parent_uuid"), detailsOf(row)
		if parent == "" {
			own[parentKey{family, uuid, details}] = row.Value
			continue
		}
		key, instance := parentKey{family, parent, details}, "uuid "+uuid
		if id, placed := instances[uuid]; placed {
			instance = id
		}
		if largest[key] == nil {
			largest[key] = map[string]float64{}
		}
		largest[key][instance] = max(largest[key][instance], row.Value)
	}
	for key, parts := range largest {
		sum := 0.0
		for _, instance := range slices.Sorted(maps.Keys(parts)) { // sums of floats depend on their order
			sum += parts[instance]
		}
		if value, known := own[key]; known && exceeds(sum, value) {
			f.add(key.parent, nil, "the partitions of %s have %v of its %s, which is %v", short(key.parent), sum, family, value)
		}
	}
}

// claimsOfPartitions adds the claims that hold a device's partitions to those
// that hold the device.
func (v *view) claimsOfPartitions(f *findings) {
	shares := map[parentKey][]share{}
	own := map[parentKey]float64{}
	parted := map[parentKey]bool{}
	for _, u := range v.uses {
		if !isAbsolute(u.quantity) {
			continue
		}
		whole := u.uuid
		if parent := v.devices[u.uuid].parent; parent != "" {
			whole = parent
		}
		key := parentKey{u.quantity, whole, u.details}
		shares[key] = append(shares[key], u.shares...)
		parted[key] = parted[key] || whole != u.uuid
	}
	for _, name := range v.names {
		if quantity, is := strings.CutPrefix(name, ofDevice); is && isAbsolute(name) {
			for _, row := range v.families[name] {
				own[parentKey{quantity, row.Labels.Get("uuid"), detailsOf(row)}] = row.Value
			}
		}
	}
	for key, parts := range shares {
		value, known := own[key]
		sum := (&use{shares: parts}).sum()
		if known && parted[key] && exceeds(sum, value) {
			names, text := described(parts)
			f.add(key.parent, names, "the claims of %s and of its partitions have %v of its %s, which is %v: %s", short(key.parent), sum, ofDevice+key.family, value, text)
		}
	}
}

func shareOfHold(v *view, f *findings) {
	held := map[hold]float64{}
	for _, row := range v.families[heldSeconds] {
		held[holdOf(row)] = row.Value
	}
	for _, row := range v.families[deviceSeconds] {
		h := holdOf(row)
		if seconds, known := held[h]; known && !isBundle(h.uuid) && exceeds(row.Value, seconds) {
			f.add(h.uuid, []string{h.String()}, "%s is charged %v device-seconds of %s, and held it for %v s", short(h.String()), row.Value, short(h.uuid), seconds)
		}
	}
}
