package generator

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Store is where objects are put and deleted: an API server.
type Store interface {
	Put(...Object) error
	Delete(...Object) error
}

// ClaimChangesPerLife is how often a claim changes in a life that is played:
// it is made, allocated and reserved, released, deleted. Its pod changes six
// times meanwhile.
const ClaimChangesPerLife = 4

// life is a pod with a claim of its own, from creation to deletion.
type life struct {
	device int
	claim  *resourcev1.ResourceClaim
	pod    *corev1.Pod
}

// step is one moment of a life, some time after the one before.
type step struct {
	after time.Duration
	claim bool // it changes
	do    func(*life, Store, time.Time) error
}

// steps are those of a quick but otherwise usual life. The store keeps copies.
func steps() []step {
	return []step{
		{0, true, func(l *life, to Store, _ time.Time) error { return to.Put(l.pod, l.claim) }},
		{500 * time.Millisecond, true, func(l *life, to Store, now time.Time) error {
			Allocate(l.claim, l.device, l.pod)
			Bind(l.pod, l.device/DevicesPerNode, now)
			return to.Put(l.claim, l.pod)
		}},
		{300 * time.Millisecond, false, func(l *life, to Store, now time.Time) error {
			Prepare(l.pod, now)
			return to.Put(l.pod)
		}},
		{200 * time.Millisecond, false, func(l *life, to Store, now time.Time) error {
			Run(l.pod, now)
			return to.Put(l.pod)
		}},
		{2 * time.Second, false, func(l *life, to Store, _ time.Time) error {
			l.pod.Status.Phase = corev1.PodSucceeded
			return to.Put(l.pod)
		}},
		{100 * time.Millisecond, true, func(l *life, to Store, _ time.Time) error {
			Release(l.claim)
			return to.Put(l.claim)
		}},
		{100 * time.Millisecond, true, func(l *life, to Store, _ time.Time) error { return to.Delete(l.claim, l.pod) }},
	}
}

// Play begins lives on the free devices of a cluster of that size until the
// context ends, so many that claims change at the rate (a second), and returns
// once those under way are over. It counts the changes that claims had. Before a
// pod and its claim are created, it calls born, once for each life in the order of
// their numbers.
func Play(ctx context.Context, size Size, to Store, rate float64, born func(time.Time)) (changes int64, err error) {
	free := size.Nodes*DevicesPerNode - size.Held()
	if free <= 0 || rate <= 0 {
		return 0, fmt.Errorf("play lives at %g changes a second on %d free devices: impossible", rate, free)
	}
	const beat = 20 * time.Millisecond
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	var done atomic.Int64
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	var living sync.WaitGroup
	for began, lives := time.Now(), 0; ctx.Err() == nil; {
		for ; float64(lives*ClaimChangesPerLife) < time.Since(began).Seconds()*rate; lives++ {
			now := time.Now()
			l := newLife(lives, size.Held()+lives%free, now)
			born(now)
			living.Go(func() {
				if err := l.live(to, &done); err != nil {
					stop()
					select {
					case failed <- err:
					default: // another was first
					}
				}
			})
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	living.Wait()
	select {
	case err = <-failed:
	default:
	}
	return done.Load(), err
}

// LifePod begins the names of the pods whose lives are played; the rest is the
// life's number.
const LifePod = "life-"

func newLife(i, device int, now time.Time) *life {
	l := &life{device: device, claim: NewClaim(meta("life-gpu", i, now), 0), pod: NewPod(meta("life", i, now))}
	Claiming(l.pod, l.claim.Name)
	return l
}

// live goes through all steps of a life.
func (l *life) live(to Store, changes *atomic.Int64) error {
	for number, step := range steps() {
		time.Sleep(step.after)
		if err := step.do(l, to, time.Now()); err != nil {
			return fmt.Errorf("play step %d of %s: %w", number, l.pod.Name, err)
		}
		if step.claim {
			changes.Add(1)
		}
	}
	return nil
}
