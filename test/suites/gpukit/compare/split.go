package compare

import (
	"fmt"
	"math"
	"slices"
)

// splitTolerance is by how much the utilization of a claim may differ from its
// loads' busy share.
const splitTolerance = 0.05

// Split compares the claims of one GPU with their loads: the utilization and the
// memory of each, those of the processes that belong to no claim, and whether
// all of it is within what the GPU does as a whole.
func Split(o Observations, w Window, loads []Load) []Result {
	results := HeldMemory(o, w, loads)
	var devices []string
	for _, c := range claimsOf(loads) {
		if !slices.Contains(devices, c.device) {
			devices = append(devices, c.device)
		}
		if c.claim != (claim{}) {
			agent := agentSeries(o.pages(w), claimUtilizationRatio, "", c.claim.labels(c.device))
			results = append(results, o.share(w, c, "utilization of the claim", agent))
		}
	}
	for _, uuid := range devices {
		results = append(results, o.unattributed(w, uuid, loads)...)
		results = append(results,
			o.sumRule(w, uuid, "sum of utilization", unitRatio, claimUtilizationRatio, deviceUnattributedUtilizationRatio, deviceUtilizationRatio, splitTolerance),
			o.sumRule(w, uuid, "sum of memory", unitBytes, claimMemoryUsedBytes, deviceUnattributedMemoryBytes, deviceMemoryUsedBytes, memoryTolerance))
	}
	return results
}

// share compares the agent's mean utilization with the busy share of loads.
func (o Observations) share(w Window, c claimLoads, row string, agent series) Result {
	r := Result{Row: row, Device: c.subject(), Against: LoadGenerator, Agent: "none", Other: "none", Status: Passed}
	busy, mean := c.busy(w), agent.meanOf(w)
	sampled := o.librarySeries(c.device, func(d LibraryDevice) Value { return Value{Known: len(d.ProcessSamples) > 0} }).reported(w)
	if busy.Known {
		r.Other = with(busy.Number, unitRatio)
	}
	if mean.Known {
		r.Agent = with(mean.Number, unitRatio)
	}
	known := len(agent.known(w))
	switch {
	case !mean.Known && !sampled:
		r.Status, r.Detail = NotReported, "the driver reports no utilization of processes"
	case !mean.Known:
		r.Status, r.Detail = Failed, "the agent has no value"
	case !sampled && mean.Number > 0:
		r.Status, r.Detail = Failed, "the agent has a value that the driver does not report"
	case !busy.Known:
		r.Status, r.Detail = Failed, "the load's events do not span the window"
	case float64(known) < leastPassed*float64(len(agent)) || known < leastSamples:
		r.Status, r.Detail = Failed, fmt.Sprintf("the agent has a value on %d of %d pages", known, len(agent))
	case !near(mean.Number, busy.Number, splitTolerance):
		r.Status, r.Detail = Failed, fmt.Sprintf("they differ by %.3g, %g is allowed", math.Abs(mean.Number-busy.Number), splitTolerance)
	}
	return r
}

// unattributed compares what the agent exports of processes without a claim.
func (o Observations) unattributed(w Window, uuid string, loads []Load) []Result {
	none := claimLoads{device: uuid}
	var claimed []int
	for _, c := range claimsOf(loads) {
		switch {
		case c.device != uuid:
		case c.claim == (claim{}):
			none.loads = append(none.loads, c.loads...)
		default:
			claimed = append(claimed, c.pids()...)
		}
	}
	time := agentSeries(o.pages(w), deviceUnattributedUtilizationRatio, "", deviceLabels(uuid, nil))
	memory := agentSeries(o.pages(w), deviceUnattributedMemoryBytes, "", deviceLabels(uuid, nil))
	other := o.librarySeries(uuid, func(d LibraryDevice) Value {
		sum := Value{Known: d.Processes != nil}
		for _, p := range d.Processes {
			if p.Memory != nil && !slices.Contains(claimed, p.PID) {
				sum.Number += *p.Memory
			}
		}
		return sum
	})
	s := sides{window: w, agent: memory, library: other, libraryReports: other.reported(w),
		row: Row{Unit: unitBytes, Kind: Gauge, Metric: deviceUnattributedMemoryBytes, Tolerance: Tolerance{Absolute: memoryTolerance}}}
	r := s.compare(other)
	r.Row, r.Device, r.Against = "unattributed memory", uuid, Library
	utilization := o.share(w, none, "unattributed utilization", time)
	utilization.Device = uuid
	return []Result{utilization, r}
}

// sumRule checks that what the agent attributes to claims and to none is at most
// what it exports of the device. Values with attribution "shared" are the
// device's own, and not added up.
func (o Observations) sumRule(w Window, uuid, row, unit, claims, none, whole string, tolerance float64) Result {
	r := Result{Row: row, Device: uuid, Against: Library, Agent: "none", Other: "none", Status: NotReported, Detail: "the agent attributes nothing"}
	compared, passed, largest := 0, 0, 0.0
	device := agentSeries(o.pages(w), whole, "", deviceLabels(uuid, nil))
	var limits series
	for i, page := range o.pages(w) {
		sum, parts := 0.0, 0
		for _, m := range page.Families[claims].GetMetric() {
			if labelOf(m, "uuid") == uuid && labelOf(m, "attribution") != "shared" {
				sum += agentValue(m, "").Number
				parts++
			}
		}
		if parts == 0 || !device[i].value.Known {
			continue
		}
		if rest := agentSeries([]AgentPage{page}, none, "", deviceLabels(uuid, nil)); rest[0].value.Known {
			sum += rest[0].value.Number
		}
		compared++
		// The page's value of the device may be of another sample period than those
		// of the processes: the limit is the largest around it.
		around := device.known(Window{page.Time.Add(-fastAge), page.Time.Add(ahead)})
		_, most, _ := around.bounds()
		limits = append(limits, around...)
		if sum <= most+tolerance+1e-9 {
			passed++
		}
		largest = max(largest, sum)
	}
	if compared == 0 {
		return r
	}
	_, most, _ := limits.bounds()
	r.Agent, r.Other = with(largest, unit)+" at most", with(most, unit)+" at most"
	r.Status, r.Detail = Passed, fmt.Sprintf("%d of %d samples; the other side is the agent's own value of the device", passed, compared)
	if compared < leastSamples || float64(passed) < leastPassed*float64(compared) {
		r.Status = Failed
	}
	return r
}
