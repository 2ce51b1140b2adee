package otelcollector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Options define how the collector starts.
type Options struct {
	// TLS is what both servers show; nil: plaintext.
	TLS *tls.Config
	// Socket is a path where gRPC listens instead of on a port.
	Socket string
	// MetricsPath and TracesPath are where HTTP takes each signal; empty:
	// /v1/metrics and /v1/traces.
	MetricsPath, TracesPath string
	// Keep is how many requests are kept, the newest; zero: 1,000.
	Keep int
	// LargestMessage is what gRPC takes, in bytes; zero: 4 MiB, as the real
	// collector.
	LargestMessage int
}

// Collector takes OTLP. All methods are safe for concurrent use.
type Collector struct {
	options Options

	mu       sync.Mutex // of what follows
	answer   func(Request) Answer
	requests []Request
	counts   Counts
	changed  chan struct{} // closed and replaced with each request
	released chan struct{} // closed and replaced by Release

	serving    sync.Mutex // held over a change of the servers
	grpc, http string     // the addresses, the same after a restart
	stop       func()     // nil: stopped
}

// Counts is what has come to the collector so far.
type Counts struct {
	Requests     int // decoded, kept or not
	Taken        int // of them
	InFlight     int // asked and not answered yet
	MostInFlight int // at any one time
}

// Start serves both protocols, each at an address of its own, until Close.
func Start(options Options) (*Collector, error) {
	if options.Keep == 0 {
		options.Keep = 1000
	}
	if options.LargestMessage == 0 {
		options.LargestMessage = 4 << 20
	}
	c := &Collector{options: options, changed: make(chan struct{}), released: make(chan struct{}),
		grpc: "127.0.0.1:0", http: "127.0.0.1:0"}
	if err := c.launch(); err != nil {
		return nil, err
	}
	return c, nil
}

// GRPC is the address of the gRPC server, host and port, or the path of its
// socket. It stays the same while the collector is stopped.
func (c *Collector) GRPC() string {
	c.serving.Lock()
	defer c.serving.Unlock()
	return c.grpc
}

// HTTP is the address of the HTTP server, host and port. It stays the same
// while the collector is stopped.
func (c *Collector) HTTP() string {
	c.serving.Lock()
	defer c.serving.Unlock()
	return c.http
}

// Address is that of the server for a protocol by the specification's name of
// it, "grpc" or "http/protobuf".
func (c *Collector) Address(protocol string) string {
	if protocol == "grpc" {
		return c.GRPC()
	}
	return c.HTTP()
}

// Stop breaks all connections and leaves the addresses: whoever connects is
// refused. What was taken stays.
func (c *Collector) Stop() {
	c.serving.Lock()
	defer c.serving.Unlock()
	c.halt()
}

// Restart stops the collector, if it runs, and serves at the same addresses.
func (c *Collector) Restart() error {
	c.serving.Lock()
	defer c.serving.Unlock()
	c.halt()
	return c.launch()
}

// Close is Stop, for good. It may be called again.
func (c *Collector) Close() { c.Stop() }

// halt wants serving held.
func (c *Collector) halt() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// launch wants serving held, but by Start.
func (c *Collector) launch() error {
	network, address := "tcp", c.grpc
	if c.options.Socket != "" {
		network, address = "unix", c.options.Socket
	}
	forGRPC, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("listen as the simulated collector, gRPC: %w", err)
	}
	forHTTP, err := net.Listen("tcp", c.http)
	if err != nil {
		return errors.Join(fmt.Errorf("listen as the simulated collector, HTTP: %w", err), forGRPC.Close())
	}
	c.grpc, c.http = forGRPC.Addr().String(), forHTTP.Addr().String()
	life, end := context.WithCancel(context.Background())
	stopGRPC, stopHTTP := c.serveGRPC(life, forGRPC), c.serveHTTP(life, forHTTP)
	c.stop = func() {
		end()
		stopGRPC()
		stopHTTP()
	}
	return nil
}

// Answer sets how requests are answered from now on; nil: all are accepted. The
// function is called by several goroutines at once.
func (c *Collector) Answer(answer func(Request) Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// Always is a function for Answer that gives the same to every request.
func Always(answer Answer) func(Request) Answer {
	return func(Request) Answer { return answer }
}

// Release ends the hang of the requests that hang now. Later ones hang again.
func (c *Collector) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.released)
	c.released = make(chan struct{})
}

// Counts returns what has come so far.
func (c *Collector) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// Requests returns the kept requests, refused ones among them, in the order in
// which they were answered. The messages must not be changed.
func (c *Collector) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Metrics returns what was taken of metrics and is kept, in order. The
// messages must not be changed.
func (c *Collector) Metrics() []*metricspb.ResourceMetrics {
	var taken []*metricspb.ResourceMetrics
	for _, request := range c.Requests() {
		if request.Taken {
			taken = append(taken, request.Metrics...)
		}
	}
	return taken
}

// Spans returns what was taken of traces and is kept, in order. The messages
// must not be changed.
func (c *Collector) Spans() []*tracepb.ResourceSpans {
	var taken []*tracepb.ResourceSpans
	for _, request := range c.Requests() {
		if request.Taken {
			taken = append(taken, request.Spans...)
		}
	}
	return taken
}

// Forget drops the kept requests. The counts go on.
func (c *Collector) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = nil
}

// Await waits until the condition holds, which is asked now and after each
// request, or until ctx ends; it reports whether it held.
func (c *Collector) Await(ctx context.Context, condition func(*Collector) bool) bool {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if condition(c) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return condition(c)
		}
	}
}
