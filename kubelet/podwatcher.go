package kubelet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// PodsSourceName is the name of the source of pods, whatever it is.
const PodsSourceName = "pods"

// DefaultPodsSocket is where a kubelet with the usual root directory serves
// its Pods API, from Kubernetes 1.37 on (pkg/kubelet/kubeletconfig).
const DefaultPodsSocket = "/var/lib/kubelet/pods-api/pods-api.sock"

// Defaults of PodsOptions.
const (
	defaultPatience = 10 * time.Second
	defaultRenewal  = time.Minute
)

// PodFollower receives the kubelet's pods, one call at a time. It owns its
// arguments.
type PodFollower interface {
	// Begin starts a list: the pods until Synced are all that exist.
	Begin()
	// Pod is called with a pod that was added or modified.
	Pod(pod *corev1.Pod)
	// Ended reports that a pod's containers have terminated for good.
	Ended(uid string)
	// Synced ends the list. From then on each change is reported.
	Synced()
	// Lost reports that changes are no longer received.
	Lost()
}

// PodsOptions configure a PodWatcher. Only To is needed.
type PodsOptions struct {
	Socket   string        // path of the kubelet's Pods API socket; empty: DefaultPodsSocket
	Patience time.Duration // within which all pods have to be named; zero: 10 s
	Renewal  time.Duration // after which the watch is reopened; zero: 1 min

	To      PodFollower
	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // called with the duration until all pods were listed; may be nil
}

// PodWatcher follows the pods of the node by the kubelet's Pods API
// (k8s.io/kubelet/pkg/apis/pods/v1alpha1, WatchPods).
//
// The watch is reopened periodically, because the kubelet does not report
// everything (pkg/kubelet/apis/pods and pkg/kubelet/status of Kubernetes 1.37):
// it reports a change of labels only with the next change of status, it does
// not report the deletion of a pod that it refused to run, and it drops events
// if its own queue is full. Reopening also detects a kubelet that hangs, which
// an open watch does not show.
type PodWatcher struct {
	socket            string
	patience, renewal time.Duration
	to                PodFollower
	now               clock.Clock
	tracker           *source.Tracker

	connection *connection     // used by Run only; nil until needed
	hungSince  clock.Instant   // used by Run only
	held       map[string]bool // used by Run only: pods that the follower

	mu    sync.Mutex
	alive bool // all pods have been listed, and changes are received
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

// Run watches the pods until ctx ends. It is called once. A broken watch is
// reopened at once, then with a backoff of up to 2 s.
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

// Status returns the state of the source, with a last success of now while the
// watch is open. It is safe for concurrent use.
func (w *PodWatcher) Status() source.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.tracker.Status()
	if w.alive {
		status.LastSuccess = w.now()
	}
	return status
}

// turn records whether changes are received, and informs the follower.
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

// fail records that a watch broke or could not be opened.
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

// drop removes a pod from the follower.
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
