package web

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// progressTimeout is how long a client may take for a piece of an answer.
	progressTimeout = 5 * time.Second
	progressBytes   = 16 << 10
)

// room is what answers that are written take of memory. Those who wait for room
// get it in their order. For them answers are cut off that make no progress, or
// that are written for long: a client that reads is done by then.
type room struct {
	mu      sync.Mutex
	open    []*writing // the oldest first
	waiting []*writing // likewise
}

// writing is an answer that is written, or waits to be.
type writing struct {
	from         string
	size         int64
	began, moved time.Time
	controller   *http.ResponseController
	cut          bool // off, for another
}

var errCutOff = errors.New("the answer is cut off for another")

const (
	// mostStalled and mostWriting are how long an answer may make no progress,
	// and be written, before it is cut off for another.
	mostStalled = 200 * time.Millisecond
	mostWriting = time.Second
	// roomPatience is how long an answer waits for room.
	roomPatience = 5 * time.Second
	roomPause    = 10 * time.Millisecond
)

// enter finds room for an answer, and waits for it where others are cut off.
func (m *room) enter(ctx context.Context, w *writing) bool {
	m.mu.Lock()
	m.waiting = append(m.waiting, w)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waiting = without(m.waiting, w)
	}()
	for waited := time.Duration(0); ; waited += roomPause {
		if m.tryEnter(w) {
			return true
		}
		if waited >= roomPatience || sleep(ctx, roomPause) != nil {
			return false
		}
	}
}

func (m *room) tryEnter(w *writing) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now() //nolint:forbidigo // as deadlines of connections
	if m.isBeyondOwn(w) {
		m.cutOff(now, func(other *writing) bool { return other.from == w.from })
		return false
	}
	for _, earlier := range m.waiting {
		if earlier == w {
			break
		}
		if !m.isBeyondOwn(earlier) {
			return false
		}
	}
	var size int64
	for _, other := range m.open {
		size += other.size
	}
	if len(m.open) >= maxAnswers || len(m.open) > 0 && size+w.size > maxAnswerBytes {
		m.cutOff(now, func(*writing) bool { return true })
		return false
	}
	w.began, w.moved = now, now
	m.open = append(m.open, w)
	return true
}

// isBeyondOwn reports whether the address of an answer has its part already.
func (m *room) isBeyondOwn(w *writing) bool {
	if isLoopback(w.from) {
		return false
	}
	var count, size int64
	for _, other := range m.open {
		if other.from == w.from {
			count, size = count+1, size+other.size
		}
	}
	return count >= maxAnswersEach || count > 0 && size+w.size > maxAnswerBytesEach
}

// cutOff cuts the oldest answer off that may be, of those that are meant.
func (m *room) cutOff(now time.Time, meant func(*writing) bool) {
	for _, other := range m.open {
		if !other.cut && meant(other) && (now.Sub(other.moved) >= mostStalled || now.Sub(other.began) >= mostWriting) {
			other.cut = true
			_ = other.controller.SetWriteDeadline(other.began) // that is over; a connection that has ended needs none
			return
		}
	}
}

func (m *room) leave(w *writing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = without(m.open, w)
}

func without(all []*writing, w *writing) []*writing {
	return slices.DeleteFunc(all, func(other *writing) bool { return other == w })
}

// extend gives an answer more time, unless it has been cut off.
func (m *room) extend(w *writing, now, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.cut {
		return errCutOff
	}
	w.moved = now
	return w.controller.SetWriteDeadline(until)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rendered is a handler that makes next's answers in memory, each in one of the
// places, and writes an answer once its place is free again: a client that does
// not read keeps nobody else from being answered.
func (m *room) rendered(places *share, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := addressOf(r.RemoteAddr)
		leave, ok := places.take(from, 1)
		if !ok {
			busy(w)
			return
		}
		answer := render(next, w.Header(), r, leave)
		writing := &writing{from: from, size: int64(answer.body.Cap()), controller: http.NewResponseController(w)}
		if !m.enter(r.Context(), writing) {
			busy(w)
			return
		}
		defer m.leave(writing)
		answer.write(w, func(now, until time.Time) error { return m.extend(writing, now, until) })
	})
}

// render has the handler make its answer and gives the place back, also where
// the handler panics.
func render(next http.Handler, header http.Header, r *http.Request, leave func()) *answer {
	defer leave()
	made := &answer{header: maps.Clone(header)}
	next.ServeHTTP(made, r)
	return made
}

// answer is a response in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is that of the response.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader notes the status; the first one counts.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// write sends the answer. A client that takes none of it for a while, or not all
// of it within the time for an answer, is cut off.
func (a *answer) write(w http.ResponseWriter, extend func(now, until time.Time) error) {
	header := w.Header()
	clear(header)
	maps.Copy(header, a.header)
	header.Set("Content-Length", strconv.Itoa(a.body.Len()))
	if a.status == 0 {
		a.status = http.StatusOK
	}
	w.WriteHeader(a.status)
	last := time.Now().Add(writeTimeout) //nolint:forbidigo // deadlines of connections are on the wall clock
	for a.body.Len() > 0 {
		now := time.Now() //nolint:forbidigo // likewise
		next := now.Add(progressTimeout)
		if next.After(last) {
			next = last
		}
		if extend(now, next) != nil {
			return
		}
		if _, err := w.Write(a.body.Next(progressBytes)); err != nil {
			return // the client left, or takes nothing
		}
	}
}
