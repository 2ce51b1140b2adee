package device

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// heldSource keeps devices open, and panics if it is read while it is closed.
type heldSource struct {
	*fakeSource
	opened    bool
	failures  int // of Close, from now on
	closes    int
	unbinding chan struct{}
}

func newHeldSource(readers ...*fakeReader) *heldSource {
	s := &heldSource{fakeSource: &fakeSource{name: "held"}, unbinding: make(chan struct{}, 1)}
	for _, r := range readers {
		read := r.read
		r.read = func(call int, tier Tier) ([]Observation, error) {
			if !s.isOpen() {
				panic("read while it is closed")
			}
			return read(call, tier)
		}
		s.readers = append(s.readers, r)
	}
	return s
}

func (s *heldSource) KeepsOpen() bool { return true }

func (s *heldSource) Unbinding() <-chan struct{} { return s.unbinding }

func (s *heldSource) Readers(ctx context.Context) ([]Reader, error) {
	s.set(func(*fakeSource) { s.opened = true })
	return s.fakeSource.Readers(ctx)
}

func (s *heldSource) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closes++; s.failures > 0 {
		s.failures--
		return errors.New("a call hangs")
	}
	s.opened = false
	return nil
}

// closed returns how often Close was called.
func (s *heldSource) closed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closes
}

func (s *heldSource) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// released counts the samples of sources that are closed.
func released(samples []Sample) (count int) {
	for _, sample := range samples {
		if sample.Released {
			count++
		}
	}
	return count
}

func TestReleaseAndOpenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := newHeldSource(steady("GPU-a"))
		s := sample(t, held, &fakeSource{name: "files", readers: []Reader{steady("GPU-b")}})
		s.pass(2500 * time.Millisecond)
		s.Release(true)
		s.pass(0)
		if held.isOpen() || s.Access() != AccessReleased || released(s.Latest()) != 1 {
			t.Fatalf("open: %t, %s, %d samples are released", held.isOpen(), s.Access(), released(s.Latest()))
		}
		if statuses := s.Statuses(); !statuses[0].Released || statuses[1].Released {
			t.Errorf("statuses %+v", statuses)
		}
		s.pass(10 * time.Minute)
		want := "held GPU-a at 2s: power=3 power_limit=10\nfiles GPU-b at 602s: power=603 power_limit=6010\n"
		if got := s.text(); got != want {
			t.Errorf("while it is released:\n%s\nwant\n%s", got, want)
		}
		if ended := s.Refresh(); true {
			s.pass(time.Second)
			if !ended() {
				t.Error("a refresh waits for a source that is closed")
			}
		}
		s.Release(false)
		s.pass(0)
		if !held.isOpen() || s.Access() != AccessOpen || released(s.Latest()) != 0 || s.Statuses()[0].Released {
			t.Errorf("open: %t, %s, %d samples are released", held.isOpen(), s.Access(), released(s.Latest()))
		}
		s.pass(time.Second)
		if sample := s.Latest()[0]; sample.At.Wall.Sub(s.start) < 10*time.Minute || len(sample.Readings) != 2 || sample.Readings[1].Value != 40 {
			t.Errorf("after it was opened again: %+v", sample)
		}
	})
}

// Nothing is opened before the first release ends.
func TestReleaseBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := newHeldSource(steady("GPU-a"))
		s := NewSampler(Options{Sources: []Source{held}, Clock: clock.System()})
		s.Release(true)
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if held.looked() > 0 || s.Access() != AccessReleased || !s.Statuses()[0].Tried() {
			t.Errorf("looked %d times, %s, %+v", held.looked(), s.Access(), s.Statuses()[0])
		}
		s.Release(false)
		synctest.Wait()
		if len(s.Latest()) != 1 {
			t.Errorf("%d devices after it was opened", len(s.Latest()))
		}
		stop()
		synctest.Wait()
	})
}

// A source into which a call hangs is closed once the call returns; a Close that fails
// is repeated.
func TestReleaseWhileACallHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		held := newHeldSource(hanging("GPU-a", 2, hang))
		held.failures = 2 // before it is used
		s := sample(t, held)
		s.pass(1500 * time.Millisecond)
		s.Release(true)
		s.pass(time.Minute)
		if held.closed() != 0 || s.Access() != AccessReleasing {
			t.Errorf("closed %d times while a call hangs, %s", held.closed(), s.Access())
		}
		close(hang)
		s.pass(0)
		if held.closed() != 1 || s.Access() != AccessReleasing {
			t.Errorf("closed %d times, %s", held.closed(), s.Access())
		}
		s.pass(3 * time.Second)
		if held.closed() != 3 || s.Access() != AccessReleased || held.isOpen() {
			t.Errorf("closed %d times, %s", held.closed(), s.Access())
		}
	})
}

// A release that is withdrawn before the source is closed changes nothing.
func TestReleaseWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		held := newHeldSource(hanging("GPU-a", 2, hang))
		s := sample(t, held)
		s.pass(1500 * time.Millisecond)
		s.Release(true)
		s.pass(time.Second)
		s.Release(false)
		s.pass(time.Second)
		close(hang)
		s.pass(2 * time.Second)
		if held.closed() != 0 || s.Access() != AccessOpen || released(s.Latest()) != 0 || !s.Statuses()[0].Up {
			t.Errorf("closed %d times, %s, %+v", held.closed(), s.Access(), s.Statuses()[0])
		}
	})
}

func TestUnbindingIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := newHeldSource(steady("GPU-a"))
		s := sample(t, held)
		held.unbinding <- struct{}{}
		s.pass(0)
		select {
		case <-s.Unbinding():
		default:
			t.Error("it was not passed on")
		}
	})
}
