// Package compare compares what the agent exports with what nvidia-smi and
// NVIDIA's management library report of the same devices at the same time, and
// with what load generators have done. Its functions are pure: observations in,
// results out.
package compare

import (
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/smi"
)

// Observations are what was observed side by side, each in the order of time.
type Observations struct {
	Agent   []AgentPage
	SMI     []SMILog
	Library []direct.Sample
}

// AgentPage is a page of the agent's metrics, as expfmt parses it.
type AgentPage struct {
	Time     time.Time // when it was requested
	Families map[string]*dto.MetricFamily
}

// SMILog is a text of nvidia-smi.
type SMILog struct {
	Time time.Time // in the middle between start and end of the program
	Log  smi.Log
}

// Window is a time, with both ends.
type Window struct{ From, To time.Time }

func (w Window) contains(t time.Time) bool { return !t.Before(w.From) && !t.After(w.To) }

// Load is a load generator and the claim whose processes it is one of.
type Load struct {
	Namespace string // of the claim
	Claim     string // empty: the load belongs to no claim
	Device    string // UUID of the GPU or MIG device that it uses
	Ready     load.Ready
	Progress  []load.Progress // in the order of time, with the last event
}

// Status is the outcome of a comparison.
type Status string

// The outcomes.
const (
	Passed      Status = "passed"
	Failed      Status = "failed"
	NotReported Status = "not_reported" // there was nothing to compare
)

// What a result compares the agent with.
const (
	NVIDIASMI     = "nvidia-smi"
	Library       = "library"
	LoadGenerator = "load" // a load generator
)

// Result is the outcome of one comparison.
type Result struct {
	Row     string `json:"row"`
	Device  string `json:"device"`  // UUID, with the claim in parentheses if it is about one
	Against string `json:"against"` // NVIDIASMI, Library or LoadGenerator
	Status  Status `json:"status"`
	Agent   string `json:"agent"` // with its unit
	Other   string `json:"other"` // likewise
	Detail  string `json:"detail,omitempty"`
}
