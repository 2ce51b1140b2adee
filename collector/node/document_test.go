package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
)

const documentHead = `# Metrics

Generated from the code by ` + "`make docs`" + `; a test fails when the two differ.

- Prefix ` + "`dra_`" + `, base units, ratios from 0 to 1. What is unknown is absent, never zero. Counters that the exporter accrues exist from 0 once their quantity has been read on that device.
- ` + "`uuid`" + ` identifies a device in the whole fleet: the vendor's UUID, or ` + "`<node>/pci-<address>`" + ` where there is none, or ` + "`<node>/<driver>/<pool>/<device>`" + ` for a held device without known hardware. ` + "`parent_uuid`" + ` is empty but for partitions: sums over a fleet say ` + "`parent_uuid=\"\"`" + ` or ` + "`parent_uuid!=\"\"`" + `.
- ` + "`attribution`" + ` says how a claim's number relates to the device's: ` + "`exclusive`" + ` (alone on the device), ` + "`partition`" + ` (alone on its partition), ` + "`shared`" + ` (several holders: the device's own value, which must not be added up).
- Joins are ` + "`on (uuid)`" + ` or ` + "`on (node, namespace, resourceclaim, uuid)`" + `; whatever can change stands on ` + "`_info`" + ` rows.
- Counters and info rows of a claim live on for ` + "`--ledger.grace`" + ` after it let go; ` + "`dra_claim_held`" + ` and the gauges go at once.

`

func TestMetricsDocument(t *testing.T) {
	var document strings.Builder
	document.WriteString(documentHead)
	if err := metric.Document(&document, Families()); err != nil {
		t.Fatal(err)
	}
	metrictest.CompareGolden(t, "../../docs/metrics.md", document.String())
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
