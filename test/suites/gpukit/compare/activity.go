package compare

import (
	"fmt"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
)

// The tolerances of activity, as ratios.
const (
	// activityTolerance is for the launches and gaps between kernels that CUDA
	// events count as busy, and for the two ends of the window.
	activityTolerance = 0.1
	// idleTolerance is what an engine may be active without the load's doing.
	idleTolerance = 0.05
	// tensorLeast and dramLeast are the least part of the busy time in which the
	// engine that a load is made for is active: its instructions are not tuned
	// for a GPU, and caches answer a part of what is read.
	tensorLeast = 0.05
	dramLeast   = 0.1
	// flopsTolerance is relative, for clocks that change between two samples.
	flopsTolerance = 0.2
)

// Activity compares the mean activity of engines, which the agent exports with
// --device.profiling, with what a load has done: the share of time in which it
// was busy, and its operations. The load must be the only one on the device.
func Activity(o Observations, w Window, l Load) []Result {
	busy := l.rate(w, busySeconds)
	var results []Result
	for _, e := range expectations(o, w, l, busy.Number) {
		agent := agentSeries(o.pages(w), deviceEngineActiveRatio, "", deviceLabels(l.Device, map[string]string{"engine": e.engine})).meanOf(w)
		gpm := o.librarySeries(l.Device, func(d LibraryDevice) Value {
			value, reported := d.GPM[e.engine]
			return Value{Known: reported, Number: value}
		}).meanOf(w)
		r := Result{Row: e.row, Device: l.Device, Against: LoadGenerator, Agent: "none",
			Other: with(e.least, "") + " to " + with(e.most, unitRatio), Status: Passed, Detail: e.why}
		switch {
		case !agent.Known && !gpm.Known:
			r.Status, r.Detail = NotReported, "the driver does not report the activity of engines"
		case !agent.Known:
			r.Status, r.Detail = NotReported, "the agent does not export the activity of engines without --device.profiling"
		case !busy.Known:
			r.Status, r.Detail = Failed, "the load's events do not span the window"
		case !gpm.Known:
			r.Status, r.Detail = Failed, "the agent has a value that the driver does not report"
		case agent.Number < e.least-1e-9 || agent.Number > e.most+1e-9 || !near(agent.Number, gpm.Number, activityTolerance):
			r.Status = Failed
		}
		if agent.Known {
			r.Agent = with(agent.Number, unitRatio)
		}
		if agent.Known && gpm.Known && busy.Known {
			r.Detail = fmt.Sprintf("busy for %.3g of the time, the library's mean is %.3g; %s", busy.Number, gpm.Number, e.why)
		}
		results = append(results, r)
	}
	return results
}

// expectation is the mean activity of an engine that a load leads to.
type expectation struct {
	row, engine string
	least, most float64
	why         string
}

func expectations(o Observations, w Window, l Load, busy float64) []expectation {
	sm := expectation{"activity of SMs", "sm", max(busy-activityTolerance, 0), busy + activityTolerance,
		"each kernel has blocks for all SMs"}
	tensor := expectation{"activity of tensor cores", "tensor", 0, idleTolerance, "the load has no products of matrices"}
	dram := expectation{"activity of DRAM", "dram", 0, idleTolerance, "the load works in registers"}
	switch l.Ready.Kind {
	case load.Compute:
		return append([]expectation{sm, tensor, dram}, flops(o, w, l, busy)...)
	case load.Tensor:
		tensor.least, tensor.most, tensor.why = tensorLeast*busy, busy+activityTolerance, "the load is not tuned for the GPU"
		return []expectation{sm, tensor, dram}
	case load.Memory:
		dram.least, dram.most, dram.why = dramLeast*busy, busy+activityTolerance, "caches answer a part of what is read"
		return []expectation{sm, tensor, dram}
	case load.Idle:
		sm.least, sm.most, sm.why = 0, idleTolerance, "the load does nothing"
		return []expectation{sm, tensor, dram}
	}
	return nil
}

// flops is the activity of the FP32 pipes: what the load has done, as a part of
// what the SMs can do at the clock that the library has reported. It is expected
// of GPUs whose number of FP32 lanes is in the table.
func flops(o Observations, w Window, l Load, busy float64) []expectation {
	lanes := map[string]float64{"8.0": 64, "8.6": 128, "8.9": 128, "9.0": 128}[l.Ready.Capability]
	clock := o.librarySeries(l.Device, func(d LibraryDevice) Value { return number(d.Clocks.SM) }).meanOf(w)
	done := l.rate(w, func(t load.Totals) float64 { return t.FLOPs })
	if lanes == 0 || !clock.Known || !done.Known || clock.Number <= 0 || l.Ready.SMCount == 0 {
		return nil
	}
	part := done.Number / (2 * lanes * float64(l.Ready.SMCount) * clock.Number)
	return []expectation{{"activity of FP32 pipes", "fp32", max(part*(1-flopsTolerance)-idleTolerance, 0), min(part*(1+flopsTolerance)+idleTolerance, max(busy, part)+activityTolerance),
		fmt.Sprintf("%.3g operations per second of %d SMs with %g lanes at %.3g hertz", done.Number, l.Ready.SMCount, lanes, clock.Number)}}
}
