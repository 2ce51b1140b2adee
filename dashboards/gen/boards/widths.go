package boards

import (
	"unicode/utf8"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// Grafana gives a table's columns equal widths, which cuts names off and leaves
// numbers lost in space, unless a column asks for more. These are the least widths
// in pixels, of the default size of letters; the lint says where they do not fit together.

// width has room for what the label's values are like; for the long names of claims
// and pods there is more in a table over the whole width.
func (k key) width(table uint32) int {
	widths := map[string]int{
		"resourceclaim": 290, "pod": 240, "name": 330, "xid": 520, "shape": 560, "reason": 200,
		"key": 220, "model": 240, "limit": 190, "workload": 170, "requester_kind": 190, "family": 220, "device": 180, "signal": 150,
		"deviceclass": 150, "driver": 140, "source": 150, "claim_uid": 300, "owner_name": 180,
		"cluster": 110, "namespace": 120, "node": 120, "instance": 120, "uuid": 120,
		"pod_claim": 120, "request": 120, "asked_by": 220, "action": 120, "template": 140,
		"alertname": 250, "severity": 100, "pool": 110, "phase": 110, "effect": 110, "container": 110, "resource": 140,
	}
	const filter = 24 // the sign for it
	width := max(widths[k.label], textWidth(k.title)+filter)
	if k.narrow {
		return textWidth(k.title) + filter
	}
	if table == columnsOfGrid && k.label == "resourceclaim" {
		width += 60
	}
	return width
}

// width has room for the title, and for the words or the kind of value below it.
func (c column) width(unit string) int {
	least := max(70, textWidth(c.title))
	switch unit {
	case units.DateTimeFromNow:
		least = max(least, 140) // a few seconds ago
	case units.DatetimeISO:
		least = max(least, 170)
	case units.Seconds, units.BytesPerSecondSI:
		least = max(least, 100) // 12.3 hours, 76.6 GB/s
	}
	for _, p := range c.more {
		if options, ok := p.Value.(map[string]any); ok && options["type"] == "gauge" {
			least = max(least, 120)
		}
		mappings, _ := p.Value.([]dashboard.ValueMapping)
		for _, m := range mappings {
			least = max(least, longestWord(m))
		}
	}
	return least
}

func longestWord(m dashboard.ValueMapping) (width int) {
	if m.ValueMap == nil {
		return 0
	}
	for _, o := range m.ValueMap.Options {
		if o.Text != nil {
			width = max(width, textWidth(*o.Text))
		}
	}
	return width
}

// textWidth is that of a text with the padding of a cell.
func textWidth(text string) int { return utf8.RuneCountInString(text)*8 + 18 }
