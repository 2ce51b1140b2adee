package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

const (
	pollInterval    = time.Second            // of the inventory's version, without questions
	publishInterval = 250 * time.Millisecond // while there is work: readers of diagnoses read all of them each time

	// Back-off of items that need more work than the limit: they are diagnosed
	// again only after the inventory has changed, and no sooner than this. It
	// doubles each time.
	leastBackoff = time.Minute
	mostBackoff  = time.Hour

	// mostSuspended is how many suspended tasks are kept. A task can hold a
	// megabyte.
	mostSuspended = 8
)

// queue is the questions, and the order of their diagnoses. It belongs to Run's
// goroutine.
type queue struct {
	options   Options
	exchange  *exchange
	pace      *dutyCycle
	nodeCache *allocator.NodeCache

	asks      uint64        // of the exchange, when it was last opened
	version   uint64        // of the inventory at the last refresh
	refreshed clock.Instant // when that was
	took      time.Duration // how long it took
	retry     clock.Instant // when a back-off ends next; zero: none does

	rows      []*queuedQuestion
	items     map[string]*diagnosisItem // by the key of what the pods request
	shares    shares
	turn      uint64
	suspended int // tasks

	classesChanged bool          // selectors of classes have to be evaluated
	classesRetry   clock.Instant // not before; zero: at once
	evaluations    int           // of selectors of classes, since they were last all done

	published   clock.Instant
	unpublished bool // something has changed since
}

// queuedQuestion is one question.
type queuedQuestion struct {
	question  dra.Question
	pod       podClaims
	item      *diagnosisItem
	published *podDiagnosis // of which the diagnoses are made
	diagnoses []dra.Diagnosis
}

// podKey identifies the pod of a question.
type podKey struct {
	ref dra.PodRef
	uid string
}

func newPodKey(q dra.Question) podKey { return podKey{q.Pod, q.PodUID} }

func newQueue(options Options, nodeCache *allocator.NodeCache, exchange *exchange) *queue {
	return &queue{
		options: options, exchange: exchange, pace: newDutyCycle(options.Clock, options.Budget), nodeCache: nodeCache,
		items: make(map[string]*diagnosisItem), shares: newShares(),
	}
}

// refresh brings the queue up to date with the questions and the inventory.
// While there is something to do it does so only now and then, so that most of
// the budget is used for diagnoses.
func (q *queue) refresh() {
	questions, asks := q.exchange.open()
	version, now := q.options.Inventory.Version(), q.options.Clock()
	due := q.retry != (clock.Instant{}) && now.Since(q.retry) >= 0
	if asks == q.asks && version == q.version && !due {
		return
	}
	if q.busy() && now.Since(q.refreshed) < max(publishInterval, 10*q.took) {
		return
	}
	q.unpublished = q.unpublished || asks != q.asks
	q.classesChanged = q.classesChanged || version != q.version
	q.asks, q.version = asks, version
	q.resolve(questions)
	q.enqueue(now)
	q.refreshed = q.options.Clock()
	q.took = q.refreshed.Since(now)
}

// resolve looks up all questions again. If what a pod requests has changed, it
// keeps its diagnoses until there are new ones.
func (q *queue) resolve(questions []dra.Question) {
	previous := make(map[podKey]*queuedQuestion, len(q.rows))
	for _, r := range q.rows {
		previous[newPodKey(r.question)] = r
	}
	items := make(map[string]*diagnosisItem, len(q.items))
	rows := make([]*queuedQuestion, 0, len(questions))
	for _, question := range questions {
		r := &queuedQuestion{question: question, pod: resolve(q.options.Inventory, question)}
		r.item = items[r.pod.key]
		if r.item == nil {
			if r.item = q.items[r.pod.key]; r.item == nil {
				r.item = &diagnosisItem{pod: r.pod}
			}
			r.item.namespaces = nil
			items[r.pod.key] = r.item
		}
		if !slices.Contains(r.item.namespaces, question.Pod.Namespace) {
			r.item.namespaces = append(r.item.namespaces, question.Pod.Namespace)
		}
		if old := previous[newPodKey(question)]; old != nil {
			r.published, r.diagnoses = old.published, stillAsked(old.diagnoses, question)
		}
		q.unpublished = q.unpublished || r.item.diagnosis != nil && r.item.diagnosis != r.published
		rows = append(rows, r)
	}
	for key, old := range q.items {
		if items[key] == nil {
			q.drop(old)
			old.queued = false
		}
	}
	q.rows, q.items = rows, items
}

// stillAsked leaves out diagnoses on claims that the question does not have any
// more.
func stillAsked(diagnoses []dra.Diagnosis, q dra.Question) []dra.Diagnosis {
	gone := func(v dra.Diagnosis) bool {
		return !slices.ContainsFunc(q.Refs, func(a dra.PendingRef) bool { return clean(a.PodClaim) == v.PodClaim })
	}
	if !slices.ContainsFunc(diagnoses, gone) {
		return diagnoses
	}
	return slices.DeleteFunc(slices.Clone(diagnoses), gone)
}

// enqueue lists for each namespace what has to be diagnosed: first what never
// was, in the order of the questions; then what changes of the inventory may
// affect, the longest ago first.
func (q *queue) enqueue(now clock.Instant) {
	q.shares.clear()
	q.retry = clock.Instant{}
	for _, entry := range q.items {
		entry.queued = false
	}
	var again []*diagnosisItem
	for _, r := range q.rows {
		switch entry := r.item; {
		case entry.queued:
		case entry.diagnosis == nil || entry.begun:
			q.add(entry)
		case entry.version == q.version:
		case entry.backoff > 0 && now.Since(entry.retry) < 0:
			q.retryAt(entry.retry)
		default:
			entry.queued = true
			again = append(again, entry)
		}
	}
	slices.SortStableFunc(again, func(a, b *diagnosisItem) int { return cmp.Compare(a.turn, b.turn) })
	for _, entry := range again {
		q.add(entry)
	}
	q.shares.removeIdle()
}

// retryAt has the queue refreshed when a back-off ends.
func (q *queue) retryAt(at clock.Instant) {
	if q.retry == (clock.Instant{}) || at.Since(q.retry) < 0 {
		q.retry = at
	}
}

// add adds an item to the lists of its namespaces. Whichever has its turn first
// is charged for the item's turn: the one that has been charged least.
func (q *queue) add(entry *diagnosisItem) {
	entry.queued = true
	for _, namespace := range entry.namespaces {
		q.shares.add(namespace, entry)
	}
}

// affected reports whether changes of the inventory may have changed the
// diagnosis.
func (q *queue) affected(entry *diagnosisItem) bool {
	for _, c := range entry.pod.claims {
		if c.noClass != "" {
			continue // a class that is added changes the key
		}
		for _, r := range c.requests {
			if q.options.Inventory.ChangedFor(r.Request, entry.version) {
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
	share, entry := q.shares.next(q.classesDue())
	if share == nil {
		return false, nil
	}
	began := q.pace.worked()
	var err error
	if entry == nil {
		err = q.evaluateClasses(ctx)
	} else {
		err = q.diagnose(ctx, entry)
	}
	q.shares.charge(share, q.pace.worked()-began)
	return true, err
}

// diagnose gives one turn to an item.
func (q *queue) diagnose(ctx context.Context, entry *diagnosisItem) error {
	entry.queued = false
	if !entry.begun && entry.diagnosis != nil {
		if version := q.options.Inventory.Version(); !q.affected(entry) {
			entry.version = version
			return ctx.Err()
		}
	}
	if entry.task == nil {
		entry.task = newTask(q.pace, q.options.Inventory.Version(), func(meter *workMeter) *podDiagnosis {
			return diagnose(ctx, meter, q.options.Inventory, q.nodeCache, entry.pod, false)
		})
		q.suspended++
	}
	complete := entry.task.resume()
	entry.begun = true
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case complete:
		q.finish(entry)
		return nil
	}
	if !q.keeps(entry) {
		q.drop(entry)
	}
	q.add(entry)
	return nil
}

// keeps reports whether a task may stay suspended until its next turn: one for
// each namespace, and a few in all, because of the memory that they hold. A
// dropped diagnosis begins again; the results of selectors stay.
func (q *queue) keeps(entry *diagnosisItem) bool {
	if q.suspended > mostSuspended {
		return false
	}
	for _, other := range q.items {
		if other != entry && other.task != nil && slices.ContainsFunc(other.namespaces, func(namespace string) bool {
			return slices.Contains(entry.namespaces, namespace)
		}) {
			return false
		}
	}
	return true
}

// drop ends the task of an item, if it has one.
func (q *queue) drop(entry *diagnosisItem) {
	if entry.task != nil {
		entry.task.stop()
		entry.task = nil
		q.suspended--
	}
}

// stop ends all tasks.
func (q *queue) stop() {
	for _, entry := range q.items {
		q.drop(entry)
	}
}

// finish records the result of an item's task.
func (q *queue) finish(entry *diagnosisItem) {
	q.turn++
	entry.diagnosis, entry.version, entry.turn = entry.task.result, entry.task.version, q.turn
	q.drop(entry)
	entry.begun = false
	q.unpublished = true
	if !entry.diagnosis.undetermined() {
		entry.backoff = 0
		return
	}
	entry.backoff = min(max(2*entry.backoff, leastBackoff), mostBackoff)
	entry.retry = q.options.Clock().Add(entry.backoff)
	q.retryAt(entry.retry)
}

// busy reports whether there is something to do.
func (q *queue) busy() bool { return q.classesDue() || q.shares.hasItems() }

func (q *queue) classesDue() bool {
	return q.classesChanged && (q.classesRetry == (clock.Instant{}) || q.options.Clock().Since(q.classesRetry) >= 0)
}

// evaluateClasses evaluates selectors of classes for one turn. If one takes too
// long, its class is not counted, and evaluated again after a while.
func (q *queue) evaluateClasses(ctx context.Context) error {
	m := &workMeter{pace: q.pace, suspend: func() error { return errSuspended }}
	m.resume()
	err := q.options.Inventory.EvaluateClasses(ctx, m.evaluated)
	q.evaluations += m.evaluations
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errSuspended):
		return nil
	case errors.Is(err, inventory.ErrSlowEvaluation):
		if q.classesRetry == (clock.Instant{}) {
			q.options.Log.Warn("cannot count the devices of a class", "error", err)
		}
		q.classesRetry = q.options.Clock().Add(leastBackoff)
	default:
		q.classesChanged, q.classesRetry = false, clock.Instant{}
	}
	if q.evaluations > 0 {
		notify(q.exchange.changed)
	}
	q.evaluations = 0
	return nil
}

// publishIfDue publishes at intervals.
func (q *queue) publishIfDue() {
	if q.options.Clock().Since(q.published) >= publishInterval {
		q.publish()
	}
}

// publish publishes the work, and the diagnoses if any has changed.
func (q *queue) publish() {
	q.published = q.options.Clock()
	q.exchange.publishWork(q.reportWork())
	if !q.unpublished {
		return
	}
	count := 0
	for _, r := range q.rows {
		if found := r.item.diagnosis; found != nil && found != r.published {
			r.published, r.diagnoses = found, found.diagnoses(r.question, r.pod)
		}
		count += len(r.diagnoses)
	}
	all := make([]dra.Diagnosis, 0, count)
	for _, r := range q.rows {
		all = append(all, r.diagnoses...)
	}
	q.exchange.publish(all)
	q.unpublished = false
}

// reportWork returns what was done, and counts what is queued.
func (q *queue) reportWork() dra.DiagnosisWork {
	work := dra.DiagnosisWork{Costs: q.shares.costs()}
	for _, entry := range q.items {
		switch {
		case !entry.queued:
		case entry.diagnosis == nil:
			work.First++
		default:
			work.Again++
		}
	}
	return work
}

// wait returns when there may be something to do.
func (q *queue) wait(ctx context.Context) error {
	if err := q.pace.rest(ctx); err != nil {
		return err
	}
	began := q.options.Clock()
	defer func() { q.pace.idle(q.options.Clock().Since(began)) }()
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-q.exchange.asked:
	case <-timer.C:
	}
	return nil
}
