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

// PodsSourceName is the source of pods, also if it is the API server.
const PodsSourceName = "pods"

// DefaultPodsSocket is where a kubelet with the usual root directory serves
// its Pods API, from Kubernetes 1.37 on (pkg/kubelet/kubeletconfig).
const DefaultPodsSocket = "/var/lib/kubelet/pods-api/pods-api.sock"

// The defaults of PodsOptions.
const (
	defaultSyncTimeout = 10 * time.Second
	defaultRenewal     = time.Minute
	defaultConfirm     = 5 * time.Second
)

// PodFollower receives the pods of the kubelet, one call at a time. It may keep and
// change them.
type PodFollower interface {
	// Begin begins a complete list of pods, which ends with Synced.
	Begin()
	// Pod is called with a pod that exists or has changed.
	Pod(pod *corev1.Pod)
	// Ended is called when a pod's containers have ended permanently.
	Ended(uid string)
	// Synced ends the list. From then on each change is reported.
	Synced()
	// Lost is called when changes are no longer reported.
	Lost()
}

// PodsOptions configure a PodWatcher. Only To is needed.
type PodsOptions struct {
	Socket      string        // path of the kubelet's Pods API socket; empty: DefaultPodsSocket
	SyncTimeout time.Duration // within which the list must be complete; zero: 10 s
	Renewal     time.Duration // after which the watch is reopened; zero: 1 min
	Confirm     time.Duration // after which another list must confirm one that lacks pods; zero: 5 s

	To      PodFollower
	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // gets the time until the list was complete; may be nil
}

// PodWatcher follows the pods of the node by the kubelet's Pods API
// (k8s.io/kubelet/pkg/apis/pods/v1alpha1, WatchPods).
//
// The watch is reopened regularly, because the kubelet does not report every change
// (pkg/kubelet/apis/pods and pkg/kubelet/status of Kubernetes 1.37): a change of
// labels is not reported before the pod's status changes too, the deletion of a pod
// that it has refused to run is not reported, and if its own queue is full it drops
// events silently. Reopening also detects a kubelet that hangs, which an open watch
// does not show.
//
// The first list after a watch broke is not believed if it lacks known pods, because
// the kubelet of Kubernetes 1.36 sends one before it has loaded its pods; later ones
// refuse the watch until then. The pods are kept until they are reported, or until a
// second list lacks them too.
type PodWatcher struct {
	socket               string
	syncTimeout, renewal time.Duration
	confirm              time.Duration
	to                   PodFollower
	now                  clock.Clock
	tracker              *source.Tracker

	connection *connection     // only used by Run; nil until needed and after a failure
	hungSince  clock.Instant   // only used by Run
	held       map[string]bool // only used by Run: pods that the follower may have, by UID, at most maxPods
	broken     bool            // only used by Run: no list has been complete since the last watch broke

	mu    sync.Mutex
	alive bool // the list is complete, and changes are reported
}

// NewPodWatcher returns a watcher that does nothing until Run.
func NewPodWatcher(options PodsOptions) *PodWatcher {
	if options.Socket == "" {
		options.Socket = DefaultPodsSocket
	}
	if options.SyncTimeout <= 0 {
		options.SyncTimeout = defaultSyncTimeout
	}
	if options.Renewal <= 0 {
		options.Renewal = defaultRenewal
	}
	if options.Confirm <= 0 {
		options.Confirm = defaultConfirm
	}
	common := Options{Log: options.Log, Clock: options.Clock}.complete()
	return &PodWatcher{
		socket: options.Socket, syncTimeout: options.SyncTimeout, renewal: options.Renewal, confirm: options.Confirm, to: options.To, now: common.Clock, held: make(map[string]bool),
		tracker: source.NewTracker(PodsSourceName, common.Log, common.Clock, options.Observe),
	}
}

// Run watches the pods until ctx ends. It is called once. A watch that breaks is
// reopened immediately, then with increasing delays, up to 2 s.
func (w *PodWatcher) Run(ctx context.Context) {
	defer w.disconnect()
	retries := newListPace(latestRetry, 0)
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

// Status returns the status of the source. Its last success is now while changes are
// reported. It may be called from any goroutine at any time.
func (w *PodWatcher) Status() source.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.tracker.Status()
	if w.alive {
		status.LastSuccess = w.now()
	}
	return status
}

// setAlive records whether changes are reported, and informs the follower.
func (w *PodWatcher) setAlive(alive bool) {
	w.mu.Lock()
	w.alive = alive
	w.mu.Unlock()
	if alive {
		w.to.Synced()
	} else {
		w.to.Lost()
	}
}

// fail records that a watch broke, or could not be opened.
func (w *PodWatcher) fail(began clock.Instant, err error, note func(error)) {
	switch {
	case source.ReasonOf(err) != source.ReasonTimeout:
		w.hungSince = clock.Instant{}
	case w.hungSince.IsZero():
		w.hungSince = began
	}
	w.tracker.Hang(w.hungSince)
	note(err)
	w.setAlive(false)
	w.broken = true
	w.disconnect()
}

// remove removes a pod from the follower.
func (w *PodWatcher) remove(uid string) {
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
	end     func(error) // of the attempt to complete the list; nil once it is complete
	faults  int         // pods that could not be decoded
	fault   error       // the first of them

	listed   bool // the kubelet says that the list is complete
	believed bool // and that is not in doubt

	// named are the pods that this watch has reported, by UID, at most maxPods, and
	// whether the kubelet has reported their end. It sends from several goroutines,
	// so that an older event may come after that.
	named map[string]bool
}

// follow opens a watch and applies its events, until it must be reopened (nil), ctx
// ends or the watch fails.
func (w *PodWatcher) follow(ctx context.Context) error {
	watch, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := time.AfterFunc(w.syncTimeout, func() { stop(errSyncTimeout) })
	defer late.Stop()
	s := &podStream{watcher: w, began: w.now(), end: w.tracker.Begin(), named: make(map[string]bool)}
	err := s.read(watch, func(reopenAfter time.Duration) {
		late.Stop()
		renewal := time.AfterFunc(reopenAfter, func() { stop(errRenewal) })
		context.AfterFunc(watch, func() { renewal.Stop() })
	})
	switch cause := context.Cause(watch); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(cause, errRenewal):
		return nil
	case errors.Is(cause, errSyncTimeout):
		err = cause
	}
	err = explainPods(err, w.dialFailure(), w.socket, w.syncTimeout)
	note := w.tracker.Report
	if s.end != nil {
		note = s.end
	}
	w.fail(s.began, err, note)
	return err
}

// read applies the events; its error is never nil. listed is called when the kubelet's
// list is complete, with the time after which the watch is to be reopened.
func (s *podStream) read(ctx context.Context, listed func(reopenAfter time.Duration)) error {
	w := s.watcher
	if w.connection == nil {
		connection, err := connect(w.socket, 2*w.syncTimeout, func(net.Conn) {})
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
		switch {
		case event.GetType() != podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE:
			if err := s.apply(event); err != nil {
				return err
			}
		case !s.listed:
			s.listed, s.believed = true, !w.broken || !s.lacksHeld()
			w.broken = false
			if s.believed {
				listed(w.renewal)
			} else {
				listed(w.confirm)
			}
		}
		if s.listed && s.end != nil && (s.believed || !s.lacksHeld()) {
			s.sync()
		}
	}
}

// apply applies one event. Its error ends the watch.
func (s *podStream) apply(event *podsv1alpha1.WatchPodsEvent) error {
	kind, pod, err := decodeEvent(event)
	if err != nil {
		s.omit(err)
		return nil
	}
	if kind == podUnknown {
		return nil
	}
	uid := string(pod.UID)
	ended, ok := s.named[uid]
	if !ok && len(s.named) >= maxPods {
		return errTooMany
	}
	switch {
	case kind == podEnded:
		s.named[uid] = true
		s.watcher.remove(uid)
	case !ended || isStatic(pod):
		s.named[uid] = ended
		s.hold(uid)
		s.watcher.to.Pod(pod)
	}
	return nil
}

// hold records that the follower has a pod. At the limit it removes pods that only
// earlier, broken watches have reported.
func (s *podStream) hold(uid string) {
	w := s.watcher
	if !w.held[uid] && len(w.held) >= maxPods {
		for other := range w.held {
			if _, ok := s.named[other]; !ok {
				w.remove(other)
			}
		}
	}
	w.held[uid] = true
}

// lacksHeld reports whether the watch has not reported a pod that the follower may have.
func (s *podStream) lacksHeld() bool {
	for uid := range s.watcher.held {
		if _, ok := s.named[uid]; !ok {
			return true
		}
	}
	return false
}

// omit records a pod that could not be decoded.
func (s *podStream) omit(fault error) {
	s.faults++
	if s.fault == nil {
		s.fault = fault
	}
	if s.end == nil {
		s.impair()
	}
}

// sync completes the list.
func (s *podStream) sync() {
	w := s.watcher
	w.hungSince = clock.Instant{}
	w.tracker.Hang(w.hungSince)
	maps.DeleteFunc(w.held, func(uid string, _ bool) bool {
		_, ok := s.named[uid]
		return !ok
	})
	s.end(nil)
	s.end = nil
	if s.faults > 0 {
		s.impair()
	}
	w.setAlive(true)
}

// impair records that not all pods could be decoded.
func (s *podStream) impair() {
	reason, remedy := source.ReasonInvalid, "is this a kubelet newer than 1.37?"
	if source.ReasonOf(s.fault) == source.ReasonResourceExhausted {
		reason, remedy = source.ReasonResourceExhausted, "the first:"
	}
	s.watcher.tracker.Impair(&source.Failure{Reason: reason, Err: fmt.Errorf(
		"read %d pods that the kubelet reported through %s: they are ignored; %s %w", s.faults, s.watcher.socket, remedy, s.fault)})
}

func (w *PodWatcher) dialFailure() error {
	if w.connection == nil {
		return nil
	}
	return w.connection.dialFailure()
}
