package node

import (
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// violations counts the violations that began while a claim held the device or a
// partition of it, by device class. They are never removed while the process
// lives.
type violations struct {
	node    string
	byClass map[string]*classViolations
	sorted  []string // classes; nil: outdated
}

type classViolations struct {
	tallies [constraints]tally
	labels  [constraints]*metric.Labels
}

func newViolations(node string) *violations {
	return &violations{node: node, byClass: make(map[string]*classViolations)}
}

// open creates the counters of classes that hold a device.
func (s *violations) open(classes []string, now time.Time) {
	for _, class := range classes {
		if s.byClass[class] != nil {
			continue
		}
		v := &classViolations{}
		for c := range v.tallies {
			v.tallies[c].open(now)
		}
		s.byClass[class], s.sorted = v, nil
	}
}

// add counts a violation of each of the constraints, a bit each.
func (s *violations) add(class string, violated uint8) {
	for c := range constraints {
		if violated&(1<<c) != 0 {
			s.byClass[class].tallies[c].total++
		}
	}
}

func (s *violations) rows(b *rowBuilder) {
	family := b.families.violations
	b.In(family)
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.byClass))
	}
	for _, class := range s.sorted {
		v := s.byClass[class]
		for c := range v.tallies {
			if v.labels[c] == nil {
				v.labels[c] = metric.NewLabels(family.Labels, s.node, class, constraint(c).String())
			}
			b.addTally(v.labels[c], v.tallies[c])
		}
	}
}
