package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/schedule"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/prometheus/client_golang/prometheus"
)

// settleTime is how long the first step waits for all collections to have been
// listed: a snapshot before that would call claims missing that have not been
// read. The first lists of a large cluster take a while.
const settleTime = time.Minute

// stepRest bounds the share of a core that steps take: after a step, the Runner
// rests for this multiple of its duration.
const stepRest = 3

// Inputs are what the Runner calls. None of these functions blocks.
type Inputs struct {
	Drain        func() []Change // changes since the last call, in order
	Synced       func() Synced   // collections of which Drain has returned everything
	Supply       func() *dra.Supply
	Headroom     func() *dra.Headroom // nil: it is not computed
	Diagnoses    func() []dra.Diagnosis
	Work         func() dra.DiagnosisWork // of diagnoses; nil: there are none
	SetQuestions func([]dra.Question)     // replaces what is to be diagnosed
	Statuses     func() []source.Status
	Settled      func() bool     // every collection was listed once, or has failed to be
	Wake         <-chan struct{} // something has changed

	ObserveStep func(took time.Duration) // is called after each step; may be nil

	Traced  func([]trace.Trace) // receives the traces that have ended; nil: they are dropped
	Sampled func(trace.ID) bool // whether a trace is exported; nil: none is

	Filter *metric.Filter // what is on the page; nil: everything
}

// Runner runs the cluster role's reducer, publishes its snapshots, and
// observes durations.
type Runner struct {
	config    Config
	inputs    Inputs
	now       clock.Clock
	log       *slog.Logger
	mu        sync.Mutex // guards state
	state     State
	sent      *dra.Question // the first of the last questions
	sentCount int           // none were sent yet
	durations durations
	latest    atomic.Pointer[Published]
}

// Published is a snapshot, and what of it is exported.
type Published struct {
	Snapshot
	shown func() []metric.Row
	page  func() *metric.Page
}

// Shown returns the rows of the snapshot that are exported. They are made when they are
// first asked for.
func (p *Published) Shown() []metric.Row { return p.shown() }

// Page returns the page of these rows, likewise.
func (p *Published) Page() *metric.Page { return p.page() }

// NewRunner returns a Runner that has published nothing yet. Its histograms are
// registered in registry.
func NewRunner(config Config, inputs Inputs, registry prometheus.Registerer, now clock.Clock, log *slog.Logger) (*Runner, error) {
	r := &Runner{config: config, inputs: inputs, now: now, log: log, state: NewState(config), sentCount: -1}
	r.durations = newDurations(r.state.families.Families())
	for _, histogram := range r.durations.all() {
		if err := registry.Register(histogram); err != nil {
			return nil, fmt.Errorf("register histograms of durations: %w", err)
		}
	}
	return r, nil
}

// Latest returns the newest snapshot, nil before the first. It only loads a
// pointer and is safe for concurrent use.
func (r *Runner) Latest() *Published { return r.latest.Load() }

// Objects returns the pods, claims, groups and events of a namespace as of the newest
// step, and further claims with the pods that use them. The objects are shared and must
// not be changed. It waits for a step that is in progress, and looks at every object
// once, so it is for people, not for scrapes. It is safe for concurrent use.
func (r *Runner) Objects(namespace string, claims []dra.ClaimRef) []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.index.objects(namespace, claims)
}

// Run makes steps until the context ends. It is called once.
func (r *Runner) Run(ctx context.Context) {
	schedule.Run(ctx, schedule.Options{
		Settled: r.inputs.Settled, SettleTime: settleTime,
		Wake: r.inputs.Wake, Interval: r.config.Interval, Rest: stepRest, Observe: r.inputs.ObserveStep,
	}, r.step)
}

// step applies what has changed, publishes the snapshot, and returns how long
// that took.
func (r *Runner) step(ctx context.Context) time.Duration {
	now := r.now()
	changes := r.inputs.Drain()
	facts := Facts{
		Changes:   changes,
		Synced:    r.inputs.Synced(), // after Drain: it describes what has been taken
		Supply:    r.inputs.Supply(),
		Diagnoses: r.inputs.Diagnoses(),
		Sources:   r.inputs.Statuses(),
	}
	if r.inputs.Headroom != nil {
		facts.Headroom = r.inputs.Headroom()
	}
	if r.inputs.Work != nil {
		work := r.inputs.Work()
		facts.Work = &work
	}
	r.mu.Lock()
	state, snapshot, events := Step(r.state, facts, now)
	r.state = state
	r.mu.Unlock()
	r.durations.apply(&snapshot, r.inputs.Sampled)
	if r.inputs.Traced != nil && len(snapshot.Traces) > 0 {
		r.inputs.Traced(snapshot.Traces)
	}
	r.publish(snapshot)
	r.sendQuestions(snapshot.Questions)
	for _, event := range events {
		r.log.LogAttrs(ctx, event.Level, event.Message, event.Attrs...)
	}
	return r.now().Since(now)
}

// publish replaces the newest snapshot. Its page stays the same if its rows do.
func (r *Runner) publish(snapshot Snapshot) {
	next, series := &Published{Snapshot: snapshot}, snapshot.Series
	if previous := r.latest.Load(); previous != nil && previous.Series == series {
		next.shown, next.page = previous.shown, previous.page
	} else {
		next.shown = sync.OnceValue(func() []metric.Row { return r.inputs.Filter.Rows(series.Rows()) })
		next.page = sync.OnceValue(func() *metric.Page { return metric.NewPage(next.shown()) })
	}
	r.latest.Store(next)
}

// sendQuestions passes the questions to the diagnosis if the list is another
// one, because each list is diagnosed again. Lists are immutable, so a list
// that has not changed has the same first element.
func (r *Runner) sendQuestions(questions []dra.Question) {
	var first *dra.Question
	if len(questions) > 0 {
		first = &questions[0]
	}
	if first == r.sent && len(questions) == r.sentCount {
		return
	}
	r.sent, r.sentCount = first, len(questions)
	r.inputs.SetQuestions(questions)
}
