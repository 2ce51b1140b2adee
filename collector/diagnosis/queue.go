package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// Back-off of orders that need more than their limit: they are diagnosed again
// only after the inventory has changed, and no sooner than this. It doubles
// each time.
const (
	leastBackoff = time.Minute
	mostBackoff  = time.Hour
)

// queue is what Run has been asked, and what of it is to be diagnosed next. It
// belongs to Run's goroutine.
type queue struct {
	judge  *Diagnoser
	pace   *pace
	ground *ground

	asking    uint64        // of the questions that are in it
	version   uint64        // of the inventory when the queue was made
	refreshed clock.Instant // when that was
	lasted    time.Duration // how long it took to make it
	retry     clock.Instant // when a back-off ends next; zero: none does

	rows      []*row
	items     map[string]*item // by the key of the order
	shares    shares
	turn      uint64
	diagnoses int // that are suspended

	settling bool          // selectors of classes are to be evaluated
	settled  int           // evaluations for them since that is so
	resettle clock.Instant // not before; zero: at once

	published clock.Instant
	unsaid    bool // something has changed since
}

// item is a distinct order, for however many pods.
type item struct {
	order      order
	namespaces []string // of the pods that ask for it
	judged     *judgement
	seen       uint64 // version of the inventory for which the judgement holds
	turn       uint64 // when it was diagnosed last
	queued     bool

	begun     bool          // the diagnosis under way has had a turn
	diagnosis *diagnosis    // suspended; nil: it is to begin, or to begin again
	backoff   time.Duration // after the last diagnosis that needed too much; 0: it did not
	retry     clock.Instant // when the back-off ends
}

// row is one question.
type row struct {
	question dra.Question
	order    order
	item     *item
	shown    *judgement // of which the verdicts are made
	verdicts []dra.Verdict
}

// asker tells questions apart.
type asker struct {
	pod dra.PodRef
	uid string
}

func askerOf(q dra.Question) asker { return asker{q.Pod, q.PodUID} }

func newQueue(j *Diagnoser) *queue {
	return &queue{judge: j, pace: newPace(j.clock, j.budget), ground: newGround(j), items: make(map[string]*item), shares: newShares()}
}

// refresh brings the queue up to date with what is asked and with the
// inventory. As long as there is something in the queue it does so only now
// and then, so that most of the budget goes into diagnoses.
func (q *queue) refresh() {
	j := q.judge
	j.mu.Lock()
	asked, asking := j.asked, j.asking
	j.mu.Unlock()
	version, now := j.inventory.Version(), j.clock()
	due := q.retry != (clock.Instant{}) && now.Since(q.retry) >= 0
	if asking == q.asking && version == q.version && !due {
		return
	}
	if q.busy() && now.Since(q.refreshed) < max(publishEach, 10*q.lasted) {
		return
	}
	q.unsaid = q.unsaid || asking != q.asking
	q.settling = q.settling || version != q.version
	q.asking, q.version = asking, version
	q.resolve(asked)
	q.enqueue(now)
	q.refreshed = j.clock()
	q.lasted = q.refreshed.Since(now)
}

// resolve looks up all questions again. A question whose order has changed
// keeps the verdicts that it has until there are new ones.
func (q *queue) resolve(asked []dra.Question) {
	before := make(map[asker]*row, len(q.rows))
	for _, r := range q.rows {
		before[askerOf(r.question)] = r
	}
	items := make(map[string]*item, len(q.items))
	rows := make([]*row, 0, len(asked))
	for _, question := range asked {
		r := &row{question: question, order: resolve(q.judge.inventory, question)}
		r.item = items[r.order.key]
		if r.item == nil {
			if r.item = q.items[r.order.key]; r.item == nil {
				r.item = &item{order: r.order}
			}
			r.item.namespaces = nil
			items[r.order.key] = r.item
		}
		if !slices.Contains(r.item.namespaces, question.Pod.Namespace) {
			r.item.namespaces = append(r.item.namespaces, question.Pod.Namespace)
		}
		if old := before[askerOf(question)]; old != nil {
			r.shown, r.verdicts = old.shown, stillAsked(old.verdicts, question)
		}
		q.unsaid = q.unsaid || r.item.judged != nil && r.item.judged != r.shown
		rows = append(rows, r)
	}
	for key, old := range q.items {
		if items[key] == nil {
			q.giveUp(old)
			old.queued = false
		}
	}
	q.rows, q.items = rows, items
}

// stillAsked leaves out verdicts on references that the question has no more.
func stillAsked(verdicts []dra.Verdict, q dra.Question) []dra.Verdict {
	gone := func(v dra.Verdict) bool {
		return !slices.ContainsFunc(q.Asked, func(a dra.Asked) bool { return clean(a.PodClaim) == v.PodClaim })
	}
	if !slices.ContainsFunc(verdicts, gone) {
		return verdicts
	}
	return slices.DeleteFunc(slices.Clone(verdicts), gone)
}

// enqueue lists for each namespace what has to be diagnosed: first what never
// was, the oldest wait first; then what the inventory may have changed, the
// longest ago first.
func (q *queue) enqueue(now clock.Instant) {
	q.shares.clear()
	q.retry = clock.Instant{}
	for _, it := range q.items {
		it.queued = false
	}
	var again []*item
	for _, r := range q.rows {
		it := r.item
		switch {
		case it.queued:
			continue
		case it.judged == nil || it.begun:
			q.add(it)
		case it.seen == q.version:
			continue
		case it.backoff > 0 && now.Since(it.retry) < 0:
			if q.retry == (clock.Instant{}) || it.retry.Since(q.retry) < 0 {
				q.retry = it.retry
			}
			continue
		default:
			again = append(again, it)
		}
		it.queued = true
	}
	slices.SortStableFunc(again, func(a, b *item) int { return cmp.Compare(a.turn, b.turn) })
	for _, it := range again {
		q.add(it)
	}
	q.shares.forget()
}

// add puts an item into the lists of its namespaces. Whichever of them has its
// turn first pays for the item's turn: the one that has been charged least.
func (q *queue) add(it *item) {
	it.queued = true
	for _, namespace := range it.namespaces {
		q.shares.add(namespace, it)
	}
}

// concerned reports whether what has changed in the inventory may change the
// judgement.
func (q *queue) concerned(it *item) bool {
	if it.seen == q.judge.inventory.Version() {
		return false
	}
	for _, p := range it.order.parts {
		if p.classless != "" {
			continue // that a class appears makes another order of it
		}
		for _, a := range p.asks {
			if q.judge.inventory.ChangedFor(a.Request, it.seen) {
				return true
			}
		}
	}
	return false
}

// work gives one turn to the namespace that has been charged least, or to the
// selectors of classes, and charges it. It is false if there is nothing to do.
// The error is the context's.
func (q *queue) work(ctx context.Context) (bool, error) {
	share, it := q.shares.next(q.settleDue())
	if share == nil {
		return false, nil
	}
	began := q.pace.worked()
	var err error
	if it == nil {
		err = q.settle(ctx)
	} else {
		err = q.take(ctx, it)
	}
	q.shares.charge(share, q.pace.worked()-began)
	return true, err
}

// take gives one turn to an item.
func (q *queue) take(ctx context.Context, it *item) error {
	it.queued = false
	if !it.begun && it.judged != nil {
		version := q.judge.inventory.Version()
		if !q.concerned(it) {
			it.seen = version
			return ctx.Err()
		}
	}
	if it.diagnosis == nil {
		it.diagnosis = q.begin(ctx, it)
		q.diagnoses++
	}
	d := it.diagnosis
	finished := d.resume()
	it.begun = true
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case finished:
		q.finish(it, d)
		return nil
	}
	if !q.keeps(it) {
		q.giveUp(it)
	}
	q.add(it)
	return nil
}

// keeps reports whether a diagnosis may stay suspended until its next turn:
// one for each namespace, and a few in all, because of what they hold. What is
// given up begins again; the results of selectors stay.
func (q *queue) keeps(it *item) bool {
	if q.diagnoses > mostSuspended {
		return false
	}
	for _, other := range q.items {
		if other != it && other.diagnosis != nil && slices.ContainsFunc(other.namespaces, func(namespace string) bool {
			return slices.Contains(it.namespaces, namespace)
		}) {
			return false
		}
	}
	return true
}

// mostSuspended is how many diagnoses are kept that have had a turn and have
// not come to their end. One can hold a megabyte.
const mostSuspended = 8

func (q *queue) giveUp(it *item) {
	if it.diagnosis != nil {
		it.diagnosis.stop()
		it.diagnosis = nil
		q.diagnoses--
	}
}

// stop ends all diagnoses.
func (q *queue) stop() {
	for _, it := range q.items {
		q.giveUp(it)
	}
}

// finish takes in what a diagnosis has found.
func (q *queue) finish(it *item, d *diagnosis) {
	q.giveUp(it)
	it.begun = false
	q.turn++
	it.judged, it.seen, it.turn = d.result, d.version, q.turn
	q.unsaid = true
	if !d.result.undetermined() {
		it.backoff = 0
		return
	}
	it.backoff = min(max(2*it.backoff, leastBackoff), mostBackoff)
	it.retry = q.judge.clock().Add(it.backoff)
	if q.retry == (clock.Instant{}) || it.retry.Since(q.retry) < 0 {
		q.retry = it.retry
	}
}

// busy reports whether there is something to do.
func (q *queue) busy() bool { return q.settleDue() || q.shares.waiting() }

func (q *queue) settleDue() bool {
	return q.settling && (q.resettle == (clock.Instant{}) || q.judge.clock().Since(q.resettle) >= 0)
}

// settle evaluates selectors of classes for one turn. Where one takes too long,
// its class is left uncounted, and asked again after a while.
func (q *queue) settle(ctx context.Context) error {
	m := newMeter(q.pace, 0)
	m.suspend = func() error { return errSuspended }
	m.resume()
	err := q.judge.inventory.Settle(ctx, m.evaluated)
	q.settled += m.evaluations
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errSuspended):
		return nil
	case errors.Is(err, inventory.ErrSlowEvaluation):
		if q.resettle == (clock.Instant{}) {
			q.judge.log.Warn("cannot count the devices of a class", "error", err)
		}
		q.resettle = q.judge.clock().Add(leastBackoff)
	default:
		q.settling, q.resettle = false, clock.Instant{}
	}
	if q.settled > 0 {
		notify(q.judge.changed)
	}
	q.settled = 0
	return nil
}

// publishIfDue publishes if that was not done for a while.
func (q *queue) publishIfDue() {
	if q.judge.clock().Since(q.published) >= publishEach {
		q.publish()
	}
}

// publish makes the verdicts and what they cost known, if any has changed.
func (q *queue) publish() {
	costs := q.shares.costs()
	j := q.judge
	if !q.unsaid {
		j.mu.Lock()
		j.costs = costs
		j.mu.Unlock()
		return
	}
	var all []dra.Verdict
	for _, r := range q.rows {
		if judged := r.item.judged; judged != nil && judged != r.shown {
			r.shown, r.verdicts = judged, judged.verdicts(r.question, r.order)
		}
		all = append(all, r.verdicts...)
	}
	j.mu.Lock()
	j.verdicts, j.costs = all, costs
	j.mu.Unlock()
	q.unsaid, q.published = false, j.clock()
	notify(j.changed)
}

// wait returns when there may be something to do.
func (q *queue) wait(ctx context.Context) error {
	if err := q.pace.rest(ctx); err != nil {
		return err
	}
	began := q.judge.clock()
	defer func() { q.pace.idle(q.judge.clock().Since(began)) }()
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-q.judge.wake:
	case <-timer.C:
	}
	return nil
}
