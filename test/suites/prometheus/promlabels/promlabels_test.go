package promlabels

import (
	"slices"
	"strings"
	"testing"
)

func families() Families {
	f := Families{"up": targetLabels()}
	f.document("### Devices\n\nAll but those with *only* have `node`, `uuid`.\n\n| name | level | labels | meaning |\n|---|---|---|---|\n" +
		"| `dra_a` |  |  | a |\n" +
		"| `dra_b` |  | `model` | b |\n" +
		"| `dra_pod` |  | *only* `node`, `pod` | with a label_… more |\n" +
		"\n### Others\n\n| `dra_h_duration_seconds` | lean | `phase` | h |\n")
	f.exposition("x_total{a=\"1\",b=\"}{\"} 3\nx_total{c=\"1\"} 1e3\nbare 1\n")
	return f
}

func TestExpr(t *testing.T) {
	for _, test := range []struct{ expr, labels, problem string }{
		{expr: `sum by (cluster, node) (dra_a)`, labels: "cluster node"},
		{expr: `sum by (model) (dra_a)`, problem: `no label "model"`},
		{expr: `dra_none`, problem: `there is no "dra_none"`},
		{expr: `dra_a{model="x"}`, problem: `no label "model"`},
		{expr: `sum by (model) ({__name__=~"dra_(a|b)"})`, labels: "model"},
		{expr: `{__name__=~"dra_none.*"}`, problem: "there is no"},
		{expr: `max by (node) (dra_a) * on (node) group_left (model) max by (node, model) (dra_b)`, labels: "model node"},
		{expr: `max by (node) (dra_a) * on (node) group_left (uuid) max by (node, model) (dra_b)`, problem: `no label "uuid"`},
		{expr: `max by (node) (dra_a) * on (node, uuid) max by (node, uuid) (dra_b)`, problem: `no label "uuid"`},
		{expr: `max by (node) (dra_a) and max by (node, uuid) (dra_b)`, problem: "differ"},
		{expr: `sum by (node) (dra_a) / ignoring (model) group_right sum by (node, model) (dra_b)`, labels: "model node"},
		{expr: `sum by (node) (dra_a) > bool 0 or sum by (uuid) (dra_a)`, labels: "node uuid"},
		{expr: `count_values by (node) ("n", dra_a)`, labels: "n node"},
		{expr: `topk by (node) (1, sum by (node, uuid) (dra_a))`, labels: "node uuid"},
		{expr: `topk by (model) (1, dra_a)`, problem: `no label "model"`},
		{expr: `quantile by (node) (0.5, dra_a)`, labels: "node"},
		{expr: `quantile by (node) (scalar(dra_none), dra_a)`, problem: `there is no "dra_none"`},
		{expr: `sum without (uuid) (dra_a)`, problem: "without()"},
		{expr: `histogram_quantile(0.9, sum by (phase, le) (rate(dra_h_duration_seconds_bucket[5m])))`, labels: "phase"},
		{expr: `histogram_quantile(0.9, sum by (phase) (rate(dra_h_duration_seconds[5m])))`, labels: "phase"},
		{expr: `sum by (le) (dra_h_duration_seconds_count)`, problem: `no label "le"`},
		{expr: `max_over_time((time() - max by (node) (dra_a))[1h:5m] offset 1d)`, labels: "node"},
		{expr: `max_over_time((max by (node) (dra_none))[1h:5m])`, problem: "there is no"},
		{expr: `-sum by (node) (dra_a @ end())`, labels: "node"},
		{expr: `absent(up{job="x", instance=~"y"}) or vector(0)`, labels: "job"},
		{expr: `absent(dra_none)`, problem: "there is no"},
		{expr: `label_replace(sum by (node) (dra_a), "n", "$1", "node", "(.*)")`, labels: "n node"},
		{expr: `label_replace(sum by (node) (dra_a), "n", "$1", "uuid", "(.*)")`, problem: `no label "uuid"`},
		{expr: `label_join(sum by (node) (dra_a), "n", "/", "node", "uuid")`, problem: `no label "uuid"`},
		{expr: `sum by (label_team) (dra_pod)`, labels: "label_team"},
		{expr: `sum by (label_team) (dra_a)`, problem: `no label "label_team"`},
		{expr: `sum by (a, c) (x_total) + sum by (a, c) (bare)`, problem: `no label "a" in sum by (a, c) (bare)`},
		{expr: `sum by (b) (x_total`, problem: "unclosed"},
	} {
		labels, problems := Checker{Families: families()}.Expr(test.expr)
		if got := strings.Join(problems, "; "); !strings.Contains(got, test.problem) || (test.problem == "") != (got == "") {
			t.Errorf("%s: problems %q, want %q", test.expr, got, test.problem)
		}
		if test.problem == "" && strings.Join(with(labels), " ") != test.labels {
			t.Errorf("%s: labels %v, want %s", test.expr, labels, test.labels)
		}
	}
}

func TestMixed(t *testing.T) {
	for expr, mixes := range map[string]bool{
		`sum by (cluster, node) (dra_a)`: false,
		`sum by (node) (dra_a)`:          true,
		`sum(dra_a)`:                     true,
		`dra_a / dra_b`:                  false,
		`dra_a / on (cluster, node) group_left () dra_b`:        false,
		`dra_a / on (node) group_left () dra_b`:                 true,
		`dra_a and on () dra_b`:                                 true,
		`dra_a / ignoring (uuid) dra_b`:                         false,
		`dra_a / ignoring (cluster) dra_b`:                      true,
		`max_over_time(sum by (node) (dra_a)[1h:1m])`:           true,
		`sum by (cluster) (dra_a) * 2 > bool 1`:                 false,
		`topk by (cluster) (3, sum by (cluster, node) (dra_a))`: false,
	} {
		if got := Mixed(expr); (len(got) > 0) != mixes {
			t.Errorf("%s: %v", expr, got)
		}
	}
}

// TestDocumented reads the real documents, in the spellings of all supported
// versions.
func TestDocumented(t *testing.T) {
	families, err := Documented("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, label := range map[string]string{
		"dra_claim_held":                                               "resourceclaim",
		"dra_claim_consumer_info":                                      podLabels,
		"dra_allocation_duration_seconds":                              "phase",
		"dra_allocation_duration_seconds_bucket":                       "le",
		"dra_operations_duration_seconds_bucket":                       "operation_name",
		"dra_grpc_operations_duration_seconds_count":                   "driver_name",
		"dynamic_resource_allocation_resource_claims":                  "allocated",
		"resourceclaim_controller_resource_claims":                     "source",
		"scheduler_dra_bindingconditions_wait_duration_seconds_bucket": "driver",
		"up": "instance",
	} {
		if !slices.Contains(families[name], label) || !slices.Contains(families[name], "cluster") {
			t.Errorf("%s has %v", name, families[name])
		}
	}
}
