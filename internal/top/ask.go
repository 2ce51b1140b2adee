package top

import (
	"context"
	"sync"
	"time"
)

// Listing is which exporters there are.
type Listing struct {
	Agents  []Agent
	Cluster *Agent // the cluster role; nil: nobody to ask
	Trouble error  // why nobody knows whether there is one
}

// Change is something to note in a fleet. Changes are made one at a time.
type Change func(*Fleet)

// Round asks all of a listing once and tells each answer as it comes; tell is
// never called twice at a time. It returns when all have answered, failed or
// run out of time.
func (a *Asker) Round(ctx context.Context, listing Listing, tell func(Change)) {
	var one sync.Mutex
	telling := func(change Change) {
		one.Lock()
		defer one.Unlock()
		tell(change)
	}
	telling(func(f *Fleet) { f.Expect(listing.Agents) })
	var around sync.WaitGroup
	around.Go(func() { a.cluster(ctx, listing, telling) })
	a.each(ctx, listing.Agents, &around, a.slots(), func(reply Reply) { telling(reply.change()) })
	around.Wait()
}

// cluster asks the cluster role, if there is one.
func (a *Asker) cluster(ctx context.Context, listing Listing, tell func(Change)) {
	if listing.Cluster == nil {
		tell(func(f *Fleet) { f.TakeWaiting(nil, listing.Trouble) })
		return
	}
	waiting, err := a.Waiting(ctx, *listing.Cluster)
	if ctx.Err() != nil {
		return
	}
	tell(func(f *Fleet) {
		if err != nil {
			f.TakeWaiting(nil, err)
			return
		}
		f.TakeWaiting(&waiting, nil)
	})
}

// change notes the reply.
func (r Reply) change() Change { return func(f *Fleet) { f.Take(r) } }

// each begins to ask agents, so many at a time as there are slots, and tells of
// them concurrently. It returns when all have been begun with; the group waits
// for their answers.
func (a *Asker) each(ctx context.Context, agents []Agent, asking *sync.WaitGroup, slots chan struct{}, tell func(Reply)) {
	for _, agent := range agents {
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		asking.Go(func() {
			defer func() { <-slots }()
			answer, err := a.Claims(ctx, agent)
			if ctx.Err() == nil {
				tell(Reply{Agent: agent, Answer: answer, Err: err})
			}
		})
	}
}

// slots are as many as agents may be asked at a time.
func (a *Asker) slots() chan struct{} { return make(chan struct{}, max(a.Parallel, 1)) }

// Watch asks again and again, until the context ends.
type Watch struct {
	Asker    *Asker
	First    Listing                                // to begin with
	List     func(context.Context) (Listing, error) // which exporters there are now; nil: always the first
	Interval time.Duration                          // from one round to the next
	Relist   time.Duration                          // from one List to the next
	Rest     time.Duration                          // for how long agents that have failed are left alone
}

// Run tells each change as it comes, one at a time. Nobody waits for an agent
// that hangs: each is asked again an interval after it was, once it has answered,
// and those that have failed share slots of their own.
func (w *Watch) Run(ctx context.Context, tell func(Change)) {
	lanes := &lanes{listing: w.First, sick: map[string]bool{}, asked: map[string]bool{}, tell: tell}
	tell(func(f *Fleet) { f.Expect(w.First.Agents) })
	var running sync.WaitGroup
	lane := func(sick bool, interval time.Duration) {
		slots := w.Asker.slots()
		running.Go(func() {
			every(ctx, interval, func() { w.Asker.each(ctx, lanes.pick(sick), &running, slots, lanes.reply) })
		})
	}
	lane(false, w.Interval)
	lane(true, max(w.Interval, w.Rest))
	running.Go(func() {
		every(ctx, w.Interval, func() { w.Asker.cluster(ctx, lanes.listed(), lanes.note) })
	})
	if w.List != nil {
		running.Go(func() { w.relist(ctx, lanes) })
	}
	running.Wait()
}

// relist keeps up with agents that come and go.
func (w *Watch) relist(ctx context.Context, lanes *lanes) {
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
			lanes.note(func(f *Fleet) { f.Lose(err) })
		default:
			lanes.list(listing)
			lanes.note(func(f *Fleet) { f.Expect(listing.Agents) })
		}
	})
}

// every does something now and after each interval, never twice at a time.
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

// lanes divide agents into those that answer and those that have failed. They
// are safe for concurrent use.
type lanes struct {
	mutex   sync.Mutex
	listing Listing
	sick    map[string]bool // by the agent's name
	asked   map[string]bool // likewise: it has not answered yet
	tell    func(Change)
}

func (l *lanes) listed() Listing {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.listing
}

func (l *lanes) list(listing Listing) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.listing = listing
}

// pick is the agents of one lane that are not being asked; from now on they are.
func (l *lanes) pick(sick bool) []Agent {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var picked []Agent
	for _, agent := range l.listing.Agents {
		if l.sick[agent.Name] == sick && !l.asked[agent.Name] {
			l.asked[agent.Name] = true
			picked = append(picked, agent)
		}
	}
	return picked
}

// reply tells what an agent answered, and which lane it is in from now on.
func (l *lanes) reply(reply Reply) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.asked, reply.Agent.Name)
	delete(l.sick, reply.Agent.Name)
	if reply.Err != nil {
		l.sick[reply.Agent.Name] = true
	}
	l.tell(reply.change())
}

// note tells a change.
func (l *lanes) note(change Change) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.tell(change)
}
