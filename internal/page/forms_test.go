package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/test/fakes/otlptest"
)

// numbers are the numbers of a form, by family and by what they are about.
type numbers map[string]float64

func (n numbers) add(value *float64, family string, subject ...string) {
	if value != nil {
		n[family+fmt.Sprint(subject)] = *value
	}
}

// TestFormsAgree compares every number of devices and of claims in the text, the JSON and
// the page that are made of one model of the real reducer, in which no two devices have
// the same readings.
func TestFormsAgree(t *testing.T) {
	fixture := otlptest.NewNode(noon)
	state, facts := node.NewState(node.Config{Node: "node-a", Interval: time.Second, Grace: time.Minute}), fixture.Facts
	for turn := range 5 {
		now := fixture.Now.Add(time.Duration(turn) * time.Second)
		for i := range facts.Samples {
			facts.Samples[i].At, facts.Samples[i].Readings = now, distinctReadings(i, turn)
		}
		var snapshot node.Snapshot
		state, snapshot, _ = node.Step(state, facts, now)
		site, err := Handlers(Config{
			Node: "node-a", MetricsPath: "/metrics", Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return now.Wall }, Model: func() *model.Node { return snapshot.Model },
		})
		if err != nil {
			t.Fatal(err)
		}
		text, document, page := readText(t, snapshot.Rows()), readDocument(t, site["/api/v1/claims"]), readPage(t, site["/"])
		if len(text) < 300 {
			t.Fatalf("the text has %d numbers", len(text))
		}
		if !maps.Equal(text, document) {
			t.Errorf("turn %d: the text and the JSON differ: %v", turn, difference(text, document))
		}
		maps.DeleteFunc(text, func(key string, _ float64) bool { return !onPage.MatchString(key) })
		if !maps.Equal(text, page) {
			t.Errorf("turn %d: the text and the page differ: %v", turn, difference(text, page))
		}
	}
}

// onPage matches the families whose numbers the first page has in full.
var onPage = regexp.MustCompile(`^dra_device_(utilization|memory_used|power|temperature)_`)

func distinctReadings(i, turn int) []device.Reading {
	at := float64(i + 100*turn)
	reading := func(q device.Quantity, value float64, details ...string) device.Reading {
		r := device.Reading{Quantity: q, Value: value}
		copy(r.Details[:], details)
		return r
	}
	return []device.Reading{
		reading(device.Utilization, at/1000), reading(device.MemoryUsed, 1e9+at), reading(device.MemorySize, 80e9+at),
		reading(device.Power, 100+at), reading(device.Energy, 1000+at*float64(turn)), reading(device.Temperature, 20+at/100, "gpu"),
	}
}

// readText reads the families that all forms have.
func readText(t *testing.T, rows []metric.Row) numbers {
	t.Helper()
	var text bytes.Buffer
	if err := metric.NewPage(rows).Encode(&text, expfmt.NewFormat(expfmt.TypeTextPlain), false); err != nil {
		t.Fatal(err)
	}
	n := numbers{}
	for _, row := range rowsOf(t, text.Bytes()) {
		get := row.Labels.Get
		switch name := row.Family.Name; name {
		case metric.DeviceUtilizationRatio, metric.DeviceMemoryUsedBytes, metric.DeviceMemorySizeBytes, metric.DevicePowerWatts, metric.DeviceTemperatureCelsius:
			n.add(&row.Value, name, get("uuid"))
		case metric.ClaimUtilizationRatio, metric.ClaimMemoryUsedBytes, metric.ClaimPowerWatts, metric.ClaimHeldSeconds, metric.ClaimDeviceSeconds:
			n.add(&row.Value, name, get("namespace"), get("resourceclaim"), get("uuid"))
		case metric.ClaimBusySeconds, metric.ClaimEnergyJoules:
			n.add(&row.Value, name, get("namespace"), get("resourceclaim"), get("uuid"), get("attribution"))
		}
	}
	return n
}

func readDocument(t *testing.T, handler http.Handler) numbers {
	t.Helper()
	_, text := get(t, handler, "/api/v1/claims?devices=all")
	var document ClaimsAnswer
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	n := numbers{}
	for _, d := range document.All {
		n.add(d.Utilization, metric.DeviceUtilizationRatio, d.UUID)
		n.add(d.MemoryUsed, metric.DeviceMemoryUsedBytes, d.UUID)
		n.add(d.MemorySize, metric.DeviceMemorySizeBytes, d.UUID)
		n.add(d.Power, metric.DevicePowerWatts, d.UUID)
		n.add(d.Temperature, metric.DeviceTemperatureCelsius, d.UUID)
	}
	for _, c := range document.Claims {
		for _, d := range c.Devices {
			n.add(d.Utilization, metric.ClaimUtilizationRatio, c.Namespace, c.Name, d.UUID)
			n.add(d.MemoryUsed, metric.ClaimMemoryUsedBytes, c.Namespace, c.Name, d.UUID)
			n.add(d.Power, metric.ClaimPowerWatts, c.Namespace, c.Name, d.UUID)
			n.add(d.HeldSeconds, metric.ClaimHeldSeconds, c.Namespace, c.Name, d.UUID)
			n.add(d.DeviceSeconds, metric.ClaimDeviceSeconds, c.Namespace, c.Name, d.UUID)
			for _, a := range d.Accounts {
				n.add(a.Busy, metric.ClaimBusySeconds, c.Namespace, c.Name, d.UUID, a.Attribution)
				n.add(a.Energy, metric.ClaimEnergyJoules, c.Namespace, c.Name, d.UUID, a.Attribution)
			}
		}
	}
	return n
}

// cell matches a number of the page that programs read.
var cell = regexp.MustCompile(`data-uuid="([^"]*)" data-field="([^"]*)" data-value="([^"]+)"`)

func readPage(t *testing.T, handler http.Handler) numbers {
	t.Helper()
	families := map[string]string{
		"utilization": metric.DeviceUtilizationRatio, "memory-used": metric.DeviceMemoryUsedBytes,
		"power": metric.DevicePowerWatts, "temperature": metric.DeviceTemperatureCelsius,
	}
	_, text := get(t, handler, "/")
	n := numbers{}
	for _, match := range cell.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(html.UnescapeString(match[3]), 64)
		if family := families[match[2]]; err == nil && family != "" {
			n.add(&value, family, match[1])
		}
	}
	return n
}

// difference returns some of what the two do not have in common.
func difference(a, b numbers) []string {
	var all []string
	for key, value := range a {
		if other, ok := b[key]; (!ok || other != value) && len(all) < 5 {
			all = append(all, fmt.Sprintf("%s is %v and %v (%t)", key, value, other, ok))
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok && len(all) < 10 {
			all = append(all, key+" is only in the second")
		}
	}
	return all
}
