package device

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSamplesOnItsOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &fakeSource{name: "fake", readers: []Reader{steady("GPU-b"), steady("GPU-a")}}
		s := sample(t, from)
		s.expect(t, `
			fake GPU-a at 0s: power=1 power_limit=10
			fake GPU-b at 0s: power=1 power_limit=10
			`, "fake up=true reason= hung=-\n")
		s.pass(time.Second)
		s.expect(t, `
			fake GPU-a at 1s: power=2 power_limit=10
			fake GPU-b at 1s: power=2 power_limit=10
			`, "fake up=true reason= hung=-\n")
		s.pass(29 * time.Second)
		s.expect(t, `
			fake GPU-a at 30s: power=31 power_limit=310
			fake GPU-b at 30s: power=31 power_limit=310
			`, "fake up=true reason= hung=-\n")
		if from.looked() != 2 {
			t.Errorf("looked for devices %d times in 30 s, want twice", from.looked())
		}
		s.stop()
		if !from.closed {
			t.Error("the source was not closed")
		}
	})
}

// TestPace reads at the pace that is set, and at each interval while a reader fails.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		reader := &fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
			if fails.Load() {
				return nil, errBroken
			}
			return watts("GPU-a", float64(call), tier), nil
		}}
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{reader}})
		expect := func(seconds, reads int) {
			t.Helper()
			s.pass(time.Duration(seconds) * time.Second)
			reader.mu.Lock()
			defer reader.mu.Unlock()
			if reader.calls != reads {
				t.Errorf("read %d times, want %d", reader.calls, reads)
			}
		}
		s.SetPace(5 * time.Second)
		expect(4, 1)
		expect(1, 2)
		expect(5, 3)
		s.SetPace(time.Second)
		expect(3, 6)
		s.SetPace(3 * time.Second)
		expect(2, 6)
		fails.Store(true)
		expect(1, 7)
		expect(3, 10) // it has failed
		fails.Store(false)
		expect(1, 11)
		expect(3, 12)
	})
}

func TestChangedAfterEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{steady("GPU-a")}})
		for range 3 {
			select {
			case <-s.Changed():
			default:
				t.Error("a round ended without a signal")
			}
			s.pass(time.Second)
		}
	})
}

func TestHungDeviceDoesNotHideTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{steady("GPU-a"), hanging("GPU-b", 3, release)}})
		s.pass(3 * time.Second) // at 2 s the third read of b hangs
		s.expect(t, `
			fake GPU-a at 3s: power=4 power_limit=10
			fake GPU-b at 1s: power=2 power_limit=10
			`, "fake up=true reason= hung=-\n")
		s.pass(60 * time.Second)
		s.expect(t, `
			fake GPU-a at 63s: power=64 power_limit=610
			fake GPU-b at 1s: power=2 power_limit=10
			`, "fake up=true reason=device_timeout hung=2s\n")

		s.pass(100 * time.Millisecond)
		close(release)
		synctest.Wait()
		if !strings.Contains(s.text(), "GPU-b at 1s: power=2") {
			t.Errorf("a result that came too late was used:\n%s", s.text())
		}
		if got, want := s.status(), "fake up=true reason=device_timeout hung=-\n"; got != want {
			t.Errorf("status after the late answer: %s, want %s", got, want)
		}
		s.pass(900 * time.Millisecond)
		s.expect(t, `
			fake GPU-a at 64s: power=65 power_limit=610
			fake GPU-b at 64s: power=4 power_limit=40
			`, "fake up=true reason= hung=-\n")
	})
}

func TestHungSourceDoesNotDelayTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		hung := &fakeSource{name: "hung", readers: []Reader{hanging("GPU-h", 1, forever)}}
		blind := &fakeSource{name: "blind", block: forever}
		s := sample(t, hung, blind, &fakeSource{name: "well", readers: []Reader{steady("GPU-w")}})
		for second := range 20 {
			if got, want := s.text(), fmt.Sprintf("well GPU-w at %ds: power=%d power_limit=10\n", second, second+1); got != want {
				t.Fatalf("samples\n%swant\n%s", got, want)
			}
			s.pass(time.Second)
		}
		if got, want := s.status(), unindent(`
			hung up=false reason=timeout hung=0s
			blind up=false reason=timeout hung=0s
			well up=true reason= hung=-
			`); got != want {
			t.Errorf("sources\n%swant\n%s", got, want)
		}
		began := time.Now()
		s.stop()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("ending took %s beside calls that hang", took)
		}
		if hung.closed || blind.closed {
			t.Error("a source into which a call hangs was closed")
		}
		close(forever)
		synctest.Wait()
	})
}

// A device that fails in another way at each call leaves the others' samples
// as they would be without it.
func TestFailingDeviceLeavesTheOthersIdentical(t *testing.T) {
	others := func(broken ...Reader) (text string) {
		synctest.Test(t, func(t *testing.T) {
			readers := append([]Reader{steady("GPU-a"), steady("GPU-c")}, broken...)
			s := sample(t, &fakeSource{name: "fake", readers: readers})
			for range 100 {
				for line := range strings.Lines(s.text()) {
					if !strings.Contains(line, "GPU-b") {
						text += line
					}
				}
				s.pass(time.Second)
			}
		})
		return text
	}
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	broken := &fakeReader{key: "GPU-b", read: func(call int, tier Tier) ([]Observation, error) {
		err := fmt.Errorf("failure number %d", call)
		switch call % 3 {
		case 0:
			return nil, err
		case 1:
			return []Observation{{Device: Device{UUID: "GPU-b"}}}, err
		default:
			return watts("GPU-b", float64(call), tier), err
		}
	}}
	if with, without := others(broken), others(); with != without {
		t.Errorf("beside a failing device the others are\n%s\nalone\n%s", with, without)
	}
}

func TestFailedReadKeepsWhatWasKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := func(found []Observation) *fakeReader {
			return &fakeReader{key: found[0].Device.UUID, read: func(call int, tier Tier) ([]Observation, error) {
				if call == 1 {
					return watts(found[0].Device.UUID, 1, tier), nil
				}
				if call%2 == 0 {
					return nil, errBroken
				}
				return found, errBroken
			}}
		}
		gpu := []Observation{{Device: Device{UUID: "GPU-a", Model: "renamed"}}}
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{failing(gpu)}})
		s.pass(10 * time.Second)
		s.expect(t, "fake GPU-a at 0s: power=1 power_limit=10\n", "fake up=false reason=device_error hung=-\n")
		if model := s.Latest()[0].Device.Model; model != "renamed" {
			t.Errorf("model %q, want that of the newest observation", model)
		}
	})
}

// A reader that fails now and then, or is late now and then, does not fill
// the log.
func TestUnsteadyReaderIsLoggedOnce(t *testing.T) {
	for name, unsteady := range map[string]Reader{
		"fails": &fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
			if call%2 == 0 {
				return watts("GPU-a", 1, tier), errBroken
			}
			return watts("GPU-a", 1, tier), nil
		}},
		"is late": lasting("GPU-a", func(call int, _ Tier) time.Duration {
			return time.Duration(1500+1000*(call%2)) * time.Millisecond
		}),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := sample(t, &fakeSource{name: "fake", readers: []Reader{unsteady}})
			s.pass(10 * time.Minute)
			if s.lines() == 0 || s.lines() > 3 {
				t.Errorf("one that %s is logged %d times in ten minutes", name, s.lines())
			}
			s.stop()
			s.pass(5 * time.Second) // the last read comes back
		})
	}
}

func TestSlowReadingsAgeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := &fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
			if tier == Slow && call > 1 {
				return nil, errBroken
			}
			return watts("GPU-a", 5, tier), nil
		}}
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{reader}})
		s.pass(89 * time.Second)
		if got := s.text(); !strings.Contains(got, "power=5 power_limit=50") {
			t.Errorf("before three slow intervals: %s", got)
		}
		s.pass(5 * time.Second)
		// At most one second of the last is lost to a slow read that fails.
		if got := s.text(); got != "fake GPU-a at 94s: power=5\n" && got != "fake GPU-a at 93s: power=5\n" {
			t.Errorf("after three slow intervals: %s", got)
		}
	})
}

func TestTimeoutOfShortIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
			time.Sleep(800 * time.Millisecond)
			return watts("GPU-a", float64(call), tier), nil
		}}
		s := sampleEvery(t, 100*time.Millisecond, &fakeSource{name: "fake", readers: []Reader{slow}})
		s.pass(8050 * time.Millisecond)
		if got := s.status(); got != "fake up=true reason= hung=-\n" {
			t.Errorf("a read of 0.8 s counts as %s", got)
		}
		if at := s.Latest()[0].At.Wall.Sub(s.start); at < 7*time.Second {
			t.Errorf("the newest sample is of %s", at)
		}
	})
}

func TestEndsWhileNothingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &fakeReader{key: "GPU-a", read: func(_ int, tier Tier) ([]Observation, error) {
			time.Sleep(200 * time.Millisecond)
			return watts("GPU-a", 1, tier), nil
		}}
		from := &fakeSource{name: "fake", readers: []Reader{busy}}
		s := sample(t, from)
		s.pass(1100 * time.Millisecond)
		s.stop()
		if !from.closed {
			t.Error("the source was left open though its read came back")
		}
	})
}

func TestObserveEachRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		var seconds []float64
		late := &fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
			if call == 1 {
				time.Sleep(1500 * time.Millisecond)
			}
			return watts("GPU-a", 1, tier), nil
		}}
		s := NewSampler(Options{
			Sources: []Source{&fakeSource{name: "fake", readers: []Reader{late}}},
			Clock:   fakeClock(), Observe: func(_ string, took float64) { seconds = append(seconds, took) },
		})
		s.Run(ctx)
		if got, want := fmt.Sprint(seconds), "[1.5 0]"; got != want {
			t.Errorf("observed %s, want %s", got, want)
		}
	})
}

// TestRefresh checks that a refresh reads every device at once, that it ends with
// a read that began after it and not with one that was under way, and that the
// interval counts from there.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		slow := &fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
			if call == 2 {
				time.Sleep(300 * time.Millisecond)
			}
			reads = call
			return watts("GPU-a", float64(call), tier), nil
		}}
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{slow}}, &fakeSource{name: "none"})
		s.pass(200 * time.Millisecond)
		atOnce := s.Refresh()
		s.pass(0)
		if atOnce() {
			t.Error("it has ended while the read still runs")
		}
		during := s.Refresh()
		s.pass(300 * time.Millisecond)
		if !atOnce() || !during() || reads != 3 {
			t.Errorf("the first has ended: %v, the second: %v, after %d reads, want 3", atOnce(), during(), reads)
		}
		s.pass(900 * time.Millisecond)
		if reads != 3 {
			t.Errorf("read %d times within an interval of the last refresh", reads)
		}
	})
}
