package helm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// TestOperators: each operator gets objects of its kinds, by itself if the cluster has
// the kind, which say the same as those of the Prometheus operator.
func TestOperators(t *testing.T) {
	const victoria, google = "operator.victoriametrics.com/v1beta1", "monitoring.googleapis.com/v1"
	shipped := render(t, install{apis: []string{podMonitors, prometheusRules}})
	out := render(t, install{values: "monitoring: {kind: VMPodScrape, metricRelabelings: [{action: drop, regex: x}]}", apis: []string{victoria + "/VMPodScrape", victoria + "/VMRule"}})
	for _, role := range []string{"node", "cluster"} {
		key := "/dra-exporter/dra-exporter-" + role
		want, got := shipped.need(t, "PodMonitor"+key), out.need(t, "VMPodScrape"+key)
		if got.text("apiVersion") != victoria || !equal(got.at("spec", "selector"), want.at("spec", "selector")) || got.text("spec", "jobLabel") != want.text("spec", "jobLabel") {
			t.Errorf("%s: %v", role, got)
		}
		wanted := object(want.at("spec", "podMetricsEndpoints").([]any)[0].(map[string]any))
		endpoint := object(got.at("spec", "podMetricsEndpoints").([]any)[0].(map[string]any))
		for _, field := range []string{"port", "path", "interval", "scrapeTimeout", "honorLabels"} {
			if !equal(endpoint[field], wanted[field]) {
				t.Errorf("%s: %s is %v", role, field, endpoint[field])
			}
		}
		if !equal(endpoint["relabelConfigs"], wanted["relabelings"]) || endpoint["relabelings"] != nil || endpoint["metricRelabelConfigs"] == nil {
			t.Errorf("%s: the endpoint is %v", role, endpoint)
		}
	}
	rules, wanted := out.need(t, "VMRule/dra-exporter/dra-exporter"), shipped.need(t, "PrometheusRule/dra-exporter/dra-exporter")
	if rules.text("apiVersion") != victoria || !equal(rules.at("spec"), wanted.at("spec")) {
		t.Error("a VMRule has other rules than a PrometheusRule")
	}

	out = render(t, install{values: "monitoring: {kind: ClusterPodMonitoring}", apis: []string{google + "/ClusterPodMonitoring", prometheusRules}})
	one := out.need(t, "ClusterPodMonitoring/dra-exporter")
	if one.text("apiVersion") != google || one.text("spec", "selector", "matchLabels", "app.kubernetes.io/name") != "dra-exporter" || len(one.at("spec", "targetLabels", "metadata").([]any)) != 0 {
		t.Errorf("it is %v", one)
	}
	for key := range out.objects {
		if strings.Contains(key, "Rule/") {
			t.Errorf("there is a %s", key)
		}
	}

	out = render(t, install{values: "dashboards: {kind: GrafanaDashboard, instanceSelector: {matchLabels: {team: a}}}"})
	dashboards := 0
	for key, one := range out.objects {
		if one.text("kind") != "GrafanaDashboard" {
			continue
		}
		dashboards++
		if !strings.Contains(one.text("spec", "json"), `"uid": "dra-`) || one.text("spec", "instanceSelector", "matchLabels", "team") != "a" || one.text("spec", "folder") != "DRA" {
			t.Errorf("%s is %v", key, one.at("spec", "instanceSelector"))
		}
	}
	if want := len(sets.All()[0].Dashboards); dashboards != want {
		t.Errorf("there are %d dashboards, want %d", dashboards, want)
	}
}

func equal(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// TestMonitoringRefused: what Google's object cannot say is refused, not left out.
func TestMonitoringRefused(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"monitoring: {kind: ClusterPodMonitoring, relabelings: [{action: drop, regex: x}]}", "monitoring.relabelings is not for monitoring.kind=ClusterPodMonitoring"},
		{"{monitoring: {kind: ClusterPodMonitoring}, rules: {enabled: true}}", "an instance is not named after its node"},
		{"dashboards: {kind: GrafanaDashboard, instanceSelector: null}", "instanceSelector"},
	} {
		if _, err := tryRender(t, install{values: c.values}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.values, err)
		}
	}
	kinds := []string{"PodMonitor", "ServiceMonitor", "VMPodScrape", "ClusterPodMonitoring"}
	for _, kind := range kinds {
		out := render(t, install{values: "{monitoring: {enabled: true, kind: " + kind + "}, node: {enabled: false}}"})
		if !slices.ContainsFunc(out.keys(), func(key string) bool { return strings.HasPrefix(key, kind+"/") }) {
			t.Errorf("there is no %s in %v", kind, out.keys())
		}
	}
}
