package top

import (
	"context"
	"sync"
	"time"
)

// Watch reads the exporters repeatedly until the context ends.
type Watch struct {
	Client   *Client
	First    AgentList                                // to begin with
	List     func(context.Context) (AgentList, error) // returns the present exporters; nil: always the first ones
	Interval time.Duration                            // from one round to the next
	Relist   time.Duration                            // from one List to the next
	Rest     time.Duration                            // delay before agents that have failed are read again
}

// Run reports each change as it arrives, one at a time. An agent that hangs
// delays no other: each is read again an interval after it has answered, and
// those that have failed have slots of their own.
func (w *Watch) Run(ctx context.Context, report func(FleetChange)) {
	queues := &pollQueues{listing: w.First, failing: map[string]bool{}, inFlight: map[string]bool{}, report: report}
	report(func(f *Fleet) { f.Expect(w.First.Agents) })
	var running sync.WaitGroup
	poll := func(failing bool, interval time.Duration) {
		slots := w.Client.slots()
		running.Go(func() {
			every(ctx, interval, func() { w.Client.each(ctx, queues.pick(failing), &running, slots, queues.reply) })
		})
	}
	poll(false, w.Interval)
	poll(true, max(w.Interval, w.Rest))
	running.Go(func() {
		every(ctx, w.Interval, func() { w.Client.cluster(ctx, queues.listed(), queues.apply) })
	})
	if w.List != nil {
		running.Go(func() { w.relist(ctx, queues) })
	}
	running.Wait()
}

// relist lists the agents again at intervals.
func (w *Watch) relist(ctx context.Context, queues *pollQueues) {
	first := true
	every(ctx, w.Relist, func() {
		if first { // Watch.First is new enough
			first = false
			return
		}
		listing, err := w.List(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			queues.apply(func(f *Fleet) { f.SetListError(err) })
		default:
			queues.list(listing)
			queues.apply(func(f *Fleet) { f.Expect(listing.Agents) })
		}
	})
}

// every calls do now and after each interval, without overlap.
func every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// pollQueues separates agents that answer from those that have failed. It is safe for
// concurrent use.
type pollQueues struct {
	mutex    sync.Mutex
	listing  AgentList
	failing  map[string]bool // by the agent's name
	inFlight map[string]bool // likewise: waiting for its answer
	report   func(FleetChange)
}

func (q *pollQueues) listed() AgentList {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.listing
}

func (q *pollQueues) list(listing AgentList) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.listing = listing
}

// pick returns the agents of one queue without a pending request, and marks
// them as requested.
func (q *pollQueues) pick(failing bool) []Agent {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	var picked []Agent
	for _, agent := range q.listing.Agents {
		if q.failing[agent.Name] == failing && !q.inFlight[agent.Name] {
			q.inFlight[agent.Name] = true
			picked = append(picked, agent)
		}
	}
	return picked
}

// reply reports what an agent answered, and puts it into its queue.
func (q *pollQueues) reply(reply Reply) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	delete(q.inFlight, reply.Agent.Name)
	delete(q.failing, reply.Agent.Name)
	if reply.Err != nil {
		q.failing[reply.Agent.Name] = true
	}
	q.report(reply.change())
}

// apply reports a change.
func (q *pollQueues) apply(change FleetChange) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.report(change)
}
