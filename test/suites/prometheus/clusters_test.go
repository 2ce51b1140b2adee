package prometheus

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

// TestClustersInOneStore: the rows of a cluster are the same with another
// cluster of the same names in the store, and without the label. No rule fails
// for any rows of the exporters.
func TestClustersInOneStore(t *testing.T) {
	families := documented(t)
	one := contradictory(families, "a")
	alone, unnamed := evaluated(t, one), evaluated(t, contradictory(families, ""))
	beside := evaluated(t, slices.Concat(one, contradictory(families, "other")))
	for _, record := range records(t) {
		if len(alone[record]) == 0 && !slices.Contains(normallyAbsent(), record) {
			t.Errorf("%s has no rows", record)
		}
		stripped, mine := map[string]float64{}, map[string]float64{}
		for row, value := range alone[record] {
			stripped[strings.NewReplacer(`cluster="a", `, "", `, cluster="a"`, "").Replace(row)] = value
		}
		for row, value := range beside[record] {
			if strings.Contains(row, `cluster="a"`) {
				mine[row] = value
			}
		}
		if len(beside[record]) != 2*len(mine) {
			t.Errorf("%s has %d rows of %d for one of two clusters", record, len(mine), len(beside[record]))
		}
		compare(t, record, alone[record], mine)
		compare(t, record, stripped, unnamed[record])
	}
}

// normallyAbsent are the records of problems that this fleet does not have: all its
// nodes have exporters, its workloads neither stragglers nor hangs, and all its devices
// are measured.
func normallyAbsent() []string {
	return []string{"node:dra_exporter_missing:bool", "workload_device:dra_device_signal:deviates", "workload:dra_device_power_watts:hung", "requester:dra_claim_unmeasured_devices:max5m"}
}

// TestReplacedExporterCountsOnce: except for rules about exporters themselves,
// two exporters with the same rows have the results of one.
func TestReplacedExporterCountsOnce(t *testing.T) {
	both := contradictory(documented(t), "")
	old := slices.DeleteFunc(slices.Clone(both), func(series labels.Labels) bool { return series.Get("instance") != "old" })
	want, got := evaluated(t, old), evaluated(t, both)
	about := regexp.MustCompile(`^(job_instance|device_xid|source|operation|driver):`)
	for _, record := range records(t) {
		if !about.MatchString(record) {
			compare(t, record, want[record], got[record])
		}
	}
}

// records returns the names of the rules, without duplicates.
func records(t *testing.T) (names []string) {
	for _, rule := range rules(t) {
		names = append(names, rule.Record)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func compare(t *testing.T, record string, want, got map[string]float64) {
	t.Helper()
	if !maps.Equal(want, got) {
		t.Errorf("%s: %v\n  and %v", record, want, got)
	}
}
