package otlp

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// exactly checks that each of these traces arrived, once and in order.
func (r *tracing) exactly(t *testing.T, numbers ...int) {
	t.Helper()
	for i, span := range r.await(t, 5*len(numbers)) {
		want := fmt.Sprintf("claim-%d", numbers[i/5])
		if got := attributesOf(span.GetAttributes())["dra.resourceclaim.name"]; got != want {
			t.Fatalf("span %d is of %s, want %s", i, got, want)
		}
	}
}

// awaitRequests waits until the collector has had that many requests.
func (r *tracing) awaitRequests(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), spanPatience)
	defer cancel()
	if !r.collector.Await(ctx, func(c *otelcollector.Collector) bool { return c.Counts().Requests >= n }) {
		t.Fatalf("the collector was asked %d times, want %d", r.collector.Counts().Requests, n)
	}
}

// idle waits until nothing is queued.
func (r *tracing) idle(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * spanPatience); ; time.Sleep(10 * time.Millisecond) {
		if n, _ := r.queue.size(); n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the queue does not empty")
		}
	}
}

// lost checks what was counted as dropped in the end.
func (r *tracing) lost(t *testing.T, want map[string]int) {
	t.Helper()
	queued, dropped := r.finish()
	if queued != 0 || !maps.Equal(dropped, want) {
		t.Errorf("%d are queued in the end and %v were dropped, want %v", queued, dropped, want)
	}
}

// Traces wait for a collector that is not there yet, and for one that has
// died, and then arrive once and in order.
func TestTracesOutliveTheCollector(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, nil)
		tracing.collector.Stop()
		tracing.Offer(lifecycles(0, 3))
		restart(t, tracing)
		tracing.exactly(t, 0, 1, 2)
		tracing.idle(t) // the answer has come back, too
		tracing.collector.Stop()
		tracing.Offer(lifecycles(3, 5))
		tracing.Offer(lifecycles(5, 6))
		restart(t, tracing)
		tracing.exactly(t, 0, 1, 2, 3, 4, 5)
		tracing.lost(t, nil)
	})
}

// restart brings the collector back when the tracer has missed it.
func restart(t *testing.T, tracing *tracing) {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // some tries fail
	if err := tracing.collector.Restart(); err != nil {
		t.Fatal(err)
	}
}

// What a collector refuses for now it is given again; what it refuses for good
// is dropped, counted, and blocks nothing.
func TestTracesRefused(t *testing.T) {
	for name, test := range map[string]struct {
		answer  otelcollector.Answer
		forGood bool
	}{
		"exhausted":            {otelcollector.Answer{Code: codes.ResourceExhausted, Message: "rate limit"}, false},
		"exhausted, come back": {otelcollector.Answer{Code: codes.ResourceExhausted, RetryAfter: time.Second}, false},
		"unavailable":          {otelcollector.Answer{Code: codes.Unavailable}, false},
		"invalid":              {otelcollector.Answer{Code: codes.InvalidArgument, Message: "no"}, true},
		"unauthenticated":      {otelcollector.Answer{Code: codes.Unauthenticated}, true},
		"unimplemented":        {otelcollector.Answer{Code: codes.Unimplemented}, true},
		"broken":               {otelcollector.Answer{Code: codes.Internal}, true},
	} {
		t.Run(name, func(t *testing.T) {
			protocols(t, func(t *testing.T, protocol string) {
				tracing := startTracing(t, protocol, nil)
				refusals := 3
				if test.forGood || test.answer.RetryAfter > 0 {
					refusals = 1
				}
				var asked atomic.Int32
				var times sync.Map
				tracing.collector.Answer(func(otelcollector.Request) otelcollector.Answer {
					n := int(asked.Add(1))
					times.Store(n, time.Now())
					if n <= refusals {
						return test.answer
					}
					return otelcollector.Answer{}
				})
				tracing.Offer(lifecycles(0, 2))
				tracing.awaitRequests(t, 1)
				if test.forGood {
					tracing.Offer(lifecycles(2, 3))
					tracing.exactly(t, 2)
					tracing.lost(t, map[string]int{reasonRefused: 2})
					return
				}
				tracing.exactly(t, 0, 1)
				if got := int(asked.Load()); got != refusals+1 {
					t.Errorf("the collector was asked %d times, want %d", got, refusals+1)
				}
				first, _ := times.Load(1)
				second, _ := times.Load(2)
				if rest := second.(time.Time).Sub(first.(time.Time)); rest < test.answer.RetryAfter {
					t.Errorf("it was asked again after %v, though it had asked for %v", rest, test.answer.RetryAfter)
				}
				tracing.lost(t, nil)
			})
		})
	}
}

// A slow collector gets one request at a time, and does not block the caller.
// What does not fit into the queue meanwhile is counted.
func TestTracesWhileTheCollectorHangs(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, func(o *tracerOptions) { o.QueueSize, o.BatchSize = 30, 6 })
		tracing.collector.Answer(otelcollector.Always(otelcollector.Answer{Hang: true}))
		tracing.Offer(lifecycles(0, 1))
		tracing.awaitRequests(t, 1)
		tracing.Offer(lifecycles(1, 1000))
		tracing.mu.Lock()
		if tracing.queued != 5 || tracing.dropped[reasonQueueFull] != 995 {
			t.Errorf("%d are queued and %v dropped", tracing.queued, tracing.dropped)
		}
		tracing.mu.Unlock()
		tracing.collector.Answer(nil)
		tracing.collector.Release()
		tracing.exactly(t, 0, 1, 2, 3, 4) // the oldest
		if most := tracing.collector.Counts().MostInFlight; most != 1 {
			t.Errorf("%d exports were in flight", most)
		}
		tracing.lost(t, map[string]int{reasonQueueFull: 995})
	})
}

// An answer that is lost makes a trace arrive twice, with the same ids: for a
// backend that is once.
func TestTraceWhoseAnswerIsLost(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, nil)
		var asked atomic.Int32
		tracing.collector.Answer(func(otelcollector.Request) otelcollector.Answer {
			return otelcollector.Answer{Break: asked.Add(1) == 1}
		})
		tracing.Offer(lifecycles(0, 1))
		ids := map[string]int{}
		for _, span := range tracing.await(t, 10) {
			ids[string(span.GetSpanId())]++
		}
		if len(ids) != 5 {
			t.Errorf("%d ids of five spans", len(ids))
		}
		tracing.lost(t, nil)
	})
}

// A partially accepted batch is not sent again.
func TestTracesTakenInPart(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, nil)
		tracing.collector.Answer(otelcollector.Always(otelcollector.Answer{Rejected: 2, Message: "two too many"}))
		tracing.Offer(lifecycles(0, 1))
		tracing.await(t, 5)
		tracing.Offer(lifecycles(1, 2))
		tracing.exactly(t, 0, 1)
		tracing.lost(t, nil)
	})
}

// A batch that is too large is split until the collector accepts it; a
// trace that is too large by itself is refused.
func TestTracesTooLarge(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, nil)
		const most = 25
		tracing.collector.Answer(func(request otelcollector.Request) otelcollector.Answer {
			spans := 0
			for _, scope := range request.Spans[0].GetScopeSpans() {
				spans += len(scope.GetSpans())
			}
			if spans <= most {
				return otelcollector.Answer{}
			}
			return otelcollector.Answer{Code: codes.ResourceExhausted, Status: 413,
				Message: "grpc: received message larger than max (5000000 vs. 4194304)"}
		})
		tracing.Offer(lifecycles(0, 10))
		tracing.exactly(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		giant := lifecycle(10)
		for len(giant.Spans) <= most {
			giant.Spans = append(giant.Spans, giant.Spans[1:]...)
		}
		tracing.Offer([]trace.Trace{giant})
		tracing.Offer(lifecycles(12, 13))
		tracing.exactly(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12)
		tracing.lost(t, map[string]int{reasonRefused: 1})
	})
}

// At the end, what waits is exported at once.
func TestTracesAreFlushedAtTheEnd(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, func(o *tracerOptions) { o.Delay, o.BatchSize = time.Hour, 12 })
		tracing.Offer(lifecycles(0, 1))
		tracing.lost(t, nil)
		tracing.exactly(t, 0)
	})
}

// Whatever the collector does, Run ends soon after its context, long before an
// export's own time is up, and counts what it could not export.
func TestTracesAtTheEndWithoutACollector(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		for name, misbehave := range map[string]func(*otelcollector.Collector){
			"absent":  (*otelcollector.Collector).Stop,
			"hanging": func(c *otelcollector.Collector) { c.Answer(otelcollector.Always(otelcollector.Answer{Hang: true})) },
			"refusing": func(c *otelcollector.Collector) {
				c.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.Unavailable}))
			},
			"asking for a rest": func(c *otelcollector.Collector) {
				c.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.Unavailable, RetryAfter: time.Hour}))
			},
		} {
			t.Run(name, func(t *testing.T) {
				tracing := startTracing(t, protocol, nil)
				misbehave(tracing.collector)
				tracing.Offer(lifecycles(0, 30))
				time.Sleep(100 * time.Millisecond) // it is at it
				began := time.Now()
				tracing.lost(t, map[string]int{reasonShutdown: 30})
				if took := time.Since(began); took > spanPatience/2 {
					t.Errorf("it took %v to end", took)
				}
			})
		}
	})
}

// Many may offer at once: nothing is lost and nothing doubled.
func TestTracesFromManySides(t *testing.T) {
	tracing := startTracing(t, settings.ProtocolGRPC, nil)
	var givers sync.WaitGroup
	for giver := range 10 {
		givers.Go(func() {
			for n := range 10 {
				tracing.Offer(lifecycles(giver*100+n, giver*100+n+1))
			}
		})
	}
	givers.Wait()
	ids := map[string]bool{}
	for _, span := range tracing.await(t, 500) {
		ids[string(span.GetSpanId())] = true
	}
	if len(ids) != 500 {
		t.Errorf("%d different spans of 500", len(ids))
	}
	tracing.lost(t, nil)
}

// A collector that asks for a longer pause is not called at the end.
func TestTracesRestAtTheEnd(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, nil)
		tracing.collector.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.Unavailable, RetryAfter: time.Hour}))
		tracing.Offer(lifecycles(0, 30))
		tracing.awaitRequests(t, 1)
		tracing.lost(t, map[string]int{reasonShutdown: 30})
		if got := tracing.collector.Counts().Requests; got != 1 {
			t.Errorf("it was asked %d times", got)
		}
	})
}

// What comes when nothing is exported any more is lost, and counted.
func TestTracesAfterTheEnd(t *testing.T) {
	tracing := startTracing(t, settings.ProtocolGRPC, nil)
	tracing.finish()
	tracing.Offer(lifecycles(0, 3))
	tracing.lost(t, map[string]int{reasonShutdown: 3})
}
