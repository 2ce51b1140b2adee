package device

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lasting is a reader of one device whose reads take as long as said for the
// number of the call and the tier.
func lasting(uuid string, takes func(call int, tier Tier) time.Duration) *fakeReader {
	return &fakeReader{key: uuid, read: func(call int, tier Tier) ([]Observation, error) {
		time.Sleep(takes(call, tier))
		return watts(uuid, float64(call), tier), nil
	}}
}

// A late answer that comes while another round is open is published with it.
func TestLateAnswerInALaterRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &fakeReader{key: "GPU-a", read: func(int, Tier) ([]Observation, error) {
			time.Sleep(500 * time.Millisecond)
			return nil, errBroken
		}}
		late := lasting("GPU-b", func(call int, _ Tier) time.Duration {
			if call == 1 {
				return 1200 * time.Millisecond
			}
			return 0
		})
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{failing, late}})
		s.pass(1100 * time.Millisecond)
		s.expect(t, "", "fake up=false reason=device_error hung=-\n")
		s.pass(500 * time.Millisecond)
		s.expect(t, "fake GPU-b at 1.2s: power=1 power_limit=10\n", "fake up=true reason=device_error hung=-\n")
		s.pass(time.Second)
		s.expect(t, "fake GPU-b at 2s: power=2 power_limit=10\n", "fake up=true reason=device_error hung=-\n")
	})
}

// A reader that is always a little late is asked every other second, and
// what it says is known as soon as it says it.
func TestReaderThatIsAlwaysLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{lasting("GPU-a", func(int, Tier) time.Duration {
			return 1100 * time.Millisecond
		})}})
		s.pass(1050 * time.Millisecond)
		s.expect(t, "", "fake up=false reason= hung=-\n")
		s.pass(50 * time.Millisecond)
		s.expect(t, "fake GPU-a at 1.1s: power=1 power_limit=10\n", "fake up=true reason= hung=-\n")
		for range 600 {
			s.pass(time.Second)
			if got, want := s.status(), "fake up=true reason= hung=-\n"; got != want {
				t.Fatalf("after %s: %s", time.Since(s.start), got)
			}
		}
		if age := time.Since(s.Latest()[0].At.Wall); age > 2*time.Second {
			t.Errorf("the newest sample is %s old", age)
		}
		if s.lines() != 0 {
			t.Errorf("logged %d lines", s.lines())
		}
	})
}

func TestSlowReadsThatAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{lasting("GPU-a", func(_ int, tier Tier) time.Duration {
			return time.Duration(tier) * 1100 * time.Millisecond
		})}})
		s.pass(90 * time.Second)
		s.pass(1100 * time.Millisecond)
		if text := s.text(); !strings.Contains(text, "GPU-a at 91.1s") || !strings.Contains(text, "power_limit") {
			t.Errorf("after the fourth slow read: %s", text)
		}
		if s.lines() != 0 || s.status() != "fake up=true reason= hung=-\n" {
			t.Errorf("logged %d lines; %s", s.lines(), s.status())
		}
	})
}

// A reader that always takes longer than two intervals counts as failed, and
// does not become well between its reads; what it says is taken all the same.
func TestReaderThatIsAlwaysOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{
			steady("GPU-a"), lasting("GPU-b", func(int, Tier) time.Duration { return 3500 * time.Millisecond }),
		}})
		s.pass(121 * time.Second)
		if got := s.text(); !strings.Contains(got, "GPU-b at 119.5s: power=30 power_limit=") {
			t.Errorf("samples %s", got)
		}
		if s.lines() != 1 || !strings.HasPrefix(s.status(), "fake up=true reason=device_timeout") {
			t.Errorf("logged %d lines; %s", s.lines(), s.status())
		}
		s.stop()
		time.Sleep(10 * time.Second) // the read that was left behind
	})
}

func TestEverythingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{
			hanging("GPU-a", 6, release), hanging("GPU-b", 6, release),
		}})
		s.pass(6900 * time.Millisecond) // at 5 s all reads hang
		const samples = "fake GPU-a at 4s: power=5 power_limit=10\nfake GPU-b at 4s: power=5 power_limit=10\n"
		s.expect(t, samples, "fake up=true reason= hung=-\n")
		if last := s.Statuses()[0].LastSuccess.Wall.Sub(s.start); last != 4*time.Second {
			t.Errorf("last success at %s, though nothing has answered since 4 s", last)
		}
		s.pass(100 * time.Millisecond)
		s.expect(t, samples, "fake up=false reason=timeout hung=5s\n")

		s.pass(8 * time.Second) // not later than the staleness limit
		close(release)
		synctest.Wait()
		if got := s.text(); !strings.Contains(got, "GPU-a at 15s: power=6") || !strings.Contains(got, "GPU-b at 15s: power=6") {
			t.Errorf("an answer that is of use was dropped:\n%s", got)
		}
		s.pass(time.Second)
		if got := s.status(); got != "fake up=true reason= hung=-\n" || s.lines() != 2 {
			t.Errorf("after the hang, and %d lines: %s", s.lines(), got)
		}
	})
}

// A reader that heeds its context is given until its answer is of no use.
func TestContextEndsWithTheStalenessLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took []time.Duration
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{heedful(func(waited time.Duration) {
			took = append(took, waited)
		})}})
		s.pass(10500 * time.Millisecond)
		if len(took) != 1 || took[0] != StaleAfter(time.Second) {
			t.Errorf("contexts ended after %v", took)
		}
		if got := s.status(); got != "fake up=false reason=timeout hung=-\n" {
			t.Error(got)
		}
	})
}

// heedful is a reader that waits for its context to end.
type heedful func(waited time.Duration)

func (heedful) Key() string { return "GPU-a" }

func (h heedful) Read(ctx context.Context, _ Tier) ([]Observation, error) {
	began := time.Now()
	<-ctx.Done()
	h(time.Since(began))
	return nil, ctx.Err()
}

// A quantity that fails in slow reads alone is amiss all the time, not at
// each slow read.
func TestSlowFailureRemainsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var well atomic.Bool
		reader := &fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
			if tier == Slow && !well.Load() {
				return watts("GPU-a", 1, tier), errBroken
			}
			return watts("GPU-a", 1, tier), nil
		}}
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{reader}})
		for range 600 {
			s.pass(time.Second)
			if got, want := s.status(), "fake up=true reason=device_error hung=-\n"; got != want {
				t.Fatalf("after %s: %s", time.Since(s.start), got)
			}
		}
		if s.lines() != 1 {
			t.Errorf("logged %d lines in ten minutes", s.lines())
		}
		well.Store(true)
		s.pass(30 * time.Second)
		if got := s.status(); got != "fake up=true reason= hung=-\n" || s.lines() != 2 {
			t.Errorf("after a slow read that is well: %s", got)
		}
	})
}
