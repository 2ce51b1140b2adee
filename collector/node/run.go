package node

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/schedule"
)

// settleTime is how long the first step waits for all sources to have been
// read once, so that a restart does not show devices without their names.
const settleTime = 5 * time.Second

// Inputs are the ends of the sources that the Runner asks. None of them
// blocks.
type Inputs struct {
	Gather  func() Facts    // what is known now
	Settled func() bool     // every source was read once, or has failed to be
	Wake    <-chan struct{} // something has changed

	ObserveStep func(took time.Duration) // is called after each step; may be nil

	// Derive, which may be nil, makes rows of other families out of each
	// snapshot, in their order. They are on the page and nowhere else.
	Derive func(Snapshot) []metric.Row
}

// Runner runs the node role's reducer and publishes its snapshots.
type Runner struct {
	config Config
	inputs Inputs
	now    clock.Clock
	log    *slog.Logger
	latest atomic.Pointer[Published]
}

// Published is a snapshot, all rows of its page, those that are derived
// included, and the page itself, rendered once when first asked for.
type Published struct {
	Snapshot
	Shown []metric.Row
	*metric.Page
}

// NewRunner returns a Runner that has published nothing yet.
func NewRunner(config Config, inputs Inputs, now clock.Clock, log *slog.Logger) *Runner {
	return &Runner{config: config, inputs: inputs, now: now, log: log}
}

// Latest returns the newest snapshot, nil before the first. It only loads a
// pointer and is safe for concurrent use.
func (r *Runner) Latest() *Published { return r.latest.Load() }

// Run makes steps until the context ends: at each change, and without one after
// one and a half intervals. Readings come at each interval, give or take how long
// they take, and a step that does not wait for them has nothing to do.
func (r *Runner) Run(ctx context.Context) {
	state := NewState(r.config)
	schedule.Run(ctx, schedule.Options{
		Settled: r.inputs.Settled, SettleTime: settleTime,
		Wake: r.inputs.Wake, Interval: r.config.Interval * 3 / 2, Observe: r.inputs.ObserveStep,
	}, func(ctx context.Context) time.Duration {
		began := r.now()
		state = r.step(ctx, state)
		return r.now().Since(began)
	})
}

func (r *Runner) step(ctx context.Context, state State) State {
	state, snapshot, events := Step(state, r.inputs.Gather(), r.now())
	shown := r.shown(snapshot)
	r.latest.Store(&Published{Snapshot: snapshot, Shown: shown, Page: metric.NewPage(shown)})
	for _, event := range events {
		r.log.LogAttrs(ctx, event.Level, event.Message, event.Attrs...)
	}
	return state
}

// shown is all that the snapshot's page shows.
func (r *Runner) shown(snapshot Snapshot) []metric.Row {
	if r.inputs.Derive == nil {
		return snapshot.Rows
	}
	return slices.Concat(snapshot.Rows, r.inputs.Derive(snapshot))
}
