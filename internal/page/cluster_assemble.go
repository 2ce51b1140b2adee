package page

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// newClusterView returns the view of a cluster at a time, empty if nothing is known of it.
func newClusterView(c *model.Cluster, at time.Time) ClusterView {
	view := ClusterView{At: at, Pending: []PendingRef{}, Claims: map[string]float64{}}
	if c == nil {
		return view
	}
	view.Version, view.Sources = c.Version, newSources(c.Sources, at)
	for _, ref := range c.Pending {
		if reference := newPendingRef(ref, c.NodesKnown); reference.gated() {
			view.Gated = append(view.Gated, reference)
		} else {
			view.Pending = append(view.Pending, reference)
		}
	}
	sortPending(view.Pending)
	sortPending(view.Gated)
	for _, phase := range c.Phases {
		view.Phases = append(view.Phases, ActivePhase{phase.Pod.Namespace, phase.Pod.Name, phase.Claim, phase.Name, inSeconds(phase.Since)})
	}
	slices.SortFunc(view.Phases, func(a, b ActivePhase) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Phase, b.Phase))
	})
	for _, count := range c.Claims {
		for state := range model.ClaimState(model.ClaimStates) {
			if claims := value(count.States[state]); claims != nil {
				view.Claims[state.String()] += *claims
			}
		}
	}
	view.Classes, view.Drivers, view.Anomalies = newClasses(c), newDrivers(c), newAnomalies(c, at)
	return view
}

// newPendingRef returns a reference as documents have it; nodes reports whether nodes are
// known.
func newPendingRef(ref *model.PendingRef, nodes bool) PendingRef {
	reference := PendingRef{
		Namespace: ref.Pod.Namespace, Pod: ref.Pod.Name, PodClaim: ref.PodClaim, Claim: ref.Claim, Class: ref.DeviceClass,
		Since: inSeconds(ref.Since), Reason: string(ref.Reason),
	}
	if ref.Diagnosis != nil {
		reference.Requests = newRequestCounts(ref.Diagnosis.Requests, nodes)
	}
	return reference
}

// inSeconds is a time that the API server has written, as documents have it.
func inSeconds(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }

// sortPending sorts by age, the oldest first.
func sortPending(pending []PendingRef) {
	slices.SortFunc(pending, func(a, b PendingRef) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.PodClaim, b.PodClaim))
	})
}

// newClasses returns the classes by name, with the claims for numbers of devices that fit.
// What else claims request is in the metrics alone.
func newClasses(c *model.Cluster) []ClassSupply {
	classes := map[string]*ClassSupply{}
	for i := range c.Classes {
		class := &c.Classes[i]
		supply := find(classes, class.Class, ClassSupply{Name: class.Class, ExtendedResource: class.ExtendedResource})
		if !c.DevicesKnown || !class.Counted {
			continue
		}
		supply.Devices = newDeviceStates(class.Devices)
		for reason := range dra.DownReason(dra.DownReasons) {
			if devices := class.Down[reason]; c.NodesKnown && devices > 0 {
				supply.Down = append(supply.Down, DownDevices{reason.String(), float64(devices)})
			}
		}
	}
	for i := range c.Shapes {
		shape := &c.Shapes[i]
		class := find(classes, shape.Class, ClassSupply{Name: shape.Class})
		if devices, err := strconv.Atoi(shape.Shape); err == nil {
			class.Fitting = append(class.Fitting, FittingClaims{Devices: devices, Claims: new(float64(shape.Claims)), AtLeast: !shape.Exact})
		}
	}
	var sorted []ClassSupply
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		class := *classes[name]
		slices.SortFunc(class.Fitting, func(a, b FittingClaims) int { return cmp.Compare(a.Devices, b.Devices) })
		sorted = append(sorted, class)
	}
	return sorted
}

func newDeviceStates(devices [dra.DeviceStates]int) DeviceStates {
	return DeviceStates{
		Allocated:   new(float64(devices[dra.DeviceAllocated])),
		Free:        new(float64(devices[dra.DeviceFree])),
		Unavailable: new(float64(devices[dra.DeviceUnavailable])),
	}
}

// newDrivers adds up the pools of each driver. Of a pool without slices it is not known how
// many devices it has.
func newDrivers(c *model.Cluster) []DriverSupply {
	sums, uses := map[string]*DriverSupply{}, map[[2]string]*CapacityUse{}
	for _, pool := range c.Pools {
		sum := find(sums, pool.Driver, DriverSupply{Name: pool.Driver})
		sum.Pools++
		if !c.DevicesKnown {
			continue
		}
		if pool.Slices > 0 {
			sum.Devices.add(newDeviceStates(pool.Devices))
		}
		for _, capacity := range pool.DistinctCapacities {
			use := find(uses, [2]string{pool.Driver, capacity.Capacity}, CapacityUse{Name: capacity.Capacity})
			use.Devices++
			use.Total += capacity.Total
			use.Consumed += capacity.Consumed
		}
	}
	for key, use := range uses {
		sums[key[0]].Capacities = append(sums[key[0]].Capacities, *use)
	}
	var sorted []DriverSupply
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		slices.SortFunc(sums[name].Capacities, func(a, b CapacityUse) int { return cmp.Compare(a.Name, b.Name) })
		sorted = append(sorted, *sums[name])
	}
	return sorted
}
