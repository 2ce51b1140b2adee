package phases

import (
	"fmt"
	"os"
	"slices"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cost"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/sample"
)

// A leak is a growth of the agent's memory from the first fifth of a phase to
// its last one that is larger than both of these.
const (
	mostGrowth      = 0.1      // of the first
	mostGrowthBytes = 16 << 20 // bytes
)

// summary says how much there is to compare, and what the agent has used.
func summary(p Phase, taken sample.Taken) string {
	o := taken.Observations
	text := fmt.Sprintf("%.0f s: %d pages of the agent, %d texts of nvidia-smi, %d samples of the library", p.Duration.Seconds(), len(o.Agent), len(o.SMI), len(o.Library))
	u := taken.Usage
	if len(u) > 1 {
		first, last := u[0], u[len(u)-1]
		text += fmt.Sprintf("; the agent used %.2f %% of a processor and %.0f MiB of memory",
			100*(last.CPU-first.CPU)/last.Time.Sub(first.Time).Seconds(), last.Resident/(1<<20))
	}
	return text + "."
}

// used is what the agent has used in a phase, if that was observed.
func used(p Phase, usage []sample.Usage) []report.Usage {
	if len(usage) < 2 {
		return nil
	}
	first, last := usage[0], usage[len(usage)-1]
	seconds := last.Time.Sub(first.Time).Seconds()
	u := report.Usage{Phase: p.Title, Seconds: seconds, Processor: (last.CPU - first.CPU) / seconds}
	for _, each := range usage {
		u.Memory = max(u.Memory, each.Resident)
	}
	return []report.Usage{u}
}

// recorded is what a recording says of the calls that were recorded.
func recorded(path string) (cost.Recording, string) {
	file, err := os.Open(path)
	if err != nil {
		return cost.Recording{}, err.Error()
	}
	defer file.Close()
	r, err := cost.Read(file)
	if err != nil {
		return cost.Recording{}, err.Error()
	}
	return r, ""
}

// leak compares the agent's memory at the beginning and at the end.
func leak(usage []sample.Usage) compare.Result {
	r := compare.Result{Row: "growth of the agent's memory", Status: compare.NotReported, Detail: "there are too few observations"}
	part := len(usage) / 5
	if part < 3 {
		return r
	}
	first, last := median(usage[:part]), median(usage[len(usage)-part:])
	r.Status, r.Agent, r.Other = compare.Passed, fmt.Sprintf("%.0f bytes at the end", last), fmt.Sprintf("%.0f bytes at the beginning", first)
	r.Detail = fmt.Sprintf("medians of %d observations; a growth of %.0f %% or %d MiB is allowed", part, 100*mostGrowth, mostGrowthBytes>>20)
	if last > first+max(mostGrowth*first, mostGrowthBytes) {
		r.Status = compare.Failed
	}
	return r
}

func median(usage []sample.Usage) float64 {
	var values []float64
	for _, u := range usage {
		values = append(values, u.Resident)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
