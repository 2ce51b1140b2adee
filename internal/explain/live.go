package explain

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Live explains objects from what a running cluster role has in memory. It reads
// nothing from the API server. The parts must be set before Report is called.
//
// An explanation may cost much work. So there is one at a time, for a second at most,
// and after it a rest, so that explanations take no larger share of a core than Budget;
// and an answer is given again while it is younger than liveFresh, or than liveKept
// if it is not its turn. It is safe for concurrent use.
type Live struct {
	clusterread.Running
	Budget float64 // share of a core, above 0 and up to 1

	mu      sync.Mutex
	turn    chan struct{}
	rested  clock.Instant // when the next explanation may begin
	answers map[liveKey]liveAnswer
}

// Limits of explanations. Who waits or works holds one of the few places for pages, so
// that both are short; a page asks again by itself.
const (
	liveWait    = 300 * time.Millisecond // for others' explanations and the rest after them
	liveFresh   = 5 * time.Second
	liveKept    = time.Minute // while no other can be made
	liveAnswers = 64
)

// ErrBusy means that other explanations took too long.
var ErrBusy = errors.New("other explanations are being made; try again in a few seconds")

type liveKey struct {
	clusterread.Subject
	namespaceOnly bool
}

type liveAnswer struct {
	at     clock.Instant
	report *Report
	err    error
}

// Report explains the subject, with the errors of Explain, ErrBusy, ErrNotReady or the
// context's. If namespaceOnly is set, it names no object of another namespace and no error of
// the API server: for a reader who may see one namespace. The report is shared and must
// not be changed.
func (l *Live) Report(ctx context.Context, subject clusterread.Subject, namespaceOnly bool) (*Report, error) {
	key := liveKey{subject, namespaceOnly}
	if known, ok := l.known(key, liveFresh); ok {
		return known.report, known.err
	}
	release, err := l.begin(ctx)
	if err != nil {
		if known, ok := l.known(key, liveKept); ok && errors.Is(err, ErrBusy) {
			return known.report, known.err
		}
		return nil, err
	}
	defer release()
	if known, ok := l.known(key, liveFresh); ok { // another request has made it
		return known.report, known.err
	}
	began := l.Clock()
	facts, err := l.Facts(ctx, subject, namespaceOnly)
	if err != nil {
		return nil, err
	}
	report, err := Explain(*facts, subject)
	l.keep(key, liveAnswer{l.Clock(), report, err}, l.Clock().Since(began))
	if err != nil {
		return nil, err
	}
	return report, nil
}

// known returns an answer that is younger than a duration.
func (l *Live) known(key liveKey, age time.Duration) (liveAnswer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, ok := l.answers[key]
	return answer, ok && l.Clock().Since(answer.at) < age
}

// begin waits until it is this explanation's turn.
func (l *Live) begin(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, liveWait, ErrBusy)
	defer cancel()
	l.mu.Lock()
	if l.turn == nil {
		l.turn = make(chan struct{}, 1)
	}
	turn := l.turn
	l.mu.Unlock()
	select {
	case turn <- struct{}{}:
		release = func() { <-turn }
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	rest := l.rested.Since(l.Clock())
	l.mu.Unlock()
	if rest <= 0 {
		return release, nil
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// keep keeps an answer, and orders the rest after the work.
func (l *Live) keep(key liveKey, answer liveAnswer, worked time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rested = answer.at.Add(time.Duration(float64(worked) * (1/min(max(l.Budget, 0.01), 1) - 1)))
	if len(l.answers) >= liveAnswers || l.answers == nil {
		l.answers = make(map[liveKey]liveAnswer)
	}
	l.answers[key] = answer
}
