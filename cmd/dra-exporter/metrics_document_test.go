package main

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

const metricsHead = `# Metrics

Generated from the code by ` + "`make docs`" + `; a test fails when the two differ.

- Prefix ` + "`dra_`" + `, base units, ratios from 0 to 1. What is unknown is absent, never zero.
- Node role: counters that the exporter accrues exist from 0 once their quantity has been read on that device. ` + "`uuid`" + ` identifies a device in the whole fleet: the vendor's UUID, or ` + "`<node>/pci-<address>`" + ` where there is none, or ` + "`<node>/<driver>/<pool>/<device>`" + ` for a held device without known hardware. ` + "`parent_uuid`" + ` is empty but for partitions: sums over a fleet say ` + "`parent_uuid=\"\"`" + ` or ` + "`parent_uuid!=\"\"`" + `.
- ` + "`attribution`" + ` says how a claim's number relates to the device's: ` + "`exclusive`" + ` (alone on the device), ` + "`partition`" + ` (alone on its partition), ` + "`process`" + ` (several holders: what the claim's processes do), ` + "`shared`" + ` (several holders and no split: the device's own value, which must not be added up). [Sharing](sharing.md).
- Joins are ` + "`on (uuid)`" + ` or ` + "`on (node, namespace, resourceclaim, uuid)`" + `; whatever can change stands on ` + "`_info`" + ` rows. The cluster role's rows of pools and devices join the node role's by ` + "`dra_device_published_info`" + `.
- Counters and info rows of a claim live on for ` + "`--ledger.grace`" + ` after it let go; ` + "`dra_claim_held`" + ` and the gauges go at once.
- Cluster role: all ` + "`_since_timestamp_seconds`" + ` are the API server's times, which a restart of the exporter does not move. ` + "`deviceclass`" + ` is ` + "`multiple`" + ` where a claim has several, and empty where it is not known, or where pods have named more than 1,000 classes that do not exist. Where a kind of objects cannot be read, the families that take it are absent, and ` + "`dra_exporter_source_error_info`" + ` says why. [Phases](phases.md), [reasons](pending.md).

`

// documented returns the families of both roles; those that both have are in a
// separate chapter.
func documented() []metric.Chapter {
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
	both = append(append(both, self.AccessReviews()), self.NewPush().All()...)
	itself := metric.Section{Title: "About the exporter itself", Prefixes: []string{"dra_exporter_"}}
	pushing := metric.Section{Title: "About pushing by OTLP, where it is switched on", Prefixes: []string{"dra_exporter_otlp_"}}
	return []metric.Chapter{
		{Title: "Node role", Families: nodes, Sections: []metric.Section{
			{Title: "What the hardware does", Prefixes: []string{"dra_device_"}},
			{Title: "What a claim gets of a device", Prefixes: []string{"dra_claim_"}},
			{Title: "What each of several pods does on a device", Prefixes: []string{"dra_pod_"}},
			{Title: "Totals that outlive claims", Prefixes: []string{"dra_namespace_"}},
			{Title: "Constraints of device classes", Prefixes: []string{"dra_constraint_"}},
			itself,
		}},
		{Title: "Cluster role", Families: clusters, Sections: []metric.Section{
			{Title: "Who waits, and why", Prefixes: []string{"dra_claim_pending_", "dra_claims", "dra_allocation_failures_"}},
			{Title: "How long it takes", Prefixes: []string{"dra_allocation_duration_", "dra_claim_ready_", "dra_claim_phase_"}},
			{Title: "What is left", Prefixes: []string{"dra_devices", "dra_class_", "dra_device_class_", "dra_pool_", "dra_capacity"}},
			{Title: "What is stuck or sick", Prefixes: []string{"dra_claim_", "dra_device_", "dra_pod_"}},
			itself,
		}},
		{Title: "Both roles", Families: both, Sections: []metric.Section{pushing, itself}},
	}
}

func TestMetricsDocument(t *testing.T) {
	var document strings.Builder
	document.WriteString(metricsHead)
	if err := metric.Document(&document, documented()); err != nil {
		t.Fatal(err)
	}
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
