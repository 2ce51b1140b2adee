package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// PodsSourceName is the source that the pods are, whoever tells of them.
const PodsSourceName = "pods"

// DefaultPodsSocket is where a kubelet with the usual root directory serves
// its Pods API, from Kubernetes 1.37 on (pkg/kubelet/kubeletconfig).
const DefaultPodsSocket = "/var/lib/kubelet/pods-api/pods-api.sock"

// What applies where PodsOptions leave a field zero.
const (
	defaultPatience = 10 * time.Second
	defaultRenewal  = time.Minute
)

// PodFollower takes what the kubelet tells of its pods, one call at a time.
// What it is given is its own.
type PodFollower interface {
	// Begin says that the pods named until Synced are all that there are.
	Begin()
	// Pod tells of a pod that is there, or has changed.
	Pod(pod *corev1.Pod)
	// Ended says that a pod's containers have ended for good.
	Ended(uid string)
	// Synced says that all pods have been named. From then on the follower
	// is told of each change.
	Synced()
	// Lost says that changes are not told any more.
	Lost()
}

// PodsOptions configure a PodWatcher. Only To is needed.
type PodsOptions struct {
	Socket   string        // path of the kubelet's Pods API socket; empty: DefaultPodsSocket
	Patience time.Duration // within which all pods have to be named; zero: 10 s
	Renewal  time.Duration // after which the watch is opened anew; zero: 1 min

	To      PodFollower
	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // told how long it took until all pods were named; may be nil
}

// PodWatcher follows the pods of the node by the kubelet's Pods API
// (k8s.io/kubelet/pkg/apis/pods/v1alpha1, WatchPods).
//
// The watch is opened anew now and then, because the kubelet tells less than
// there is to know (pkg/kubelet/apis/pods and pkg/kubelet/status of Kubernetes
// 1.37): of a change of labels it says nothing before the pod's status changes
// too, of a pod that it has refused to run it does not say that it is gone,
// and where its own queue is full it drops events without a word. The same
// finds a kubelet that hangs, of which an open watch shows nothing.
type PodWatcher struct {
	socket            string
	patience, renewal time.Duration
	to                PodFollower
	now               clock.Clock
	tracker           *source.Tracker

	connection *connection     // Run's alone; nil until needed and after a failure
	hungSince  clock.Instant   // Run's alone
	held       map[string]bool // Run's alone: pods that the follower may have, by UID, at most maxPods

	mu    sync.Mutex
	alive bool // all pods have been named, and changes are told
}

// NewPodWatcher returns a watcher that does nothing until Run.
func NewPodWatcher(options PodsOptions) *PodWatcher {
	if options.Socket == "" {
		options.Socket = DefaultPodsSocket
	}
	if options.Patience <= 0 {
		options.Patience = defaultPatience
	}
	if options.Renewal <= 0 {
		options.Renewal = defaultRenewal
	}
	common := Options{Log: options.Log, Clock: options.Clock}.complete()
	return &PodWatcher{
		socket: options.Socket, patience: options.Patience, renewal: options.Renewal, to: options.To, now: common.Clock, held: make(map[string]bool),
		tracker: source.NewTracker(PodsSourceName, common.Log, common.Clock, options.Observe),
	}
}

// Run follows the pods until ctx ends. It is called once. A watch that breaks
// is opened anew at once, then ever later, up to 2 s.
func (w *PodWatcher) Run(ctx context.Context) {
	defer w.disconnect()
	retries := newPace(latestRetry, 0)
	for ctx.Err() == nil {
		err := w.follow(ctx)
		if err == nil {
			retries.failures = 0
			continue
		}
		retries.failures++
		if !sleep(ctx, retries.backoff(firstRetry, latestRetry)) {
			return
		}
	}
}

// Status says how the source is, with a last success of now while changes are
// told: no news is the news that nothing has changed. It may be called from
// any goroutine at any time.
func (w *PodWatcher) Status() source.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.tracker.Status()
	if w.alive {
		status.LastSuccess = w.now()
	}
	return status
}

// turn notes whether changes are told, and tells the follower.
func (w *PodWatcher) turn(alive bool) {
	w.mu.Lock()
	w.alive = alive
	w.mu.Unlock()
	if alive {
		w.to.Synced()
	} else {
		w.to.Lost()
	}
}

// fail notes that a watch broke, or never came to be.
func (w *PodWatcher) fail(began clock.Instant, err error, note func(error)) {
	switch {
	case source.ReasonOf(err) != source.ReasonTimeout:
		w.hungSince = clock.Instant{}
	case w.hungSince.IsZero():
		w.hungSince = began
	}
	w.tracker.Hang(w.hungSince)
	note(err)
	w.turn(false)
	w.disconnect()
}

// drop takes a pod from the follower.
func (w *PodWatcher) drop(uid string) {
	delete(w.held, uid)
	w.to.Ended(uid)
}

func (w *PodWatcher) disconnect() {
	if w.connection != nil {
		// Close fails only for a channel that is closed already.
		_ = w.connection.channel.Close()
		w.connection = nil
	}
}

// podStream is one watch.
type podStream struct {
	watcher *PodWatcher
	began   clock.Instant
	end     func(error) // of the attempt to have all pods named; nil once they are
	faults  int         // pods that could not be read
	fault   error       // the first of them

	// named are the pods that this watch has told of, by UID, at most maxPods,
	// and whether the kubelet has said that they have ended. It sends from
	// several goroutines, so that an older word may come after that one.
	named map[string]bool
}

// follow opens a watch and hands on what it tells, until it is time to open
// another (nil), ctx ends or the watch fails.
func (w *PodWatcher) follow(ctx context.Context) error {
	watch, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := time.AfterFunc(w.patience, func() { stop(errPatience) })
	defer late.Stop()
	s := &podStream{watcher: w, began: w.now(), end: w.tracker.Begin(), named: make(map[string]bool)}
	err := s.read(watch, func() {
		late.Stop()
		renewal := time.AfterFunc(w.renewal, func() { stop(errRenewal) })
		context.AfterFunc(watch, func() { renewal.Stop() })
	})
	switch cause := context.Cause(watch); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(cause, errRenewal):
		return nil
	case errors.Is(cause, errPatience):
		err = cause
	}
	err = explainPods(err, w.dialFailure(), w.socket, w.patience)
	note := w.tracker.Report
	if s.end != nil {
		note = s.end
	}
	w.fail(s.began, err, note)
	return err
}

// read hands on event after event; its error is never nil.
func (s *podStream) read(ctx context.Context, synced func()) error {
	w := s.watcher
	if w.connection == nil {
		connection, err := connect(w.socket, 2*w.patience, func(net.Conn) {})
		if err != nil {
			return err
		}
		w.connection = connection
	}
	stream, err := podsv1alpha1.NewPodsClient(w.connection.channel).WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		return err
	}
	w.to.Begin()
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if event.GetType() == podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE {
			if s.end != nil {
				s.sync()
				synced()
			}
			continue
		}
		if err := s.take(event); err != nil {
			return err
		}
	}
}

// take hands one event on. Its error ends the watch.
func (s *podStream) take(event *podsv1alpha1.WatchPodsEvent) error {
	kind, pod, err := decodeEvent(event)
	if err != nil {
		s.leaveOut(err)
		return nil
	}
	if kind == podNothing {
		return nil
	}
	uid := string(pod.UID)
	ended, named := s.named[uid]
	if !named && len(s.named) >= maxPods {
		return errTooMany
	}
	switch {
	case kind == podEnded:
		s.named[uid] = true
		s.watcher.drop(uid)
	case !ended || isStatic(pod):
		s.named[uid] = ended
		s.hold(uid)
		s.watcher.to.Pod(pod)
	}
	return nil
}

// hold notes that the follower has a pod. What earlier watches have told that
// broke off makes room, if there is no other.
func (s *podStream) hold(uid string) {
	w := s.watcher
	if !w.held[uid] && len(w.held) >= maxPods {
		for other := range w.held {
			if _, named := s.named[other]; !named {
				w.drop(other)
			}
		}
	}
	w.held[uid] = true
}

// leaveOut notes a pod that could not be read.
func (s *podStream) leaveOut(fault error) {
	s.faults++
	if s.fault == nil {
		s.fault = fault
	}
	if s.end == nil {
		s.impair()
	}
}

// sync notes that all pods have been named.
func (s *podStream) sync() {
	w := s.watcher
	w.hungSince = clock.Instant{}
	w.tracker.Hang(w.hungSince)
	maps.DeleteFunc(w.held, func(uid string, _ bool) bool {
		_, named := s.named[uid]
		return !named
	})
	s.end(nil)
	s.end = nil
	if s.faults > 0 {
		s.impair()
	}
	w.turn(true)
}

// impair says that the pods are told of, but not all could be read.
func (s *podStream) impair() {
	reason, remedy := source.ReasonInvalid, "is this a kubelet newer than 1.37?"
	if source.ReasonOf(s.fault) == source.ReasonResourceExhausted {
		reason, remedy = source.ReasonResourceExhausted, "the first:"
	}
	s.watcher.tracker.Impair(&source.Failure{Reason: reason, Err: fmt.Errorf(
		"read %d pods that the kubelet told of over %s: they are left out; %s %w", s.faults, s.watcher.socket, remedy, s.fault)})
}

func (w *PodWatcher) dialFailure() error {
	if w.connection == nil {
		return nil
	}
	return w.connection.dialFailure()
}
