// Package top shows the usage of devices by claims, as a table on a terminal or
// as one JSON document. It is made of the JSON documents of node agents and of
// the cluster role. Client, ClusterAgents, Watch, Live and Terminal do I/O; the rest
// is pure. Text from agents is foreign: control characters do not reach the
// terminal.
package top

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
)

// Limits of one answer. An agent of the largest node stays far below them; a
// hostile agent cannot fill the memory or the table.
const (
	MaxBody   = 4 << 20 // bytes
	maxValues = 200_000 // of JSON, about: commas
)

// AgentReport is one node agent's report of the claims on its node.
type AgentReport struct {
	Node      string
	At        time.Time         // now, by the clock that the times below were taken by
	SampledAt time.Time         // when the newest readings were taken
	Devices   *page.DeviceCount // nil: an older agent, which does not report it
	Rows      []Row
	All       []Device // nil: it was not asked for them, or is an older agent
}

// Device is a device of a node, held or not.
type Device struct {
	page.NodeDevice
	Node    string
	health  string // as that of a row
	reasons []string
}

// PendingSummary is the cluster role's report of pending claims, as
// docs/glossary.md defines them.
type PendingSummary struct {
	Count   int                `json:"count"`
	Gated   int                `json:"gated"` // not among them
	Oldest  time.Time          `json:"oldestSince,omitzero"`
	Reasons []page.ReasonCount `json:"reasons"`
	Unread  []string           `json:"unread,omitempty"` // unread sources without which pending claims are unknown
	At      time.Time          `json:"at,omitzero"`      // when this was so

	refs, gated []page.PendingRef // what is counted
}

// moment returns when this was so: at a time if it does not say.
func (s *PendingSummary) moment(at time.Time) time.Time {
	if s.At.IsZero() {
		return at
	}
	return s.At
}

// decodeClaims reads the document of /api/v1/claims that was answered at a
// moment of the agent's clock.
func decodeClaims(body []byte, at time.Time) (AgentReport, error) {
	var document page.ClaimsAnswer
	if err := decode(body, &document); err != nil {
		return AgentReport{}, err
	}
	if err := checkVersion(document.APIVersion); err != nil {
		return AgentReport{}, err
	}
	answer := AgentReport{Node: document.Node, At: at, SampledAt: document.SampledAt, Devices: document.Devices}
	for i := range document.Claims {
		answer.Rows = appendRows(answer.Rows, &answer, &document.Claims[i])
	}
	if document.All != nil {
		answer.All = make([]Device, len(document.All))
	}
	for i := range document.All {
		device := Device{NodeDevice: document.All[i], Node: answer.Node}
		device.health, device.reasons = describeHealth(device.Health, at)
		answer.All[i] = device
	}
	return answer, nil
}

// decodePending reads the document of /api/v1/pending.
func decodePending(body []byte) (PendingSummary, error) {
	var document page.PendingAnswer
	if err := decode(body, &document); err != nil {
		return PendingSummary{}, err
	}
	if err := checkVersion(document.APIVersion); err != nil {
		return PendingSummary{}, err
	}
	return summary(document), nil
}

// decode refuses documents that exceed the limits before it allocates memory.
func decode(body []byte, document any) error {
	if len(body) > MaxBody {
		return fmt.Errorf("its answer is larger than %d MiB", MaxBody>>20)
	}
	if bytes.Count(body, []byte{','}) > maxValues {
		return fmt.Errorf("its answer has more than %d values", maxValues)
	}
	if err := json.Unmarshal(body, document); err != nil {
		return fmt.Errorf("its answer is not a document of dra-exporter: %w", err)
	}
	return nil
}

func checkVersion(version string) error {
	switch version {
	case page.APIVersion:
		return nil
	case "":
		return fmt.Errorf("its answer is not a document of dra-exporter: it has no apiVersion")
	default:
		return fmt.Errorf("it uses API %q, and this program supports %s: use a newer program", clean(version), page.APIVersion)
	}
}

// summary counts pending claims by reason, the commonest first. An older
// cluster role has gated references among the others, which counts the same.
func summary(document page.PendingAnswer) PendingSummary {
	for i := range document.Pending {
		document.Pending[i].Reason = cmp.Or(document.Pending[i].Reason, "unknown")
	}
	count := page.CountPending(document.Pending, document.Gated)
	return PendingSummary{
		Count: count.Pending, Gated: count.Gated, Oldest: count.Oldest, Reasons: append([]page.ReasonCount{}, count.Reasons...),
		Unread: document.Unread, At: document.At, refs: document.Pending, gated: document.Gated,
	}
}
