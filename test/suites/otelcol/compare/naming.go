package compare

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
)

// Naming maps series of a page to their names in a push. It is safe for
// concurrent use.
type Naming struct {
	families map[string]naming.Convention // families with another name
	metrics  map[string]metric            // by the other name
}

// metric describes a name that pages do not have.
type metric struct {
	facts   []string // attributes that come from other rows, the info rows
	derived bool     // no row corresponds to its points
}

// Prometheus returns the naming of the scrape, without changes.
func Prometheus() *Naming { return &Naming{} }

// Semantic returns the naming of the table in docs/opentelemetry.md. Other
// families have the names of Prometheus.
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

// expect returns a series of a page with the names of a push.
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

// plain returns a point without the attributes from other rows, and whether a
// row must correspond to it.
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
