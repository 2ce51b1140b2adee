package prometheus

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"
)

// TestAlertsAreComplete: each alert has a severity, a summary, a description
// and links, and docs/alerts.md lists it.
func TestAlertsAreComplete(t *testing.T) {
	document := read(t, root+"/docs/alerts.md")
	for _, rule := range alerts(t) {
		severity := rule.Labels["severity"]
		if severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
		row := regexp.MustCompile(`(?m)^\| \[` + rule.Alert + `\]\(runbooks/` + rule.Alert + `\.md\) \| [^|]*\b` + severity + `\b[^|]*\|`)
		if !row.MatchString(document) {
			t.Errorf("docs/alerts.md does not have %s, %s", rule.Alert, severity)
		}
		if want := "https://github.com/dra-exporter/dra-exporter/blob/main/docs/runbooks/" + rule.Alert + ".md"; rule.Annotations["runbook_url"] != want {
			t.Errorf("%s: %s", rule.Alert, rule.Annotations["runbook_url"])
		}
		for _, name := range []string{"summary", "description"} {
			if text := rule.Annotations[name]; text == "" || strings.Contains(text, "\n") || !strings.Contains(text+rule.Annotations["summary"], "$labels") {
				t.Errorf("%s: the %s is %q", rule.Alert, name, text)
			}
		}
		for _, name := range []string{"summary", "dashboard_url"} {
			if !strings.Contains(rule.Annotations[name], "with $labels.cluster") {
				t.Errorf("%s: the %s names no cluster", rule.Alert, name)
			}
		}
	}
}

// TestAlertsLinkToDashboards: the linked dashboards exist and have the
// variables.
func TestAlertsLinkToDashboards(t *testing.T) {
	boards := variables(t)
	check := func(rule rulefmt.Rule, url string) {
		uid := regexp.MustCompile(`^/d/([a-z-]+)(\?|\{|$)`).FindStringSubmatch(url)
		if uid == nil || boards[uid[1]] == nil {
			t.Errorf("%s links to no dashboard: %s", rule.Alert, url)
			return
		}
		for _, match := range regexp.MustCompile(`var-(\w+)=(.{0,5})`).FindAllStringSubmatch(url, -1) {
			if !slices.Contains(boards[uid[1]], match[1]) {
				t.Errorf("%s: %s has no variable %s", rule.Alert, uid[1], match[1])
			}
		}
		if strings.Count(url, "var-") != strings.Count(url, "| urlquery }}") {
			t.Errorf("%s: a value may have any character: %s", rule.Alert, url)
		}
	}
	ofRole := regexp.MustCompile(`^\{\{ if eq \$labels\.instance "cluster" \}\}(.+)\{\{ else \}\}(.+)\{\{ end \}\}$`)
	for _, rule := range alerts(t) {
		url := rule.Annotations["dashboard_url"]
		if either := ofRole.FindStringSubmatch(url); either != nil {
			check(rule, either[1])
			url = either[2]
		}
		check(rule, url)
	}
}

// variables returns the variables of each dashboard, by its UID.
func variables(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(root + "/dashboards/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, file := range files {
		var board struct {
			UID        string
			Templating struct{ List []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(read(t, file)), &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, variable := range board.Templating.List {
			found[board.UID] = append(found[board.UID], variable.Name)
		}
	}
	return found
}

// TestEachAlertHasCases: each rule has a case of promtool in which it fires,
// with all its annotations, and its name has one in which it does not.
func TestEachAlertHasCases(t *testing.T) {
	fires, silent := cases(t)
	for _, rule := range alerts(t) {
		if !slices.ContainsFunc(fires[rule.Alert], func(labels map[string]string) bool { return within(rule.Labels, labels) }) {
			t.Errorf("no test lets %s %v fire", rule.Alert, rule.Labels)
		}
		if !silent[rule.Alert] {
			t.Errorf("no test keeps %s from firing", rule.Alert)
		}
	}
}

func within(some, all map[string]string) bool {
	for name, value := range some {
		if all[name] != value {
			return false
		}
	}
	return true
}

// cases returns the labels with which alerts fire in promtool's tests, and the
// alerts that a test expects not to fire.
func cases(t *testing.T) (fires map[string][]map[string]string, silent map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(root + "/alerts/tests/alerts-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fires, silent = map[string][]map[string]string{}, map[string]bool{}
	for _, file := range files {
		var parsed promtoolFile
		if err := yaml.Unmarshal([]byte(read(t, file)), &parsed); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, test := range parsed.Tests {
			for _, check := range test.Alerts {
				silent[check.Name] = silent[check.Name] || len(check.Expected) == 0
				for _, expected := range check.Expected {
					if len(expected.Annotations) != 4 {
						t.Errorf("%s: %s at %s says %v", file, check.Name, check.Time, expected.Annotations)
					}
					fires[check.Name] = append(fires[check.Name], expected.Labels)
				}
			}
		}
	}
	return fires, silent
}

type promtoolFile struct {
	Tests []struct {
		Alerts []struct {
			Name     string `yaml:"alertname"`
			Time     string `yaml:"eval_time"`
			Expected []struct {
				Labels      map[string]string `yaml:"exp_labels"`
				Annotations map[string]string `yaml:"exp_annotations"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}
