// Package prometheus compares rules, alerts, dashboards and documents with the
// families that the exporter documents, using Prometheus' own parser.
package prometheus

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

const (
	root      = "../../.."
	rulesFile = root + "/alerts/recording.yaml"
)

// TestRuleQueriesAreDocumented: each family and each label in a rule is in
// docs/metrics.md or belongs to Kubernetes, or is recorded by an earlier rule.
func TestRuleQueriesAreDocumented(t *testing.T) {
	for record, problems := range documented(t).Record(groups(t)) {
		t.Errorf("%s: %s", record, strings.Join(problems, "\n"))
	}
}

// TestClustersStayApart: rules do not mix the clusters of one store.
func TestClustersStayApart(t *testing.T) {
	for _, rule := range rules(t) {
		for _, problem := range promlabels.Mixed(rule.Expr) {
			t.Errorf("%s: %s", rule.Record, problem)
		}
	}
}

// TestRuleNames: names have the form level:metric:operation, and rows have the
// labels of their level, cluster, and no label of a target that is not
// requested.
func TestRuleNames(t *testing.T) {
	name := regexp.MustCompile(`^([a-z_]+):dra_[a-z_]+:[a-z_]+(5m|10m|28d)?$`)
	levels := map[string][]string{
		"claim": {"namespace", "resourceclaim"}, "claim_device": {"namespace", "resourceclaim", "uuid"},
		"claim_device_pod": {"namespace", "resourceclaim", "uuid", "pod"}, "claim_team": {"namespace", "resourceclaim", "team"},
		"class": {"deviceclass"}, "cluster": {}, "device": {"node", "uuid"}, "device_by": {"node", "uuid", "by"}, "device_xid": {"node", "uuid", "xid"},
		"driver": {"driver_name"}, "job_instance": {"job", "instance"}, "model": {"model"}, "model_kind": {"model", "driver_version", "kind"}, "namespace": {"namespace"},
		"namespace_class": {"namespace", "deviceclass"}, "namespace_kind": {"namespace", "kind"}, "node": {"node"},
		"node_by": {"node", "by"}, "node_class": {"node", "deviceclass"}, "node_namespace_class": {"node", "namespace", "deviceclass"}, "node_reason": {"node", "reason"}, "operation": {"operation_name"}, "pod": {"namespace", "pod"},
		"pod_device": {"namespace", "pod", "uuid"}, "reason": {"reason"}, "signal": {"signal"}, "source": {"source"}, "team": {"team"},
		"requester": {"namespace", "requester_kind", "requester", "deviceclass", "model", "partition_profile"},
		"workload":  {"namespace", "workload_kind", "workload"}, "claim_workload": {"namespace", "resourceclaim", "workload_kind", "workload"},
		"workload_device": {"node", "namespace", "workload_kind", "workload", "role", "rank", "pod", "uuid", "model"}, "workload_role": {"namespace", "workload_kind", "workload", "role", "model"},
	}
	families := documented(t)
	families.Record(groups(t))
	for _, rule := range rules(t) {
		match := name.FindStringSubmatch(rule.Record)
		if match == nil {
			t.Errorf("%s is not level:metric:operation", rule.Record)
			continue
		}
		wanted, known := levels[match[1]]
		if !known {
			t.Errorf("%s: what is the level %q?", rule.Record, match[1])
		}
		for _, label := range append(wanted, "cluster") {
			if !slices.Contains(families[rule.Record], label) {
				t.Errorf("%s has no label %q: %v", rule.Record, label, families[rule.Record])
			}
		}
		if match[1] != "job_instance" && match[1] != "device_xid" && slices.Contains(families[rule.Record], "instance") {
			t.Errorf("%s has two rows while an exporter is replaced: %v", rule.Record, families[rule.Record])
		}
	}
}

// TestRulesAreThereOnce: two rules with the same name and labels may write the same
// series, so promtool reports them as duplicates, and a check that stops at such a
// report fails.
func TestRulesAreThereOnce(t *testing.T) {
	for _, file := range []string{rulesFile, alertsFile} {
		parsed, err := promlabels.Rules(file)
		if err != nil {
			t.Fatal(err)
		}
		first := map[string]string{} // the group
		for _, group := range parsed {
			for _, rule := range group.Rules {
				labels := maps.Clone(group.Labels)
				if labels == nil {
					labels = map[string]string{}
				}
				maps.Copy(labels, rule.Labels)
				key := fmt.Sprint(rule.Record, rule.Alert, labels) // maps are printed in order
				if other, ok := first[key]; ok {
					t.Errorf("%s: %s is in %s and in %s", file, key, other, group.Name)
				}
				first[key] = group.Name
			}
		}
	}
}

// TestCounterRulesAreUniform: the rules of all counters of claims, namespaces and
// incidents have the same form.
func TestCounterRulesAreUniform(t *testing.T) {
	counter := regexp.MustCompile(`dra_(claim_|namespace_|incident|device_held_)[a-z_]+_total`)
	by := regexp.MustCompile(`^(sum by \([a-z_, ]+\) \()?max by \([a-z_, ]+\)|\)+( > 0)?\s*$`)
	first, count := "", 0
	for _, rule := range rules(t) {
		name := counter.FindString(rule.Expr)
		if !strings.HasSuffix(rule.Record, ":increase5m") || name == "" {
			continue
		}
		if want := strings.TrimSuffix(name, "_total"); strings.Split(rule.Record, ":")[1] != want {
			t.Errorf("%s is about %s", rule.Record, name)
		}
		text := by.ReplaceAllString(strings.ReplaceAll(rule.Expr, name, "x"), "")
		if count++; count == 1 {
			first = text
		} else if text != first {
			t.Errorf("%s differs from the others:\n%s", rule.Record, rule.Expr)
		}
	}
	if count != 18 {
		t.Errorf("there are %d of them", count)
	}
}

// TestManyCountersAreReadRarely: a GPU has 43 counters of Xids and as many
// buckets. Rules that read them have a longer interval.
func TestManyCountersAreReadRarely(t *testing.T) {
	xids := 0
	for _, group := range groups(t) {
		for _, rule := range group.Rules {
			xids += strings.Count(rule.Expr, "dra_device_xid_errors_total")
			if many := strings.Contains(rule.Expr, "dra_device_xid_errors_total") || strings.Contains(rule.Expr, "_bucket"); many && group.Interval == 0 {
				t.Errorf("%s is evaluated at the default interval", rule.Record)
			}
		}
	}
	if xids != 1 {
		t.Errorf("the counters of Xids are read %d times", xids)
	}
}

// TestEachRuleIsTestedAndDocumented: each rule is in a test of promtool and in
// a table of docs/rules.md, which names its labels.
func TestEachRuleIsTestedAndDocumented(t *testing.T) {
	files, err := filepath.Glob(root + "/alerts/tests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		if !strings.HasPrefix(filepath.Base(file), "alerts-") { // those test alerts
			tests.WriteString(read(t, file))
		}
	}
	document := read(t, root+"/docs/rules.md")
	for _, rule := range rules(t) {
		if !names(tests.String(), rule.Record) && !isHelper(t, rule.Record) {
			t.Errorf("nothing in alerts/tests asks for %s", rule.Record)
		}
		if !strings.Contains(document, "| `"+rule.Record+"` |") {
			t.Errorf("docs/rules.md does not describe %s", rule.Record)
		}
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+:dra_[a-z_]+:[a-z0-9_]+)` \\|")
	for _, match := range row.FindAllStringSubmatch(document, -1) {
		if !slices.ContainsFunc(rules(t), func(r rulefmt.Rule) bool { return r.Record == match[1] }) {
			t.Errorf("docs/rules.md describes %s, which there is not", match[1])
		}
	}
}

// isHelper reports whether other rules use it, so that their tests cover it.
func isHelper(t *testing.T, record string) bool {
	return slices.ContainsFunc(rules(t), func(r rulefmt.Rule) bool { return names(r.Expr, record) })
}

// names reports whether a text contains the recorded name, and not as the end
// of another: reason:… is not node_reason:….
func names(text, record string) bool {
	return regexp.MustCompile(`(^|[^a-z_:])` + record + `($|[^a-z0-9_:])`).MatchString(text)
}

// groups returns the groups of the shipped file.
func groups(t *testing.T) []rulefmt.RuleGroup {
	t.Helper()
	groups, err := promlabels.Rules(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// rules returns the rules of all groups, in the order of the file.
func rules(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	for _, group := range groups(t) {
		all = append(all, group.Rules...)
	}
	return all
}

func documented(t *testing.T) promlabels.Families {
	t.Helper()
	families, err := promlabels.Documented(root)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
