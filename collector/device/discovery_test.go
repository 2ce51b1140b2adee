package device

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		from := &fakeSource{name: "fake", readers: []Reader{steady("GPU-a"), hanging("GPU-b", 2, forever), steady("GPU-c")}}
		s := sample(t, from)
		s.pass(5 * time.Second)
		from.set(func(s *fakeSource) { s.readers, s.err = nil, errBroken })
		s.pass(30 * time.Second)
		s.expect(t, `
			fake GPU-a at 35s: power=36 power_limit=310
			fake GPU-b at 0s: power=1 power_limit=10
			fake GPU-c at 35s: power=36 power_limit=310
			`, "fake up=true reason=device_timeout hung=1s\n")

		// b hangs when it goes, and c is known by its key when another comes.
		from.set(func(s *fakeSource) { s.readers, s.err = []Reader{steady("GPU-c"), steady("GPU-d")}, nil })
		s.pass(30 * time.Second)
		text := s.text()
		if strings.Contains(text, "GPU-a") || strings.Contains(text, "GPU-b") || !strings.Contains(text, "GPU-d") ||
			!strings.Contains(text, "GPU-c at 65s") {
			t.Errorf("after a, b went and d came:\n%s", text)
		}
		if got, want := s.status(), "fake up=true reason= hung=1s\n"; got != want {
			t.Errorf("status %s, want %s", got, want)
		}

		from.set(func(s *fakeSource) { s.readers = nil })
		close(forever)
		s.pass(30 * time.Second)
		s.expect(t, "", "fake up=true reason= hung=-\n")
	})
}

// A reader that goes while it is read does not hold up its round.
func TestReaderGoesDuringARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &fakeReader{key: "GPU-b", read: func(call int, tier Tier) ([]Observation, error) {
			time.Sleep(500 * time.Millisecond)
			return watts("GPU-b", float64(call), tier), nil
		}}
		from := &fakeSource{name: "fake", readers: []Reader{steady("GPU-a"), slow}}
		s := sample(t, from)
		from.set(func(s *fakeSource) { s.readers = s.readers[:1] })
		s.pass(30600 * time.Millisecond)
		s.expect(t, "fake GPU-a at 30s: power=31 power_limit=310\n", "fake up=true reason= hung=-\n")
	})
}

func TestDiscoveryIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &fakeSource{name: "fake", err: errBroken}
		s := sample(t, from)
		s.expect(t, "", "fake up=false reason=other hung=-\n")
		s.pass(100 * time.Second) // at 0, 1, 3, 7, 15, 31, 61, 91 s
		if from.looked() != 8 {
			t.Errorf("looked %d times in 100 s, want 8", from.looked())
		}
		from.set(func(s *fakeSource) { s.err, s.readers = nil, []Reader{steady("GPU-a")} })
		s.pass(30 * time.Second)
		if !strings.Contains(s.text(), "GPU-a") || !strings.Contains(s.status(), "up=true reason= ") {
			t.Errorf("no recovery:\n%s%s", s.text(), s.status())
		}
	})
}

func TestFailedRoundsHastenDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &fakeReader{key: "GPU-a", read: func(int, Tier) ([]Observation, error) { return nil, errBroken }}
		from := &fakeSource{name: "fake", readers: []Reader{broken}}
		s := sample(t, from)
		s.pass(20 * time.Second) // at 0, 1, 3, 7, 15 s
		if from.looked() != 5 {
			t.Errorf("looked %d times while every round failed, want 5", from.looked())
		}
		from.set(func(s *fakeSource) { s.readers = []Reader{steady("GPU-b")} })
		s.pass(100 * time.Second)
		looks := from.looked()
		s.pass(90 * time.Second)
		if from.looked() != looks+3 {
			t.Errorf("looked %d times in 90 s in which all was well, want 3", from.looked()-looks)
		}
	})
}

func TestHungDiscoveryLetsKnownReadersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		from := &fakeSource{name: "fake", readers: []Reader{steady("GPU-a")}}
		s := sample(t, from)
		from.set(func(s *fakeSource) { s.block = forever })
		s.pass(60 * time.Second)
		s.expect(t, "fake GPU-a at 60s: power=61 power_limit=610\n", "fake up=true reason=timeout hung=30s\n")
		if from.looked() != 2 {
			t.Errorf("looked %d times, want no look while one hangs", from.looked())
		}
		from.set(func(s *fakeSource) { s.block = nil })
		close(forever)
		s.pass(2 * time.Second)
		s.expect(t, "fake GPU-a at 62s: power=63 power_limit=610\n", "fake up=true reason= hung=-\n")
	})
}

func TestDuplicateUUIDIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := steady("GPU-a"), steady("GPU-a")
		first.key, second.key = "0", "1"
		second.read = func(_ int, tier Tier) ([]Observation, error) { return watts("GPU-a", 1000, tier), nil }
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{second, first}})
		s.expect(t, "fake GPU-a at 0s: power=1 power_limit=10\n", "fake up=true reason=duplicate_uuid hung=-\n")
	})
}
