package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// fakeSource is a source whose hardware the test rearranges at will.
type fakeSource struct {
	name string

	mu      sync.Mutex
	readers []Reader
	err     error
	looks   int
	within  int // looks under way
	block   chan struct{}
	closed  bool
}

func (s *fakeSource) Name() string { return s.name }

func (s *fakeSource) Readers(context.Context) ([]Reader, error) {
	s.mu.Lock()
	s.looks++
	if s.within++; s.within > 1 {
		panic("two looks at a time")
	}
	block := s.block
	s.mu.Unlock()
	if block != nil {
		<-block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.within--
	return s.readers, s.err
}

func (s *fakeSource) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *fakeSource) looked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

func (s *fakeSource) set(change func(*fakeSource)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// fakeReader reads one device; its behaviour is a function of the number of
// the call.
type fakeReader struct {
	key  string
	read func(call int, tier Tier) ([]Observation, error)

	mu     sync.Mutex
	calls  int
	within int
}

func (r *fakeReader) Key() string { return r.key }

func (r *fakeReader) Read(_ context.Context, tier Tier) ([]Observation, error) {
	r.mu.Lock()
	r.calls++
	if r.within++; r.within > 1 {
		panic("two reads at a time")
	}
	call := r.calls
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.within--
		r.mu.Unlock()
	}()
	return r.read(call, tier)
}

// watts observes one device that draws the given power; a slow read also
// reports the limit, ten times as much.
func watts(uuid string, power float64, tier Tier) []Observation {
	o := Observation{Device: Device{UUID: uuid}, Readings: []Reading{{Quantity: Power, Value: power}}}
	if tier == Slow {
		o.Slow = []Reading{{Quantity: PowerLimit, Value: 10 * power}}
	}
	return []Observation{o}
}

// steady is a reader of one device whose power is the number of the call.
func steady(uuid string) *fakeReader {
	return &fakeReader{key: uuid, read: func(call int, tier Tier) ([]Observation, error) {
		return watts(uuid, float64(call), tier), nil
	}}
}

// hanging is a reader whose reads hang, from the given call on, until release
// is closed, and then succeed.
func hanging(uuid string, from int, release <-chan struct{}) *fakeReader {
	return &fakeReader{key: uuid, read: func(call int, tier Tier) ([]Observation, error) {
		if call >= from {
			<-release
		}
		return watts(uuid, float64(call), tier), nil
	}}
}

// sampling runs a sampler in a bubble of fake time until the test ends.
type sampling struct {
	*Sampler
	stop   func()
	start  time.Time
	logged lineCounter
}

// sample starts a sampler over the sources and waits until it is idle.
func sample(t *testing.T, sources ...Source) *sampling {
	t.Helper()
	return sampleEvery(t, time.Second, sources...)
}

func sampleEvery(t *testing.T, interval time.Duration, sources ...Source) *sampling {
	t.Helper()
	s := &sampling{start: time.Now()}
	s.Sampler = NewSampler(Options{
		Sources:      sources,
		Interval:     interval,
		SlowInterval: 30 * interval,
		Clock:        clock.System(),
		Log:          slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &s.logged), nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(s.stop)
	synctest.Wait()
	return s
}

// pass lets fake time pass and waits until everything is idle again.
func (s *sampling) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// text writes the samples down, one line each: age of the newest read in
// seconds since the start, then the readings.
func (s *sampling) text() string {
	var b strings.Builder
	for _, sample := range s.Latest() {
		at := "never"
		if !sample.At.IsZero() {
			at = fmt.Sprintf("%gs", sample.At.Wall.Sub(s.start).Seconds())
		}
		fmt.Fprintf(&b, "%s %s at %s:", sample.Source, identity(sample.Device), at)
		for _, r := range sample.Readings {
			fmt.Fprintf(&b, " %s=%g", Specs()[r.Quantity].Name, r.Value)
		}
		b.WriteString(xidText(sample.XIDs) + "\n")
	}
	return b.String()
}

// status writes down how the sources are.
func (s *sampling) status() string {
	var b strings.Builder
	for _, status := range s.Statuses() {
		hung := "-"
		if !status.HungSince.IsZero() {
			hung = fmt.Sprintf("%gs", status.HungSince.Wall.Sub(s.start).Seconds())
		}
		fmt.Fprintf(&b, "%s up=%t reason=%s hung=%s\n", status.Name, status.Up, status.Reason, hung)
	}
	return b.String()
}

func (s *sampling) expect(t *testing.T, text, status string) {
	t.Helper()
	if got, want := s.text(), unindent(text); got != want {
		t.Errorf("after %s the samples are\n%swant\n%s", time.Since(s.start), got, want)
	}
	if got, want := s.status(), unindent(status); got != want {
		t.Errorf("after %s the sources are\n%swant\n%s", time.Since(s.start), got, want)
	}
}

// lines is how many lines have been logged.
func (s *sampling) lines() int { return int(s.logged.count.Load()) }

// lineCounter counts what is written to it, a line at a time.
type lineCounter struct{ count atomic.Int64 }

func (c *lineCounter) Write(line []byte) (int, error) {
	c.count.Add(1)
	return len(line), nil
}

// unindent takes the tabs and the first newline from a text in the source.
func unindent(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "\n"), "\t", "")
}

var errBroken = errors.New("broken")

func fakeClock() clock.Clock { return clock.System() }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
