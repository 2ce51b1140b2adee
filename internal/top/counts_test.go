package top

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/internal/page"
)

// snapshot reads the rows of a scrape of internal/page.
func snapshot(t *testing.T, name string) []metric.Row {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(withReplies(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	var rows []metric.Row
	for _, name := range slices.Sorted(maps.Keys(families)) {
		family := &metric.Family{Name: name}
		for _, series := range families[name].GetMetric() {
			var names, values []string
			for _, pair := range series.GetLabel() {
				names, values = append(names, pair.GetName()), append(values, pair.GetValue())
			}
			value := cmp.Or(series.GetGauge().GetValue(), series.GetCounter().GetValue())
			rows = append(rows, metric.Row{Family: family, Labels: metric.NewLabels(names, values...), Value: value})
		}
	}
	return rows
}

// field is the number of an element of the page.
func field(t *testing.T, html, name string) int {
	t.Helper()
	found := regexp.MustCompile(`data-field="` + name + `" data-value="(\d+)"`).FindStringSubmatch(html)
	if found == nil {
		t.Fatalf("the page has no %s", name)
	}
	count, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// series counts the rows of a family that a test selects.
func series(rows []metric.Row, family string, wanted func(metric.Row) bool) int {
	count := 0
	for _, row := range rows {
		if row.Family.Name == family && wanted(row) {
			count++
		}
	}
	return count
}

// The definition of a pending claim in docs/glossary.md applies everywhere: the
// metrics, the page, the JSON and top have the same count of one snapshot, and
// count scheduling-gated references separately.
func TestPendingCountsAgree(t *testing.T) {
	rows := snapshot(t, "cluster.metrics.txt")
	all := series(rows, "dra_claim_pending_since_timestamp_seconds", func(metric.Row) bool { return true })
	gated := series(rows, "dra_claim_pending_reason_info", func(row metric.Row) bool { return row.Labels.Get("reason") == "scheduling_gated" })
	want := fmt.Sprintf("%d pending, %d gated", all-gated, gated)
	if gated == 0 || all == gated {
		t.Fatalf("the snapshot does not distinguish pending from gated claims: %s", want)
	}
	html, body := string(withReplies(t, "cluster.html")), withReplies(t, "pending.json")
	if got := fmt.Sprintf("%d pending, %d gated", field(t, html, "pending"), field(t, html, "gated")); got != want {
		t.Errorf("the page has %s, want %s", got, want)
	}
	var document page.PendingAnswer
	if err := decode(body, &document); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%d pending, %d gated", len(document.Pending), len(document.Gated)); got != want {
		t.Errorf("the JSON has %s, want %s", got, want)
	}
	waiting, err := decodePending(body)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%d pending, %d gated", waiting.Count, waiting.Gated); got != want {
		t.Errorf("top reads %s, want %s", got, want)
	}
	header := strings.Join(Draw(FleetState{At: noon, Pending: &waiting}, Order{}, Look{Glyphs: asciiGlyphs()}), "\n")
	if want := fmt.Sprintf("pending claims: %d (and %d gated)", all-gated, gated); !strings.Contains(header, want) || strings.Contains(header, "scheduling_gated") {
		t.Errorf("top does not write %q:\n%s", want, header)
	}
}

// The definition of a device in docs/glossary.md applies everywhere: whole
// devices and partitions, and which of them claims hold.
func TestDeviceCountsAgree(t *testing.T) {
	for name, documents := range map[string][2]string{"node.metrics.txt": {"page.html", "claims.json"}, "sharing.metrics.txt": {"sharing.html", "sharing.json"}} {
		rows, html, body := snapshot(t, name), string(withReplies(t, documents[0])), withReplies(t, documents[1])
		partition := func(row metric.Row) bool { return row.Labels.Get("parent_uuid") != "" }
		devices := series(rows, "dra_device_info", func(metric.Row) bool { return true })
		partitions := series(rows, "dra_device_info", partition)
		held := map[string]bool{}
		series(rows, "dra_claim_held", func(row metric.Row) bool {
			if row.Value == 1 {
				held[row.Labels.Get("uuid")] = true
			}
			return false
		})
		want := page.DeviceCount{Devices: devices, Whole: devices - partitions, Partitions: partitions, Held: len(held)}
		if partitions == 0 || want.Held == 0 || want.Held == want.Devices {
			t.Fatalf("%s does not distinguish the counts: %+v", name, want)
		}
		if got := (page.DeviceCount{Devices: field(t, html, "devices"), Whole: field(t, html, "whole"), Partitions: field(t, html, "partitions"), Held: field(t, html, "held")}); got != want {
			t.Errorf("%s: the page has %+v, want %+v", name, got, want)
		}
		answer, err := decodeClaims(body, noon)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Devices == nil || *answer.Devices != want {
			t.Errorf("%s: the JSON has %+v, want %+v", name, answer.Devices, want)
		}
		fleet := NewFleet()
		fleet.Expect([]Agent{{Name: "a"}})
		fleet.Set(Reply{Agent: Agent{Name: "a"}, Answer: answer})
		header := Draw(fleet.Reading(noon, Wanted{}), Order{}, Look{Glyphs: asciiGlyphs()})[0]
		if want := fmt.Sprintf(" hold %d of %d devices, on 1 node", want.Held, want.Devices); !strings.Contains(header, want) {
			t.Errorf("%s: top does not write %q: %s", name, want, header)
		}
	}
}

// An agent that does not say how many devices it has, as older ones do not,
// leaves top without the total: a part of it would be taken for all.
func TestDevicesOfOlderAgent(t *testing.T) {
	fleet := NewFleet()
	fleet.Expect([]Agent{{Name: "new"}, {Name: "old"}})
	row := func(node string) []Row { return []Row{{Node: node, Namespace: "n", Claim: "c", UUID: "u"}} }
	fleet.Set(Reply{Agent: Agent{Name: "new"}, Answer: AgentReport{Node: "a", At: noon, Devices: &page.DeviceCount{Devices: 4, Whole: 4, Held: 1}, Rows: row("a")}})
	fleet.Set(Reply{Agent: Agent{Name: "old"}, Answer: AgentReport{Node: "b", At: noon, Rows: row("b")}})
	header := func(wanted Wanted) string {
		return Draw(fleet.Reading(noon, wanted), Order{}, Look{Glyphs: asciiGlyphs()})[0]
	}
	if got := header(Wanted{}); !strings.Contains(got, " holds 2 devices, on 2 nodes") {
		t.Errorf("top writes %q", got)
	}
	if got := header(Wanted{Nodes: []string{"a"}}); !strings.Contains(got, " holds 1 of 4 devices, on 1 node") {
		t.Errorf("of the one node top writes %q", got)
	}
}

// A cluster role of before gated references had a list of their own has them
// among the others.
func TestGatedOfOlderClusterRole(t *testing.T) {
	waiting, err := decodePending([]byte(`{"apiVersion": "v1", "pending": [
		{"pod": "a", "reason": "scheduling_gated", "since": "2026-11-20T08:00:00Z"}, {"pod": "b", "reason": "quota", "since": "2026-11-20T09:00:00Z"}, {"pod": "c"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if waiting.Count != 2 || waiting.Gated != 1 || waiting.Oldest.Hour() != 9 || fmt.Sprint(waiting.Reasons) != "[{quota 1} {unknown 1}]" {
		t.Errorf("top reads %+v", waiting)
	}
}
