package helm

import (
	"slices"
	"strings"
	"testing"
)

// TestLinks: the base URLs are flags of the roles, and links of alerts. An alert
// about a pod links to the pod's page of the cluster role.
func TestLinks(t *testing.T) {
	out := render(t, install{apis: []string{prometheusRules}, values: `{rules: {enabled: true}, sets: [` + strings.Join(setNames(), ", ") + `], links: {
		grafana: "https://grafana.example", runbooks: "https://wiki.example/gpu/", cluster: "https://dra.example/"}}`})
	for key, want := range map[string][]string{
		"DaemonSet/dra-exporter/dra-exporter-node":     {"--web.grafana-url=https://grafana.example", "--web.runbook-url=https://wiki.example/gpu/", "--web.cluster-url=https://dra.example/"},
		"Deployment/dra-exporter/dra-exporter-cluster": {"--web.grafana-url=https://grafana.example", "--web.runbook-url=https://wiki.example/gpu/"},
	} {
		var got []string
		for _, arg := range texts(out.need(t, key).container(t)["args"]) {
			if flag, _, _ := strings.Cut(arg, "="); strings.HasPrefix(flag, "--web.") && strings.HasSuffix(flag, "-url") {
				got = append(got, arg)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has the arguments %v, want %v", key, got, want)
		}
	}
	ofPods := map[string]bool{"DRAClaimPendingTooLong": true, "DRAClaimMisaligned": true, "DRABindingStuck": true, "DRAPodStuckTerminating": true, "DRAPreparationStuck": true, "DRAStartStuck": true}
	linked := map[string]bool{}
	for _, group := range out.need(t, "PrometheusRule/dra-exporter/dra-exporter").at("spec", "groups").([]any) {
		for _, one := range object(group.(map[string]any)).at("rules").([]any) {
			rule := object(one.(map[string]any))
			alert := rule.text("alert")
			if alert == "" {
				continue
			}
			annotations := object(rule.at("annotations").(map[string]any))
			if got := annotations.text("runbook_url"); got != "https://wiki.example/gpu/"+alert+".md" {
				t.Errorf("%s has the runbook %s", alert, got)
			}
			switch got := annotations.text("pod_url"); got {
			case "https://dra.example/pod?namespace={{ $labels.namespace }}&name={{ $labels.pod }}":
				linked[alert] = true
			case "":
			default:
				t.Errorf("%s has the pod's page %s", alert, got)
			}
		}
	}
	for alert := range ofPods {
		if !linked[alert] {
			t.Errorf("%s has no link to the page of its pod", alert)
		}
	}
	if len(linked) != len(ofPods) {
		t.Errorf("alerts with a link to a pod's page: %v", linked)
	}
}

// Without a base URL of runbooks, those of the cluster role are linked, if its address is
// known, and otherwise the project's.
func TestLinksToRunbooks(t *testing.T) {
	for values, want := range map[string]string{
		`{}`:                                "https://github.com/dra-exporter/dra-exporter/blob/main/docs/runbooks/DRAClaimIdle.md",
		`{cluster: "https://dra.example/"}`: "https://dra.example/runbooks/DRAClaimIdle.md",
	} {
		out := render(t, install{apis: []string{prometheusRules}, values: `{rules: {enabled: true}, links: ` + values + `}`})
		found := false
		for _, group := range out.need(t, "PrometheusRule/dra-exporter/dra-exporter").at("spec", "groups").([]any) {
			for _, one := range object(group.(map[string]any)).at("rules").([]any) {
				if rule := object(one.(map[string]any)); rule.text("alert") == "DRAClaimIdle" {
					found = true
					if got := object(rule.at("annotations").(map[string]any)).text("runbook_url"); got != want {
						t.Errorf("with links %s, the runbook is %s", values, got)
					}
				}
			}
		}
		if !found {
			t.Error("DRAClaimIdle is not there")
		}
	}
}
