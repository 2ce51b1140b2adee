package compare

import (
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
)

// What the PCIe counter may differ from the copied bytes. Packets have headers,
// and requests and completions are counted, too: up to a quarter more. What is
// missing is the difference between the instants of two clocks.
const (
	copiedLess = 0.02
	copiedMore = 0.25
)

// pcieWidth is where the driver's counters of PCIe bytes start again at 0.
const pcieWidth = 1 << 32

// CopiedBytes compares the agent's counter of received PCIe bytes with what a
// load of the kind copy has copied to the device. If more than 4 GiB may have
// been copied between two reads of the counter, the counter may have wrapped
// more than once, and is only an upper bound: docs/sources.md.
func CopiedBytes(o Observations, w Window, l Load) []Result {
	agent := agentSeries(o.pages(w), devicePCIeReceiveBytes, "", deviceLabels(l.Device, nil)).known(w)
	reported := o.librarySeries(l.Device, func(d LibraryDevice) Value { return number(d.PCIe.ReceiveBytes) }).reported(w)
	r := Result{Row: "copied bytes", Device: l.Device, Against: LoadGenerator, Agent: "none", Other: "none"}
	copied := l.progress(func(t load.Totals) float64 { return float64(t.CopiedBytes) })
	within := agent.known(Window{copied[0].at.Add(fastAge), copied[len(copied)-1].at})
	switch {
	case len(agent) == 0 && !reported:
		r.Status, r.Detail = NotReported, "the driver does not count PCIe bytes"
	case len(agent) == 0:
		r.Status, r.Detail = Failed, "the agent has no value"
	case !reported:
		r.Status, r.Detail = Failed, "the agent has a value that the driver does not report"
	case len(within) < leastSamples:
		r.Status, r.Detail = Failed, fmt.Sprintf("only %d samples can be compared, %d are needed", len(within), leastSamples)
	default:
		compareCopied(within, copied, &r)
	}
	return []Result{r}
}

func compareCopied(agent, copied series, r *Result) {
	from, to := agent[0], agent[len(agent)-1]
	grown := to.value.Number - from.value.Number
	least := copied.value(to.at.Add(-fastAge)) - copied.value(from.at)
	most := copied.value(to.at) - copied.value(from.at.Add(-fastAge))
	rate := (copied.value(to.at) - copied.value(from.at)) / to.at.Sub(from.at).Seconds()
	gap := max(agent.gap(), time.Second)
	wraps := rate*gap.Seconds()*(1+copiedMore) >= pcieWidth
	r.Agent, r.Other = with(grown, unitBytes), with(copied.value(to.at)-copied.value(from.at), unitBytes)
	r.Detail = fmt.Sprintf("%.3g bytes per second, at most %.1f s between two reads: the counter of 32 bits ", rate, gap.Seconds())
	if wraps {
		r.Detail += "may have wrapped more than once between two reads, so that only the upper bound is checked"
	} else {
		r.Detail += "cannot have wrapped more than once between two reads"
	}
	r.Status = Passed
	if grown > most*(1+copiedMore) || !wraps && grown < least*(1-copiedLess) {
		r.Status = Failed
	}
}
