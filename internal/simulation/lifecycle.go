package simulation

import (
	"context"
	"fmt"
	"time"
)

// step is one thing that happens in the life of a claim and its pods, at a
// time after the first.
type step struct {
	at      time.Duration
	once    func(*instance) bool  // it waits for this; nil: for nothing
	refuse  func(*instance) error // what happens if it has to wait
	happens func(*instance) error
}

// retry is how often a step looks whether its time has come.
const retry = 100 * time.Millisecond

// bindingPoll is how often the scheduler looks whether a device can be bound.
const bindingPoll = 5 * time.Second

// initLoad is how hard init containers work their devices: hardly.
const initLoad = 0.06

// rise are the steps from the creation of the pods to their work, in the
// order and at the times of a real node (Kubernetes 1.37 and NVIDIA's driver:
// milliseconds after the pod's creation). The main containers start last.
func (n *node) rise(row workload) []step {
	const ms = time.Millisecond
	steps := []step{
		{at: 0, happens: n.createPods},
		{at: 5 * ms, happens: n.createClaim},
	}
	if row.hindered.lasts > 0 {
		steps = append(steps, step{at: 8 * ms, happens: n.hinder}, step{at: row.hindered.lasts, happens: n.unhinder})
	}
	from := row.hindered.lasts
	steps = append(steps, step{at: from + 22*ms, once: n.occupancy.take, refuse: n.refuse, happens: n.allocate})
	if row.binds > 0 {
		steps = append(steps, step{at: from + 22*ms + row.binds, happens: n.attach})
		from += (row.binds/bindingPoll + 1) * bindingPoll
	}
	steps = append(steps, step{at: from + 26*ms, happens: n.bind})
	if row.node == "" { // of another node there is no kubelet, only what it writes into the API
		steps = append(steps,
			step{at: from + 41*ms, happens: n.admit},
			step{at: from + 342*ms, happens: n.prepare},
			step{at: from + 351*ms, happens: n.list})
	}
	if row.prepares > 0 {
		steps = append(steps, step{at: from + row.prepares/2, happens: n.failPreparation})
		from += row.prepares
	}
	steps = append(steps, step{at: from + 482*ms, happens: n.ready})
	start := from + 599*ms
	for _, c := range row.containers {
		if c.init > 0 {
			steps = append(steps, step{at: start, happens: n.startInit})
			start += c.init
		}
	}
	return append(steps, step{at: start, happens: n.startMain})
}

// fall are the steps from the end of the work. Pods of jobs end by themselves,
// and are deleted when their claim has long been gone; others are deleted.
func (n *node) fall(row workload) []step {
	const ms = time.Millisecond
	if row.owner == ownedByJob {
		return []step{
			{at: 0, happens: n.succeed},
			{at: 90 * ms, happens: n.unprepare},
			{at: 130 * ms, happens: n.deallocate},
			{at: 150 * ms, happens: n.deleteClaim},
			{at: 3 * time.Second, happens: n.deletePods},
		}
	}
	first := n.terminate
	if row.evicted {
		first = n.evict
	}
	return []step{
		{at: 0, happens: first},
		{at: 500 * ms, happens: n.stop},
		{at: 590 * ms, happens: n.unprepare},
		{at: 640 * ms, happens: n.deletePods},
		{at: 670 * ms, happens: n.deallocate},
		{at: 690 * ms, happens: n.deleteClaim},
	}
}

// play lets a workload come, stay, go, and come again, until ctx ends.
func (n *node) play(ctx context.Context, t tempo, row workload) error {
	for run := 0; t.until(ctx, row.starts+time.Duration(run)*row.every); run++ {
		i := newInstance(row, run, n.seed, n.now())
		log := n.log.With("namespace", row.namespace, "pod", i.pods[0].Name)
		log.Debug("a workload comes")
		if err := walk(ctx, t, i, n.rise(row)); err != nil {
			return fmt.Errorf("run %s/%s: %w", row.namespace, row.name, err)
		}
		if row.lasts == 0 || !t.until(ctx, t.now()+row.lasts) {
			return nil
		}
		log.Debug("a workload goes")
		if err := walk(ctx, t, i, n.fall(row)); err != nil {
			return fmt.Errorf("end %s/%s: %w", row.namespace, row.name, err)
		}
	}
	return nil
}

// walk goes through steps until ctx ends.
func walk(ctx context.Context, t tempo, i *instance, steps []step) error {
	began := t.now()
	for _, next := range steps {
		if !t.until(ctx, began+next.at) {
			return nil
		}
		for waited := false; next.once != nil && !next.once(i); waited = true {
			if !waited && next.refuse != nil {
				if err := next.refuse(i); err != nil {
					return err
				}
			}
			if !t.until(ctx, t.now()+retry) {
				return nil
			}
			began = t.now() - next.at // what comes after comes later by as much
		}
		if err := next.happens(i); err != nil {
			return err
		}
	}
	return nil
}

// now is the wall's time in full seconds, as objects have it.
func (n *node) now() time.Time { return n.clock().Wall.Truncate(time.Second) }
