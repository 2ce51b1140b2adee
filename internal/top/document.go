package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// document is the JSON of one reading. docs/top.md describes it; its names do
// not change within v1.
type document struct {
	APIVersion string    `json:"apiVersion"`
	At         time.Time `json:"at"`
	Agents     int       `json:"agents"`
	Answered   int       `json:"answered"`
	Lost       string    `json:"agentsError,omitempty"`
	Failures   []Failure `json:"failures"`
	Stale      []Failure `json:"stale,omitempty"`
	Pending    *Waiting  `json:"pending,omitempty"`
	NoPending  string    `json:"pendingError,omitempty"`

	Count   *page.DeviceCount `json:"deviceCount,omitempty"`
	Devices []*Row            `json:"devices"`
}

// JSON is the reading as one document, its rows as a person has chosen them.
// It is harmless on a terminal: what could act there is escaped.
func JSON(reading Reading, state State) ([]byte, error) {
	told := document{
		APIVersion: "v1", At: reading.At.UTC(), Agents: reading.Agents, Answered: reading.Answered,
		Lost: reading.Lost, Failures: reading.Failures, Stale: reading.Stale,
		Pending: reading.Waiting, NoPending: reading.NoWord, Count: reading.Devices, Devices: state.Chosen(reading.Rows),
	}
	if told.Failures == nil {
		told.Failures = []Failure{}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(told); err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	return terminal.EscapeJSON(text.Bytes()), nil
}
