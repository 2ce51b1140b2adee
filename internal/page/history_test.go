package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// observed is a history of these means, one observation a minute from the first minute on;
// an unknown one has no row.
func observed(from int, means ...float64) *History {
	h := NewHistory()
	for i, mean := range means {
		var rows []metric.Row
		if !math.IsNaN(mean) {
			rows = utilizationRows(mean)
		}
		h.observe(parseNode(rows), time.Duration(from+i)*time.Minute)
	}
	return h
}

func utilizationRows(value float64) []metric.Row {
	return []metric.Row{
		row("dra_device_utilization_ratio", value, "uuid", "a"),
		row("dra_claim_utilization_ratio", value/2, "namespace", "ml", "resourceclaim", "train", "uuid", "a"),
		row("dra_device_memory_used_bytes", 7, "uuid", "a"),
	}
}

// hourOf is an hour in which the utilization of all rows rises and falls.
func hourOf(rows []metric.Row) *History {
	h, rows := NewHistory(), slices.Clone(rows)
	for minute := range historyMinutes {
		for i := range rows {
			rows[i].Value = (1 + math.Sin(float64(minute*(i%7+1))/10)) / 2
		}
		h.observe(parseNode(rows), time.Duration(minute)*time.Minute)
	}
	return h
}

func TestHistory(t *testing.T) {
	unknown := math.NaN()
	filled := func(minutes int, known ...float64) []float64 {
		return append(known, slices.Repeat([]float64{unknown}, minutes-len(known))...)
	}
	full := make([]float64, historyMinutes+30)
	for i := range full {
		full[i] = float64(i) / 128
	}
	late := observed(0, 0.25, 0.5)
	late.observe(nil, 30*time.Minute)
	gone := observed(0, 0.25, 0.5)
	gone.observe(nil, 61*time.Minute)
	again := observed(0, 0.25, 0.5)
	again.observe(parseNode(utilizationRows(0.75)), 200*time.Minute)
	mean := observed(5, 0.25, 0.5)
	mean.observe(parseNode(utilizationRows(1)), 6*time.Minute+20*time.Second)
	for name, test := range map[string]struct {
		history *History
		want    []float64
	}{
		"empty":                {NewHistory(), nil},
		"one minute":           {observed(3, 0.5), nil},
		"two minutes":          {observed(0, 0.25, 0.5), []float64{0.25, 0.5}},
		"mean of a minute":     {mean, []float64{0.25, 0.75}},
		"gap":                  {observed(100, 0.25, unknown, 0.5), []float64{0.25, unknown, 0.5}},
		"more than an hour":    {observed(0, full...), full[30:]},
		"no longer reported":   {late, filled(31, 0.25, 0.5)},
		"removed":              {gone, nil},
		"reported again later": {again, nil},
	} {
		for _, of := range []struct {
			namespace, claim string
			factor           float64
		}{{"", "", 1}, {"ml", "train", 0.5}} {
			got := test.history.of(usedDevice{of.namespace, of.claim, "", "a"})
			if len(got) != len(test.want) {
				t.Errorf("%s: %v, want %v", name, got, test.want)
				continue
			}
			for i := range got {
				want := test.want[i] * of.factor
				if got[i] != want && !(math.IsNaN(got[i]) && math.IsNaN(want)) {
					t.Errorf("%s: minute %d is %v, want %v", name, i, got[i], want)
				}
			}
		}
	}
	if graph := newGraph(observed(0, full...).of(usedDevice{uuid: "a"})); graph == nil || graph.Width != historyMinutes-1 || !strings.HasPrefix(graph.Text, "Utilization in the last hour: ") {
		t.Errorf("the graph of an hour is %v", graph)
	}
	if len(gone.hours) != 0 {
		t.Errorf("%d devices are kept for more than an hour", len(gone.hours))
	}
}

// TestHistoryOfRecreatedClaim: a claim that is created again under its name has none of
// the minutes of the one before.
func TestHistoryOfRecreatedClaim(t *testing.T) {
	h := NewHistory()
	for minute := range 6 {
		uid := fmt.Sprint(minute / 3) // another claim from the fourth minute on
		rows := append(utilizationRows(float64(minute)/8), row("dra_claim_info", 1, "namespace", "ml", "resourceclaim", "train", "claim_uid", uid))
		h.observe(parseNode(rows), time.Duration(minute)*time.Minute)
	}
	for uid, want := range map[string]string{"0": "[0 0.0625 0.125 NaN NaN NaN]", "1": "[NaN NaN NaN 0.1875 0.25 0.3125]", "": "[]"} {
		if got := fmt.Sprint(h.of(usedDevice{"ml", "train", uid, "a"})); got != want {
			t.Errorf("the claim with UID %q has %s, want %s", uid, got, want)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory()
	for i := range maxHistories + 10 {
		h.observe(parseNode([]metric.Row{row("dra_device_utilization_ratio", 1, "uuid", fmt.Sprint(i))}), time.Minute)
	}
	if len(h.hours) != maxHistories {
		t.Errorf("%d devices have a history", len(h.hours))
	}
}

func TestGraph(t *testing.T) {
	unknown := math.NaN()
	for _, test := range []struct {
		ratios     []float64
		path, text string
	}{
		{[]float64{unknown, unknown}, "", ""},
		{[]float64{0, 0.5, 1}, "M0 20h0L1 10L2 0", "mean 50%, highest minute 100%"},
		{[]float64{0.5, 0.5, 0.5, 0.5}, "M0 10h0H3", "mean 50%, highest minute 50%"},
		{[]float64{0.5, 0.51, 0.5, 1, 1}, "M0 10h0H2L3 0H4", "mean 70%, highest minute 100%"},
		{[]float64{unknown, 1, unknown, 0, 0, unknown}, "M1 0h0M3 20h0H4", "mean 33%, highest minute 100%"},
		{[]float64{1.5, -1}, "M0 0h0L1 20", "mean 25%, highest minute 150%"},
	} {
		got := newGraph(test.ratios)
		switch {
		case test.path == "" && got == nil:
		case test.path == "" || got == nil:
			t.Errorf("%v: %v", test.ratios, got)
		case got.Path != test.path || got.Text != fmt.Sprintf("Utilization in the last %d minutes: %s", len(test.ratios), test.text) || got.Width != len(test.ratios)-1:
			t.Errorf("%v: %v, want %s and %s", test.ratios, *got, test.path, test.text)
		}
	}
}

// TestGraphsOnPages: a reader of all namespaces sees the graphs of devices and claims,
// another one those of the claims of their namespaces: others may have used the device.
func TestGraphsOnPages(t *testing.T) {
	rows := append(utilizationRows(0.5),
		row("dra_device_info", 1, "uuid", "a", "model", "H100"),
		row("dra_claim_info", 1, "namespace", "ml", "resourceclaim", "train"),
		row("dra_claim_held", 1, "namespace", "ml", "resourceclaim", "train", "uuid", "a"))
	history := observed(0, 0.5, 0.5)
	for visible, want := range map[string]int{"": 2, "ml": 1, "web": 0} {
		config := Config{History: history}
		if visible != "" {
			config.Visible = only(visible)
		}
		_, body := get(t, served(t, config, rows), "/")
		if got := strings.Count(body, `class="graph"`); got != want {
			t.Errorf("a reader of %q sees %d graphs, want %d", visible, got, want)
		}
		if want == 2 && !strings.Contains(body, `aria-label="Utilization in the last 2 minutes: mean 50%, highest minute 50%"`) {
			t.Error("the graph of the device has no name")
		}
	}
}
