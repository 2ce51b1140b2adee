package kubelet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// maxAnswer is the largest answer in bytes: the limit of Kubernetes' own node
// tests. gRPC's default of 4 MiB is too small for a full node.
const maxAnswer = 16 << 20

// list makes one List and records the outcome. Its error sets the backoff; an
// error because ctx ended is no failure of the kubelet.
func (c *Client) list(ctx context.Context) error {
	before := c.tracker.Status()
	began, end := c.now(), c.tracker.Begin()
	answered := c.expectWithin(c.timeout/2, began)
	answer, err := c.fetch(ctx)
	answered()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		c.keep(answer)
	}
	c.noteHang(began, err)
	end(err)
	after := c.tracker.Status()
	if err == nil || after.Up != before.Up || after.Reason != before.Reason || after.HungSince != before.HungSince {
		signal(c.changed)
	}
	return err
}

// expectWithin records that a List is late, unless the returned function is
// called in time: a kubelet that hangs must not appear healthy until the List
// times out.
func (c *Client) expectWithin(patience time.Duration, began clock.Instant) (answered func()) {
	var mu sync.Mutex
	done := false
	late := time.AfterFunc(patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return
		}
		c.tracker.Late(began, lateAnswer(c.socket, patience))
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

// noteHang keeps the start of the first of several Lists that timed out: a
// timeout does not mean that the kubelet has recovered.
func (c *Client) noteHang(began clock.Instant, err error) {
	switch {
	case source.ReasonOf(err) != source.ReasonTimeout:
		c.hungSince = clock.Instant{}
	case c.hungSince.IsZero():
		c.hungSince = began
	}
	c.tracker.Hang(c.hungSince)
}

// fetch makes one List within the timeout. It reconnects after a failure, so
// that neither a dead connection nor gRPC's backoff delays the first answer of
// a kubelet that is back.
func (c *Client) fetch(ctx context.Context) (*podresourcesv1.ListPodResourcesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if c.connection == nil {
		connection, err := connect(c.socket, 2*c.timeout, c.visibility.note)
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

// connection is a gRPC channel to the kubelet's socket that remembers why the
// socket could not be reached: gRPC itself keeps only the text of that error.
type connection struct {
	channel   *grpc.ClientConn
	connected func(net.Conn) // called with each new connection

	mu     sync.Mutex
	failed error
}

// connect prepares a connection; the first call opens the socket. patience is
// the timeout of the handshake. It must be longer than a call's deadline, so
// that a kubelet that accepts and sends nothing counts as hung.
func connect(socket string, patience time.Duration, connected func(net.Conn)) (*connection, error) {
	c := &connection{connected: connected}
	channel, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer), grpc.ForceCodecV2(newCountingCodec())),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: patience}),
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
