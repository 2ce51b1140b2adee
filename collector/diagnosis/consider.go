package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// judgement is what has been found about an order. It is immutable.
type judgement struct {
	version uint64 // of the inventory that was looked at
	answers []answer
}

// answer is about one part of the order.
type answer struct {
	finding
	fits   string   // a node on which it and all others that are open can be allocated
	tried  []string // nodes on which the allocator did not succeed
	funnel []dra.RequestFunnel
	detail *dra.Detail
}

// verdicts words a judgement for one of the pods that share it.
func (j *judgement) verdicts(q dra.Question, o order) []dra.Verdict {
	if j == nil {
		return nil
	}
	names := o.names(q)
	verdicts := make([]dra.Verdict, 0, len(j.answers))
	for i, a := range j.answers {
		verdicts = append(verdicts, dra.Verdict{
			Pod: q.Pod, PodUID: q.PodUID, PodClaim: clean(q.Asked[i].PodClaim),
			Version: j.version,
			Reason:  a.reason, Message: names.Replace(clean(a.message)),
			Funnel: a.funnel, Detail: a.detail,
		})
	}
	return verdicts
}

// names puts the pod's own names for its claims in the place of those that the
// judgement uses for whichever pod.
func (o order) names(q dra.Question) *strings.Replacer {
	var pairs []string
	for i := range o.parts {
		pairs = append(pairs, fmt.Sprintf(placeholders, i), clean(q.Asked[i].PodClaim))
	}
	return strings.NewReplacer(pairs...)
}

// inquiry is one consideration of an order.
type inquiry struct {
	judge   *Diagnoser
	meter   *meter
	order   order
	detail  bool
	tallies [][]tally // of each part's asks
	answers []answer
	ground  *ground
}

// undetermined reports whether the judgement leaves something open because it
// would have needed too much work.
func (j *judgement) undetermined() bool {
	return slices.ContainsFunc(j.answers, func(a answer) bool { return a.reason == dra.ReasonUndetermined })
}

// consider judges an order. Without a meter it neither rests nor has a limit.
// Where it is ended by the context, the judgement is of what was found before.
func (j *Diagnoser) consider(ctx context.Context, meter *meter, ground *ground, o order, detail bool) *judgement {
	q := &inquiry{
		judge: j, meter: meter, order: o, detail: detail,
		tallies: make([][]tally, len(o.parts)),
		answers: make([]answer, len(o.parts)),
		ground:  ground,
	}
	judged := &judgement{version: j.inventory.Version(), answers: q.answers}
	open, err := q.count(ctx)
	if err == nil && len(open) > 0 {
		err = q.allocate(ctx, open)
	}
	if err != nil {
		q.leaveOpen(err)
	}
	if detail {
		q.describe()
	}
	return judged
}

// leaveOpen says of what has not been settled that it is undetermined, or, where
// the context has ended, that it is not diagnosed.
func (q *inquiry) leaveOpen(err error) {
	open := finding{dra.ReasonPendingDiagnosis, dra.Stages, "the diagnosis was cut short"}
	var over *overLimit
	switch {
	case errors.As(err, &over):
		open.reason, open.message = dra.ReasonUndetermined, over.Error()
	case errors.Is(err, inventory.ErrSlowEvaluation):
		open.reason, open.message = dra.ReasonUndetermined, saySlowEvaluation(err)
	}
	for i, p := range q.order.parts {
		if a := &q.answers[i]; p.wanted() && !a.fails() && a.fits == "" {
			a.finding = open
		}
	}
}

// count counts every part by itself, and returns those parts against which
// counts say nothing.
func (q *inquiry) count(ctx context.Context) (open []int, err error) {
	for i, p := range q.order.parts {
		answer := &q.answers[i]
		if p.classless != "" {
			answer.finding = finding{reason: dra.ReasonNoDeviceClass, message: fmt.Sprintf("no device class provides the extended resource %s", p.classless)}
		}
		if p.refused != "" {
			answer.finding = finding{reason: dra.ReasonUndetermined, message: "cannot be diagnosed: " + p.refused}
		}
		if !p.wanted() {
			continue
		}
		for _, a := range p.asks {
			t, err := q.tally(ctx, a)
			if err != nil {
				return open, err
			}
			q.tallies[i] = append(q.tallies[i], t)
			answer.funnel = append(answer.funnel, t.funnel(a))
		}
		answer.finding = judgeClaim(p.asks, q.tallies[i])
		if least := leastDevices(p.asks); !answer.fails() && least > resourcev1.AllocationResultsMaxSize {
			answer.finding = finding{dra.ReasonConstraints, dra.Stages, sayTooMany(least)}
		}
		if !answer.fails() {
			open = append(open, i)
		}
	}
	return open, nil
}

// tally counts for one ask. Devices that are published while its selectors are
// evaluated are looked at again; where that goes on and on, the next look at
// the order will have them.
func (q *inquiry) tally(ctx context.Context, a ask) (tally, error) {
	for tries := 0; ; tries++ {
		counted, err := q.counted(ctx, a.Request)
		if err != nil {
			return tally{}, fmt.Errorf("request %s: %w", a.name, err)
		}
		if counted.Complete || tries == 3 {
			return tally{Count: counted, noClass: counted.NoClass}, nil
		}
	}
}

// counted has the selectors of a request evaluated, and counts.
func (q *inquiry) counted(ctx context.Context, request inventory.Request) (inventory.Count, error) {
	if err := q.judge.inventory.EvaluateRequest(ctx, q.meter.evaluated, request); err != nil {
		return inventory.Count{}, err
	}
	counted := q.judge.inventory.Count(request)
	return counted, q.meter.pause(ctx)
}
