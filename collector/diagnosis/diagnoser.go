package diagnosis

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

const (
	lookAgain   = time.Second            // whether the inventory has changed, if nobody asks
	publishEach = 250 * time.Millisecond // while there is work: readers of verdicts take all of them each time
)

// Options are what a judge needs. All but Budget must be given.
type Options struct {
	Inventory *inventory.Inventory
	Clock     clock.Clock
	Log       *slog.Logger
	Budget    float64 // share of a core that Run may use, above 0 and up to 1
}

// Diagnoser says why references wait. Ask, Verdicts, Changed and Explain are safe
// for concurrent use; Run runs once.
type Diagnoser struct {
	inventory *inventory.Inventory
	clock     clock.Clock
	log       *slog.Logger
	budget    float64
	patience  time.Duration // with the allocator, for each node
	compiled  *cel.Cache    // of the allocator's selectors

	changed chan struct{}
	wake    chan struct{}

	mu       sync.Mutex
	asked    []dra.Question
	asking   uint64 // counts the calls of Ask
	verdicts []dra.Verdict
	costs    []dra.DiagnosisCost
}

// New returns a judge that has been asked nothing.
func New(options Options) *Diagnoser {
	return &Diagnoser{
		inventory: options.Inventory,
		clock:     options.Clock,
		log:       options.Log,
		budget:    options.Budget,
		patience:  perNode,
		compiled:  newCache(),
		changed:   make(chan struct{}, 1),
		wake:      make(chan struct{}, 1),
	}
}

// newCache returns a cache for compiled selectors. Its features are those of
// the allocator; the compiler behind it is shared by all caches that have the
// same.
func newCache() *cel.Cache {
	return cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
}

// Ask replaces what is asked, the oldest wait first. The questions must not be
// changed afterwards. It never blocks.
func (j *Diagnoser) Ask(questions []dra.Question) {
	j.mu.Lock()
	j.asked = questions
	j.asking++
	j.mu.Unlock()
	notify(j.wake)
}

// Verdicts returns what has been found for what is asked, in the order of the
// questions; a question that has not been looked at yet has none. The slice is
// shared and must not be changed.
func (j *Diagnoser) Verdicts() []dra.Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.verdicts
}

// Costs returns how much work diagnoses have taken since the start, by
// namespace: of the first hundred that were charged. All else, and the selectors
// of device classes, is under the empty name. The slice is shared and must not
// be changed.
func (j *Diagnoser) Costs() []dra.DiagnosisCost {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.costs
}

// Changed receives a value after Verdicts has changed, or the selectors of
// device classes have been evaluated; one value may stand for several changes.
func (j *Diagnoser) Changed() <-chan struct{} { return j.changed }

// Run judges what is asked until the context is done, whose error it returns.
func (j *Diagnoser) Run(ctx context.Context) error {
	q := newQueue(j)
	defer q.stop()
	for {
		q.refresh()
		worked, err := q.work(ctx)
		switch {
		case err != nil:
			return err
		case !worked:
			q.publish()
			err = q.wait(ctx)
		default:
			q.publishIfDue()
			err = q.pace.rest(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// Explain judges one question at once, with details for a person. Where the
// context ends it answers with what it has.
func (j *Diagnoser) Explain(ctx context.Context, q dra.Question) []dra.Verdict {
	o := resolve(j.inventory, q)
	judged := j.consider(ctx, nil, newGround(j), o, true)
	if ctx.Err() != nil {
		j.log.Warn("explanation is incomplete", "pod", q.Pod.String(), "error", context.Cause(ctx))
	}
	return judged.verdicts(q, o)
}

// notify tells whoever waits, and nobody twice.
func notify(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
