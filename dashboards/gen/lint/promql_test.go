package lint

import (
	"reflect"
	"slices"
	"testing"
)

func TestSelectorsOfExpressions(t *testing.T) {
	cluster := []matcher{{"cluster", "=~", "$cluster"}}
	for expr, want := range map[string][]selector{
		`up`:                               {{metric: "up"}},
		`claim:dra_claim_info:class * 100`: {{metric: "claim:dra_claim_info:class"}},
		`sum by (a, b) (rate(x_total{cluster=~"$cluster"}[$__rate_interval]))`: {
			{metric: "x_total", matchers: cluster, window: "$__rate_interval", within: []string{"rate", "sum"}}},
		`topk(10, sum(x{cluster=~"$cluster"}) by (le))`: {
			{metric: "x", matchers: cluster, within: []string{"sum", "topk"}}},
		`a{b="}{,\"", c!~'$d|.*'} offset 5m > bool 0`: {
			{metric: "a", matchers: []matcher{{"b", "=", `}{,\"`}, {"c", "!~", "$d|.*"}}}},
		`x[$w] offset $w unless y offset $w`: {{metric: "x", window: "$w"}, {metric: "y", filter: true}},
		`x and on (cluster, node) group_left (model) y or z unless w`: {
			{metric: "x"}, {metric: "y", filter: true}, {metric: "z"}, {metric: "w", filter: true}},
		`(a and (b or c)) or f(d unless e, g)`: {
			{metric: "a"}, {metric: "b", filter: true}, {metric: "c", filter: true},
			{metric: "d", within: []string{"f"}}, {metric: "e", within: []string{"f"}, filter: true}, {metric: "g", within: []string{"f"}}},
		`{__name__="pod:x:avg"}`: {
			{metric: "pod:x:avg", matchers: []matcher{{"__name__", "=", "pod:x:avg"}}}},
		`max_over_time(x[1h:5m]) - (y @ end()) # z`: {
			{metric: "x", window: "1h:5m", within: []string{"max_over_time"}}, {metric: "y"}},
		`time() - x ^ -1.5e3 == Inf`: {{metric: "x"}},
		`label_replace(x, "uuid", "$1", "parent_uuid", "(.+)")`: {
			{metric: "x", within: []string{"label_replace"}}},
		`count without (pod) (x) / count(y)`: {
			{metric: "x", within: []string{"count"}}, {metric: "y", within: []string{"count"}}},
	} {
		if got := selectors(expr); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", expr, got, want)
		}
	}
}

func TestGroupingsOfExpressions(t *testing.T) {
	got := groupings(`sum by (cluster, $by) (x) / on (cluster) group_left () max(y) without (z)`)
	want := []grouping{{"by", []string{"cluster", "$by"}}, {"on", []string{"cluster"}}, {"group_left", nil}, {"without", []string{"z"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestVariablesOfTexts(t *testing.T) {
	got := variablesOf(`$a ${b} ${c:regex} ${__data.fields["D"]:percentencode} $1 [$__rate_interval] label_$e`)
	if want := []string{"a", "b", "c", "__data", "__rate_interval", "e"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestFiltersMayBeScaledToBeCompared(t *testing.T) {
	for expr, want := range map[string]bool{
		`a / 3600 and on (x) b`:             false,
		`(a and on (x) b) / 3600`:           false,
		`a and on (x) b / 3600`:             true,
		`a and on (x) b / 3600 > 1`:         false,
		`a unless on (x) (b * 2)`:           false,
		`f(a and on (x) topk(20, b) * 2)`:   true,
		`a and on (x) b or on (x) c / 3600`: false,
	} {
		if got := scalesFilter(tokenize(expr)); got != want {
			t.Errorf("%s: %t", expr, got)
		}
	}
}

// FuzzScan: what Prometheus would refuse is no reason to fall over.
func FuzzScan(f *testing.F) {
	f.Add(`sum by (a) (x{b="c"}[5m]`)
	f.Add(`{"a", b=`)
	f.Fuzz(func(_ *testing.T, expr string) { scan(expr) })
}
