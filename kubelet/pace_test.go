package kubelet

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// lists runs a pace until script returns, and returns the times of its Lists since
// the start. Each List takes 1 ms and ends with the next of outcomes, and with the
// last of them from then on.
func lists(t *testing.T, outcomes []error, script func(request func())) []time.Duration {
	var at []time.Duration
	synctest.Test(t, func(t *testing.T) {
		p := newListPace(10*time.Second, 100*time.Millisecond)
		p.random = func() float64 { return 0 }
		requests, began, done := make(chan struct{}, 1), time.Now(), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			p.run(ctx, requests, func(context.Context) error {
				at = append(at, time.Since(began))
				time.Sleep(time.Millisecond)
				return outcomes[min(len(at), len(outcomes))-1]
			})
		}()
		script(func() { signal(requests) })
		cancel()
		<-done
	})
	return at
}

func milliseconds(counts ...int) []time.Duration {
	var durations []time.Duration
	for _, count := range counts {
		durations = append(durations, time.Duration(count)*time.Millisecond)
	}
	return durations
}

func TestPace(t *testing.T) {
	exhausted := &source.Failure{Reason: source.ReasonResourceExhausted, Err: errors.New("rejected by rate limit")}
	missing := &source.Failure{Reason: source.ReasonNotFound, Err: errors.New("no such socket")}
	for name, test := range map[string]struct {
		outcomes []error
		script   func(request func())
		want     []time.Duration
	}{
		"immediately and every interval": {
			[]error{nil},
			func(func()) { time.Sleep(21 * time.Second) },
			milliseconds(0, 10_001, 20_002)},
		"debounced after a request": {
			[]error{nil},
			func(request func()) {
				time.Sleep(time.Second)
				request()
				time.Sleep(10 * time.Second)
			},
			milliseconds(0, 1_100)},
		"a burst makes one List": {
			[]error{nil},
			func(request func()) {
				time.Sleep(time.Second)
				for range 90 {
					request()
					time.Sleep(time.Millisecond)
				}
				time.Sleep(5 * time.Second)
			},
			milliseconds(0, 1_100)},
		"a steady stream of requests does not delay it": {
			[]error{nil},
			func(request func()) {
				for range 30 {
					time.Sleep(9 * time.Millisecond)
					request()
				}
				time.Sleep(5 * time.Second)
			},
			milliseconds(0, 109, 217, 325)},
		"a request during a List": {
			[]error{nil},
			func(request func()) {
				time.Sleep(500 * time.Microsecond)
				request()
				time.Sleep(5 * time.Second)
			},
			milliseconds(0, 101)},
		"a failure is retried soon": {
			[]error{missing, missing, missing, missing, missing, nil},
			func(func()) { time.Sleep(12 * time.Second) },
			milliseconds(0, 251, 752, 1_753, 3_754, 5_755)},
		"a request shortens the delay after a failure": {
			[]error{missing, missing, missing, missing, nil},
			func(request func()) {
				time.Sleep(1_800 * time.Millisecond)
				request()
				time.Sleep(5 * time.Second)
			},
			milliseconds(0, 251, 752, 1_753, 1_900)},
		"requests do not shorten the delay of a rate limit": {
			[]error{exhausted},
			func(request func()) {
				for range 7000 {
					request()
					time.Sleep(10 * time.Millisecond)
				}
			},
			milliseconds(0, 501, 1_502, 3_503, 7_504, 15_505, 31_506, 61_507)},
		"the interval applies again after a rate limit": {
			[]error{exhausted, exhausted, nil, exhausted, nil},
			func(func()) { time.Sleep(25 * time.Second) },
			milliseconds(0, 501, 1_502, 11_503, 12_004, 22_005)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lists(t, test.outcomes, test.script); !slices.Equal(got, test.want) {
				t.Errorf("listed at %v\nwant       %v", got, test.want)
			}
		})
	}
}

func TestBackoffIsJittered(t *testing.T) {
	p := newListPace(10*time.Second, 0)
	p.failures = 3
	for random, want := range map[float64]time.Duration{0: 2 * time.Second, 0.5: 1500 * time.Millisecond, 1: time.Second} {
		p.random = func() float64 { return random }
		if got := p.backoff(firstBackoff, time.Minute); got != want {
			t.Errorf("with %v: got %v, want %v", random, got, want)
		}
	}
	p.failures = 1 << 40
	if got := p.backoff(firstBackoff, time.Minute); got > time.Minute || got <= 0 {
		t.Errorf("after very many failures: got %v", got)
	}
}
