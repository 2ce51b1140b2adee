package e2e

import (
	"strings"
	"testing"
	"time"
)

const (
	xidAlert = "DRADeviceXIDFatal"

	// shippedInterval is the scrape interval of the shipped PodMonitors, and
	// the default evaluation interval of the operator's Prometheus.
	shippedInterval = 30 * time.Second
)

// xidAlerts is a Prometheus with the shipped rules, alerts and intervals that
// scrapes the agent which reads NVML, with an Alertmanager.
type xidAlerts struct {
	*alertmanager
	prometheus *prometheus
	injected   time.Time
}

func startXIDAlerts(t *testing.T, agent *hostAgent) *xidAlerts {
	t.Helper()
	w := &xidAlerts{alertmanager: startAlertmanager(t, "alertmanager-xid")}
	w.prometheus = serve(t, "prometheus-xid", serverConfig{
		jobs:         []object{hostJob(agent, shippedInterval), clusterJob(clusterURL, shippedInterval)},
		rules:        []string{ruleFile(t, recordingRules), ruleFile(t, alertRules)},
		every:        shippedInterval,
		alertmanager: w.address,
	})
	return w
}

// waitGPUs waits until Prometheus has scraped the GPUs, so that the next Xid
// is the first that it observes of them.
func (w *xidAlerts) waitGPUs(t *testing.T) {
	t.Helper()
	w.prometheus.waitRows(t, `count(dra_device_xid_errors_total{xid="79"} == 0) unless on () dra_device_xid_last_timestamp_seconds`, oneRow)
}

// testXIDAlert: the webhook was notified of the Xid that testXID injected
// within one minute, with the claim that holds the GPU.
func (n *nvidiaNode) testXIDAlert(t *testing.T) {
	covers(t)
	if n.xids.injected.IsZero() {
		t.Fatal("no Xid was injected: this test goes on from that of the name xid")
	}
	gpu := heldNVIDIADeviceOf(t, "nvidia", []string{"whole/main"})
	notified := n.xids.waitNotified(t, "the alert of the Xid", func(n notification) bool {
		return n.Labels["alertname"] == xidAlert && n.Status == "firing"
	})
	took := notified.at.Sub(n.xids.injected)
	t.Logf("the webhook received the alert after %s:\n%s\n%s", took, notified.Annotations["summary"], notified.Annotations["description"])
	if took > time.Minute {
		t.Error("that is too late")
	}
	claim := podsClaim(t, "nvidia", "whole").Name
	for _, want := range []struct{ text, part string }{
		{notified.Labels["uuid"], gpu.gpuUUID}, {notified.Labels["node"], shared.NodeName()}, {notified.Labels["xid"], "79"},
		{notified.Labels["severity"], "critical"},
		{notified.Annotations["summary"], "79"},
		{notified.Annotations["summary"] + notified.Annotations["description"], "nvidia/" + claim},
		{notified.Annotations["runbook_url"], "/docs/runbooks/" + xidAlert + ".md"},
		{notified.Annotations["dashboard_url"], "/d/dra-"},
	} {
		if !strings.Contains(want.text, want.part) {
			t.Errorf("%q is not in %q", want.part, want.text)
		}
	}
	for _, other := range n.xids.webhook.all() {
		if other.Labels["alertname"] == xidAlert && other.Fingerprint != notified.Fingerprint {
			t.Errorf("there is another alert: %v", other)
		}
	}
}
