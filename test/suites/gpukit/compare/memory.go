package compare

import "fmt"

// A CUDA context needs memory of its own: code, stacks and heaps of the device.
const mostOverhead = 4 << 30

// HeldMemory compares the memory of each claim with what the library reports of
// its processes, and that with what the loads hold: the rest is what their
// contexts need. Where the claim has the device alone, the agent's value is that
// of the device, and so is the library's.
func HeldMemory(o Observations, w Window, loads []Load) []Result {
	var results []Result
	for _, c := range claimsOf(loads) {
		if c.claim != (claim{}) {
			results = append(results, o.heldMemory(w, c))
		}
	}
	return results
}

func (o Observations) heldMemory(w Window, c claimLoads) Result {
	pages := o.pages(w)
	agent := agentSeries(pages, claimMemoryUsedBytes, "", c.claim.labels(c.device))
	attribution := agentSeries(pages, claimMemoryUsedBytes, "attribution", c.claim.labels(c.device)).known(w).texts()
	other := o.processMemory(c.device, c.pids())
	if len(attribution) == 1 && attribution[0] != "process" {
		other = o.librarySeries(c.device, func(d LibraryDevice) Value { return number(d.Memory.Used) })
	}
	s := sides{window: w, agent: agent, library: other, libraryReports: other.reported(w),
		row: Row{Unit: unitBytes, Kind: Gauge, Metric: claimMemoryUsedBytes, Tolerance: Tolerance{Absolute: memoryTolerance}}}
	r := s.compare(other)
	r.Row, r.Device, r.Against = "memory of the claim", c.subject(), Library
	if r.Status == NotReported || !s.libraryReports {
		return r
	}
	overhead := (other.known(w).mean() - c.held()) / float64(len(c.loads))
	text := fmt.Sprintf("the loads hold %s, and the library reports %s more for each", with(c.held(), unitBytes), with(overhead, unitBytes))
	if r.Detail != "" {
		text = r.Detail + "; " + text
	}
	r.Detail = text
	if len(attribution) > 1 {
		r.Status, r.Detail = Failed, fmt.Sprintf("the attribution changes: %v", attribution)
	}
	if overhead < 0 || overhead > mostOverhead {
		r.Status = Failed
		r.Detail += fmt.Sprintf(": not between 0 and %s", with(mostOverhead, unitBytes))
	}
	return r
}
