package boards

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// promql writes the selections of variables out: @fleet is the chosen clusters,
// @namespaces, @classes, @claims (both) and @nodes are chosen ones of these; @node
// @claim and @workload are the one that a dashboard is about, @workloads the chosen
// namespaces and kinds of workloads; @exporters are those of the
// chosen nodes, for rows of an exporter about itself, which have no node but the
// target's instance.
//
//	dra_claim_info{@claims, template!=""}
//
// A variable that may have several values is asked by =~, since Grafana makes a
// regular expression of it in which the values are quoted; one that has a single
// value by =, since there it quotes nothing but the string.
func promql(text string) string {
	const (
		fleet      = `cluster=~"$cluster"`
		namespaces = fleet + `, namespace=~"$namespace"`
		classes    = fleet + `, deviceclass=~"$class"`
	)
	return strings.NewReplacer(
		"@fleet", fleet,
		"@namespaces", namespaces,
		"@classes", classes,
		"@claims", namespaces+`, deviceclass=~"$class"`,
		"@nodes", fleet+`, node=~"$node"`,
		"@node", fleet+`, node="$node"`,
		"@exporters", fleet+`, job=~"$job", instance=~"$node"`,
		"@workloads", namespaces+`, workload_kind=~"$kind"`,
		"@workload", fleet+`, namespace="$namespace", workload_kind="$kind", workload="$workload"`,
		"@claim", fleet+`, namespace="$namespace", resourceclaim="$resourceclaim"`,
	).Replace(strings.TrimSpace(text))
}

// dataSource and cluster begin each dashboard's variables. A store of one cluster
// has no such label: then the variable has no values but All, which selects what
// has none.
func dataSource() cog.Builder[dashboard.VariableModel] {
	return dashboard.NewDatasourceVariableBuilder("datasource").
		Label("Data source").
		Type("prometheus")
}

func cluster() cog.Builder[dashboard.VariableModel] {
	return several("cluster", "Cluster", `label_values(dra_exporter_build_info, cluster)`)
}

// several is a variable of which any number of values may be chosen.
func several(name, label, query string) *dashboard.QueryVariableBuilder {
	all := dashboard.VariableOption{
		Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
		Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
	}
	return one(name, label, query).Multi(true).IncludeAll(true).AllValue(".*").Current(all)
}

// one is a variable of which one value is chosen: the first, if no link says
// which.
func one(name, label, query string) *dashboard.QueryVariableBuilder {
	query = promql(query)
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Datasource(source()).
		Definition(query).
		Query(dashboard.StringOrMap{Map: map[string]any{
			"qryType": 1, // label values
			"query":   query,
			"refId":   fmt.Sprintf("variable-%s", name),
		}}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortNaturalAsc).
		AllowCustomValue(false)
}
