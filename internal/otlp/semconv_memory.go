package otlp

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// memory has the attributes of every point from one snapshot to the next.
// Labels are shared by rows of several families, which spell them differently,
// so it goes by both. What a snapshot does not ask for is forgotten.
//
// Rows mostly come in the order of the snapshot before: then they need not be
// looked up.
type memory struct {
	turn, asked int
	all         map[place]*spelled
	orders      map[*convention][]*spelled // of the rows of its family; only what is in all
}

type place struct {
	in     *convention
	labels *metric.Labels
}

// spelled are labels as attributes, and what was known of their subject then.
type spelled struct {
	labels  *metric.Labels
	set     attribute.Set
	of      *subject // nil: not spelled yet
	version int
	turn    int
}

func newMemory() memory {
	return memory{all: map[place]*spelled{}, orders: map[*convention][]*spelled{}}
}

func (m *memory) begin() { m.turn, m.asked = m.turn+1, 0 }

// find returns what is remembered, which may be nothing yet.
func (m *memory) find(c *convention, labels *metric.Labels) *spelled {
	at := place{c, labels}
	found := m.all[at]
	if found == nil {
		found = &spelled{labels: labels}
		m.all[at] = found
	}
	m.ask(found)
	return found
}

// findRow does the same for row i of the convention's family.
func (m *memory) findRow(c *convention, i int, labels *metric.Labels) *spelled {
	order := m.orders[c]
	if i < len(order) && order[i].labels == labels {
		m.ask(order[i])
		return order[i]
	}
	found := m.find(c, labels)
	m.orders[c] = append(order[:min(i, len(order))], found)
	return found
}

func (m *memory) ask(found *spelled) {
	if found.turn != m.turn {
		found.turn = m.turn
		m.asked++
	}
}

func (m *memory) end() {
	if m.asked == len(m.all) {
		return
	}
	clear(m.orders)
	for at, found := range m.all {
		if found.turn != m.turn {
			delete(m.all, at)
		}
	}
}
