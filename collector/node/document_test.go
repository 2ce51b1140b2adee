package node

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// TestHealthDocument compares the tables of docs/health.md with those of the
// code; with -update it writes them into the document.
func TestHealthDocument(t *testing.T) {
	const path = "../../docs/health.md"
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	xids := xidTable()
	text := replaceTable(t, string(document), "signals", signalDocument(signalTable(xids)[:firstXIDSignal]))
	metrictest.CompareGolden(t, path, replaceTable(t, text, "xids", xidDocument(xids)))
}

// replaceTable puts a table between the marks of its name.
func replaceTable(t *testing.T, document, name, table string) string {
	t.Helper()
	begin, end := "<!-- table of "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("the document has no table of %s", name)
	}
	return before + begin + table + end + after
}

func signalDocument(signals []signal) string {
	table := "| signal | severity | constraint | raised when |\n|---|---|---|---|\n"
	for _, row := range signals {
		weight := severity(row.critical)
		if strings.HasPrefix(row.name, "dcgm_") {
			weight = "critical (fail), warning (warn)"
		}
		table += fmt.Sprintf("| `%s` | %s | %s | %s |\n", row.name, weight, row.constraint, row.means)
	}
	return table
}

func xidDocument(xids []xidCode) string {
	table := "| Xid | class | signal | constraint | meaning |\n|---|---|---|---|---|\n"
	for _, row := range xids {
		weight := ""
		if row.constraint != noConstraint {
			weight = severity(row.class.critical())
		}
		table += fmt.Sprintf("| %d | %s | %s | %s | %s |\n", row.code, row.class, weight, row.constraint, row.means)
	}
	return table
}

// Families that share the labels of an account or a device can be joined
// without a thought; that is what the conventions promise.
func TestFamilyConventions(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Families() {
		if seen[f.Name] {
			t.Errorf("%s is there twice", f.Name)
		}
		seen[f.Name] = true
		if (f.Type == metric.Counter) != strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s is a %s", f.Name, f.Type)
		}
		if strings.HasPrefix(f.Name, "dra_device_") && !slices.Contains(f.Labels, "uuid") {
			t.Errorf("%s has no uuid", f.Name)
		}
		if strings.HasPrefix(f.Name, "dra_claim_") && !slices.Equal(f.Labels[:3], []string{"node", "namespace", "resourceclaim"}) {
			t.Errorf("%s begins with the labels %v", f.Name, f.Labels[:3])
		}
		if f.Unit != "" && !strings.Contains(f.Name, "_"+f.Unit) {
			t.Errorf("%s does not name its unit %s", f.Name, f.Unit)
		}
	}
}
