package otlp

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Convention says by which metric a family goes out in the semantic naming.
// Families without one go out as they are scraped.
type Convention struct {
	Family     string
	Metric     string
	Unit       string // UCUM
	Kind       string // gauge, counter or updowncounter
	Derived    bool   // beside the family, which goes out as it is scraped or by another convention
	Attributes []Spelling
}

// Spelling is one attribute: prefix and value of a label, or where no label is
// named the constant value. A label without an attribute is not sent; an
// attribute whose label is empty neither. One engine has another name, if a
// source should ever call it "general": "engine_general".
type Spelling struct {
	Attribute, Label, Prefix, Value string
}

// Conventions lists what the semantic naming spells, for documents and for
// those who compare. Points may have more attributes than these: Facts. A
// derived metric has an entry for each of its states.
func Conventions() []Convention {
	byName := map[string]target{}
	for _, t := range targets() {
		byName[t.name] = t
	}
	var all []Convention
	add := func(c convention, derived bool) {
		t := byName[c.metric]
		entry := Convention{Family: c.family, Metric: c.metric, Unit: t.unit, Kind: t.kind.String(), Derived: derived}
		for _, w := range append(c.about.words(), c.words...) {
			entry.Attributes = append(entry.Attributes, Spelling{string(w.key), w.label, w.prefix, w.constant})
		}
		all = append(all, entry)
	}
	for _, c := range conventions() {
		add(c, false)
	}
	for _, c := range derivedConventions() {
		add(c, true)
	}
	return all
}

// Facts are the attributes of a metric that come from info rows, where they
// are known.
func Facts(metric string) []string {
	var facts []string
	for _, t := range targets() {
		if t.name == metric {
			for _, key := range t.facts {
				facts = append(facts, string(key))
			}
		}
	}
	return facts
}

// document writes Markdown: the metrics, the attributes that all points about
// the like have, the families with what tells them apart, and what is derived.
func document(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "| metric | kind | unit | from info rows | meaning |\n|---|---|---|---|---|\n")
	for _, t := range targets() {
		fmt.Fprintf(out, "| `%s` | %s | `%s` | %s | %s |\n", t.name, t.kind, t.unit, quoted(Facts(t.name)), t.help)
	}
	fmt.Fprint(out, "\n| families | attributes of all |\n|---|---|\n")
	for _, a := range []about{aboutDevice, aboutClaim, aboutPod} {
		fmt.Fprintf(out, "| `%s…` | %s |\n", a.prefix(), spellings(a.words()))
	}
	fmt.Fprint(out, "\n| family | metric | additional attributes |\n|---|---|---|\n")
	for _, c := range conventions() {
		fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", c.family, c.metric, spellings(c.words))
	}
	fmt.Fprint(out, "\n| derived metric | made of | additional attributes |\n|---|---|---|\n")
	for _, c := range derivedConventions() {
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", c.metric, c.madeOf, spellings(c.words))
	}
	return out.Flush()
}

func spellings(words []word) string {
	var all []string
	for _, w := range words {
		if w.key != "" {
			all = append(all, Spelling{string(w.key), w.label, w.prefix, w.constant}.String())
		}
	}
	return strings.Join(all, ", ")
}

// String is the spelling as the document has it.
func (s Spelling) String() string {
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
