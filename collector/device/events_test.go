package device

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// fakeEventSource is a source whose XIDs the test reports.
type fakeEventSource struct {
	*fakeSource

	mu      sync.Mutex
	xids    map[string][]XID
	signal  chan struct{}
	deaf    bool  // it has not received for long
	failure error // why it does not receive the XIDs of some devices
}

// newEventSource makes an EventSource of a source with these readers. Each device
// named is watched.
func newEventSource(uuids []string, readers ...Reader) *fakeEventSource {
	l := &fakeEventSource{
		fakeSource: &fakeSource{name: "fake", readers: readers},
		xids:       make(map[string][]XID), signal: make(chan struct{}, 1),
	}
	for _, uuid := range uuids {
		l.xids[uuid] = []XID{}
	}
	return l
}

func (l *fakeEventSource) XIDs() map[string][]XID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.xids
}

func (l *fakeEventSource) Received() (clock.Instant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deaf {
		return clock.Instant{Elapsed: 1}, l.failure
	}
	return clock.Instant{Elapsed: 1000 * time.Hour}, l.failure
}

func (l *fakeEventSource) Changed() <-chan struct{} { return l.signal }

// report adds one XID of the code to those of the device.
func (l *fakeEventSource) report(uuid string, code int) {
	l.change(func(all map[string][]XID) {
		xids := slices.Clone(all[uuid])
		at, found := slices.BinarySearchFunc(xids, code, func(x XID, code int) int { return x.Code - code })
		if !found {
			xids = slices.Insert(xids, at, XID{Code: code})
		}
		xids[at].Count++
		xids[at].Last = time.Now()
		all[uuid] = xids
	})
}

// forget ceases to watch a device.
func (l *fakeEventSource) forget(uuid string) {
	l.change(func(all map[string][]XID) { delete(all, uuid) })
}

func (l *fakeEventSource) change(how func(map[string][]XID)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.xids = maps.Clone(l.xids)
	how(l.xids)
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

const up = "fake up=true reason= hung=-\n"

func TestXIDsAreReportedImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newEventSource([]string{"GPU-a"}, steady("GPU-a"), steady("GPU-b"))
		s := sample(t, from)
		s.expect(t, `
			fake GPU-a at 0s: power=1 power_limit=10 xids=none
			fake GPU-b at 0s: power=1 power_limit=10
			`, up)
		s.pass(1500 * time.Millisecond)
		<-s.Changed()
		from.report("GPU-a", 79)
		from.report("GPU-a", 13)
		from.report("GPU-a", 79)
		synctest.Wait()
		select {
		case <-s.Changed():
		default:
			t.Error("the change was not signalled")
		}
		s.expect(t, `
			fake GPU-a at 1s: power=2 power_limit=10 xid13=1 xid79=2
			fake GPU-b at 1s: power=2 power_limit=10
			`, up)
		s.pass(time.Second)
		s.expect(t, `
			fake GPU-a at 2s: power=3 power_limit=10 xid13=1 xid79=2
			fake GPU-b at 2s: power=3 power_limit=10
			`, up)
	})
}

// While a round is open, what readers have already said in it is published
// no sooner than without an error.
func TestXIDPublishesNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &fakeReader{key: "GPU-b", read: func(call int, tier Tier) ([]Observation, error) {
			time.Sleep(500 * time.Millisecond)
			return watts("GPU-b", float64(call), tier), nil
		}}
		from := newEventSource([]string{"GPU-a"}, steady("GPU-a"), slow)
		s := sample(t, from)
		s.pass(1200 * time.Millisecond)
		before := s.Latest()
		from.report("GPU-a", 79)
		synctest.Wait()
		s.expect(t, `
			fake GPU-a at 0s: power=1 power_limit=10 xid79=1
			fake GPU-b at 0.5s: power=1 power_limit=10
			`, up)
		if len(before[0].XIDs) != 0 {
			t.Error("a published sample was changed")
		}
	})
}

func TestXIDsWhileTheReaderHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		from := newEventSource([]string{"GPU-a", "GPU-b", "GPU-c"}, hanging("GPU-a", 3, release), hanging("GPU-b", 1, release))
		s := sample(t, from)
		s.pass(time.Minute)
		from.report("GPU-a", 79)
		from.report("GPU-b", 119)
		from.report("GPU-c", 13)
		from.report("MIG-b", 13)
		synctest.Wait()
		want := `
			fake GPU-a at 1s: power=2 power_limit=10 xid79=1
			fake GPU-b at never: xid119=1
			`
		const hung = "fake up=false reason=timeout hung=0s\n"
		s.expect(t, want, hung)
		unread := s.Latest()[1].Device
		if unread.Minor != Unknown || unread.GPUInstance != Unknown || unread.Placement != Unknown || unread.IsPartition() {
			t.Errorf("for a device that has never been read %+v is reported", unread)
		}
		s.pass(time.Second)
		s.expect(t, want, hung)
		close(release)
		s.pass(2 * time.Second)
		s.expect(t, `
			fake GPU-a at 63s: power=5 power_limit=40 xid79=1
			fake GPU-b at 63s: power=3 power_limit=30 xid119=1
			`, up)
	})
}

// A device that falls off the bus is not found any more, but what was reported
// of it stays, for as long as the source reports it.
func TestXIDsOfARemovedDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fakeReader{key: "GPU-b", read: func(_ int, tier Tier) ([]Observation, error) { return watts("GPU-b", 5, tier), nil }}
		from := newEventSource([]string{"GPU-a", "GPU-b"}, steady("GPU-a"), b)
		s := sample(t, from)
		from.set(func(f *fakeSource) { f.readers = f.readers[:1] })
		s.pass(40 * time.Second)
		a := "fake GPU-a at 40s: power=41 power_limit=310 xids=none\n"
		s.expect(t, a, up)

		from.report("GPU-b", 79)
		synctest.Wait()
		last := s.Latest()[1].At.Wall.Sub(s.start)
		if last < 29*time.Second || last > 30*time.Second {
			t.Errorf("the device that vanished after 30 s is reported as of %s", last)
		}
		gone := fmt.Sprintf("fake GPU-b at %gs: power=5 power_limit=50 xid79=1\n", last.Seconds())
		s.expect(t, a+gone, up)
		from.set(func(f *fakeSource) { f.readers = nil })
		s.pass(30 * time.Second)
		s.expect(t, gone, up)

		from.set(func(f *fakeSource) { f.readers = []Reader{b} })
		s.pass(30 * time.Second)
		s.expect(t, "fake GPU-b at 100s: power=5 power_limit=50 xid79=1\n", up)
		from.set(func(f *fakeSource) { f.readers = nil })
		s.pass(30 * time.Second)
		from.forget("GPU-b")
		synctest.Wait()
		s.expect(t, "", up)
		from.report("GPU-b", 79)
		synctest.Wait()
		s.expect(t, "", up)
	})
}

// A partition is gone when its device is read without it; with a device that
// has vanished as a whole it stays.
func TestErrorsOfAPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		partitioned := true
		var mu sync.Mutex
		reader := &fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
			mu.Lock()
			defer mu.Unlock()
			found := watts("GPU-a", float64(call), Fast)
			if partitioned {
				found = append(found, watts("MIG-a", 7, Fast)...)
				found[1].Device.ParentUUID = "GPU-a"
			}
			return found, nil
		}}
		from := newEventSource([]string{"GPU-a", "MIG-a"}, reader)
		s := sample(t, from)
		from.report("GPU-a", 79)
		from.report("MIG-a", 13)
		s.pass(1500 * time.Millisecond)
		s.expect(t, "fake GPU-a at 1s: power=2 xid79=1\nfake MIG-a at 1s: power=7 xid13=1\n", up)
		from.set(func(f *fakeSource) { f.readers = nil })
		s.pass(30 * time.Second)
		if gone := s.Latest(); len(gone) != 2 || len(gone[0].XIDs) != 1 || len(gone[1].XIDs) != 1 {
			t.Errorf("for a device that has vanished with its partition %+v is reported", gone)
		}
		mu.Lock()
		partitioned = false
		mu.Unlock()
		from.set(func(f *fakeSource) { f.readers = []Reader{reader} })
		s.pass(30 * time.Second)
		if back := s.Latest(); len(back) != 1 || len(back[0].XIDs) != 1 || back[0].Device.UUID != "GPU-a" {
			t.Errorf("for a device that has come back without its partition %+v is reported", back)
		}
	})
}

// What is kept of a device is given up with its XIDs.
func TestEventsAreBounded(t *testing.T) {
	from := newEventSource(nil)
	h := newEvents(from, StaleAfter(time.Second))
	for i := range 1000 {
		uuid := string(rune('a' + i%26))
		from.report(uuid, i)
		h.attach([]Sample{{Device: Device{UUID: uuid}}}, nil, "fake", clock.System()())
		from.forget(uuid)
	}
	if len(h.known) > 1 {
		t.Errorf("%d devices are kept of which no XID is reported", len(h.known))
	}
}

func TestAttach(t *testing.T) {
	from := newEventSource([]string{"GPU-a", "GPU-b"})
	for _, uuid := range []string{"GPU-a", "GPU-b", "GPU-c", "GPU-d"} {
		from.report(uuid, 79)
	}
	h := newEvents(from, StaleAfter(time.Second))
	given := []Sample{{Device: Device{UUID: "GPU-a"}}}
	readers := []*readerState{{key: "GPU-a"}, {key: "GPU-b"}, {key: "GPU-c", removed: true}}
	attached := h.attach(given, readers, "fake", clock.System()())
	if len(attached) != 2 || attached[0].Device.UUID != "GPU-a" || attached[1].Device.UUID != "GPU-b" || !attached[1].bare {
		t.Errorf("attached %+v, want GPU-a and, of which nothing else is known, GPU-b", attached)
	}
	if given[0].XIDs != nil {
		t.Error("a sample that was given has been changed")
	}
}

// A source that has not looked for XIDs for long has not seen that there are
// none: they are absent, but for those of a device that reported one lately. The
// source says so, and what it counted comes back once it looks again.
func TestXIDsOfASourceThatDoesNotReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newEventSource([]string{"GPU-a", "GPU-b"}, steady("GPU-a"), steady("GPU-b"))
		s := sample(t, from)
		from.report("GPU-b", 31)
		s.pass(time.Minute)
		expect := func(when, a, b, status string) {
			t.Helper()
			for i, want := range []string{a, b} {
				if got := strings.TrimSpace(xidText(s.Latest()[i].XIDs)); got != want {
					t.Errorf("%s: device %d has %q, want %q", when, i, got, want)
				}
			}
			if got := s.status(); got != status {
				t.Errorf("%s: %s", when, got)
			}
		}
		const missed = "fake up=true reason=events_not_received hung=-\n"
		expect("at first", "xids=none", "xid31=1", up)
		from.change(func(map[string][]XID) { from.deaf = true })
		s.pass(2 * time.Second)
		expect("deaf", "", "xid31=1", missed)
		s.pass(RecentXIDs)
		expect("deaf for long", "", "", missed)
		from.change(func(map[string][]XID) { from.deaf = false })
		s.pass(2 * time.Second)
		expect("it looks again", "xids=none", "xid31=1", up)

		from.change(func(all map[string][]XID) {
			delete(all, "GPU-a")
			from.failure = errBroken
		})
		s.pass(time.Second)
		expect("one is not watched", "", "xid31=1", missed)

		// A failure between two rounds is reported as well.
		from.change(func(map[string][]XID) { from.failure = nil })
		s.pass(2500 * time.Millisecond)
		if s.status() != up {
			t.Error(s.status())
		}
		from.change(func(map[string][]XID) { from.failure = errBroken })
		synctest.Wait()
		from.change(func(map[string][]XID) { from.failure = nil })
		s.pass(500 * time.Millisecond)
		if s.status() != missed {
			t.Error(s.status())
		}
		s.pass(time.Second)
		if s.status() != up {
			t.Error(s.status())
		}
	})
}

// A device that its first source has not yet read is what a later one says.
func TestErrorsOfADeviceThatAnotherSourceReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		first := newEventSource([]string{"GPU-a"}, hanging("GPU-a", 1, release))
		first.name = "first"
		s := sample(t, first, &fakeSource{name: "second", readers: []Reader{steady("GPU-a")}})
		first.report("GPU-a", 79)
		synctest.Wait()
		s.expect(t, "second GPU-a at 0s: power=1 power_limit=10 xid79=1\n", "first up=false reason= hung=-\nsecond up=true reason= hung=-\n")
	})
}
