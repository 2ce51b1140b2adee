// Package metric is the vocabulary between the reducers and everything that
// shows what they found: families, rows, and the page of text that
// Prometheus reads.
package metric

import (
	"iter"
	"time"
)

// Type is the type of a family.
type Type uint8

// The types of rows, and Histogram, of which there are no rows: histograms
// live in a Prometheus registry, and their family here is their documentation.
const (
	Gauge Type = iota
	Counter
	Histogram
)

func (t Type) String() string { return [...]string{"gauge", "counter", "histogram"}[t] }

// Family describes all the rows of one name. Families are made once, in the
// table of the role that fills them, and compared by address.
type Family struct {
	Name   string
	Help   string // one sentence, no full stop needed
	Unit   string // base unit as the name spells it, or empty: bytes, seconds, ratio …
	Type   Type
	Labels []string // the documented labels, in the catalogue's order

	Zeros     *ZeroRows  // below the level full; nil: all rows of value 0 are exported
	LeanZeros *ZeroRows  // at the level lean; nil: as Zeros
	Minor     *LabelRows // left out below the level full; nil: none
}

// DeviceExtensionPrefix begins the names of the families of drivers' extensions,
// which are made at run time.
const DeviceExtensionPrefix = "dra_device_ext_"

// Row is one series of a page.
type Row struct {
	Family *Family
	Labels *Labels
	Value  float64
	// Start is when a counter of the exporter started at zero; the zero time if
	// it is unknown (hardware lifetime counters) and for gauges.
	Start time.Time
	// Past marks an info row of what has ended: it is shown for as long as
	// the counters that are joined with it.
	Past bool
}

// Runs returns the rows of each family, which are next to each other.
func Runs(rows []Row) iter.Seq2[*Family, []Row] {
	return func(yield func(*Family, []Row) bool) {
		for first := 0; first < len(rows); {
			end := first + 1
			for end < len(rows) && rows[end].Family == rows[first].Family {
				end++
			}
			if !yield(rows[first].Family, rows[first:end]) {
				return
			}
			first = end
		}
	}
}

// Table is a list of families in the order of their declaration. Declaring a
// family is all that it takes for it to be documented and checked.
type Table struct {
	families []*Family
}

// Add declares a family and returns it. The arguments are its fields.
func (t *Table) Add(kind Type, name, unit, help string, labels ...string) *Family {
	family := &Family{Name: name, Help: help, Unit: unit, Type: kind, Labels: labels}
	t.families = append(t.families, family)
	return family
}

// All returns all families.
func (t *Table) All() []*Family { return t.families }
