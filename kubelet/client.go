// Package kubelet lists the devices that the kubelet assigned to each container,
// over the PodResources API (k8s.io/kubelet/pkg/apis/podresources/v1) on its
// unix socket, and decodes the responses into dra values. Optionally it watches
// the node's pods with the kubelet's Pods API (PodWatcher).
package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// SourceName is the name of the client's Status.
const SourceName = "podresources"

// The defaults of Options.
const (
	DefaultSocket   = "/var/lib/kubelet/pod-resources/kubelet.sock"
	DefaultInterval = 10 * time.Second
	DefaultDebounce = 100 * time.Millisecond
	DefaultTimeout  = 5 * time.Second
)

// maxDebounce bounds the delay from a change of a pod to its List.
const maxDebounce = 250 * time.Millisecond

// Options configure a Client. Zero fields have the defaults above.
type Options struct {
	Socket   string        // path of the kubelet's PodResources socket
	Interval time.Duration // between Lists without a RequestList
	Debounce time.Duration // from a RequestList to its List, 250 ms at most
	Timeout  time.Duration // of one List

	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // gets the duration of each List; may be nil
}

// Listing is one response of the kubelet. Callers share its slices and must not
// change them.
type Listing struct {
	Resources dra.PodResources
	At        clock.Instant // time of the response
	Sequence  uint64        // how many Lists had succeeded by then, this one included
}

// Client keeps the kubelet's latest response. All methods except Run may be called
// from any goroutine at any time and never wait for the kubelet.
type Client struct {
	socket  string
	timeout time.Duration
	now     clock.Clock
	tracker *source.Tracker
	pace    listPace

	requests chan struct{}
	changed  chan struct{}
	latest   atomic.Pointer[Listing]

	visibility visibility    // of the newest connection
	connection *connection   // only used by Run; nil until needed and after a failure
	hungSince  clock.Instant // only used by Run
}

// New returns a client that does nothing until Run.
func New(options Options) *Client {
	options = options.complete()
	return &Client{
		socket:   options.Socket,
		timeout:  options.Timeout,
		now:      options.Clock,
		tracker:  source.NewTracker(SourceName, options.Log, options.Clock, options.Observe),
		pace:     newListPace(options.Interval, options.Debounce),
		requests: make(chan struct{}, 1),
		changed:  make(chan struct{}, 1),
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

// Run lists immediately, then after every interval and every RequestList, one List
// at a time, until ctx ends. It is called once.
func (c *Client) Run(ctx context.Context) {
	defer c.disconnect()
	c.pace.run(ctx, c.requests, c.list)
}

// RequestList requests a List because a pod on this node has changed. It follows within
// 250 ms, unless one is running or the kubelet limits the rate of requests.
// Several requests in that time result in one List.
func (c *Client) RequestList() { signal(c.requests) }

// Latest returns the last successful response, and false before the first.
func (c *Client) Latest() (Listing, bool) {
	latest := c.latest.Load()
	if latest == nil {
		return Listing{}, false
	}
	return *latest, true
}

// Changed receives after each List that succeeded or changed the Status. It
// buffers one signal: a slow receiver misses signals, but never the last one.
func (c *Client) Changed() <-chan struct{} { return c.changed }

// Status returns the status of the source. HungSince is set from the first List
// that timed out until the kubelet responds again.
func (c *Client) Status() source.Status { return c.tracker.Status() }

func signal(changes chan<- struct{}) {
	select {
	case changes <- struct{}{}:
	default:
	}
}

// list calls List once and records the result. Its error determines the next delay;
// an error because ctx ended is no failure of the kubelet.
func (c *Client) list(ctx context.Context) error {
	previous := c.tracker.Status()
	began, end := c.now(), c.tracker.Begin()
	stopReport := c.reportLate(c.timeout/2, began)
	answer, err := c.fetch(ctx)
	stopReport()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		c.keep(answer)
	}
	c.recordHang(began, err)
	end(err)
	now := c.tracker.Status()
	if err == nil || now.Up != previous.Up || now.Reason != previous.Reason || now.HungSince != previous.HungSince {
		signal(c.changed)
	}
	return err
}

// reportLate reports a List as late after that time, unless the function that it
// returns is called before: the status of a kubelet that hangs must not be up until
// the timeout.
func (c *Client) reportLate(timeout time.Duration, began clock.Instant) (stop func()) {
	var mu sync.Mutex
	done := false
	late := time.AfterFunc(timeout, func() {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return
		}
		c.tracker.Late(began, lateAnswer(c.socket, timeout))
		signal(c.changed)
	})
	return func() {
		late.Stop()
		mu.Lock()
		defer mu.Unlock()
		done = true
	}
}

func (c *Client) keep(answer *podresourcesv1.ListPodResourcesResponse) {
	listing := Listing{Resources: Decode(answer), At: c.now(), Sequence: 1}
	if latest := c.latest.Load(); latest != nil {
		listing.Sequence = latest.Sequence + 1
	}
	c.latest.Store(&listing)
}

// recordHang keeps the start of the first of several Lists that timed out: the
// timeout of one does not mean that the kubelet has recovered.
func (c *Client) recordHang(began clock.Instant, err error) {
	switch {
	case source.ReasonOf(err) != source.ReasonTimeout:
		c.hungSince = clock.Instant{}
	case c.hungSince.IsZero():
		c.hungSince = began
	}
	c.tracker.Hang(c.hungSince)
}

// fetch calls List within the timeout. After a failure the next call opens a new
// connection, so that neither a broken connection nor gRPC's own backoff delays the
// first response of a kubelet that has restarted.
func (c *Client) fetch(ctx context.Context) (*podresourcesv1.ListPodResourcesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if c.connection == nil {
		connection, err := connect(c.socket, 2*c.timeout, c.visibility.observe)
		if err != nil {
			return nil, err
		}
		c.connection = connection
	}
	lister := podresourcesv1.NewPodResourcesListerClient(c.connection.channel)
	answer, err := lister.List(ctx, &podresourcesv1.ListPodResourcesRequest{})
	if err == nil {
		return answer, nil
	}
	err = explain(err, c.connection.dialFailure(), c.socket, c.timeout)
	c.disconnect()
	return nil, err
}

func (c *Client) disconnect() {
	if c.connection != nil {
		// Close fails only for a channel that is closed already.
		_ = c.connection.channel.Close()
		c.connection = nil
	}
}

// connection is a gRPC channel to the kubelet's socket that keeps the error of the
// last dial: gRPC itself keeps only its text.
type connection struct {
	channel   *grpc.ClientConn
	connected func(net.Conn) // called with each new connection

	mu     sync.Mutex
	failed error
}

// connect prepares a connection; the first call dials the socket. timeout bounds
// the server's part of the handshake. It must be longer than a call's deadline, so
// that a kubelet which accepts and sends nothing is reported as one that hangs.
func connect(socket string, timeout time.Duration, connected func(net.Conn)) (*connection, error) {
	c := &connection{connected: connected}
	channel, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer), grpc.ForceCodecV2(objectfields.Codec(checkEntries))),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: timeout}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.dial(ctx, socket) }))
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", socket, err)
	}
	c.channel = channel
	return c, nil
}

func (c *connection) dial(ctx context.Context, socket string) (net.Conn, error) {
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err == nil {
		c.connected(dialed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
	return dialed, err
}

func (c *connection) dialFailure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// visibility is whether the kubelet's process has a pid in the pid namespace
// of this program. It is safe for concurrent use.
type visibility struct{ known atomic.Pointer[bool] }

// observe determines it from a connection to the kubelet's socket.
func (v *visibility) observe(connection net.Conn) {
	pid, err := peer(connection)
	if err != nil {
		v.known.Store(nil)
		return
	}
	visible := pid != 0
	v.known.Store(&visible)
}

// Visible reports whether the kubelet's process is visible, that is, whether this
// program shares the node's pid namespace or that of an ancestor: otherwise the
// node's processes are not visible. It is known after the first connection to the
// socket, and updated with each.
func (c *Client) Visible() (visible, known bool) {
	if visible := c.visibility.known.Load(); visible != nil {
		return *visible, true
	}
	return false, false
}
