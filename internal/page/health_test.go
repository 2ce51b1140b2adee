package page

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// signalRow makes a row of a family of device health.
func signalRow(family, uuid string, labels ...string) metric.Row {
	return row(family, 1, append([]string{"uuid", uuid}, labels...)...)
}

// healthy makes a row of dra_device_healthy.
func healthy(uuid, by string, value float64) metric.Row {
	return row("dra_device_healthy", value, "uuid", uuid, "by", by)
}

// xids makes the rows of one XID, last reported this long before noon.
func xids(uuid, code string, count float64, ago time.Duration) []metric.Row {
	rows := []metric.Row{row("dra_device_xid_errors_total", count, "uuid", uuid, "xid", code)}
	if count > 0 {
		rows = append(rows, row("dra_device_xid_last_timestamp_seconds", float64(noon.Add(-ago).Unix()), "uuid", uuid, "xid", code))
	}
	return rows
}

func TestHealth(t *testing.T) {
	const signal, taint = "dra_device_health_signal_info", "dra_device_taint_info"
	for name, test := range map[string]struct {
		rows []metric.Row
		want string
	}{
		"nothing is said":          {[]metric.Row{signalRow("dra_device_info", "a")}, "unknown by []"},
		"well":                     {[]metric.Row{healthy("a", "hardware", 1), healthy("a", "kubelet", 1)}, "healthy by [hardware kubelet]"},
		"an unknown reporter":      {[]metric.Row{healthy("a", "oracle", 0)}, "unknown by []"},
		"unhealthy by the driver":  {[]metric.Row{healthy("a", "hardware", 1), healthy("a", "driver", 0)}, "unhealthy by [driver]"},
		"unhealthy by all":         {[]metric.Row{healthy("a", "kubelet", 0), healthy("a", "driver", 0), healthy("a", "hardware", 0)}, "unhealthy by [hardware driver kubelet]"},
		"unhealthy by the kubelet": {[]metric.Row{healthy("a", "kubelet", 0)}, "unhealthy by [kubelet]"},
		"a warning":                {[]metric.Row{healthy("a", "hardware", 1), signalRow(signal, "a", "signal", "dcgm_power", "severity", "warning")}, "degraded by [hardware]; warning DCGM power"},
		"a taint without force":    {[]metric.Row{signalRow(taint, "a", "key", "k", "effect", "None")}, "degraded by []; warning taint k:None"},
		"signals, the critical ones first": {[]metric.Row{
			healthy("a", "hardware", 0), signalRow(signal, "a", "signal", "row_remap_pending", "severity", "warning"),
			signalRow(signal, "a", "signal", "nvlink_down", "severity", "critical"), signalRow(signal, "a", "signal", "ecc_uncorrected", "severity", "critical"),
			signalRow(signal, "a", "signal", "dcgm_memory", "severity", "warning"), signalRow(signal, "a", "signal", "dcgm_memory", "severity", "critical"),
			signalRow(taint, "a", "key", "k", "value", "v", "effect", "NoExecute"), signalRow(signal, "a", "signal", "parent", "severity", "critical"),
		}, "unhealthy by [hardware]; critical DCGM memory; critical ECC uncorrected; critical NVLink down; critical its whole device is unhealthy; critical taint k=v:NoExecute; warning row remap pending"},
		"XIDs": {slices.Concat([]metric.Row{healthy("a", "hardware", 0), signalRow(signal, "a", "signal", "xid_79", "severity", "critical"), signalRow(signal, "a", "signal", "xid_94", "severity", "warning")},
			xids("a", "13", 2, time.Minute), xids("a", "31", 1, 2*time.Hour), xids("a", "48", 0, 0), xids("a", "79", 1, 3*time.Hour), xids("a", "94", 1, time.Hour), xids("a", "other", 5, time.Hour)),
			"unhealthy by [hardware]; critical Xid 79 (GPU fell off the bus) 1x 3h0m0s; warning Xid 94 1x 1h0m0s; note Xid 13 2x 1m0s; note other Xid 5x 1h0m0s"},
		"a signal of an XID that is not counted": {[]metric.Row{healthy("a", "hardware", 0), signalRow(signal, "a", "signal", "xid_79", "severity", "critical")}, "unhealthy by [hardware]; critical Xid 79 (GPU fell off the bus)"},
	} {
		// The order of the families is of no account.
		for range 2 {
			health := findDevice(t, newView(parseNode(test.rows), noon).Devices, "a").Health
			if got := written(health); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
			slices.Reverse(test.rows)
		}
	}
}

func written(h Health) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s by %v", h.Severity(), h.By())
	for _, reason := range h.Reasons(noon) {
		fmt.Fprintf(&b, "; %s %s", reason.Grade, reason.Text)
		if !reason.Last.IsZero() {
			fmt.Fprintf(&b, " %gx %s", reason.Count, noon.Sub(reason.Last))
		}
	}
	return b.String()
}

// unhealthyPartition returns a GPU with two partitions of which one is
// unhealthy and held by a claim, and a claim of the other.
func unhealthyPartition() []metric.Row {
	of := func(uuid string) []string {
		return []string{"uuid", uuid, "parent_uuid", "gpu", "namespace", "lab", "resourceclaim", "of-" + uuid}
	}
	return []metric.Row{
		signalRow("dra_device_info", "gpu", "source", "nvml"), signalRow("dra_device_info", "x-free", "source", "nvml"),
		signalRow("dra_device_info", "a", "parent_uuid", "gpu"), signalRow("dra_device_info", "b", "parent_uuid", "gpu"),
		row("dra_claim_held", 1, of("a")...), row("dra_claim_held", 1, of("b")...),
		healthy("gpu", "hardware", 1), healthy("a", "hardware", 1), healthy("b", "hardware", 0),
	}
}

// An unhealthy partition does not make its device unhealthy, but is listed
// first.
func TestUnhealthyPartition(t *testing.T) {
	view := newView(parseNode(unhealthyPartition()), noon)
	if view.Summary().Unhealthy != 1 || view.Devices[0].UUID != "gpu" || view.Devices[0].Health.Severity() != Healthy {
		t.Errorf("%d devices are unhealthy, the first is %+v", view.Summary().Unhealthy, view.Devices[0])
	}
	if first := view.Devices[0].Partitions[0].UUID; first != "b" {
		t.Errorf("the first partition is %s", first)
	}
	if unhealthy := view.Unhealthy(); len(unhealthy) != 1 || unhealthy[0].UUID != "b" || len(unhealthy[0].Affected) != 1 || unhealthy[0].Affected[0].Claim != "of-b" {
		t.Errorf("unhealthy are %+v", unhealthy)
	}
	if first := view.Claims[0]; first.Name != "of-b" || first.Severity() != Unhealthy || *first.Devices[0].Health.Hardware {
		t.Errorf("the first claim is %+v", first)
	}
	if second := view.Claims[1]; second.Severity() != Healthy || !*second.Devices[0].ParentHealth.Hardware {
		t.Errorf("the second claim is %+v", second)
	}
}

// Holders of partitions of an unhealthy device are affected; the partitions are
// not listed beside it.
func TestUnhealthyDeviceWithPartitions(t *testing.T) {
	rows := append(unhealthyPartition(), healthy("gpu", "driver", 0))
	unhealthy := newView(parseNode(rows), noon).Unhealthy()
	if len(unhealthy) != 1 || unhealthy[0].UUID != "gpu" || len(unhealthy[0].Affected) != 2 {
		t.Errorf("unhealthy are %+v", unhealthy)
	}
}

// A claim that has released an unhealthy device is not affected.
func TestClaimWithReleasedDevice(t *testing.T) {
	rows := unhealthyPartition()
	for i := range rows {
		if rows[i].Family.Name == "dra_claim_held" {
			rows[i].Value = 0
		}
	}
	view := newView(parseNode(append(rows, row("dra_claim_held_seconds_total", 1, "uuid", "b", "namespace", "lab", "resourceclaim", "of-b"))), noon)
	if claim := view.Claims[0]; claim.Severity() != Unknown || claim.Devices[0].Health.Severity() != Unhealthy {
		t.Errorf("the claim is %+v", claim)
	}
	if unhealthy := view.Unhealthy(); len(unhealthy) != 1 || len(unhealthy[0].Affected) != 0 {
		t.Errorf("unhealthy are %+v", unhealthy)
	}
}

func TestUnhealthyDevicesOnPage(t *testing.T) {
	_, text := get(t, handler(t, testNodeRows(t)), "/")
	for _, want := range []string{
		"<title>(2 unhealthy) node-a", "2 of 8 whole devices unhealthy", `class="whole unhealthy"`, `class="partition unhealthy"`, "unhealthy device</span>",
		`data-field="health" data-value="unhealthy" data-hardware="0" data-driver="0" data-kubelet="1"`,
		`<span class="why critical">Xid 79 (GPU fell off the bus) <span class="when">112 s ago</span></span>`, `<span class="why note">Xid 13 <span class="when">×7 · 60 s ago</span></span>`,
		`<span class="why critical">its whole device is unhealthy</span><span class="why critical">ECC uncorrected</span>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	_, text = get(t, handler(t, []metric.Row{healthy("a", "hardware", 1)}), "/")
	if strings.Contains(text, `class="alert"`) || strings.Contains(text, "unhealthy)") || !strings.Contains(text, `healthy <span class="by">by hardware`) {
		t.Errorf("a node that is well: %s", text)
	}
}

// XIDs that were never reported are not shown. Others are shown also if no
// source reports the device's health.
func TestXIDsOfUnknownHealth(t *testing.T) {
	rows := slices.Concat(xids("a", "48", 0, 0), xids("a", "13", 1, time.Minute), []metric.Row{
		row("dra_claim_held", 1, "uuid", "a", "namespace", "lab", "resourceclaim", "c"),
	})
	health := newView(parseNode(rows), noon).Claims[0].Devices[0].Health
	if health == nil || len(health.XIDs) != 1 || health.XIDs[0].Code != "13" {
		t.Errorf("the device's health is %+v", health)
	}
	_, text := get(t, handler(t, append(rows[2:], rows[0])), "/api/v1/claims") // how often is not known
	if !strings.Contains(text, `"code": "13"`) || strings.Contains(text, `"count"`) {
		t.Errorf("without the count: %s", text)
	}
}

// The JSON is sorted by name.
func TestClaimsAreSortedByName(t *testing.T) {
	rows := unhealthyPartition()
	_, text := get(t, handler(t, rows), "/api/v1/claims")
	if a, b := strings.Index(text, `"of-a"`), strings.Index(text, `"of-b"`); a < 0 || b < a {
		t.Errorf("the order is another: %s", text)
	}
}

// The kubelet's message is beside the health of the device, of its claims and of
// its partitions, if the kubelet reports it as unhealthy.
func TestKubeletMessage(t *testing.T) {
	everything := func(*http.Request, []string) (map[string]bool, bool, error) { return nil, true, nil }
	unhealthy := append(unhealthyPartition(), healthy("b", "kubelet", 0))
	for name, test := range map[string]struct {
		rows    []metric.Row
		visible Visible
		shown   bool
	}{
		"unhealthy":               {unhealthy, everything, true},
		"healthy again":           {append(unhealthyPartition(), healthy("b", "kubelet", 1)), everything, false},
		"not reported":            {unhealthyPartition(), everything, false},
		"a reader of a namespace": {unhealthy, only("lab"), false},
	} {
		t.Run(name, func(t *testing.T) {
			site := serveLimited(t, test.rows, Handlers, test.visible)
			_, html := get(t, site, "/")
			if got := strings.Count(html, `<span class="why critical">kubelet: &lt;b&gt;fan&lt;/b&gt; of secret-team�[2J</span>`); got != 3 && test.shown || got > 0 && !test.shown {
				t.Errorf("the page has the message %d times:\n%s", got, html)
			}
			_, document := get(t, site, "/api/v1/claims")
			if got := strings.Count(document, `"kubeletMessage": "\u003cb\u003efan\u003c/b\u003e of secret-team\u001b[2J"`); got != 1 && test.shown || got > 0 && !test.shown {
				t.Errorf("the document has the message %d times:\n%s", got, document)
			}
		})
	}
}
