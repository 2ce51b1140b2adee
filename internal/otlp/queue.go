package otlp

import (
	"sync"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// traceQueue keeps traces until a collector has accepted them, oldest first. It is
// safe for concurrent use by any number of producers and one consumer.
//
// It is bounded by weight. The weight of a trace is its number of spans and
// events: an event's message takes about as much memory as a span, or as four
// devices. Long texts add to it.
type traceQueue struct {
	capacity int
	length   func(traces int) // called at each change, in order; must not block
	changed  chan struct{}    // receives after each add

	mu     sync.Mutex
	traces []trace.Trace
	weight int
	ended  bool // the consumer has returned
}

func newTraceQueue(capacity int, length func(int)) *traceQueue {
	length(0)
	return &traceQueue{capacity: capacity, length: length, changed: make(chan struct{}, 1)}
}

// add appends the traces that fit and returns how many do not, and whether that is
// because the queue has ended. An empty queue accepts a trace of any weight.
func (q *traceQueue) add(traces []trace.Trace) (refused int, ended bool) {
	if len(traces) == 0 {
		return 0, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return len(traces), true
	}
	for i := range traces {
		weight := traceWeight(&traces[i])
		if q.weight > 0 && q.weight+weight > q.capacity {
			refused++
			continue
		}
		q.traces = append(q.traces, traces[i])
		q.weight += weight
	}
	q.length(len(q.traces))
	select {
	case q.changed <- struct{}{}:
	default:
	}
	return refused, false
}

// end removes all traces, accepts no more, and returns how many were left.
func (q *traceQueue) end() (left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	left = len(q.traces)
	q.traces, q.weight, q.ended = nil, 0, true
	q.length(0)
	return left
}

// head returns the oldest traces with at most that weight together, and at least
// one if there is any. They stay in the queue.
func (q *traceQueue) head(limit int) []trace.Trace {
	q.mu.Lock()
	defer q.mu.Unlock()
	weight := 0
	for i := range q.traces {
		weight += traceWeight(&q.traces[i])
		if weight > limit {
			return q.traces[:max(i, 1)]
		}
	}
	return q.traces
}

// remove removes the oldest n traces.
func (q *traceQueue) remove(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.traces[:n] {
		q.weight -= traceWeight(&q.traces[i])
	}
	clear(q.traces[:n]) // the array stays in use
	q.traces = q.traces[n:]
	if len(q.traces) == 0 {
		q.traces = nil
	}
	q.length(len(q.traces))
}

// size is the number of traces and their weight.
func (q *traceQueue) size() (traces, weight int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.traces), q.weight
}

// spanText is how many bytes of text count as a span. A usual trace has fewer.
const spanText = 512

// traceWeight is the weight of a trace in queues and batches, in spans.
func traceWeight(t *trace.Trace) int {
	weight := len(t.Spans) + len(t.Claim.Devices)/4
	text := len(t.Claim.Namespace) + len(t.Claim.Name) + len(t.Claim.UID) + len(t.Claim.Class) +
		len(t.Pod.Name) + len(t.Pod.UID) + len(t.Pod.Node)
	for i := range t.Claim.Devices {
		d := &t.Claim.Devices[i]
		text += len(d.Driver) + len(d.Pool) + len(d.Name) + len(d.Request)
	}
	for i := range t.Spans {
		weight += len(t.Spans[i].Events)
		text += len(t.Spans[i].Message)
		for j := range t.Spans[i].Events {
			text += len(t.Spans[i].Events[j].Message)
		}
	}
	return weight + text/spanText
}

// batchWeight is the weight of the traces together.
func batchWeight(traces []trace.Trace) int {
	weight := 0
	for i := range traces {
		weight += traceWeight(&traces[i])
	}
	return weight
}
