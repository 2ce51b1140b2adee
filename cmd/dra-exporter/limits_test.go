package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/internal/dcgmnames"
)

// One series beyond the limits of a managed service ends the scrape of the whole page,
// so that a pod's label or annotation must not reach them. The limits of Azure are in
// docs/install.md.
func TestLimitsOfServices(t *testing.T) {
	document := readText(t, "../../docs/install.md")
	limit := func(name string) int {
		found := regexp.MustCompile(name + `: (\d+)`).FindStringSubmatch(document)
		if found == nil {
			t.Fatalf("docs/install.md has no %s", name)
		}
		number, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	if metric.MaxValue > limit("labelValueLengthLimit")*3/4 {
		t.Errorf("a label value may have %d bytes: too near to the limit %d", metric.MaxValue, limit("labelValueLengthLimit"))
	}
	if text := readText(t, "../../docs/security.md"); !strings.Contains(text, "A string longer than "+strconv.Itoa(metric.MaxValue)+" bytes is cut") {
		t.Errorf("docs/security.md does not say that label values have at most %d bytes", metric.MaxValue)
	}
	const (
		others = 5    // the name of the metric, job, instance, endpoint and a cluster's label
		labels = 30   // Mimir's default, the least of all services: max_label_names_per_series
		name   = 256  // VictoriaMetrics' default: -maxLabelNameLen
		help   = 1024 // Mimir's and Cortex' default: max_metadata_length, of each part
	)
	for _, family := range slices.Concat(node.Families(), cluster.Families(), dcgmnames.Families()) {
		count := len(family.Labels)
		if family.Name == metric.ClaimConsumerInfo {
			count += node.MaxPodLabels
		}
		if count+others > min(labels, limit("labelLimit")) {
			t.Errorf("%s has %d labels", family.Name, count)
		}
		if len(family.Help) > help || len(family.Name) > name {
			t.Errorf("%s: its name has %d bytes, its help %d", family.Name, len(family.Name), len(family.Help))
		}
	}
	key := strings.Repeat("aB", 126) + "a/" + strings.Repeat("aB", 31) + "a"
	if err := node.CheckPodLabels([]string{key}); err == nil || !strings.Contains(err.Error(), "256") {
		t.Errorf("the longest name of a pod's label becomes a label: %v", err)
	}
	var many []string
	for i := range node.MaxPodLabels + 1 {
		many = append(many, "team"+strconv.Itoa(i))
	}
	if err := node.CheckPodLabels(many); err == nil || node.CheckPodLabels(many[1:]) != nil {
		t.Errorf("%d labels of pods: %v", len(many), err)
	}
	if name > limit("labelNameLengthLimit") {
		t.Error("the names of labels are limited by VictoriaMetrics no longer")
	}
}
