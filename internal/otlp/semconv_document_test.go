package otlp

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
)

const (
	semconvDocument = "../../docs/opentelemetry.md"
	tableBegins     = "<!-- table of semantic conventions -->\n"
	tableEnds       = "<!-- end of table -->\n"
)

// The table in the document is the code's; go test -update writes it.
func TestSemconvDocument(t *testing.T) {
	text, err := os.ReadFile(semconvDocument)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", semconvDocument)
	}
	var table strings.Builder
	if err := document(&table); err != nil {
		t.Fatal(err)
	}
	metrictest.CompareGolden(t, semconvDocument, before+tableBegins+table.String()+tableEnds+after)
}

// A family that is spelled exists, and each of its labels has a word: one
// that is added later must be thought of here.
func TestConventionsKnowTheFamilies(t *testing.T) {
	families := rolesFamilies()
	for _, c := range Conventions() {
		family := families[c.Family]
		if family == nil {
			t.Errorf("there is no %s", c.Family)
			continue
		}
		var labels []string
		for _, s := range c.Attributes {
			if s.Label != "" {
				labels = append(labels, s.Label)
			}
		}
		slices.Sort(labels)
		if want := slices.Sorted(slices.Values(family.Labels)); !slices.Equal(labels, want) {
			t.Errorf("%s spells the labels %v, the family has %v", c.Family, labels, want)
		}
		if got := c.Kind == "counter"; got != (family.Type.String() == "counter") {
			t.Errorf("%s is a %s, %s a %s", c.Family, family.Type, c.Metric, c.Kind)
		}
		if unit := ucum(family.Unit); unit != "" && unit != c.Unit && !c.Derived {
			t.Errorf("%s is in %q, %s in %q", c.Family, unit, c.Metric, c.Unit)
		}
	}
}

// All of a claim's values are spelled, but for a moment in time.
func TestConventionsOfClaims(t *testing.T) {
	spelled := map[string]bool{"dra_claim_idle_since_timestamp_seconds": true}
	for _, c := range Conventions() {
		spelled[c.Family] = true
	}
	for name, family := range rolesFamilies() {
		if strings.HasPrefix(name, "dra_claim_") && !strings.HasSuffix(name, "_info") && slices.Contains(family.Labels, "uuid") && !spelled[name] {
			t.Errorf("%s has no convention", name)
		}
	}
}
