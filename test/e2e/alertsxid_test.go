package e2e

import (
	"strings"
	"testing"
	"time"
)

const (
	xidAlert = "DRADeviceXIDFatal"

	// asShipped is how often the shipped PodMonitors scrape, and how often the
	// operator's Prometheus evaluates groups of rules that do not say.
	asShipped = 30 * time.Second
)

// xidWatch is a Prometheus with the shipped rules, alerts and intervals that
// looks at the agent which reads NVML, and what its Alertmanager tells.
type xidWatch struct {
	*alertmanager
	prometheus *prometheus
	injected   time.Time
}

func watchXIDs(t *testing.T, agent *hostAgent) *xidWatch {
	t.Helper()
	w := &xidWatch{alertmanager: startAlertmanager(t, "alertmanager-xid")}
	w.prometheus = serve(t, "prometheus-xid", serving{
		jobs:         []object{hostJob(agent, asShipped), clusterJob(clusterURL, asShipped)},
		rules:        []string{ruleFile(t, recordingRules), ruleFile(t, alertRules)},
		every:        asShipped,
		alertmanager: w.address,
	})
	return w
}

// knowsGPUs waits until it has seen the GPUs: an Xid that comes next is the first
// that they ever had.
func (w *xidWatch) knowsGPUs(t *testing.T) {
	t.Helper()
	w.prometheus.answers(t, `count(dra_device_xid_errors_total{xid="79"} == 0) unless on () dra_device_xid_last_timestamp_seconds`, one)
}

// testXIDAlert: the Xid that testXID injected has been told to the webhook within
// one minute, with the claim whose GPU it is.
func (n *nvidiaNode) testXIDAlert(t *testing.T) {
	shows(t)
	if n.xids.injected.IsZero() {
		t.Fatal("no Xid was injected: this test goes on from that of the name xid")
	}
	gpu := truthOf(t, "nvidia", []string{"whole/main"})
	told := n.xids.told(t, "the alert of the Xid", func(n notice) bool {
		return n.Labels["alertname"] == xidAlert && n.Status == "firing"
	})
	took := told.at.Sub(n.xids.injected)
	t.Logf("the webhook was told after %s:\n%s\n%s", took, told.Annotations["summary"], told.Annotations["description"])
	if took > time.Minute {
		t.Error("that is too late")
	}
	claim := podsClaim(t, "nvidia", "whole").Name
	for _, want := range []struct{ where, words string }{
		{told.Labels["uuid"], gpu.gpuUUID}, {told.Labels["node"], shared.NodeName()}, {told.Labels["xid"], "79"},
		{told.Labels["severity"], "critical"},
		{told.Annotations["summary"], "79"},
		{told.Annotations["summary"] + told.Annotations["description"], "nvidia/" + claim},
		{told.Annotations["runbook_url"], "/docs/runbooks/" + xidAlert + ".md"},
		{told.Annotations["dashboard_url"], "/d/dra-"},
	} {
		if !strings.Contains(want.where, want.words) {
			t.Errorf("%q is not in %q", want.words, want.where)
		}
	}
	for _, other := range n.xids.inbox.all() {
		if other.Labels["alertname"] == xidAlert && other.Fingerprint != told.Fingerprint {
			t.Errorf("there is another alert: %v", other)
		}
	}
}
