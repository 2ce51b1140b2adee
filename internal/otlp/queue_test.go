package otlp

import (
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

func TestTraceQueue(t *testing.T) {
	var lengths []int
	q := newTraceQueue(12, func(n int) { lengths = append(lengths, n) })
	heavy := lifecycle(0) // five spans and an event
	light := heavy
	light.Spans = light.Spans[:1]
	if refused, _ := q.add([]trace.Trace{heavy, heavy, light}); refused != 1 {
		t.Errorf("%d of 13 refused by a queue of 12", refused)
	}
	if n, weight := q.size(); n != 2 || weight != 12 {
		t.Errorf("%d traces that weigh %d", n, weight)
	}
	for limit, want := range map[int]int{1: 1, 6: 1, 11: 1, 12: 2, 100: 2} {
		if got := len(q.head(limit)); got != want {
			t.Errorf("%d traces weigh at most %d, want %d", got, limit, want)
		}
	}
	q.remove(1)
	if refused, _ := q.add([]trace.Trace{light}); refused != 0 {
		t.Error("no room after a removal")
	}
	if got := q.head(100); len(got) != 2 || len(got[0].Spans) != 5 || len(got[1].Spans) != 1 {
		t.Error("the order changed")
	}
	q.remove(2)
	if n, weight := q.size(); n != 0 || weight != 0 || len(q.head(1)) != 0 {
		t.Errorf("an empty queue has %d traces that weigh %d", n, weight)
	}
	if want := []int{0, 2, 1, 2, 0}; !slices.Equal(lengths, want) {
		t.Errorf("lengths %v, want %v", lengths, want)
	}
}

// A claim of many devices counts as several spans.
func TestTraceQueueWeighsDevices(t *testing.T) {
	q := newTraceQueue(30, func(int) {})
	large := lifecycle(0)
	large.Claim.Devices = make([]trace.Device, 32)
	if refused, _ := q.add([]trace.Trace{large, large, large}); refused != 1 {
		t.Errorf("%d of three refused, want the third", refused)
	}
}

// A trace that is larger than the queue is not lost if the queue is empty.
func TestTraceQueueTakesAnyTraceWhenEmpty(t *testing.T) {
	q := newTraceQueue(1, func(int) {})
	if refused, _ := q.add(lifecycles(0, 2)); refused != 1 {
		t.Errorf("%d refused, want the second alone", refused)
	}
	if got := q.head(1); len(got) != 1 || got[0].Claim.UID != "claim-uid-0" {
		t.Error("the first is not there")
	}
}
