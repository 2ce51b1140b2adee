package otelcollector

import (
	"context"
	"net/http"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
)

// Request is one request that was decoded.
type Request struct {
	Signal   string // "metrics" or "traces"
	Protocol string // "grpc" or "http/protobuf"
	// Header are those of HTTP or the metadata of gRPC, by canonical names.
	Header http.Header
	// Compression is "gzip" or empty.
	Compression string
	// Bytes is the size of the message as it came, compressed or not.
	Bytes   int
	Metrics []*metricspb.ResourceMetrics
	Spans   []*tracepb.ResourceSpans
	Taken   bool // with or without a part that was rejected
}

// Answer is how the collector treats a request. The zero answer takes it.
type Answer struct {
	// Code is the status of gRPC. Over HTTP it is the status that the
	// specification pairs with it, unless Status says otherwise.
	Code    codes.Code
	Status  int
	Message string
	// RetryAfter is when to come again: RetryInfo of gRPC, Retry-After of HTTP,
	// there in whole seconds. Zero: nothing is said of it.
	RetryAfter time.Duration
	// Rejected is how many points or spans of a request that is taken are said
	// to be rejected.
	Rejected int64
	// Hang leaves the request without an answer until Release; the client may
	// leave before, and then it is not taken.
	Hang bool
	// Break closes the connection instead of answering. A request that would
	// have been taken is taken all the same: its answer is lost.
	Break bool
}

func (a Answer) refuses() bool { return a.Code != codes.OK || a.Status >= 300 }

// treat finds out what becomes of a request and keeps it. The second result is
// false where the client or the server left before there was an answer.
func (c *Collector) treat(life, ctx context.Context, request Request) (Answer, bool) {
	c.mu.Lock()
	c.counts.Requests++
	c.counts.InFlight++
	c.counts.MostInFlight = max(c.counts.MostInFlight, c.counts.InFlight)
	script, released := c.answer, c.released
	c.announce()
	c.mu.Unlock()
	var answer Answer
	if script != nil {
		answer = script(request)
	}
	there := true
	if answer.Hang {
		select {
		case <-released:
		case <-ctx.Done():
			there = false
		case <-life.Done():
			there = false
		}
	}
	request.Taken = there && !answer.refuses()
	c.keep(request)
	return answer, there
}

// keep counts a request that is answered and keeps it among the newest.
func (c *Collector) keep(request Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.InFlight--
	if request.Taken {
		c.counts.Taken++
	}
	if len(c.requests) >= c.options.Keep {
		c.requests = append(c.requests[:0], c.requests[len(c.requests)-c.options.Keep+1:]...)
	}
	c.requests = append(c.requests, request)
	c.announce()
}

// announce wakes those that await something. It wants mu held.
func (c *Collector) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}
