package otlp

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

// heapInUse is what is in use after a collection, at the calmest of some
// moments: an export that is under way comes and goes.
func heapInUse() int64 {
	least := int64(math.MaxInt64)
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // what finalizers held
		runtime.ReadMemStats(&stats)
		least = min(least, int64(stats.HeapAlloc))
	}
	return least
}

// Ten thousand lifecycles leave nothing behind, whether a collector takes them
// or they wait for one and are dropped.
func TestTracesLeaveNoMemoryBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("plays more than twenty thousand lifecycles")
	}
	const round = 5000
	tracing := startTracing(t, settings.ProtocolGRPC, func(o *tracerOptions) {
		o.QueueSize, o.BatchSize = 60_000, 512
		o.Retry = &backoff.ExponentialBackOff{InitialInterval: 3 * time.Second, MaxInterval: 3 * time.Second} // a try shows in the heap
	})
	play := func(from int) int64 {
		tracing.collector.Forget()
		tracing.Offer(lifecycles(from, from+round))
		tracing.idle(t)
		tracing.collector.Forget()
		return heapInUse()
	}
	before := play(0)
	if grown := play(round) - before; grown > 1<<20 {
		t.Errorf("5,000 more lifecycles left %d KiB behind", grown>>10)
	}
	tracing.collector.Stop()
	tracing.Offer(lifecycles(0, 12_000)) // more than fits
	full := heapInUse()
	n, weight := tracing.queue.size()
	if weight > 60_000 || n != 10_000 {
		t.Errorf("%d traces are queued that weigh %d", n, weight)
	}
	t.Logf("%d queued traces hold %d KiB, %d bytes each", n, (full-before)>>10, (full-before)/int64(n))
	tracing.Offer(lifecycles(0, round))
	if grown := heapInUse() - full; grown > 1<<20 {
		t.Errorf("a full queue grew by %d KiB", grown>>10)
	}
	tracing.lost(t, map[string]int{reasonQueueFull: 7_000, reasonShutdown: 10_000})
	if left := heapInUse() - before; left > 1<<20 {
		t.Errorf("a queue that was full left %d KiB behind", left>>10)
	}
}

// The queue takes no more memory when objects have the
// longest names and messages that there may be.
func TestQueueOfLongTexts(t *testing.T) {
	const name, message = 253, 4096
	text := func(length, n int) string { return fmt.Sprintf("%0*d", length, n) }
	for what, lengthen := range map[string]func(*trace.Trace, int){
		"messages": func(l *trace.Trace, n int) {
			l.Spans[0].Message = text(message, n)
			for i := range l.Spans[1].Events {
				l.Spans[1].Events[i].Message = text(message, n+i)
			}
		},
		"names": func(l *trace.Trace, n int) {
			l.Spans = l.Spans[:1]
			l.Claim.Namespace, l.Claim.Name, l.Claim.Class = text(63, n), text(name, n), text(name, n+1)
			l.Pod.Name, l.Pod.Node = text(name, n+2), text(name, n+3)
		},
		"devices": func(l *trace.Trace, n int) {
			for i := range 32 {
				l.Claim.Devices = append(l.Claim.Devices, trace.Device{Driver: text(63, i), Pool: text(name, n), Name: text(63, n+i), Request: text(63, i)})
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			before := heapInUse()
			q := newTraceQueue(settings.DefaultQueueSize, func(int) {})
			for n := range settings.DefaultQueueSize + 1 {
				l := lifecycle(n)
				lengthen(&l, n)
				if refused, _ := q.add([]trace.Trace{l}); refused > 0 {
					break
				}
			}
			held := heapInUse() - before
			traces, _ := q.size()
			t.Logf("%d traces take %d MiB", traces, held>>20)
			if held > 80<<20 {
				t.Errorf("%d traces take %d MiB", traces, held>>20)
			}
		})
	}
}

// discard accepts all spans.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// BenchmarkTrace is what one trace of five spans costs, from Offer to the
// exporter.
func BenchmarkTrace(b *testing.B) {
	tracer := newTracer(tracerOptions{
		Exporter: discard{}, Resource: resource.Empty(), QueueSize: 65_536, BatchSize: 512,
		Queued: func(int) {}, Dropped: func(string, int) { b.Error("a trace was dropped") },
	})
	traces := []trace.Trace{lifecycle(1)}
	b.ReportAllocs()
	for b.Loop() {
		tracer.Offer(traces)
		tracer.flush(b.Context())
	}
}

// BenchmarkOffer is what the reducer's goroutine pays for a trace.
func BenchmarkOffer(b *testing.B) {
	tracer := newTracer(tracerOptions{
		Exporter: discard{}, Resource: resource.Empty(), QueueSize: 1 << 30, BatchSize: 512,
		Queued: func(int) {}, Dropped: func(string, int) { b.Error("a trace was dropped") },
	})
	traces := []trace.Trace{lifecycle(1)}
	b.ReportAllocs()
	for b.Loop() {
		tracer.Offer(traces)
		tracer.queue.remove(1)
	}
}
