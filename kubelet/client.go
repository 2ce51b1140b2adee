// Package kubelet asks the kubelet which devices it gave to which container,
// over the PodResources API (k8s.io/kubelet/pkg/apis/podresources/v1) on its
// unix socket, and decodes the answers into dra values. Where it is wanted, it
// follows the node's pods by the kubelet's Pods API too (PodWatcher).
package kubelet

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// SourceName is how the client calls itself in its Status.
const SourceName = "podresources"

// What applies where Options leave a field zero.
const (
	DefaultSocket   = "/var/lib/kubelet/pod-resources/kubelet.sock"
	DefaultInterval = 10 * time.Second
	DefaultDebounce = 100 * time.Millisecond
	DefaultTimeout  = 5 * time.Second
)

// maxDebounce bounds how late after a change of a pod a List may come.
const maxDebounce = 250 * time.Millisecond

// Options configure a Client. Zero fields take the defaults above.
type Options struct {
	Socket   string        // path of the kubelet's PodResources socket
	Interval time.Duration // between Lists when nothing happens
	Debounce time.Duration // from a Poke to its List, 250 ms at most
	Timeout  time.Duration // after which a List that has no answer is given up

	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // told how long each List took; may be nil
}

// Listing is one answer of the kubelet. Its slices are shared by everyone
// who asks for it and are never written again.
type Listing struct {
	Resources dra.PodResources
	At        clock.Instant // when the answer came
	Sequence  uint64        // how many Lists had succeeded by then, this one included
}

// Client keeps the kubelet's latest answer. All methods but Run may be called
// from any goroutine at any time and never wait for the kubelet.
type Client struct {
	socket  string
	timeout time.Duration
	now     clock.Clock
	tracker *source.Tracker
	pace    pace

	poked   chan struct{}
	changed chan struct{}
	latest  atomic.Pointer[Listing]

	visibility visibility    // of the newest connection
	connection *connection   // Run's alone; nil until needed and after a failure
	hungSince  clock.Instant // Run's alone
}

// New returns a client that does nothing until Run.
func New(options Options) *Client {
	options = options.complete()
	return &Client{
		socket:  options.Socket,
		timeout: options.Timeout,
		now:     options.Clock,
		tracker: source.NewTracker(SourceName, options.Log, options.Clock, options.Observe),
		pace:    newPace(options.Interval, options.Debounce),
		poked:   make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
	}
}

func (o Options) complete() Options {
	if o.Socket == "" {
		o.Socket = DefaultSocket
	}
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.Debounce <= 0 {
		o.Debounce = DefaultDebounce
	}
	o.Debounce = min(o.Debounce, maxDebounce)
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o
}

// Run lists at once, then after every interval and every Poke, one List at a
// time, until ctx ends. It is called once.
func (c *Client) Run(ctx context.Context) {
	defer c.disconnect()
	c.pace.run(ctx, c.poked, c.list)
}

// Poke says that a pod on this node has changed: a List follows within
// 250 ms, unless one is still under way or the kubelet asked for patience.
// However many pokes come in that time, they make one List.
func (c *Client) Poke() { signal(c.poked) }

// Latest returns the last successful answer, and false before the first.
func (c *Client) Latest() (Listing, bool) {
	latest := c.latest.Load()
	if latest == nil {
		return Listing{}, false
	}
	return *latest, true
}

// Changed receives after each List that succeeded or changed the Status. It
// holds one signal: a slow receiver misses signals, never the last one.
func (c *Client) Changed() <-chan struct{} { return c.changed }

// Status says how the source is. HungSince is set from the first List that
// had no answer in time until the kubelet answers anything again.
func (c *Client) Status() source.Status { return c.tracker.Status() }

func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
