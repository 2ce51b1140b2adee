package queries

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const board = `{
	"uid": "dra-claims", "title": "Claims",
	"panels": [
		{"title": "open", "targets": [{"refId": "A", "expr": "up", "instant": true}]},
		{"type": "row", "title": "folded", "panels": [{"title": "inside", "targets": [{"refId": "B", "expr": "down"}]}]}
	],
	"annotations": {"list": [{"name": "Rollouts", "expr": "changes(up[$__rate_interval])"}]},
	"templating": {"list": [
		{"name": "datasource", "type": "datasource"},
		{"name": "cluster", "type": "query", "definition": "label_values(up, cluster)", "multi": true, "includeAll": true, "allValue": ".*"},
		{"name": "namespace", "type": "query", "definition": "label_values(up{a=\"b\", c=~\"$cluster\"}, namespace)"}
	]}
}`

func TestDecode(t *testing.T) {
	got, err := Decode([]byte(board))
	if err != nil {
		t.Fatal(err)
	}
	want := Board{
		UID: "dra-claims", Title: "Claims",
		Queries: []Query{
			{Panel: "open", Ref: "A", Expr: "up", Instant: true},
			{Panel: "inside", Ref: "B", Expr: "down"},
			{Panel: "annotation Rollouts", Ref: "A", Expr: "changes(up[$__rate_interval])"},
		},
		Variables: []Variable{
			{Name: "cluster", Selector: "up", Label: "cluster", Several: true, All: ".*"},
			{Name: "namespace", Selector: `up{a="b", c=~"$cluster"}`, Label: "namespace"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := Decode([]byte(strings.Replace(board, "label_values(up, cluster)", "metrics(up)", 1))); err == nil {
		t.Error("a variable that asks for something else is decoded without an error")
	}
}

func TestExpr(t *testing.T) {
	b, err := Decode([]byte(board))
	if err != nil {
		t.Fatal(err)
	}
	window := Window{Range: time.Hour, Step: 15 * time.Second, Interval: 30 * time.Second}
	for _, test := range []struct {
		name, expr, want string
		chosen           Chosen
	}{
		{"all", `up{cluster=~"$cluster"}`, `up{cluster=~".*"}`, nil},
		{"one of several", `up{cluster=~"${cluster}"}`, `up{cluster=~"a"}`, Chosen{"cluster": {"a"}}},
		{"two of several", `up{cluster=~"${cluster:regex}"}`, `up{cluster=~"(a|b\\.c)"}`, Chosen{"cluster": {"a", "b.c"}}},
		{"single", `up{namespace="$namespace"}`, `up{namespace="a.b"}`, Chosen{"namespace": {"a.b"}}},
		{"windows", `rate(up[$__rate_interval]) + sum_over_time(up[$__range:$__interval]) / $__range_s`,
			`rate(up[120s]) + sum_over_time(up[3600s:15s]) / 3600`, nil},
	} {
		got, err := b.Expr(test.expr, test.chosen, window)
		if err != nil || got != test.want {
			t.Errorf("%s: got %q (%v), want %q", test.name, got, err, test.want)
		}
	}
	for name, expr := range map[string]string{"unknown variable": "$nothing", "no value": "$namespace"} {
		if got, err := b.Expr(expr, nil, window); err == nil {
			t.Errorf("%s: got %q and no error", name, got)
		}
	}
}

// TestQuoting: whatever a value is, it selects itself and nothing else, once
// Prometheus has unquoted the string.
func TestQuoting(t *testing.T) {
	for _, value := range []string{"team-a", "a.b", "a+b", "a(b)|c", `a"b`, `a\b`, "[x]{2}^$*?", "it's"} {
		for _, v := range []Variable{{Name: "several", Several: true}, {Name: "one"}} {
			text, err := v.interpolated([]string{value})
			if err != nil {
				t.Fatal(err)
			}
			unquoted, err := strconv.Unquote(`"` + text + `"`) // as Prometheus' lexer does
			if err != nil {
				t.Errorf("%s: %q becomes %s, which is no string: %v", v.Name, value, text, err)
				continue
			}
			if !v.Several {
				if unquoted != value {
					t.Errorf("%s: %q becomes %q", v.Name, value, unquoted)
				}
				continue
			}
			pattern, err := regexp.Compile("^(?:" + unquoted + ")$")
			if err != nil || !pattern.MatchString(value) || pattern.MatchString(value+"x") || pattern.MatchString("aXb") {
				t.Errorf("%s: %q becomes the expression %s (%v)", v.Name, value, unquoted, err)
			}
		}
	}
}
