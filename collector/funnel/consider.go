package funnel

import (
	"context"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
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

// refusedReason is that of a claim whose specification is not kept.
const refusedReason = dra.ReasonUnknown

// inquiry is one consideration of an order.
type inquiry struct {
	judge   *Judge
	pace    *pace
	order   order
	detail  bool
	tallies [][]tally // of each part's asks
	answers []answer
	ground  *ground
}

// consider judges an order. Without a pace it does not rest. The error is the
// context's; the judgement is then of what was found before.
func (j *Judge) consider(ctx context.Context, pace *pace, ground *ground, o order, detail bool) (*judgement, error) {
	q := &inquiry{
		judge: j, pace: pace, order: o, detail: detail,
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
		q.leaveOpen()
	}
	if detail {
		q.describe()
	}
	return judged, err
}

// leaveOpen says of what has not been settled that it is not known.
func (q *inquiry) leaveOpen() {
	for i, p := range q.order.parts {
		if a := &q.answers[i]; p.wanted() && !a.fails() && a.fits == "" {
			a.finding = finding{dra.ReasonUnknown, dra.Stages, "cannot be told: judging was cut short"}
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
			answer.finding = finding{reason: refusedReason, message: "cannot be diagnosed: " + p.refused}
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
	_, known := q.judge.inventory.ClassNamed(a.Class)
	for tries := 0; ; tries++ {
		if err := q.judge.inventory.Select(ctx, a.Request); err != nil {
			return tally{}, fmt.Errorf("evaluate the selectors of request %s: %w", a.name, err)
		}
		if err := q.pace.rest(ctx); err != nil {
			return tally{}, err
		}
		counted := q.judge.inventory.Count(a.Request)
		if counted.Complete || tries == 3 {
			return tally{Count: counted, noClass: !known}, nil
		}
	}
}
