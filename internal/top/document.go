package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// document is the JSON document of one reading. docs/top.md describes it; its
// names do not change within v1.
type document struct {
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

// JSON returns the reading as one document, with its rows in an order. Control
// characters are escaped.
func JSON(reading FleetState, order Order) ([]byte, error) {
	decoded := document{
		APIVersion: "v1", At: reading.At.UTC(), Agents: reading.Agents, Answered: reading.Answered,
		ListError: reading.ListError, Failures: reading.Failures, Stale: reading.Stale,
		Pending: reading.Pending, NoPending: reading.PendingError, Count: reading.Devices, Devices: Sorted(reading.Rows, order),
	}
	if decoded.Failures == nil {
		decoded.Failures = []AgentFailure{}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(decoded); err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	return terminal.EscapeJSON(text.Bytes()), nil
}
