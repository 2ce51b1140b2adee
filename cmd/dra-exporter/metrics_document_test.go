package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

const metricsHead = `# Metrics

Generated from the code by ` + "`make docs`" + `; a test fails when the two differ.

- All families have the prefix ` + "`dra_`" + ` and base units, which end their names. Ratios are from 0 to 1. A value that cannot be read is not exported; it is never reported as 0.
- Names of counters end with ` + "`_total`, of histograms with `_duration_seconds`" + `; all others are gauges. Labels that all families of a table have are above it. A cell with *only* has all labels of its family.
- The text format, OpenMetrics 1.0 and protobuf have the same series. Native histograms are in protobuf alone, start times of counters in protobuf, and with ` + "`--metrics.created`" + ` in OpenMetrics. OpenMetrics 2.0 is not served.
- ` + "`uuid`" + ` identifies a device in the whole fleet: the vendor's UUID, else ` + "`<node>/pci-<address>`" + `, or ` + "`<node>/<driver>/<pool>/<device>`" + ` for a held device without known hardware. ` + "`parent_uuid`" + ` is empty except for partitions. Sums over a fleet must select ` + "`parent_uuid=\"\"`" + ` or ` + "`parent_uuid!=\"\"`" + `.
- ` + "`attribution`" + ` is ` + "`exclusive`" + ` (the claim has the device alone), ` + "`partition`" + ` (it has its partition alone), ` + "`process`" + ` (the value of the claim's processes, of several holders) or ` + "`shared`" + ` (the device's own value, which must not be added up). See [sharing](sharing.md).
- Join ` + "`on (uuid)`" + ` or ` + "`on (node, namespace, resourceclaim, uuid)`" + `. Properties that can change are labels of ` + "`_info`" + ` families. ` + "`dra_device_published_info`" + ` joins the cluster role's pools and devices with the node role's devices.
- A counter of the node role starts at 0 when its quantity is read for the first time. Counters and info series of a claim remain for ` + "`--ledger.grace`" + ` after the claim releases its devices; ` + "`dra_claim_held`" + ` and the gauges end at once.
- In the cluster role, all ` + "`_since_timestamp_seconds`" + ` are times of the API server. ` + "`deviceclass`" + ` is ` + "`multiple`" + ` if a claim has several. It is empty if it is unknown, and in counters, histograms and ` + "`dra_claims`" + ` if the class does not exist. If a kind of objects cannot be read, its families are absent, and ` + "`dra_exporter_source_error_info`" + ` has the reason. See [phases](pending.md#phases) and [reasons](pending.md).

`

// documentChapters returns the families of both roles; those that both have are in a
// separate chapter.
func documentChapters() []metrictest.Chapter {
	ofCluster := map[string]bool{}
	for _, family := range cluster.Families() {
		ofCluster[family.Name] = true
	}
	var nodes, clusters, both []*metric.Family
	common := map[string]bool{}
	for _, family := range node.Families() {
		if ofCluster[family.Name] {
			both, common[family.Name] = append(both, family), true
		} else {
			nodes = append(nodes, family)
		}
	}
	for _, family := range cluster.Families() {
		if !common[family.Name] {
			clusters = append(clusters, family)
		}
	}
	nodes = append(nodes, self.NewReload().All()...)
	both = slices.Concat(both, []*metric.Family{self.AccessReviews()}, self.NewSteps().All(), self.NewPushFamilies().All())
	itself := metrictest.Section{Title: "The exporter itself", Prefixes: []string{"dra_exporter_"}}
	pushing := metrictest.Section{Title: "Push by OTLP, if enabled", Prefixes: []string{"dra_exporter_otlp_"}}
	return []metrictest.Chapter{
		{Title: "Node role", Families: nodes, Sections: []metrictest.Section{
			{Title: "Devices", Prefixes: []string{"dra_device_"}},
			{Title: "Claims", Prefixes: []string{"dra_claim_"}},
			{Title: "Pods", Prefixes: []string{"dra_pod_"}},
			{Title: "Totals by namespace", Prefixes: []string{"dra_namespace_"}},
			{Title: "Incidents by model", Prefixes: []string{"dra_incident"}},
			{Title: "Violations by device class", Prefixes: []string{"dra_constraint_"}},
			itself,
		}},
		{Title: "Cluster role", Families: clusters, Sections: []metrictest.Section{
			{Title: "Pending claims", Prefixes: []string{"dra_claim_pending_", "dra_claims", "dra_allocation_failures_"}},
			{Title: "Durations and phases", Prefixes: []string{"dra_allocation_duration_", "dra_claim_ready_", "dra_claim_phase_"}},
			{Title: "Workloads", Prefixes: []string{"dra_workload_", "dra_compute_domain_"}},
			{Title: "Capacity", Prefixes: []string{"dra_devices", "dra_node_", "dra_class_", "dra_device_class_", "dra_pool_", "dra_partition_", "dra_capacity"}},
			{Title: "Anomalies and health", Prefixes: []string{"dra_claim_", "dra_device_", "dra_taint_", "dra_pod_"}},
			itself,
		}},
		{Title: "Both roles", Families: both, Sections: []metrictest.Section{pushing, itself}},
	}
}

func TestMetricsDocument(t *testing.T) {
	var document strings.Builder
	document.WriteString(metricsHead)
	series := countTypicalSeries(t)
	if err := metrictest.Document(&document, documentChapters(), metrictest.Column{Title: "[level: series](#levels)", Cell: series.cell}); err != nil {
		t.Fatal(err)
	}
	document.WriteString(levelsDocument(series))
	metrictest.CompareGolden(t, "../../docs/metrics.md", document.String())
}

// Families of both roles are identical, so that one query applies to both.
func TestRolesAgreeOnFamilies(t *testing.T) {
	ofNode := map[string]*metric.Family{}
	for _, family := range node.Families() {
		ofNode[family.Name] = family
	}
	for _, family := range cluster.Families() {
		other, common := ofNode[family.Name]
		if !common {
			continue
		}
		if other.Help != family.Help || other.Type != family.Type || other.Unit != family.Unit || strings.Join(other.Labels, " ") != strings.Join(family.Labels, " ") {
			t.Errorf("%s is not the same in both roles", family.Name)
		}
	}
}
