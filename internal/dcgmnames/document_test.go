package dcgmnames

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
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

func (s valueSource) String() string {
	o := origins()[s]
	if o.detail == "" {
		return "`" + familyName(o.quantity) + "`"
	}
	return fmt.Sprintf("`%s{%s=%q}`", familyName(o.quantity), device.Specs()[o.quantity].Details[0], o.detail)
}

func familyName(q device.Quantity) string { return "dra_device_" + quantityName(q) }

// The families of the document exist, with those labels and of that type.
func TestFamiliesExist(t *testing.T) {
	families := map[string]*metric.Family{}
	for _, family := range node.Families() {
		families[family.Name] = family
	}
	for s, o := range origins() {
		switch family := families[familyName(o.quantity)]; {
		case family == nil:
			t.Errorf("no family is named %s", familyName(o.quantity))
		case o.detail != "" && !slices.Contains(family.Labels, device.Specs()[o.quantity].Details[0]):
			t.Errorf("%s has no label for %s", family.Name, o.detail)
		case valueSource(s).isCounter() != (family.Type == metric.Counter):
			t.Errorf("%s is a %s", family.Name, family.Type)
		}
	}
	if families["dra_device_xid_last_timestamp_seconds"] == nil {
		t.Error("no family has the times of XIDs")
	}
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
