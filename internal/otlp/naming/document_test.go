package naming

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

const (
	semconvDocument = "../../../docs/opentelemetry.md"
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

// A family with a convention exists, and each of its labels has a rule: a label
// that is added later must be decided on here.
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
			t.Errorf("%s converts the labels %v, the family has %v", c.Family, labels, want)
		}
		if got := c.Kind == "counter"; got != (family.Type.String() == "counter") {
			t.Errorf("%s is a %s, %s a %s", c.Family, family.Type, c.Metric, c.Kind)
		}
		if unit := UCUM(family.Unit); unit != "" && unit != c.Unit && !c.Derived {
			t.Errorf("%s is in %q, %s in %q", c.Family, unit, c.Metric, c.Unit)
		}
	}
}

// All values of a claim have a convention, except a timestamp.
func TestConventionsOfClaims(t *testing.T) {
	converted := map[string]bool{"dra_claim_idle_since_timestamp_seconds": true}
	for _, c := range Conventions() {
		converted[c.Family] = true
	}
	for name, family := range rolesFamilies() {
		if strings.HasPrefix(name, "dra_claim_") && !strings.HasSuffix(name, "_info") && slices.Contains(family.Labels, "uuid") && !converted[name] {
			t.Errorf("%s has no convention", name)
		}
	}
}

// document writes Markdown: the metrics, the attributes that all points about a
// subject have if the family has the label, the families with the attributes that distinguish them, and the
// derived metrics.
func document(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "| metric | kind | unit | from info rows |\n|---|---|---|---|\n")
	for _, t := range targets() {
		fmt.Fprintf(out, "| `%s` | %s | `%s` | %s |\n", t.name, t.kind, t.unit, quoted(Facts(t.name)))
	}
	fmt.Fprint(out, "\n| families | attributes of all |\n|---|---|\n")
	for kind, prefix := range [...]string{deviceSubject: "dra_device_", claimSubject: "dra_claim_", podSubject: "dra_pod_"} {
		rules := subjectKind(kind).rules()
		if subjectKind(kind) == claimSubject {
			rules = append(rules, attributionRule())
		}
		fmt.Fprintf(out, "| `%s…` | %s |\n", prefix, spellings(rules))
	}
	fmt.Fprint(out, "\n| family | metric | additional attributes |\n|---|---|---|\n")
	for _, t := range targets() {
		for _, c := range t.families {
			if c.derive == nil {
				rules := slices.DeleteFunc(c.rules, func(r attributeRule) bool { return r.key == attribution })
				fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", c.family, t.name, spellings(rules))
			}
		}
	}
	fmt.Fprint(out, "\n| derived metric | made of | additional attributes |\n|---|---|---|\n")
	for _, t := range targets() {
		for _, c := range t.families {
			if c.derive != nil {
				fmt.Fprintf(out, "| `%s` | %s | %s |\n", t.name, c.derivedFrom, spellings(c.rules))
			}
		}
	}
	return out.Flush()
}

func spellings(rules []attributeRule) string {
	var all []string
	for _, r := range rules {
		if r.key != "" {
			all = append(all, spellingText(AttributeRule{string(r.key), r.label, r.prefix, r.constant}))
		}
	}
	return strings.Join(all, ", ")
}

func spellingText(s AttributeRule) string {
	switch {
	case s.Label == "":
		return fmt.Sprintf("`%s=%s`", s.Attribute, s.Value)
	case s.Prefix != "":
		return fmt.Sprintf("`%s` = `%s` + `%s`", s.Attribute, s.Prefix, s.Label)
	default:
		return fmt.Sprintf("`%s` = `%s`", s.Attribute, s.Label)
	}
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "`" + name + "`"
	}
	return strings.Join(all, ", ")
}
