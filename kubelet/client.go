// Package kubelet asks the kubelet which devices it gave to which container,
// over the PodResources API (k8s.io/kubelet/pkg/apis/podresources/v1) on its
// unix socket, and decodes the answers into dra values. If enabled, PodWatcher
// also watches the node's pods over the kubelet's Pods API.
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

// Defaults of Options.
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
	Timeout  time.Duration // timeout of a List

	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // called with the duration of each List; may be nil
}

// Listing is one answer of the kubelet. Its slices are shared by all readers
// and immutable.
type Listing struct {
	Resources dra.PodResources
	At        clock.Instant // when the answer arrived
	Sequence  uint64        // number of Lists that succeeded so far, including this one
}

// Client keeps the kubelet's latest answer. All methods but Run are safe for
// concurrent use and never wait for the kubelet.
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
	connection *connection   // used by Run only; nil until needed
	hungSince  clock.Instant // used by Run only
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

// Poke reports that a pod on this node has changed: a List follows within 250
// ms, unless one is in progress or the kubelet limits the rate. All pokes
// within that time lead to one List.
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

// Status returns the state of the source. HungSince is set from the first List
// that timed out until the kubelet answers again.
func (c *Client) Status() source.Status { return c.tracker.Status() }

func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
