package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/prometheus/client_golang/prometheus"
)

// settleTime is how long the first step waits for all collections to have been
// listed: a snapshot before that would call claims missing that have not been
// read. The first lists of a large cluster take a while.
const settleTime = time.Minute

// stepSpacing bounds how many steps a burst of changes can cause, and stepRest
// the share of a core that they take: after a step of some length it rests for
// that many times as long.
const (
	stepSpacing = 50 * time.Millisecond
	stepRest    = 3
)

// Inputs are the ends of what the Runner asks. None of them blocks.
type Inputs struct {
	Take     func() []Change // what has changed since the last time, in order
	Synced   func() Synced   // which collections Take has told of as a whole
	Supply   func() *dra.Supply
	Verdicts func() []dra.Verdict
	Costs    func() []dra.DiagnosisCost // nil: nobody diagnoses
	Ask      func([]dra.Question)       // what the judge is to answer from now on
	Statuses func() []source.Status
	Settled  func() bool     // every collection was listed once, or has failed to be
	Wake     <-chan struct{} // something has changed

	Traced  func([]trace.Trace) // is given the traces that came to their end; nil: nobody wants them
	Sampled func(trace.ID) bool // whether a trace is exported; nil: none is
}

// Runner runs the cluster role's reducer, publishes its snapshots, and
// observes durations.
type Runner struct {
	config    Config
	inputs    Inputs
	now       clock.Clock
	log       *slog.Logger
	state     State
	asked     *dra.Question // the first of what the judge was asked last
	asks      int           // how many that were; -1: nothing was asked yet
	durations durations
	latest    atomic.Pointer[Published]
}

// Published is a snapshot and its page, rendered once when first asked for.
type Published struct {
	Snapshot
	*metric.Page
}

// NewRunner returns a Runner that has published nothing yet. Its histograms
// live in the registry that it is given.
func NewRunner(config Config, inputs Inputs, registry prometheus.Registerer, now clock.Clock, log *slog.Logger) (*Runner, error) {
	r := &Runner{config: config, inputs: inputs, now: now, log: log, state: NewState(config), asks: -1}
	r.durations = newDurations(r.state.families)
	for _, histogram := range r.durations {
		if err := registry.Register(histogram); err != nil {
			return nil, fmt.Errorf("register histograms of durations: %w", err)
		}
	}
	return r, nil
}

// Latest returns the newest snapshot, nil before the first. It only loads a
// pointer and is safe for concurrent use.
func (r *Runner) Latest() *Published { return r.latest.Load() }

// Run steps at each change, and at each interval in any case, until the
// context ends. It is called once.
func (r *Runner) Run(ctx context.Context) {
	if !r.settle(ctx) {
		return
	}
	ticker := time.NewTicker(r.config.Interval)
	defer ticker.Stop()
	for {
		took := r.step(ctx)
		ticker.Reset(r.config.Interval)
		if !wait(ctx, max(stepSpacing, stepRest*took)) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.inputs.Wake:
		case <-ticker.C:
		}
	}
}

func (r *Runner) settle(ctx context.Context) bool {
	const pause = 20 * time.Millisecond
	for waited := time.Duration(0); waited < settleTime && !r.inputs.Settled(); waited += pause {
		if !wait(ctx, pause) {
			return false
		}
	}
	return ctx.Err() == nil
}

// step takes what has changed and publishes what follows, and reports how long
// that took.
func (r *Runner) step(ctx context.Context) time.Duration {
	now := r.now()
	changes := r.inputs.Take()
	facts := Facts{
		Changes:  changes,
		Synced:   r.inputs.Synced(), // speaks of what has been taken
		Supply:   r.inputs.Supply(),
		Verdicts: r.inputs.Verdicts(),
		Sources:  r.inputs.Statuses(),
	}
	if r.inputs.Costs != nil {
		facts.Costs = r.inputs.Costs()
	}
	state, snapshot, events := Step(r.state, facts, now)
	r.state = state
	r.durations.apply(&snapshot, r.inputs.Sampled)
	if r.inputs.Traced != nil && len(snapshot.Traces) > 0 {
		r.inputs.Traced(snapshot.Traces)
	}
	r.latest.Store(&Published{Snapshot: snapshot, Page: metric.NewPage(snapshot.Rows)})
	r.ask(snapshot.Questions)
	for _, event := range events {
		r.log.LogAttrs(ctx, event.Level, event.Message, event.Attrs...)
	}
	return r.now().Since(now)
}

// ask tells the judge what he is asked now, where that is another list: he looks
// everything up anew each time. Lists are immutable, and one that has not changed
// is the same one.
func (r *Runner) ask(questions []dra.Question) {
	var first *dra.Question
	if len(questions) > 0 {
		first = &questions[0]
	}
	if first == r.asked && len(questions) == r.asks {
		return
	}
	r.asked, r.asks = first, len(questions)
	r.inputs.Ask(questions)
}

// wait reports whether the pause passed before the context ended.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
