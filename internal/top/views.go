package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// view is a table of the interactive display.
type view struct {
	name    string
	keys    []Key // that it can be sorted by; the first is where it begins
	columns []column
	items   func(*FleetState) []*item
}

// views returns all views, in the order of their number keys.
func views() []view {
	return []view{
		{"claims", Keys(), claimColumns(), claimItems},
		{"devices", []Key{ByUtilization, ByMemory, ByPower, ByHealth, byFree, ByName}, deviceColumns(), deviceItems},
		{"workloads", []Key{ByUtilization, byDevices, ByMemory, ByPower, ByIdle, ByCost, ByHealth, ByName}, workloadColumns(), workloadItems},
		{"pending", []Key{byAge, byReason, ByName}, pendingColumns(), pendingItems},
		{"nodes", []Key{ByUtilization, byDevices, byFree, ByMemory, ByPower, ByHealth, ByName}, nodeColumns(), nodeItems},
	}
}

// has reports whether each word is in what is shown of the item, or in a name
// that is cut off.
func (v *view) has(i *item, words []string, glyphs Glyphs) bool {
	var shown strings.Builder
	for _, c := range v.columns {
		shown.WriteString(c.cell(glyphs, i, false))
		shown.WriteByte('\n')
	}
	for _, pod := range i.pods {
		shown.WriteString(pod + "\n")
	}
	for _, r := range i.rows {
		shown.WriteString(r.Claim + "\n" + r.Device + "\n" + r.UUID + "\n" + r.Attribution + "\n")
	}
	text := strings.ToLower(shown.String())
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// The columns that several views have; rank as in column.

func namespaceColumn(rank int) column {
	return textColumn("NAMESPACE", rank, 9, 30, func(i *item) string { return i.namespace }).sortedBy(ByName).placed()
}

func nameColumn(title string) column {
	return textColumn(title, 0, 12, 63, func(i *item) string { return i.name }).sortedBy(ByName)
}

func nodeColumn(rank int) column {
	return textColumn("NODE", rank, 8, 40, func(i *item) string {
		if i.node == "" && len(i.rows) > 1 {
			return "several"
		}
		return i.node
	}).placed()
}

func podsColumn(rank int) column {
	return textColumn("PODS", rank, 10, 63, func(i *item) string { return podsCell(i.pods) })
}

func healthColumn(rank int) column {
	return textColumn("HEALTH", rank, 10, 40, func(i *item) string { return healthCell(i.health, i.reasons) }).
		sortedBy(ByHealth).styledBy(healthStyle)
}

func itemUtilizationColumn() column {
	return column{title: "UTIL", sort: ByUtilization, rank: 1, least: barWidth + 6, right: true, cell: func(g Glyphs, i *item, bars bool) string {
		return utilizationCell(g, i.utilization, i.wholeUtilization, bars)
	}, style: func(i *item) string { return utilizationStyle(i.utilization, i.idle) }}
}

func memoryColumn(rank int) column {
	return numberColumn("MEMORY", ByMemory, rank, 9, func(g Glyphs, i *item) string {
		return memoryCell(g, i.memory, i.memorySize, i.wholeMemory)
	})
}

func powerColumn(rank int) column {
	return numberColumn("POWER", ByPower, rank, 7, func(g Glyphs, i *item) string { return g.number(i.power, words.Watts) + mark(i.wholePower) })
}

func idleColumn(rank int) column {
	return numberColumn("IDLE", ByIdle, rank, 6, func(g Glyphs, i *item) string { return idleCell(g, i.utilization, i.idle) })
}

func costColumn(rank int) column {
	return numberColumn("COST/H", ByCost, rank, 9, func(g Glyphs, i *item) string { return costCell(g, i.cost, i.currency) })
}

func heldColumn(rank int) column {
	return numberColumn("HELD", ByHeld, rank, 6, func(g Glyphs, i *item) string { return g.number(i.held, shortAge) })
}

func countColumn(title string, key Key, rank int, number func(*item) *float64) column {
	return numberColumn(title, key, rank, len(title), func(g Glyphs, i *item) string { return g.number(number(i), count) })
}

func count(value float64) string { return fmt.Sprintf("%.0f", value) }

func claimColumns() []column {
	class := func(i *item) string { return common(i.rows, func(r *Row) string { return r.Class }) }
	return []column{
		namespaceColumn(5), nameColumn("CLAIM"), podsColumn(2), nodeColumn(9),
		countColumn("DEVICES", "", 8, func(i *item) *float64 { return i.devices }),
		healthColumn(3), itemUtilizationColumn(), memoryColumn(4), powerColumn(7), idleColumn(6),
		heldColumn(10), costColumn(11), textColumn("MODEL", 12, 8, 24, itemTitle), textColumn("CLASS", 13, 10, 30, class),
	}
}

func deviceColumns() []column {
	temperature := func(g Glyphs, i *item) string {
		if i.device == nil {
			return g.Absent
		}
		return g.number(i.device.Temperature, func(celsius float64) string { return fmt.Sprintf("%.0f°", celsius) })
	}
	uuid := func(i *item) string {
		if i.device != nil {
			return i.device.UUID
		}
		return i.rows[0].UUID
	}
	return []column{
		nodeColumn(4), textColumn("DEVICE", 0, 8, 40, func(i *item) string { return i.name }).sortedBy(ByName),
		textColumn("USED BY", 2, 11, 63, (*item).holder).sortedBy(byFree), podsColumn(3), healthColumn(3),
		itemUtilizationColumn(), memoryColumn(5), powerColumn(6), idleColumn(9), numberColumn("TEMP", "", 10, 4, temperature),
		textColumn("MODEL", 7, 8, 24, itemTitle), namespaceColumn(8), textColumn("UUID", 12, 13, 40, uuid),
	}
}

func workloadColumns() []column {
	claims := func(i *item) *float64 { return new(float64(i.claims)) }
	return []column{
		namespaceColumn(6), nameColumn("WORKLOAD"), textColumn("KIND", 5, 4, 12, func(i *item) string { return i.kind }),
		podsColumn(2), countColumn("DEVICES", byDevices, 4, func(i *item) *float64 { return i.devices }),
		healthColumn(3), itemUtilizationColumn(), memoryColumn(7), powerColumn(8), idleColumn(9),
		countColumn("CLAIMS", "", 10, claims), costColumn(11), nodeColumn(12), textColumn("MODEL", 13, 8, 24, itemTitle),
	}
}

func pendingColumns() []column {
	return []column{
		namespaceColumn(4), nameColumn("POD"), textColumn("CLAIM", 3, 8, 40, func(i *item) string { return i.pending.PodClaim }),
		numberColumn("AGE", byAge, 1, 6, func(g Glyphs, i *item) string { return g.number(i.held, shortAge) }),
		textColumn("REASON", 2, 12, 25, func(i *item) string { return pendingReason(i.pending) }).sortedBy(byReason).
			styledBy(func(*item) string { return styleWarning }),
		numberColumn("ASKED", "", 6, 5, func(g Glyphs, i *item) string {
			return requestCell(g, i, func(c *page.RequestCounts) *float64 { return c.Asked })
		}),
		numberColumn("FREE", "", 7, 5, func(g Glyphs, i *item) string {
			return requestCell(g, i, func(c *page.RequestCounts) *float64 { return c.Free })
		}),
		textColumn("CLASS", 5, 8, 30, func(i *item) string { return i.pending.Class }),
		textColumn("MEANING", 8, 20, 90, func(i *item) string { return pendingReasonInfo(i.pending).Meaning }),
	}
}

func nodeColumns() []column {
	agent := textColumn("AGENT", 3, 6, 60, func(i *item) string { return i.state.State })
	agent.style = func(i *item) string {
		if i.state.State != "ok" {
			return styleWarning
		}
		return ""
	}
	claims := func(i *item) *float64 {
		if i.state.Failed {
			return nil
		}
		return new(float64(i.claims))
	}
	return []column{
		nameColumn("NODE"), agent, healthColumn(2), itemUtilizationColumn(),
		countColumn("DEVICES", byDevices, 4, func(i *item) *float64 { return i.devices }), countColumn("FREE", byFree, 5, func(i *item) *float64 { return i.free }),
		countColumn("CLAIMS", "", 6, claims), podsColumn(2), memoryColumn(7), powerColumn(8), costColumn(10), textColumn("MODEL", 9, 8, 24, itemTitle),
	}
}

// itemTitle is what the devices of an item are.
func itemTitle(i *item) string {
	if d := i.device; d != nil {
		return deviceTitle(d.Model, d.Profile)
	}
	return common(i.rows, func(r *Row) string { return r.Title() })
}

// common is the value of all rows, or that there are several.
func common(rows []*Row, text func(*Row) string) string {
	for _, r := range rows {
		if text(r) != text(rows[0]) {
			return "several"
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return text(rows[0])
}

// pendingReason is the reason of a pending claim, by its name.
func pendingReason(ref *page.PendingRef) string {
	if ref.Reason == "" {
		return string(dra.ReasonPendingDiagnosis)
	}
	return ref.Reason
}

func pendingReasonInfo(ref *page.PendingRef) dra.ReasonInfo {
	return dra.PendingReason(pendingReason(ref)).Info()
}

// requestCell is a count of the claim's only request; of several there is no one
// number.
func requestCell(g Glyphs, i *item, number func(*page.RequestCounts) *float64) string {
	if len(i.pending.Requests) != 1 {
		return g.Absent
	}
	return g.number(number(&i.pending.Requests[0]), count)
}
