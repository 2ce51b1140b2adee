package cluster

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// State is what the cluster role remembers from step to step. Step takes it
// over: a State that was given to Step must not be used again.
type State struct {
	config   Config
	families *families
	opened   time.Time // of the first step: since when our counters count

	books    books
	touched  touched
	clocks   clocks
	phases   phases
	failures failures
	waits    waits
	tracing  tracing

	rows       *metric.Builder
	costLabels map[string]*metric.Labels // by namespace, of which there are few
}

// NewState returns the state before the first step.
func NewState(config Config) State {
	f := newFamilies()
	return State{
		config:   config,
		families: f,
		books:    newBooks(),
		touched:  newTouched(),
		clocks:   newClocks(),
		phases:   newPhases(f),
		failures: newFailures(),
		waits:    newWaits(),
		tracing:  newTracing(config.Traces),
		rows:     metric.NewBuilder(config.MaxSeries, f.self.Dropped),

		costLabels: make(map[string]*metric.Labels),
	}
}

// touched is what the changes of one step have touched: a pod whose own
// object, one of whose claims, or whose group has changed; a claim that has
// changed itself or that other pods name now. What is gone is in it, too, with
// its entry's life nil.
type touched struct {
	pods   map[*podEntry]struct{}
	claims map[*claimEntry]struct{}
}

func newTouched() touched {
	return touched{pods: make(map[*podEntry]struct{}), claims: make(map[*claimEntry]struct{})}
}

// touchedRoom is up to how many entries the maps are emptied rather than made
// anew: to empty a map takes as long as it once was large.
const touchedRoom = 4096

func (t *touched) clear() {
	if len(t.pods) > touchedRoom || len(t.claims) > touchedRoom {
		*t = newTouched()
		return
	}
	clear(t.pods)
	clear(t.claims)
}
