package compare

import (
	"fmt"
	"slices"
)

// The agent's assumptions about process samples: for how long one counts for its
// process, and the longest time between two.
const (
	sampleLifetime = 0.9  // seconds
	sampleLongest  = 1.05 // seconds: the documented second, and what a timer may be late
)

// SampleInterval says how often the driver samples the utilization of processes,
// by the timestamps of their samples. A process must be busy for the whole
// window. Intervals that are shorter than the library was asked are not visible.
func SampleInterval(o Observations, w Window) []Result {
	var results []Result
	for _, d := range o.subjects(w) {
		if d.parent != "" {
			continue
		}
		r := Result{Row: "interval of process samples", Device: d.uuid, Against: Library, Agent: fmt.Sprintf("assumes %g %s", sampleLifetime, unitSeconds),
			Other: "none", Status: NotReported, Detail: "the driver reports too few samples of processes"}
		if intervals := o.sampleIntervals(w, d.uuid); len(intervals) >= leastSamples {
			slices.Sort(intervals)
			median, late := quantile(intervals, 0.5), quantile(intervals, 0.95)
			r.Other = fmt.Sprintf("median %.3g, 95th percentile %.3g %s", median, late, unitSeconds)
			r.Status = Passed
			r.Detail = fmt.Sprintf("%d intervals; a sample counts for its process for %g s, so that one that comes later than after %g s leaves a gap",
				len(intervals), sampleLifetime, sampleLongest)
			if late > sampleLongest {
				r.Status = Failed
			}
		}
		results = append(results, r)
	}
	return results
}

// sampleIntervals are the seconds between two samples of each process of a device.
func (o Observations) sampleIntervals(w Window, uuid string) []float64 {
	stamps := make(map[int][]int64) // by pid
	for _, sample := range o.Library {
		for _, d := range sample.Devices {
			for _, p := range d.ProcessSamples {
				if d.UUID == uuid && p.Timestamp >= w.From.UnixMicro() && p.Timestamp <= w.To.UnixMicro() {
					stamps[p.PID] = append(stamps[p.PID], p.Timestamp)
				}
			}
		}
	}
	var intervals []float64
	for _, of := range stamps {
		slices.Sort(of)
		of = slices.Compact(of)
		for i := 1; i < len(of); i++ {
			intervals = append(intervals, float64(of[i]-of[i-1])/1e6)
		}
	}
	return intervals
}

// quantile is the smallest of sorted numbers that so large a part of them does not
// exceed.
func quantile(sorted []float64, part float64) float64 {
	at := int(part*float64(len(sorted)) + 0.999999)
	return sorted[min(max(at-1, 0), len(sorted)-1)]
}
