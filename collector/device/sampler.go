package device

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Options configure a Sampler. Clock is needed; a zero interval means the
// default that is named beside it.
type Options struct {
	Sources      []Source        // in the order of precedence
	Optional     map[string]bool // names of sources that may well not exist here
	Interval     time.Duration   // of fast reads: 1 s
	SlowInterval time.Duration   // of slow reads and of looking for devices: 30 s
	HideSerials  bool            // leave serial numbers out of every sample
	Clock        clock.Clock
	Log          *slog.Logger // nil: none
	// Observe, which may be nil, is called with the duration of each read of
	// each reader, in seconds, late ones included. It must be safe for
	// concurrent use.
	Observe func(source string, seconds float64)
}

// Sampler reads the devices of all sources on their own clock and keeps the
// newest sample of each. Its methods are safe for concurrent use, and none
// of them ever waits for a source.
type Sampler struct {
	loops   []*loop
	stale   time.Duration
	pace    atomic.Int64 // nanoseconds from one round to the next, at least; 0: as often as possible
	latest  atomic.Pointer[[]Sample]
	changed chan struct{}

	unbinding chan struct{}

	mu       sync.Mutex
	bySource [][]Sample
}

// closeGrace is how long Run, after its context has ended, waits for calls
// into the sources to return. A call that hangs is left behind with its goroutine
// and with its source open: only the end of the process ends it.
const closeGrace = 1500 * time.Millisecond

// NewSampler returns a sampler at rest.
func NewSampler(o Options) *Sampler {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.SlowInterval <= 0 {
		o.SlowInterval = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(string, float64) {}
	}
	s := &Sampler{
		stale:     StaleAfter(o.Interval),
		changed:   make(chan struct{}, 1),
		unbinding: make(chan struct{}, 1),
		bySource:  make([][]Sample, len(o.Sources)),
	}
	s.latest.Store(&[]Sample{})
	for rank, source := range o.Sources {
		s.loops = append(s.loops, newLoop(source, o, &s.pace, func(samples []Sample) { s.publish(rank, samples) }, func() { signal(s.unbinding) }))
	}
	return s
}

// Run samples until ctx ends. It then returns immediately, or at most
// closeGrace later if reads hang. It closes each source into which no call
// hangs. It may be called once.
func (s *Sampler) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, l := range s.loops {
		running.Go(func() {
			l.run(ctx)
			l.close(closeGrace)
		})
	}
	running.Wait()
}

// Latest returns the newest sample of every device, sorted by the precedence
// of its source, then by UUID. The samples are shared and must not be
// changed. It costs one atomic load.
func (s *Sampler) Latest() []Sample { return *s.latest.Load() }

// Refresh asks each source for a round that begins from now on, at once if no round
// is open, and returns a function that reports whether all of these have ended. The
// round of a source that hangs ends when its timeout is over. A source that has not
// taken an earlier Refresh yet does not take another: its round never ends.
func (s *Sampler) Refresh() (ended func() bool) {
	left := &atomic.Int64{}
	left.Store(int64(len(s.loops)))
	for _, l := range s.loops {
		select {
		case l.refresh <- func() { left.Add(-1) }:
		default:
		}
	}
	return func() bool { return left.Load() <= 0 }
}

// SetPace sets the time from one round to the next to at least this, as far as all
// readers work: one that has failed is read again at the next interval.
func (s *Sampler) SetPace(pace time.Duration) { s.pace.Store(int64(pace)) }

// Changed signals that a round has ended since the last signal.
func (s *Sampler) Changed() <-chan struct{} { return s.changed }

// Statuses returns the status of each source, in the order of precedence.
func (s *Sampler) Statuses() []source.Status {
	statuses := make([]source.Status, len(s.loops))
	for i, l := range s.loops {
		statuses[i] = l.tracker.Status()
	}
	return statuses
}

// publish makes the samples of the source with the given rank part of Latest.
func (s *Sampler) publish(rank int, samples []Sample) {
	s.mu.Lock()
	s.bySource[rank] = samples
	merged, _ := Merge(s.bySource, s.stale)
	s.latest.Store(&merged)
	s.mu.Unlock()
	signal(s.changed)
}

// signal sends to a channel of capacity one, which may have a signal already.
func signal(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}
