package lint

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func good(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/good.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestGoodBoardHasNoProblems(t *testing.T) {
	problems, err := Check(good(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestTextThatIsNoDashboard(t *testing.T) {
	if _, err := Check([]byte("[]")); err == nil {
		t.Error("a list is taken for a dashboard")
	}
}

// breakage is one change to the good board, and the rule that it breaks.
type breakage struct {
	rule  string
	path  string // fields and indices; one that is not there is made
	value any    // absent takes the field away
}

type gone struct{}

func absent() gone { return gone{} }

const (
	number   = "panels.0."
	timeline = "panels.2."
	folded   = "panels.3."
	listing  = folded + "panels.0."
	lineExpr = timeline + "targets.0.expr"
	cellExpr = listing + "targets.0.expr"
)

func breakages() []breakage {
	return slices.Concat(boardBreakages(), screenBreakages(), variableBreakages(), panelBreakages(), tableBreakages(), targetBreakages())
}

func boardBreakages() []breakage {
	return []breakage{
		{"dashboard-schema", "rows", []any{}},
		{"dashboard-schema", "elements", map[string]any{}},
		{"dashboard-schema", "id", 7},
		{"dashboard-schema", "schemaVersion", 16},
		{"dashboard-schema", "panels", []any{}},
		{"dashboard-identity", "uid", "good"},
		{"dashboard-identity", "title", "Good"},
		{"dashboard-identity", "description", ""},
		{"dashboard-identity", "tags", []any{"kubernetes"}},
		{"dashboard-identity", "time.to", "2026-01-01"},
		{"dashboard-identity", "refresh", "5s"},
		{"uneditable-dashboard", "editable", true},
	}
}

// panelsOf are so many panels, and rowsOf headings.
func panelsOf(n int) (all []any) { return slices.Repeat([]any{map[string]any{"type": "stat"}}, n) }
func rowsOf(n int) (all []any) {
	return slices.Concat(panelsOf(1), slices.Repeat([]any{map[string]any{"type": "row"}}, n))
}

func screenBreakages() []breakage {
	return []breakage{
		{"board-size", "panels", panelsOf(maxPanels + 1)},
		{"board-size", "panels", rowsOf(maxRows + 1)},
		{"board-first-screen", "panels.0.type", "row"},
		{"board-first-screen", number + "type", "timeseries"},
		{"board-first-screen", number + "gridPos.h", screen + 1},
		{"board-annotations", "annotations", absent()},
		{"board-annotations", "annotations.list.0.name", "Starts"},
		{"board-annotations", "annotations.list.1.enable", false},
		{"board-annotations", "annotations.list.1.datasource.uid", "prometheus"},
		{"board-annotations", "annotations.list.2.expr", ""},
		{"board-annotations", "annotations.list.2.expr", `sum by (xid) (last_over_time(x[$__rate_interval]))`},
		{"board-annotations", "annotations.list.2.expr", `sum by (xid) (x{cluster=~"$cluster"})`},
		{"template-undefined", "annotations.list.2.expr", `x{cluster=~"$cluster", namespace=~"$namespace"}`},
		{"panel-title-nouns", number + "title", "What the devices drew in the range"},
		{"panel-title-nouns", timeline + "title", "Power of the node?"},
		{"panel-title-nouns", folded + "title", "Who waits"},
		{"panel-title-range", number + "title", "Energy"},
		{"panel-title-range", cellExpr, `sum by (uuid) (increase(dra_device_energy_joules_total{cluster=~"$cluster", node="$node"}[$__range]))`},
		{"panel-steps", timeline + "fieldConfig.defaults.custom.spanNulls", true},
		{"panel-steps", timeline + "fieldConfig.defaults.custom.spanNulls", 3600000},
		{"panel-steps", timeline + "fieldConfig.defaults.custom.spanNulls", absent()},
		{"panel-steps", timeline + "fieldConfig.defaults.custom.lineInterpolation", "linear"},
		{"panel-steps", timeline + "targets.0.interval", absent()},
		{"panel-steps", listing + "targets.1.interval", "15s"},
	}
}

func variableBreakages() []breakage {
	return []breakage{
		{"template-datasource", "templating.list.0.name", "source"},
		{"template-datasource", "templating.list.0.type", "query"},
		{"template-datasource", "templating.list.0.query", "loki"},
		{"template-datasource", "templating.list.0.label", "Source"},
		{"template-cluster", "templating.list.1.name", "fleet"},
		{"template-cluster", "templating.list.1.allValue", ".+"},
		{"template-on-time-change-reload", "templating.list.2.refresh", 1},
		{"template-label-promql", "templating.list.2.definition", "query_result(up)"},
		{"template-label-promql", "templating.list.2.query.query", `label_values(dra_claim_info{cluster=~"$cluster"}, node)`},
		{"template-label-promql", "templating.list.2.label", ""},
		{"template-label-promql", "templating.list.1.allValue", ""},
		{"template-label-promql", "templating.list.2.datasource.uid", "prometheus"},
		{"template-unused", "templating.list.2.name", "nodename"},
		{"template-undefined", lineExpr, `max by (node) (dra_device_power_watts{cluster=~"$cluster", node="$node", uuid="$uuid"})`},
		{"template-undefined", timeline + "title", "Power of ${gpu:raw}"},
		{"target-cluster", "templating.list.2.definition", "label_values(dra_device_info, node)"},
		{"template-label-promql", "templating.list.2", map[string]any{"name": "node", "label": "Node", "type": "query", "refresh": 2,
			"definition": "label_values(node)", "query": map[string]any{"query": "label_values(node)"}, "datasource": map[string]any{"type": "prometheus", "uid": "${datasource}"}}},
	}
}

func panelBreakages() []breakage {
	return []breakage{
		{"panel-type", timeline + "type", "piechart"},
		{"panel-type", timeline + "type", "graph"},
		{"panel-datasource", timeline + "datasource.uid", "PBFA97CFB590B2093"},
		{"panel-datasource", timeline + "targets.0.datasource.uid", "PBFA97CFB590B2093"},
		{"panel-datasource", listing + "datasource", absent()},
		{"panel-title-description", timeline + "title", ""},
		{"panel-title-description", timeline + "title", "Devices"},
		{"panel-title-description", timeline + "description", "Power.\n\nNo data: no device reports its power."},
		{"panel-title-description", listing + "description", "Each device of the node, the busiest first."},
		{"panel-units", timeline + "fieldConfig.defaults.unit", ""},
		{"panel-units", timeline + "fieldConfig.defaults.unit", "watts"},
		{"panel-units", listing + "fieldConfig.overrides.0.properties.0.value", "ratio"},
		{"panel-no-targets", timeline + "targets", []any{}},
		{"panel-no-targets", lineExpr, " "},
		{"panel-no-value", timeline + "fieldConfig.defaults.noValue", absent()},
		{"panel-follows-variables", lineExpr, `max(dra_device_power_watts{cluster=~"$cluster"})`},
		{"panel-no-value", listing + "fieldConfig.defaults.noValue", ""},
		{"panel-overrides", listing + "fieldConfig.overrides.0.properties", nil},
		{"panel-overrides", listing + "fieldConfig.overrides.0.properties", []any{}},
		{"panel-transformations", listing + "transformations.0.id", "joinAll"},
		{"panel-title-fits", timeline + "gridPos.w", 0},
		{"panel-title-fits", timeline + "title", strings.Repeat("Power ", 20)},
		{"panel-milliseconds", timeline + "fieldConfig.defaults.unit", "dateTimeFromNow"},
		{"panel-milliseconds", listing + "fieldConfig.overrides.0.properties.0.value", "dateTimeAsIso"},
		{"panel-ids", timeline + "id", 1},
		{"panel-ids", listing + "id", absent()},
		{"panel-layout", timeline + "gridPos.x", 13},
		{"panel-layout", timeline + "gridPos.h", 9},
		{"panel-layout", listing + "gridPos.y", 12},
		{"row-empty", folded + "panels", []any{}},
		{"row-empty", "panels.1.title", ""},
		{"row-empty", folded + "collapsed", false},
		{"row-empty", timeline + "type", "row"},
	}
}

func tableBreakages() []breakage {
	return []breakage{
		{"table-columns", listing + "options.sortBy.0.displayName", "Usage"},
		{"table-columns", listing + "options.sortBy.0.displayName", "Rank"},
		{"table-columns", listing + "fieldConfig.overrides.0.matcher.options", "Usage"},
		{"table-columns", listing + "fieldConfig.overrides.1.properties.0.value.0.url", `/d/dra-good?var-node=${__data.fields["Node"]:percentencode}`},
		{"table-columns", listing + "fieldConfig.overrides.1.properties.0.value.0.url", `/d/dra-good?var-node=${__data.fields.Node}`},
		{"table-columns", listing + "transformations.1.options.renameByName", map[string]any{}},
		{"table-columns", listing + "transformations.1.options.renameByName.uuid", "Utilization"},
		{"table-columns", listing + "transformations.1.options.renameByName", map[string]any{"uuid": "Device", "Value #A": "Utilization", "Value #C": "Rank", "Value #B": "B"}},
		{"table-columns", listing + "transformations.1.options.renameByName", map[string]any{"uuid": "Device", "Value #A": "Utilization", "Value #B": "Rank",
			"a": "A", "b": "B", "c": "C", "d": "D", "e": "E", "f": "F", "g": "G", "h": "H", "i": "I", "cluster": "Cluster"}},
		{"table-width", listing + "fieldConfig.overrides.0.properties.1.id", "custom.width"},
		{"table-width", listing + "fieldConfig.overrides.1.properties.1.value", 1300.0},
		{"table-width", listing + "gridPos.w", 4},
		{"table-columns", listing + "targets.2", map[string]any{"refId": "C", "instant": true, "format": "table", "expr": `max(dra_device_info{cluster=~"$cluster", node="$node"})`}},
	}
}

func targetBreakages() []breakage {
	power := func(rest string) string { return `max by (node) (dra_device_power_watts{` + rest + `})` }
	return []breakage{
		{"target-refs", listing + "targets.1.refId", "A"},
		{"target-refs", timeline + "targets.0.refId", ""},
		{"target-kind", listing + "targets.0.instant", false},
		{"target-kind", listing + "targets.0.format", "time_series"},
		{"target-kind", timeline + "targets.0.range", false},
		{"target-kind", timeline + "targets.0", map[string]any{"refId": "A", "instant": true, "expr": power(`cluster=~"$cluster", node="$node"`)}},
		{"target-kind", timeline + "type", "heatmap"},
		{"target-legend", timeline + "targets.0.legendFormat", ""},
		{"target-legend", timeline + "targets.0.legendFormat", "__auto"},
		{"target-cluster", cellExpr, power(`node="$node"`)},
		{"target-cluster", cellExpr, power(`node="$node", cluster="$cluster"`)},
		{"target-cluster", cellExpr, `max by (uuid) (dra_device_lost) and max by (uuid) (dra_device_info{cluster=~"$cluster", node="$node"})`},
		{"target-hard-coded", cellExpr, power(`cluster=~"$cluster", node="gpu-node-1"`)},
		{"target-hard-coded", cellExpr, power(`cluster=~"$cluster", node="$node", namespace!="kube-system"`)},
		{"target-hard-coded", cellExpr, power(`cluster=~"$cluster", node="$node", instance=~".*"`)},
		{"target-hard-coded", cellExpr, power(`cluster=~"$cluster", node="$node", instance="$node"`)},
		{"target-hard-coded", cellExpr, `max by (uuid) (up{cluster=~"$cluster", instance="$node", job="dra-exporter"})`},
		{"target-variable-matchers", cellExpr, power(`cluster=~"$cluster", node=~"$node"`)},
		{"target-variable-matchers", cellExpr, power(`cluster=~"$cluster", node=~"$node|"`)},
		{"target-variable-matchers", cellExpr, power(`cluster!="$cluster", node="$node"`)},
		{"target-rate-interval", cellExpr, `sum by (uuid) (rate(dra_device_energy_joules_total{cluster=~"$cluster", node="$node"}[5m]))`},
		{"target-rate-interval", lineExpr, `sum(irate(dra_device_energy_joules_total{cluster=~"$cluster", node="$node"}[$__range]))`},
		{"target-rate-interval", cellExpr, `sum by (uuid) (increase(dra_device_energy_joules_total{cluster=~"$cluster", node="$node"}[$__interval]))`},
		{"target-counter-agg", cellExpr, `sum by (uuid) (dra_device_energy_joules_total{cluster=~"$cluster", node="$node"})`},
		{"target-counter-agg", lineExpr, `sum(dra_device_ecc_errors_total{cluster=~"$cluster", node="$node"})`},
		{"target-counter-agg", cellExpr, `sum by (uuid) (max_over_time(dra_device_energy_joules_total{cluster=~"$cluster", node="$node"}[$__range]))`},
		{"target-additive", lineExpr, `sum(dra_device_power_watts{cluster=~"$cluster", node="$node"})`},
		{"target-additive", cellExpr, `sum by (uuid) (max by (uuid) (increase(dra_claim_busy_seconds_total{cluster=~"$cluster", node="$node"}[$__range])))`},
		{"target-join", lineExpr, strings.Replace(power(`cluster=~"$cluster", node="$node"`)+` * on (node) `+power(`cluster=~"$cluster", node="$node"`), "by (node)", "by (cluster, node)", 2)},
		{"target-join", lineExpr, power(`cluster=~"$cluster", node="$node"`) + ` * on (cluster, node) ` + power(`cluster=~"$cluster", node="$node"`)},
		{"target-hard-coded", cellExpr, power(`cluster=~"$cluster", node=~"$node|gpu-node-1"`)},
		{"target-rate-interval", lineExpr, `sum(increase(dra_device_energy_joules_total{cluster=~"$cluster", node="$node"}[$__range]))`},
		{"target-additive", cellExpr, `sum by (uuid) (dra_claim_power_watts{cluster=~"$cluster", node="$node", attribution="shared"})`},
		{"target-additive", cellExpr, `sum(dra_device_power_watts{cluster=~"$cluster", node="$node", parent_uuid=~".*"})`},
		{"target-additive", cellExpr, `avg(dra_device_power_watts{cluster=~"$cluster", node="$node"})`},
		{"target-additive", cellExpr, `sum(pod_device:dra_pod_utilization_ratio:upper_bound{cluster=~"$cluster", node="$node"})`},
		{"target-additive", cellExpr, `avg(pod:dra_pod_utilization_ratio:avg{cluster=~"$cluster", node=~"$node"})`},
		{"target-filter", cellExpr, power(`cluster=~"$cluster", node="$node"`) + ` and on (cluster, node) topk(20, ` + power(`cluster=~"$cluster", node="$node"`) + `) / 3600`},
		{"target-filter", cellExpr, `max(` + power(`cluster=~"$cluster", node="$node"`) + ` unless 2 * ` + power(`cluster=~"$cluster", node="$node"`) + `)`},
		{"target-join", lineExpr, `sum without (uuid) (dra_device_power_watts{cluster=~"$cluster", node="$node"})`},
	}
}

func TestEachBreakageIsCaught(t *testing.T) {
	for i, b := range breakages() {
		t.Run(b.rule+"/"+strconv.Itoa(i), func(t *testing.T) {
			var doc any
			if err := json.Unmarshal(good(t), &doc); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(changed(doc, strings.Split(b.path, "."), b.value))
			if err != nil {
				t.Fatal(err)
			}
			problems, err := Check(text)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Rule == b.rule }) {
				t.Errorf("%s = %v: not caught, but %v", b.path, b.value, problems)
			}
		})
	}
}

// TestEachRuleIsBroken keeps the table whole: a rule without a breakage has never
// been seen to fail.
func TestEachRuleIsBroken(t *testing.T) {
	for _, r := range rules() {
		if !slices.ContainsFunc(breakages(), func(b breakage) bool { return b.rule == r.name }) {
			t.Errorf("nothing breaks %s", r.name)
		}
	}
}

// changed is a document with another value at a path.
func changed(doc any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch doc := doc.(type) {
	case []any:
		i, _ := strconv.Atoi(path[0])
		if i == len(doc) {
			return append(doc, value)
		}
		doc[i] = changed(doc[i], path[1:], value)
		return doc
	case map[string]any:
		if _, away := value.(gone); away && len(path) == 1 {
			delete(doc, path[0])
			return doc
		}
		doc[path[0]] = changed(doc[path[0]], path[1:], value)
		return doc
	default:
		panic("nothing at " + path[0])
	}
}
