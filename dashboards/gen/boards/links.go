package boards

import (
	"fmt"
	"maps"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// UIDs of the dashboards: links and alerts name them.
const (
	uidOverview    = "dra-overview"
	uidClaims      = "dra-claims"
	uidClaim       = "dra-claim"
	uidWorkloads   = "dra-workloads"
	uidWorkload    = "dra-workload"
	uidAllocation  = "dra-allocation"
	uidCapacity    = "dra-capacity"
	uidReliability = "dra-reliability"
	uidHealth      = "dra-health"
	uidNode        = "dra-node"
	uidEfficiency  = "dra-efficiency"
	uidExporter    = "dra-exporter"
	uidRightSizing = "dra-rightsizing"
)

// link leads from a row or a series to another dashboard.
type link struct {
	title string
	uid   string
	// fields are what the other dashboard's variables take from the row, by the
	// variable's name. Data source, cluster and time range go along by themselves.
	fields map[string]string
	// also are those that a row may have, and need not.
	also map[string]string
}

// toClaim, toWorkload, toNode and toNamespace are the ways of drill-down: from anything that
// has these labels.
func toClaim() link {
	return link{title: "Claim", uid: uidClaim, fields: map[string]string{"namespace": "namespace", "resourceclaim": "resourceclaim"}, also: map[string]string{"node": "node"}}
}

func toWorkload() link {
	return link{title: "Workload", uid: uidWorkload, fields: map[string]string{"namespace": "namespace", "kind": "workload_kind", "workload": "workload"}}
}

func toNode() link {
	return link{title: "Node", uid: uidNode, fields: map[string]string{"node": "node"}}
}

func toHealthOfNode() link {
	return link{title: "Device health", uid: uidHealth, fields: map[string]string{"node": "node"}}
}

func toNamespace() link {
	return link{title: "Claims of the namespace", uid: uidClaims, fields: map[string]string{"namespace": "namespace"}}
}

// url takes values from the labels of a series, or from the columns of a table's
// row by their names in the query; a label that is not there has no value. What is
// of one cluster leads to that one, for others may have the same names. A store of
// one cluster has no such column, and the link then says var-cluster=, which selects
// what has no cluster.
func (l link) url(value func(label string) string) string {
	cluster := "${cluster:queryparam}"
	if value != nil && value("cluster") != "" {
		cluster = "var-cluster=" + value("cluster")
	}
	parts := []string{"${datasource:queryparam}", cluster, "${__url_time_range}"}
	for _, variable := range sortedKeys(l.fields) {
		parts = append(parts, fmt.Sprintf("var-%s=%s", variable, value(l.fields[variable])))
	}
	return "/d/" + l.uid + "?" + strings.Join(parts, "&")
}

// onSeries is a link on a series, by its labels.
func (l link) onSeries() []dashboard.DynamicConfigValue {
	address := l.url(func(label string) string { return fmt.Sprintf("${__field.labels.%s:percentencode}", label) })
	return []dashboard.DynamicConfigValue{property("links", []map[string]any{{"title": l.title, "url": address}})}
}

// ofRow is a link on a cell, by the row's other cells. titles are the columns'
// names as they are shown, by label.
func (l link) ofRow(titles map[string]string) map[string]any {
	value := func(label string) string {
		if titles[label] == "" {
			return ""
		}
		return fmt.Sprintf("${__data.fields[%q]:percentencode}", titles[label])
	}
	l.fields = maps.Clone(l.fields)
	for variable, label := range l.also {
		if value(label) != "" {
			l.fields[variable] = label
		}
	}
	return map[string]any{"title": l.title, "url": l.url(value)}
}
