package top

import (
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
)

// Document is the JSON document of one reading. docs/api.md describes it; its
// names do not change within v1.
type Document struct {
	APIVersion string          `json:"apiVersion"`
	At         time.Time       `json:"at"`
	Agents     int             `json:"agents"`
	Answered   int             `json:"answered"`
	ListError  string          `json:"agentsError,omitempty"`
	Failures   []AgentFailure  `json:"failures"`
	Stale      []AgentFailure  `json:"stale,omitempty"`
	Pending    *PendingSummary `json:"pending,omitempty"`
	NoPending  string          `json:"pendingError,omitempty"`

	Count   *page.DeviceCount `json:"deviceCount,omitempty"`
	Devices []*Row            `json:"devices"`
}

// NewDocument returns the reading for programs, with its rows in an order.
func NewDocument(reading FleetState, order Order) Document {
	return Document{
		APIVersion: "v1", At: reading.At.UTC(), Agents: reading.Agents, Answered: reading.Answered,
		ListError: reading.ListError, Failures: append([]AgentFailure{}, reading.Failures...), Stale: reading.Stale,
		Pending: reading.Pending, NoPending: reading.PendingError, Count: reading.Devices, Devices: Sorted(reading.Rows, order),
	}
}
