package dcgmnames

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
	"github.com/dra-exporter/dra-exporter/collector/node"
)

// TestDocument compares the table of docs/dcgm-names.md with the one of the
// code; with -update it writes it into the document.
func TestDocument(t *testing.T) {
	const path, begin, end = "../../docs/dcgm-names.md", "<!-- table of fields -->\n", "<!-- end of fields -->\n"
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(document), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the document has no table of fields")
	}
	metrictest.CompareGolden(t, path, before+begin+fieldTable()+end+after)
}

func fieldTable() string {
	table := "| field | type | unit | from | a MIG partition has |\n|---|---|---|---|---|\n"
	for _, f := range fields() {
		from := strings.Join(f.from(), ", ")
		if f.means != "" {
			from = f.means + ": " + from
		}
		table += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", f.family.Name, f.family.Type, f.unit, from, f.onMIG)
	}
	return table
}

// from returns the families that the field is derived from.
func (f field) from() []string {
	switch f.of {
	case memoryFree:
		return []string{memorySize.String(), memoryUsed.String(), memoryReserved.String()}
	case nvlinkRate:
		return []string{nvlinkTransmit.String(), nvlinkReceive.String()}
	case lastXID:
		return []string{"`dra_device_xid_last_timestamp_seconds`"}
	}
	for _, c := range counterRates() {
		if f.of == c.rate {
			return []string{c.counter.String()}
		}
	}
	return []string{f.of.String()}
}

func (s source) String() string {
	o := origins()[s]
	if o.label == "" {
		return "`" + o.family + "`"
	}
	return fmt.Sprintf("`%s{%s=%q}`", o.family, o.label, o.value)
}

// All families that a Translator reads exist, with those labels and of that
// type.
func TestFamiliesExist(t *testing.T) {
	families := map[string]*metric.Family{}
	for _, family := range node.Families() {
		families[family.Name] = family
	}
	want := func(name string, labels ...string) {
		t.Helper()
		family := families[name]
		if family == nil {
			t.Errorf("no family is named %s", name)
			return
		}
		for _, label := range labels {
			if !slices.Contains(family.Labels, label) {
				t.Errorf("%s has no label %s", name, label)
			}
		}
	}
	for s, o := range origins() {
		want(o.family, "uuid")
		if o.label != "" {
			want(o.family, o.label)
		}
		if family := families[o.family]; family != nil && source(s).isCounter() != (family.Type == metric.Counter) {
			t.Errorf("%s is a %s", o.family, family.Type)
		}
	}
	want("dra_device_info", "node", "uuid", "parent_uuid", "vendor", "model", "pci_bus_id", "partition_profile", "driver_version")
	want("dra_device_partition_info", "uuid", "gpu_instance_id")
	want("dra_claim_held", "namespace", "resourceclaim", "uuid")
	want("dra_claim_device_info", "namespace", "resourceclaim", "uuid", "driver", "pool", "device")
	want("dra_claim_consumer_info", "namespace", "resourceclaim", "uuid", "pod", "container")
	want("dra_device_plugin_consumer_info", "namespace", "uuid", "pod", "container")
	want("dra_pod_utilization_ratio", "namespace", "pod", "uuid")
	want("dra_pod_memory_used_bytes", "namespace", "pod", "uuid")
	want("dra_claim_utilization_ratio", "namespace", "resourceclaim", "uuid", "attribution")
	want("dra_claim_memory_used_bytes", "namespace", "resourceclaim", "uuid", "attribution")
	want("dra_device_xid_errors_total", "uuid", "xid")
	want("dra_device_xid_last_timestamp_seconds", "uuid", "xid")
}

// The names are valid in Prometheus, unique, and different from the exporter's
// own names.
func TestFamilies(t *testing.T) {
	ours := node.Families()
	for i, family := range Families() {
		if !strings.HasPrefix(family.Name, "DCGM_FI_DEV_") && !strings.HasPrefix(family.Name, "DCGM_FI_PROF_") {
			t.Errorf("%s is not a field of DCGM", family.Name)
		}
		if slices.ContainsFunc(append(ours, Families()[:i]...), func(other *metric.Family) bool { return other.Name == family.Name }) {
			t.Errorf("%s is a duplicate", family.Name)
		}
		if family.Help == "" || strings.HasSuffix(family.Help, ".") {
			t.Errorf("%s has the help %q", family.Name, family.Help)
		}
	}
}
