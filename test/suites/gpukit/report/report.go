// Package report writes what comparisons have found: one page of Markdown for
// people, and JSON text for programs.
package report

import (
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cost"
)

// Version is that of the schema of the JSON text. It changes if a field gets
// another name or meaning.
const Version = 1

// Report is what one run has found.
type Report struct {
	Date          time.Time `json:"date"`
	Machine       string    `json:"machine"` // such as "Linux 6.12, 32 CPUs"
	Devices       []string  `json:"devices"` // such as "NVIDIA H200 (GPU-…)"
	DriverVersion string    `json:"driver_version"`
	AgentVersion  string    `json:"agent_version"`
	// Imitated names the parts that are not from real hardware, such as "The
	// management library and nvidia-smi". Empty: none.
	Imitated string    `json:"imitated,omitempty"`
	Sections []Section `json:"sections"`
	Cost     *Cost     `json:"cost,omitempty"`
}

// Cost is what the agent has used, and what its calls of the management library
// have taken.
type Cost struct {
	Phases []Usage `json:"phases"`
	cost.Recording
	// Problem is why there is nothing about calls, or "".
	Problem string `json:"problem,omitempty"`
}

// Usage is what the agent has used in a phase.
type Usage struct {
	Phase     string  `json:"phase"`
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor_ratio"` // of one processor
	Memory    float64 `json:"memory_bytes"`    // resident, the largest
}

// Section are results that belong together.
type Section struct {
	Title   string           `json:"title"`
	Text    string           `json:"text,omitempty"` // one sentence
	Results []compare.Result `json:"results"`
}
