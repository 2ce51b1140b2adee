// Package phases puts loads on a GPU phase by phase, and compares what the agent
// exports with what nvidia-smi, the management library and the loads report. It
// changes no setting of a GPU.
package phases

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
)

// Load is a load of a phase.
type Load struct {
	Kind  load.Kind
	Duty  int    // percent of the time in which it works
	Claim string // to which its process belongs; empty: to none
}

// Comparison compares the observations of a phase. The loads are those that the
// phase has on its device.
type Comparison func(o compare.Observations, w compare.Window, loads []compare.Load) []compare.Result

// Trial observes no agent. It runs by itself and returns its section of the report. No
// other program of gpukit runs meanwhile.
type Trial func(ctx context.Context, o Options) report.Section

// Phase is a row of the table.
type Phase struct {
	Name, Title string
	Duration    time.Duration
	Loads       []Load
	Claims      []string // that hold the device; several share it
	Compare     []Comparison
	Capability  float64 // compute capability that is needed; 0: any
	Optional    bool    // runs only if it is asked for
	Leaks       bool    // the agent's memory must not grow
	Fault       bool    // its load ends by itself, at the beginning
	Trial       Trial   // what it does instead of all of this; nil: nothing
}

// Table is all phases, in the order in which they run. Trials run after the agent
// has ended, so that they are the last ones.
func Table() []Phase {
	const s = time.Second
	one := []string{"one"}
	return []Phase{
		{
			Name: "idle", Title: "No load", Duration: 30 * s, Claims: one,
			Compare: []Comparison{rows, energy},
		},
		{
			Name: "compute", Title: "Arithmetic in half of the time", Duration: 45 * s, Claims: one,
			Loads:   []Load{{load.Compute, 50, "one"}},
			Compare: []Comparison{rows, energy, activity, heldMemory, sampleInterval},
		},
		{
			Name: "memory", Title: "Copies inside the device's memory", Duration: 30 * s, Claims: one,
			Loads:   []Load{{load.Memory, 80, "one"}},
			Compare: []Comparison{rows, energy, activity, heldMemory},
		},
		{
			// Slow enough for counters of 32 bits that are read each second.
			Name: "copy", Title: "Copies from the host's memory", Duration: 30 * s, Claims: one,
			Loads:   []Load{{load.Copy, 4, "one"}},
			Compare: []Comparison{rows, energy, copied, heldMemory},
		},
		{
			// More than 4 GiB between two reads on fast links: the counters may wrap
			// more than once, and those of two readers by different multiples. So the
			// rows of the table are not compared.
			Name: "copyfast", Title: "Copies from the host's memory in most of the time", Duration: 30 * s, Claims: one,
			Loads:   []Load{{load.Copy, 90, "one"}},
			Compare: []Comparison{energy, copied, heldMemory},
		},
		{
			Name: "tensor", Title: "Products of matrices", Duration: 30 * s, Claims: one, Capability: 8,
			Loads:   []Load{{load.Tensor, 50, "one"}},
			Compare: []Comparison{rows, energy, activity, heldMemory},
		},
		{
			Name: "split2", Title: "Two claims on one device", Duration: 60 * s, Claims: []string{"one", "two"},
			Loads:   []Load{{load.Compute, 30, "one"}, {load.Compute, 60, "two"}},
			Compare: []Comparison{rows, energy, split, sampleInterval},
		},
		{
			Name: "split3", Title: "Three claims on one device", Duration: 60 * s, Claims: []string{"one", "two", "three"},
			Loads:   []Load{{load.Compute, 10, "one"}, {load.Compute, 30, "two"}, {load.Compute, 50, "three"}},
			Compare: []Comparison{rows, energy, split, sampleInterval},
		},
		{
			Name: "outside", Title: "A process outside of all claims", Duration: 45 * s, Claims: []string{"one", "two"},
			Loads:   []Load{{load.Compute, 20, "one"}, {load.Compute, 20, "two"}, {load.Compute, 30, ""}},
			Compare: []Comparison{rows, energy, split},
		},
		{
			Name: "xid", Title: "An Xid", Duration: 20 * s, Claims: one, Optional: true, Fault: true,
			Loads:   []Load{{load.Fault, 100, "one"}},
			Compare: []Comparison{xid},
		},
		{
			Name: "long", Title: "Ten minutes under load", Duration: 600 * s, Claims: []string{"one", "two"}, Optional: true, Leaks: true,
			Loads:   []Load{{load.Compute, 30, "one"}, {load.Memory, 30, "two"}},
			Compare: []Comparison{rows, energy, split},
		},
		{Name: "sessions", Title: sessionsTitle, Trial: TrySessions},
	}
}

func rows(o compare.Observations, w compare.Window, _ []compare.Load) []compare.Result {
	return compare.Compare(o, w, append(compare.Rows(), compare.ProfilingRows()...))
}

func energy(o compare.Observations, w compare.Window, _ []compare.Load) []compare.Result {
	return compare.EnergyIntegral(o, w)
}

func sampleInterval(o compare.Observations, w compare.Window, _ []compare.Load) []compare.Result {
	return compare.SampleInterval(o, w)
}

func activity(o compare.Observations, w compare.Window, loads []compare.Load) []compare.Result {
	var results []compare.Result
	for _, l := range loads {
		results = append(results, compare.Activity(o, w, l)...)
	}
	return results
}

func copied(o compare.Observations, w compare.Window, loads []compare.Load) []compare.Result {
	var results []compare.Result
	for _, l := range loads {
		results = append(results, compare.CopiedBytes(o, w, l)...)
	}
	return results
}

func heldMemory(o compare.Observations, w compare.Window, loads []compare.Load) []compare.Result {
	return compare.HeldMemory(o, w, loads)
}

func split(o compare.Observations, w compare.Window, loads []compare.Load) []compare.Result {
	return compare.Split(o, w, loads)
}

// xid compares the growth of the agent's counters of Xids with the one fault. A
// fault may have more than one Xid.
func xid(o compare.Observations, _ compare.Window, loads []compare.Load) []compare.Result {
	var results []compare.Result
	for _, l := range loads {
		r := compare.Result{Row: "Xids", Device: l.Device, Against: compare.LoadGenerator, Status: compare.Failed,
			Agent: "none", Other: "1 write to an address that is not allocated"}
		if len(o.Agent) > 0 {
			before, after := xids(o.Agent[0], l.Device), xids(o.Agent[len(o.Agent)-1], l.Device)
			for code, count := range after {
				if grown := count - before[code]; grown > 0 {
					r.Status, r.Agent = compare.Passed, fmt.Sprintf("Xid %s: %g", code, grown)
				}
			}
		}
		results = append(results, r)
	}
	return results
}

// xids are the counters of a device on a page, by code.
func xids(page compare.AgentPage, device string) map[string]float64 {
	counts := make(map[string]float64)
	for _, m := range page.Families["dra_device_xid_errors_total"].GetMetric() {
		labels := make(map[string]string)
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["uuid"] == device || labels["parent_uuid"] == device {
			counts[labels["xid"]] += m.GetCounter().GetValue()
		}
	}
	return counts
}

// lacks says why a phase cannot run on a device, or "".
func (p Phase) lacks(device Device) string {
	if len(p.Loads) == 0 {
		return ""
	}
	if device.CUDA != nil {
		return fmt.Sprintf("no load can run: %v", device.CUDA)
	}
	if capability, err := strconv.ParseFloat(device.Ready.Capability, 64); p.Capability > 0 && err == nil && capability < p.Capability {
		return fmt.Sprintf("the device has compute capability %s, the load needs %.1f", device.Ready.Capability, p.Capability)
	}
	if needed := uint64(len(p.Loads)) * 4 * leastHeld; device.Ready.FreeBytes < needed {
		return fmt.Sprintf("the device has %d bytes of free memory, the loads need %d", device.Ready.FreeBytes, needed)
	}
	return ""
}
