package apiserver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// readings runs a worker with so many reads that are due, each of which takes a time
// and has an error. It returns when each began, and how many ran at once at most.
func readings(t *testing.T, pace *readPace, due int, took time.Duration, failure func(read int) error) (starts []time.Duration, most int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began, running, left := time.Now(), 0, due
	var mu sync.Mutex
	w := newWorker(clock.System(), pace, func() (func(context.Context) error, time.Duration) {
		if len(starts) == due {
			return nil, maxWait
		}
		read := len(starts)
		starts = append(starts, time.Since(began))
		mu.Lock()
		defer mu.Unlock()
		running++
		most = max(most, running)
		return func(context.Context) error {
			time.Sleep(took)
			mu.Lock()
			defer mu.Unlock()
			running--
			if left--; left == 0 {
				stop()
			}
			return failure(read)
		}, 0
	})
	w.run(ctx)
	return starts, most
}

// TestPace checks how many reads run at once, and how long they take, while the API
// server answers quickly, slowly and with failures.
func TestPace(t *testing.T) {
	resource := schema.GroupResource{Resource: "resourceclaims"}
	busy := apierrors.NewTooManyRequests("busy", 3)
	for name, test := range map[string]struct {
		most, due int
		gap       time.Duration
		took      time.Duration
		failure   func(read int) error
		atOnce    int
		last      time.Duration // start of the last read
	}{
		"quick answers":                {most: 8, due: 128, took: 10 * time.Millisecond, atOnce: 8, last: 170 * time.Millisecond},
		"answers that are always slow": {most: 8, due: 6, took: 2 * time.Second, atOnce: 2, last: 8 * time.Second},
		"with a gap":                   {most: 1, due: 4, gap: time.Second, took: 10 * time.Millisecond, atOnce: 1, last: 3 * time.Second},
		"what is missing or forbidden is answered": {
			most: 8, due: 128, took: 10 * time.Millisecond, atOnce: 8, last: 170 * time.Millisecond,
			failure: func(read int) error {
				if read%2 == 0 {
					return apierrors.NewNotFound(resource, "claim")
				}
				return apierrors.NewForbidden(resource, "claim", errors.New("not allowed"))
			},
		},
		// Two at first; then pauses of 3/4 of 50, 100, 200, 400, 800 ms, counted from
		// the second failure on, as jitter is the middle.
		"an outage": {
			most: 8, due: 6, took: 10 * time.Millisecond, atOnce: 2, last: (75 + 150 + 300 + 600 + 4*10) * time.Millisecond,
			failure: func(int) error { return apierrors.NewServiceUnavailable("down") },
		},
		// Three seconds are asked for, beside a quarter of the second pause.
		"rejected twice": {
			most: 8, due: 3, took: 10 * time.Millisecond, atOnce: 2, last: 3*time.Second + 35*time.Millisecond,
			failure: func(read int) error {
				if read < 2 {
					return busy
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.failure == nil {
					test.failure = func(int) error { return nil }
				}
				starts, most := readings(t, newReadPace(test.most, test.gap, middle), test.due, test.took, test.failure)
				if last := starts[len(starts)-1]; most != test.atOnce || last != test.last {
					t.Errorf("%d reads at once, want %d; the last began after %v, want %v: %v", most, test.atOnce, last, test.last, starts)
				}
			})
		})
	}
}

// TestOutageOfManyReads checks that the reads of a node become rare in an outage, and
// that its end resumes them at once.
func TestOutageOfManyReads(t *testing.T) {
	now := clock.Instant{Elapsed: 1}
	p := newReadPace(8, 0, middle)
	failures := 0
	for end := now.Add(5 * time.Minute); now.Elapsed < end.Elapsed; failures++ {
		now = now.Add(p.wait(now))
		p.begin(now)
		p.end(now, now, apierrors.NewTooManyRequests("busy", 1))
	}
	if failures < 40 || failures > 50 { // one in 7.5 s, and a few at first
		t.Errorf("%d requests in five minutes", failures)
	}
	if p.wait(now) == 0 {
		t.Error("there is no pause")
	}
	p.resume()
	if wait := p.wait(now); wait > 0 {
		t.Errorf("the next read waits %v, although the outage is over", wait)
	}
}

func TestRetryAfterIsLimited(t *testing.T) {
	now := clock.Instant{Elapsed: 1}
	p := newReadPace(8, 0, middle)
	p.begin(now)
	p.end(now, now, &apierrors.StatusError{ErrStatus: apierrors.NewGenericServerResponse(
		http.StatusTooManyRequests, "get", schema.GroupResource{}, "", "", 86400, true).ErrStatus})
	if wait := p.wait(now); wait < lastPause || wait > 2*lastPause {
		t.Errorf("an API server makes the next read wait %v", wait)
	}
}
