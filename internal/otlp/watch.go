package otlp

import (
	"log/slog"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// The signals, as the label signal spells them.
const (
	signalMetrics = "metrics"
	signalTraces  = "traces"
)

// reminder is how often it is told again that pushing fails: with another
// error by then, perhaps, and to a log that may not go back to the beginning.
const reminder = 30 * time.Minute

// watch keeps the books of one signal's exports: it counts each, and logs when
// they begin to fail, twice an hour while they do, and when they work again. It
// is safe for concurrent use.
//
// Exports come in rounds: the requests of one push of metrics, or one export
// of spans. One request that fails makes its round one that failed, and after
// one that may succeed later the rest of the round is not tried: who does not
// answer the first request will not answer the third.
type watch struct {
	signal  string
	target  Signal
	clock   clock.Clock
	log     *slog.Logger
	metrics exportMetrics

	mu sync.Mutex
	// Of this round.
	taken, failed, partial, over bool
	// Of all.
	failing     bool // the log says so
	since       clock.Instant
	told        clock.Instant // when the log said so last
	failures    int
	inPart      bool          // the log says so
	leftAloneTo clock.Instant // as the collector asked; zero: it did not
}

func newWatch(signal string, target Signal, metrics *pushMetrics, options Options) *watch {
	return &watch{signal: signal, target: target, clock: options.Clock, metrics: metrics.of(signal),
		log: options.Log.With("signal", signal, "endpoint", target.URL(), "protocol", target.Protocol)}
}

// begin begins a round.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken, w.failed, w.partial, w.over = false, false, false, false
}

// wanted reports whether the collector may be asked now.
func (w *watch) wanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.over && w.restLocked() == 0
}

// rest is for how long the collector asks to be left alone.
func (w *watch) rest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.restLocked()
}

func (w *watch) restLocked() time.Duration {
	if w.leftAloneTo.IsZero() {
		return 0
	}
	return max(w.leftAloneTo.Since(w.clock()), 0)
}

// record counts one export of so many points or spans, and logs the first that
// fails, or that is taken only in part, of a row of such.
func (w *watch) record(began clock.Instant, items int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	rejected, message, inPart := partial(err)
	switch {
	case inPart:
		w.taken, w.partial = true, true
		result, rejected := resultPartial, min(max(rejected, 0), int64(items))
		if rejected == 0 {
			result = resultSuccess // all is taken, with a word of warning
		}
		w.metrics.count(result, items-int(rejected), now, now.Since(began))
		w.tellPartial(rejected, message)
	case err == nil:
		w.taken = true
		w.metrics.count(resultSuccess, items, now, now.Since(began))
	default:
		w.failed, w.over = true, passing(err)
		w.metrics.count(resultFailure, 0, now, now.Since(began))
		w.metrics.up(false)
		w.tellFailure(now, err)
		if rest := min(retryAfter(err), longestRest); rest > 0 {
			w.leftAloneTo = now.Add(rest)
		}
	}
}

func (w *watch) tellPartial(rejected int64, message string) {
	if w.inPart {
		return
	}
	w.inPart = true
	if rejected == 0 {
		w.log.Warn("the collector accepts the push with a warning", "message", oneLine(message))
		return
	}
	w.log.Warn("the collector rejects a part of the push", "rejected", rejected, "message", oneLine(message))
}

func (w *watch) tellFailure(now clock.Instant, err error) {
	w.failures++
	said, message := []any{"err", err}, "push fails"
	if w.failing {
		if now.Since(w.told) < reminder {
			return
		}
		message = "push still fails"
		said = append(said, "for", now.Since(w.since).Round(time.Second), "failed", w.failures)
	} else {
		w.failing, w.since = true, now
	}
	w.told = now
	if tooLarge(err) {
		said = append(said, "hint", "configure the collector's OTLP receiver for larger messages: "+
			"max_recv_msg_size_mib of its gRPC, max_request_body_size of its HTTP")
	}
	w.log.Warn(message, said...)
}

// end ends a round: whether all is well again is only known then. It reports
// whether all of the round was taken, but for what the collector rejected.
func (w *watch) end() (whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.taken || w.failed {
		return false
	}
	w.metrics.up(true)
	w.inPart = w.inPart && w.partial
	if w.failing {
		w.log.Info("push works again", "after", w.clock().Since(w.since).Round(time.Millisecond), "failed", w.failures)
		w.failing, w.failures = false, 0
	}
	return true
}
