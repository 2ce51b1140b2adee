package page

import (
	"cmp"
	"maps"
	"slices"
)

// finish puts together what the rows said, and in order.
func (r *clusterReader) finish() ClusterView {
	r.view.Sources = r.byName()
	r.view.Waiting = make([]Waiting, 0, len(r.waiting))
	for _, w := range r.waiting {
		if !w.waits {
			continue
		}
		slices.SortFunc(w.Funnel, func(a, b Funnel) int { return cmp.Compare(a.Request, b.Request) })
		if w.gated() {
			r.view.Gated = append(r.view.Gated, w.Waiting)
		} else {
			r.view.Waiting = append(r.view.Waiting, w.Waiting)
		}
	}
	sortWaiting(r.view.Waiting)
	sortWaiting(r.view.Gated)
	slices.SortFunc(r.view.Underway, func(a, b Underway) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Phase, b.Phase))
	})
	for _, name := range slices.Sorted(maps.Keys(r.classes)) {
		r.view.Classes = append(r.view.Classes, *r.classes[name])
	}
	r.view.Drivers = r.drivers()
	for _, p := range r.pools {
		r.odd.notice(p)
	}
	r.view.Odd = r.odd.byKind()
	return r.view
}

// sortWaiting puts those that wait longest first.
func sortWaiting(waiting []Waiting) {
	slices.SortFunc(waiting, func(a, b Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.PodClaim, b.PodClaim))
	})
}

// drivers adds up the pools of each driver.
func (r *clusterReader) drivers() []DriverSupply {
	sums := map[string]*DriverSupply{}
	for _, p := range r.pools {
		sum := find(sums, p.driver, DriverSupply{Name: p.driver})
		sum.Pools++
		sum.Devices.add(p.devices)
	}
	uses := map[[2]string]*CapacityUse{}
	for key, of := range r.shared {
		if of.total == nil || of.consumed == nil {
			continue
		}
		use := find(uses, [2]string{key.driver, key.capacity}, CapacityUse{Name: key.capacity})
		use.Devices++
		use.Total += *of.total
		use.Consumed += *of.consumed
	}
	for key, use := range uses {
		driver := find(sums, key[0], DriverSupply{Name: key[0]})
		driver.Capacities = append(driver.Capacities, *use)
	}
	var sorted []DriverSupply
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		slices.SortFunc(sums[name].Capacities, func(a, b CapacityUse) int { return cmp.Compare(a.Name, b.Name) })
		sorted = append(sorted, *sums[name])
	}
	return sorted
}
