package page

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// A device whose sources are healthy again after a fatal Xid is recovering
// while the alert still fires: with what happened and when.
func TestRecoveringAfterFatalXid(t *testing.T) {
	well := []metric.Row{healthy("a", "hardware", 1), healthy("a", "driver", 1)}
	warned := append(slices.Clone(well), signalRow("dra_device_health_signal_info", "a", "signal", "xid_94", "severity", "warning"))
	unhealthy := []metric.Row{healthy("a", "hardware", 1), healthy("a", "driver", 0)}
	for name, test := range map[string]struct {
		rows []metric.Row
		want string
	}{
		"just after":           {slices.Concat(well, xids("a", "79", 2, 2*time.Minute)), "recovering by [hardware driver]; warning Xid 79 (GPU fell off the bus) 2x 2m0s"},
		"the newest counts":    {slices.Concat(well, xids("a", "79", 1, 9*time.Minute), xids("a", "48", 1, time.Minute)), "recovering by [hardware driver]; warning Xid 48 (uncorrectable ECC error) 1x 1m0s; note Xid 79 (GPU fell off the bus) 1x 9m0s"},
		"while the alert ends": {slices.Concat(well, xids("a", "79", 1, 30*time.Minute)), "recovering by [hardware driver]; warning Xid 79 (GPU fell off the bus) 1x 30m0s"},
		"no source reports":    {slices.Concat([]metric.Row{signalRow("dra_device_info", "a")}, xids("a", "79", 1, time.Minute)), "recovering by []; warning Xid 79 (GPU fell off the bus) 1x 1m0s"},
		"before a warning":     {slices.Concat(warned, xids("a", "79", 1, time.Minute), xids("a", "94", 1, 0)), "recovering by [hardware driver]; warning Xid 94 1x 0s; warning Xid 79 (GPU fell off the bus) 1x 1m0s"},
		"still unhealthy":      {slices.Concat(unhealthy, xids("a", "79", 1, time.Minute)), "unhealthy by [driver]; note Xid 79 (GPU fell off the bus) 1x 1m0s"},
		"after the alert":      {slices.Concat(well, xids("a", "79", 1, 40*time.Minute)), "healthy by [hardware driver]; note Xid 79 (GPU fell off the bus) 1x 40m0s"},
		"an application's":     {slices.Concat(well, xids("a", "31", 1, time.Minute)), "healthy by [hardware driver]; note Xid 31 1x 1m0s"},
		"never":                {slices.Concat(well, xids("a", "79", 0, 0)), "healthy by [hardware driver]"},
	} {
		if got := written(findDevice(t, newView(parseNode(test.rows), noon).Devices, "a").Health); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Partitions were unhealthy with their whole device, and recover with it. An
// Xid of one partition does not affect the whole device.
func TestRecoveringPartitions(t *testing.T) {
	rows := func(of string) []metric.Row {
		return slices.Concat(unhealthyPartition()[:6], []metric.Row{healthy("gpu", "hardware", 1), healthy("a", "hardware", 1), healthy("b", "hardware", 1)}, xids(of, "79", 1, time.Minute))
	}
	view := newView(parseNode(rows("gpu")), noon)
	for _, claim := range view.Claims {
		if got := written(*claim.Devices[0].Health); claim.Severity() != Recovering || got != "recovering by [hardware]; warning its whole device: Xid 79 (GPU fell off the bus) 1x 1m0s" {
			t.Errorf("%s: %s", claim.Name, got)
		}
	}
	if first := view.Devices[0]; first.UUID != "gpu" || view.Summary().Recovering != 1 || len(view.Unhealthy()) != 0 {
		t.Errorf("%d recover, the first device is %s", view.Summary().Recovering, first.UUID)
	}
	view = newView(parseNode(rows("b")), noon)
	gpu := view.Devices[0]
	if gpu.Health.Severity() != Healthy || gpu.Partitions[0].UUID != "b" || gpu.Partitions[0].Health.Severity() != Recovering || gpu.Partitions[1].Health.Severity() != Healthy {
		t.Errorf("of a partition's own Xid: %+v", gpu)
	}
}

func TestRecoveringInPageAndJSON(t *testing.T) {
	site := handler(t, slices.Concat([]metric.Row{
		signalRow("dra_device_info", "a", "source", "nvml"), healthy("a", "hardware", 1),
		row("dra_claim_held", 1, "uuid", "a", "namespace", "lab", "resourceclaim", "c"),
	}, xids("a", "79", 1, 2*time.Minute)))
	_, text := get(t, site, "/")
	for _, want := range []string{
		`data-field="health" data-value="recovering"`, `recovering</span><span class="why warning">Xid 79 (GPU fell off the bus) <span class="when">2 min ago</span></span>`,
		"1 recovering", `class="whole recovering"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(text, `class="state"><svg class="mark-of healthy"`) {
		t.Error("the page shows healthy beside it")
	}
	_, text = get(t, site, "/api/v1/claims")
	if want := `"recovering": {
              "xid": "79",
              "meaning": "GPU fell off the bus",
              "last": "2026-11-20T09:58:00Z"
            }`; !strings.Contains(text, want) {
		t.Errorf("the JSON does not say %s:\n%s", want, text)
	}
}

// The page calls a device recovering for at least as long as DRADeviceXIDFatal
// fires for it, and not much longer. The alert ends with the first evaluation
// after its threshold.
func TestRecoveringLastsAsLongAsTheAlert(t *testing.T) {
	text, err := os.ReadFile("../../alerts/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	group := regexp.MustCompile(`(?s)name: dra-exporter\.xid-alerts\n(.*?)annotations:`).FindString(string(text))
	rule := regexp.MustCompile(`(?s)interval: (\w+)\n.*xid=~"([0-9|]+)".*\[(\w+)\].*< (\d+)\n`).FindStringSubmatch(group)
	if rule == nil {
		t.Fatalf("the alert is not as this test reads it:\n%s", group)
	}
	interval, err1 := time.ParseDuration(rule[1])
	lookback, err2 := time.ParseDuration(rule[3])
	threshold, err3 := strconv.Atoi(rule[4])
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	fires := max(lookback, time.Duration(threshold)*time.Second) + interval
	if recoveringFor < fires || recoveringFor > fires+2*time.Minute {
		t.Errorf("recovering for %s, and the alert fires for %s", recoveringFor, fires)
	}
	codes := slices.SortedFunc(maps.Keys(fatalXids()), natural)
	if got := strings.Join(codes, "|"); got != rule[2] {
		t.Errorf("recovering from %s, and the alert fires for %s", got, rule[2])
	}
}

// The page's texts on fatal Xids are those of docs/health.md, which is
// generated from the node role's table.
func TestFatalXidsOfNodeRole(t *testing.T) {
	text, err := os.ReadFile("../../docs/health.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^\| (\d+) \| \w+ \| critical \| \w+ \| (.+) \|$`).FindAllStringSubmatch(string(text), -1) {
		want[found[1]] = found[2]
	}
	if got := fatalXids(); len(want) < 20 || !maps.Equal(got, want) {
		t.Errorf("the page has\n%s\nwant\n%s", fmt.Sprint(got), fmt.Sprint(want))
	}
}
