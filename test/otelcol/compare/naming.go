package compare

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
)

// Naming says how series of a page are spelled in a push. It is safe for
// concurrent use.
type Naming struct {
	families map[string]naming.Convention // those that have another name
	metrics  map[string]metric            // by the other name
}

// metric is what is known of a name that no page has.
type metric struct {
	facts   []string // attributes that are of other rows, the info rows
	derived bool     // no row stands for its points
}

// Prometheus has the names of the scrape, to the letter.
func Prometheus() *Naming { return &Naming{} }

// Semantic has those of the table in docs/opentelemetry.md. What that table
// does not name is as in Prometheus.
func Semantic() *Naming {
	n := &Naming{families: map[string]naming.Convention{}, metrics: map[string]metric{}}
	spelled := map[string][]string{}
	for _, c := range naming.Conventions() {
		known := n.metrics[c.Metric]
		known.derived = known.derived || c.Derived
		n.metrics[c.Metric] = known
		if c.Derived {
			continue
		}
		n.families[c.Family] = c
		for _, s := range c.Attributes {
			spelled[c.Metric] = append(spelled[c.Metric], s.Attribute)
		}
	}
	for name, known := range n.metrics {
		for _, fact := range naming.Facts(name) {
			if !slices.Contains(spelled[name], fact) {
				known.facts = append(known.facts, fact)
			}
		}
		n.metrics[name] = known
	}
	return n
}

// expect spells a series of a page as a push has it.
func (n *Naming) expect(s series) series {
	c, known := n.families[s.metric]
	if !known {
		return s
	}
	s.metric, s.unit, s.kind, s.help = c.Metric, c.Unit, c.Kind, ""
	spelled := attributes{}
	for label, value := range s.attributes {
		if i := slices.IndexFunc(c.Attributes, func(of naming.AttributeRule) bool { return of.Label == label }); i < 0 {
			spelled[label] = value
		} else if of := c.Attributes[i]; of.Attribute != "" {
			spelled[of.Attribute] = of.Prefix + value
		}
	}
	for _, of := range c.Attributes {
		if of.Label == "" {
			spelled[of.Attribute] = of.Value
		}
	}
	s.attributes = spelled
	return s
}

// plain is a point without what it has from other rows, and whether a row of
// its own must stand for it.
func (n *Naming) plain(s series) (plain series, row bool) {
	known, other := n.metrics[s.metric]
	if !other {
		return s, true
	}
	s.help = ""
	all := attributes{}
	for name, value := range s.attributes {
		if !slices.Contains(known.facts, name) {
			all[name] = value
		}
	}
	s.attributes = all
	return s, !known.derived
}
