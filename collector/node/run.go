package node

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/schedule"
)

// startTimeout limits how long the first step waits until all sources have been
// read once, so that a restart does not export devices without their names.
const startTimeout = 5 * time.Second

// Inputs are what the Runner reads from the sources. None of them blocks.
type Inputs struct {
	Gather  func() Facts    // what the sources have now
	Settled func() bool     // every source has been read once, or its first read has failed
	Wake    <-chan struct{} // something has changed

	ObserveStep func(took time.Duration) // is called after each step; may be nil

	// Derive, which may be nil, returns rows of other families for each snapshot,
	// in their order. They are on the page and nowhere else.
	Derive func(Snapshot) []metric.Row

	Filter *metric.Filter // what is on the page; nil: everything
}

// Runner runs the steps of the node role, and publishes its snapshots.
type Runner struct {
	config Config
	inputs Inputs
	now    clock.Clock
	log    *slog.Logger
	latest atomic.Pointer[Published]
}

// Published is a snapshot, and what of it is exported.
type Published struct {
	Snapshot
	shown func() []metric.Row
	page  func() *metric.Page
}

// Shown returns the rows that are exported: with those that are derived, and without
// those that are filtered out. They are selected when they are first asked for.
func (p *Published) Shown() []metric.Row { return p.shown() }

// Page returns the page of these rows, likewise.
func (p *Published) Page() *metric.Page { return p.page() }

// NewRunner returns a Runner that has published nothing yet.
func NewRunner(config Config, inputs Inputs, now clock.Clock, log *slog.Logger) *Runner {
	return &Runner{config: config, inputs: inputs, now: now, log: log}
}

// Latest returns the newest snapshot, nil before the first. It only loads a
// pointer, and is safe for concurrent use.
func (r *Runner) Latest() *Published { return r.latest.Load() }

// Run steps at each change until the context ends, and without a change after an
// interval and a half: readings come at each interval, a little earlier or later,
// and a step before them would be needless.
func (r *Runner) Run(ctx context.Context) {
	state := NewState(r.config)
	schedule.Run(ctx, schedule.Options{
		Settled: r.inputs.Settled, SettleTime: startTimeout,
		Wake: r.inputs.Wake, Interval: r.config.Interval * 3 / 2, Observe: r.inputs.ObserveStep,
	}, func(ctx context.Context) time.Duration {
		began := r.now()
		state = r.step(ctx, state)
		return r.now().Since(began)
	})
}

func (r *Runner) step(ctx context.Context, state State) State {
	state, snapshot, events := Step(state, r.inputs.Gather(), r.now())
	r.publish(snapshot)
	for _, event := range events {
		r.log.LogAttrs(ctx, event.Level, event.Message, event.Attrs...)
	}
	return state
}

// publish replaces the newest snapshot. Derived rows depend on the snapshot before, so
// that they are made at each step.
func (r *Runner) publish(snapshot Snapshot) {
	var derived []metric.Row
	if r.inputs.Derive != nil {
		derived = r.inputs.Derive(snapshot)
	}
	next := &Published{Snapshot: snapshot, shown: sync.OnceValue(func() []metric.Row {
		rows := r.inputs.Filter.Rows(snapshot.Rows())
		if len(derived) == 0 {
			return rows
		}
		return slices.Concat(rows, r.inputs.Filter.Rows(derived))
	})}
	next.page = sync.OnceValue(func() *metric.Page { return metric.NewPage(next.shown()) })
	r.latest.Store(next)
}
