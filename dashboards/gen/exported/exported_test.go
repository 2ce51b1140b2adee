package exported

import (
	"strings"
	"testing"
)

func TestExpr(t *testing.T) {
	for expr, want := range map[string]string{
		`sum by (cluster, namespace) (namespace:dra_x:sum{namespace=~"$namespace"})`:                `sum by (cluster, exported_namespace) (namespace:dra_x:sum{exported_namespace=~"$namespace"})`,
		`dra_x * on (pod, pod_claim, pod_uid) group_left (container) dra_pod_y{owner_kind="pod"}`:   `dra_x * on (exported_pod, pod_claim, pod_uid) group_left (exported_container) dra_pod_y{owner_kind="pod"}`,
		`label_replace(dra_x, "pod", "$1", "label_pod", "(.*)")`:                                    `label_replace(dra_x, "exported_pod", "$1", "label_pod", "(.*)")`,
		`dra_x{pod = "pod", resource!="container"}`:                                                 `dra_x{exported_pod = "pod", resource!="container"}`,
		`dra_x{namespace=~"${namespace:regex}"} * ${namespace}`:                                     `dra_x{exported_namespace=~"${namespace:regex}"} * ${namespace}`,
		`label_join(dra_x{pod='pod'}, 'pod', '/', 'namespace')`:                                     `label_join(dra_x{exported_pod='pod'}, 'exported_pod', '/', 'exported_namespace')`,
		`dra_x{namespace="$namespace"} offset 5m`:                                                   `dra_x{exported_namespace="$namespace"} offset 5m`,
		`histogram_quantile(0.95, sum by (le, deviceclass) (rate(dra_y_bucket[$__rate_interval])))`: `histogram_quantile(0.95, sum by (le, deviceclass) (rate(dra_y_bucket[$__rate_interval])))`,
		`sum({__name__=~"resourceclaim_controller_x|dynamic_y", cluster=~"$cluster"})`:              `sum({__name__=~"resourceclaim_controller_x|dynamic_y", cluster=~"$cluster"})`,
	} {
		if got := Expr(expr); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAnswer(t *testing.T) {
	const want = `label_replace(label_replace(sum by (exported_pod) (dra_x), "pod", "$1", "exported_pod", "(.+)"), "exported_pod", "", "exported_pod", ".*")`
	if got := Answer(`sum by (pod) (dra_x)`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Answer(`time()`); got != `time()` {
		t.Errorf("what has none of the labels becomes %s", got)
	}
}

func TestBoard(t *testing.T) {
	got, err := Board([]byte(`{
		"title": "by namespace", "id": 12345678901234567890,
		"panels": [{"title": "namespace", "panels": [{"targets": [{"expr": "sum by (namespace) (dra_x)", "legendFormat": "{{namespace}} <b>"}]}]}],
		"templating": {"list": [
			{"name": "namespace", "definition": "label_values(dra_x{namespace=~\"$namespace\"}, namespace)", "query": {"query": "label_values(dra_x, namespace)"}},
			{"name": "datasource", "query": "prometheus"}
		]}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"title": "by namespace"`, `"id": 12345678901234567890`, `"legendFormat": "{{namespace}} <b>"`, `"name": "namespace"`, `"query": "prometheus"`,
		`"expr": "label_replace(label_replace(sum by (exported_namespace) (dra_x), `,
		`"definition": "label_values(dra_x{exported_namespace=~\"$namespace\"}, exported_namespace)"`,
		`"query": "label_values(dra_x, exported_namespace)"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if _, err := Board([]byte(`{`)); err == nil {
		t.Error("half a dashboard is rewritten without an error")
	}
}

func TestRules(t *testing.T) {
	got, err := Rules([]byte(`# of namespaces
groups:
  - name: pod
    rules:
      # by pod
      - record: pod:dra_x:sum
        expr: sum by (pod) (dra_x)
      - alert: DRAX
        expr: sum by (pod) (dra_x) > 1
        labels: {severity: warning}
        annotations:
          summary: 'Pod {{ $labels.pod }}: {{ with printf "dra_y{pod=%q, pod_claim=%q}" $labels.pod $labels.pod_claim | query }}{{ . | first | label "pod" }}{{ end }}'
          dashboard_url: /d/dra-claim?var-namespace={{ $labels.namespace | urlquery }}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# of namespaces", "- name: pod\n", "# by pod", "record: pod:dra_x:sum\n", "expr: sum by (exported_pod) (dra_x)\n",
		`expr: label_replace(label_replace(sum by (exported_pod) (dra_x) > 1, "pod", "$1", "exported_pod", "(.+)"), "exported_pod", "", "exported_pod", ".*")`,
		`Pod {{ $labels.pod }}: {{ with printf "dra_y{exported_pod=%q, pod_claim=%q}" $labels.pod`, `label "exported_pod"`,
		"var-namespace={{ $labels.namespace | urlquery }}",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	for _, broken := range []string{"a: [", ""} {
		if _, err := Rules([]byte(broken)); err == nil {
			t.Errorf("%q is rewritten without an error", broken)
		}
	}
}
