package funnel

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// docket is what Run has been asked, and what of it is to be judged next. It
// belongs to Run's goroutine.
type docket struct {
	judge  *Judge
	pace   *pace
	ground *ground

	asking    uint64        // of the questions that are on it
	version   uint64        // of the inventory when the queue was made
	refreshed clock.Instant // when that was
	lasted    time.Duration // how long it took to make it

	rows    []*row
	matters map[string]*matter // by the key of the order
	queue   []*matter
	turn    uint64

	published clock.Instant
	unsaid    bool // something has changed since
}

// matter is a distinct order, for however many pods.
type matter struct {
	order  order
	judged *judgement // nil: not yet
	seen   uint64     // version of the inventory for which the judgement holds
	turn   uint64     // when it was judged last
}

// row is one question.
type row struct {
	question dra.Question
	order    order
	matter   *matter
	shown    *judgement // of which the verdicts are made
	verdicts []dra.Verdict
}

// asker tells questions apart.
type asker struct {
	pod dra.PodRef
	uid string
}

func askerOf(q dra.Question) asker { return asker{q.Pod, q.PodUID} }

func newDocket(j *Judge) *docket {
	return &docket{judge: j, pace: newPace(j.clock, j.budget), ground: newGround(j), matters: make(map[string]*matter)}
}

// refresh brings the docket up to date with what is asked and with the
// inventory. As long as there is something in the queue it does so only now
// and then, so that most of the budget goes into judging.
func (d *docket) refresh() {
	j := d.judge
	j.mu.Lock()
	asked, asking := j.asked, j.asking
	j.mu.Unlock()
	version := j.inventory.Version()
	if asking == d.asking && version == d.version {
		return
	}
	now := j.clock()
	if len(d.queue) > 0 && now.Since(d.refreshed) < max(publishEach, 10*d.lasted) {
		return
	}
	d.unsaid = d.unsaid || asking != d.asking
	d.asking, d.version = asking, version
	d.resolve(asked)
	d.enqueue()
	d.refreshed = j.clock()
	d.lasted = d.refreshed.Since(now)
}

// resolve looks up all questions anew. A question whose order has changed
// keeps the verdicts that it has until there are new ones.
func (d *docket) resolve(asked []dra.Question) {
	before := make(map[asker]*row, len(d.rows))
	for _, r := range d.rows {
		before[askerOf(r.question)] = r
	}
	matters := make(map[string]*matter, len(d.matters))
	rows := make([]*row, 0, len(asked))
	for _, q := range asked {
		r := &row{question: q, order: resolve(d.judge.inventory, q)}
		r.matter = matters[r.order.key]
		if r.matter == nil {
			r.matter = d.matters[r.order.key]
		}
		if r.matter == nil {
			r.matter = &matter{order: r.order}
		}
		matters[r.order.key] = r.matter
		if old := before[askerOf(q)]; old != nil {
			r.shown, r.verdicts = old.shown, stillAsked(old.verdicts, q)
		}
		d.unsaid = d.unsaid || r.matter.judged != nil && r.matter.judged != r.shown
		rows = append(rows, r)
	}
	d.rows, d.matters = rows, matters
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

// enqueue lists what has to be judged: first what never was, the oldest wait
// first; then what the inventory may have changed, the longest ago first, so
// that nothing is judged over and over while something else waits.
func (d *docket) enqueue() {
	d.queue = d.queue[:0]
	queued := make(map[*matter]bool, len(d.matters))
	var again []*matter
	for _, r := range d.rows {
		switch m := r.matter; {
		case queued[m]:
			continue
		case m.judged == nil:
			d.queue = append(d.queue, m)
		case d.concerned(m):
			again = append(again, m)
		default:
			m.seen = d.version
		}
		queued[r.matter] = true
	}
	slices.SortStableFunc(again, func(a, b *matter) int { return cmp.Compare(a.turn, b.turn) })
	d.queue = append(d.queue, again...)
}

// concerned reports whether what has changed in the inventory may change the
// judgement.
func (d *docket) concerned(m *matter) bool {
	if m.seen == d.version {
		return false
	}
	for _, p := range m.order.parts {
		if p.classless != "" {
			continue // that a class appears makes another order of it
		}
		for _, a := range p.asks {
			if d.judge.inventory.Concerns(a.Request, m.seen) {
				return true
			}
		}
	}
	return false
}

// next takes the first of the queue; nil if there is nothing to do.
func (d *docket) next() *matter {
	for len(d.queue) > 0 {
		m := d.queue[0]
		d.queue = d.queue[1:]
		if d.matters[m.order.key] == m {
			return m
		}
	}
	return nil
}

// hear judges one order. The error is the context's; of any other the log is
// told, and what it kept from being settled is unknown.
func (d *docket) hear(ctx context.Context, m *matter) error {
	version := d.judge.inventory.Version()
	judged, err := d.judge.consider(ctx, d.pace, d.ground, m.order, false)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		d.judge.log.Warn("cannot judge why claims wait", "error", err)
	}
	d.turn++
	m.judged, m.seen, m.turn = judged, version, d.turn
	d.unsaid = true
	return nil
}

// publishIfDue publishes if that was not done for a while.
func (d *docket) publishIfDue() {
	if d.judge.clock().Since(d.published) >= publishEach {
		d.publish()
	}
}

// publish makes the verdicts known, if any has changed.
func (d *docket) publish() {
	if !d.unsaid {
		return
	}
	var all []dra.Verdict
	for _, r := range d.rows {
		if judged := r.matter.judged; judged != nil && judged != r.shown {
			r.shown, r.verdicts = judged, judged.verdicts(r.question, r.order)
		}
		all = append(all, r.verdicts...)
	}
	j := d.judge
	j.mu.Lock()
	j.verdicts = all
	j.mu.Unlock()
	d.unsaid, d.published = false, j.clock()
	notify(j.changed)
}

// wait returns when there may be something to do.
func (d *docket) wait(ctx context.Context) error {
	if err := d.pace.rest(ctx); err != nil {
		return err
	}
	began := d.judge.clock()
	defer func() { d.pace.idle(d.judge.clock().Since(began)) }()
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.judge.wake:
	case <-timer.C:
	}
	return nil
}
