package main

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
)

// foreignNames are the metrics of other programs, and prefixes of all of theirs, with the
// source of each.
type foreignNames struct {
	metrics, prefixes map[string]string
}

func readForeignNames(t *testing.T) foreignNames {
	t.Helper()
	file, err := os.Open("../../test/fakes/fixtures/upstream-metrics/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	names := foreignNames{map[string]string{}, map[string]string{}}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != 4 {
			t.Fatalf("unknown line %q", lines.Text())
		}
		switch fields[0] {
		case "prefix":
			names.prefixes[fields[1]] = fields[2]
		case "gauge", "counter", "histogram":
			names.metrics[fields[1]] = fields[2]
		default:
			t.Fatalf("unknown type in %q", lines.Text())
		}
	}
	return names
}

// seriesNames are all names that series of a family can have, in any format and of any type.
func seriesNames(family string) []string {
	stem := strings.TrimSuffix(family, "_total")
	names := []string{stem}
	for _, suffix := range []string{"_total", "_created", "_bucket", "_sum", "_count"} {
		names = append(names, stem+suffix)
	}
	return names
}

// TestForeignNames: no series of a role has the name of a series of the kubelet, the scheduler,
// the controller manager or a DRA driver, of which one begins its names with dra_ too.
func TestForeignNames(t *testing.T) {
	names := readForeignNames(t)
	if len(names.metrics) < 35 || names.metrics["dra_resource_claims_in_use"] == "" {
		t.Fatalf("the list has %d names", len(names.metrics))
	}
	foreign := map[string]string{}
	for name, source := range names.metrics {
		for _, series := range seriesNames(name) {
			foreign[series] = name + " of " + source
		}
	}
	families := slices.Concat(nodeFamilies(), clusterFamilies())
	if len(families) < 150 {
		t.Fatalf("the roles have %d families", len(families))
	}
	for _, family := range families {
		for _, series := range seriesNames(family) {
			if other := foreign[series]; other != "" {
				t.Errorf("%s: %s is a series of %s", family, series, other)
			}
		}
		for prefix, source := range names.prefixes {
			if strings.HasPrefix(family, prefix) {
				t.Errorf("%s has the prefix %s of %s", family, prefix, source)
			}
		}
	}
}
