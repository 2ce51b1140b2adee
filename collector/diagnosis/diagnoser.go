// Package diagnosis finds out why the claims of a pod cannot be allocated, as
// far as devices go. For each request it counts the devices that each stage
// leaves. Counts do not show constraints, partitions and requests that compete:
// for these it runs the allocator that the scheduler uses, on the most promising
// nodes. It does not consider node affinity, taints of nodes, processor and
// memory. docs/pending.md has the reasons and the limits.
//
// The stages, in the direction of the data:
//
//	exchange     questions from other goroutines, and diagnoses to them
//	queue       what is diagnosed next; its items, their shares and their tasks
//	dutyCycle, workMeter the share of a core, the turns, and the limit for each pod
//	podClaims   what a pod requests
//	query       counts, candidates, attempts: the diagnosis of one pod
//	finding     reasons and sentences
package diagnosis

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// Options are what a Diagnoser needs. All but Budget and Background must be set.
type Options struct {
	Inventory *inventory.Inventory
	Clock     clock.Clock
	Log       *slog.Logger
	Budget    float64 // share of a core that Run may use, above 0 and up to 1

	// Background is other work for Run, within the same share of a core: while no
	// diagnosis is queued, and now and then between diagnoses. It reports whether it had
	// something to do, calls pause between two pieces of work, and returns the error of
	// pause. nil: there is none.
	Background func(ctx context.Context, pause inventory.Pause) (worked bool, err error)
}

// Diagnoser finds out why claims of pods are pending. SetQuestions, Diagnoses, Work,
// Changed and Explain are safe for concurrent use; Run runs once.
type Diagnoser struct {
	options     Options
	searchLimit time.Duration // of the allocator, for each node
	compiled    *cel.Cache    // of the allocator's selectors
	exchange    *exchange
}

// New returns a Diagnoser without questions.
func New(options Options) *Diagnoser {
	return &Diagnoser{options: options, searchLimit: allocator.SearchLimit, compiled: allocator.NewCache(), exchange: newExchange()}
}

// SetQuestions replaces the questions; the pods that have been pending longest come
// first. The questions must not be changed afterwards. It never blocks.
func (d *Diagnoser) SetQuestions(questions []dra.Question) { d.exchange.ask(questions) }

// Diagnoses returns the answers to the questions, in their order; a question that
// has not been diagnosed yet has none. The slice is shared and must not be
// changed.
func (d *Diagnoser) Diagnoses() []dra.Diagnosis {
	diagnoses, _ := d.exchange.published()
	return diagnoses
}

// Work returns how much work diagnoses have taken since the start, by namespace,
// and how many are queued. Only the first hundred namespaces have entries of their
// own. The work for all others, and for the selectors of device classes, is under
// the empty name. The slice is shared and must not be changed.
func (d *Diagnoser) Work() dra.DiagnosisWork {
	_, work := d.exchange.published()
	return work
}

// Changed receives a value after Diagnoses has changed, or the selectors of
// device classes have been evaluated; one value may represent several changes.
func (d *Diagnoser) Changed() <-chan struct{} { return d.exchange.changed }

// Run answers questions until the context is done, whose error it returns.
func (d *Diagnoser) Run(ctx context.Context) error {
	q := d.newQueue()
	defer q.stop()
	other := &background{work: d.options.Background, pace: q.pace, changed: d.exchange.changed}
	defer other.stop()
	for turns := 0; ; {
		q.refresh()
		worked, err := q.work(ctx)
		switch {
		case err != nil:
			return err
		case !worked:
			q.publish()
			if worked = other.turn(ctx); !worked {
				err = q.wait(ctx)
			}
		default:
			q.publishIfDue()
			if turns++; turns%turnsPerBackground == 0 {
				other.turn(ctx)
			}
			err = q.pace.rest(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (d *Diagnoser) newQueue() *queue { return newQueue(d.options, d.newNodeCache(), d.exchange) }

func (d *Diagnoser) newNodeCache() *allocator.NodeCache {
	return allocator.NewNodeCache(d.options.Inventory, d.compiled, d.searchLimit)
}

// Explain answers one question at once, with details for a person. If the
// context ends, the answer has what was found before.
func (d *Diagnoser) Explain(ctx context.Context, q dra.Question) []dra.Diagnosis {
	pod := resolve(d.options.Inventory, q)
	found := diagnose(ctx, nil, d.options.Inventory, d.newNodeCache(), pod, true)
	if ctx.Err() != nil {
		d.options.Log.Warn("explanation is incomplete", "pod", q.Pod.String(), "error", context.Cause(ctx))
	}
	return found.diagnoses(q, pod)
}
