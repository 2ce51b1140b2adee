package top

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// fakeTerminal receives frames and sends keys.
type fakeTerminal struct {
	mutex  sync.Mutex
	frames []string
	failed error
	input  chan []byte
	width  atomic.Int32
}

func (s *fakeTerminal) Write(frame []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.frames = append(s.frames, string(frame))
	return len(frame), s.failed
}

// until waits for a frame that fulfils a condition.
func (s *fakeTerminal) until(t *testing.T, what string, is func(string) bool) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s.mutex.Lock()
		last := ""
		if len(s.frames) > 0 {
			last = s.frames[len(s.frames)-1]
		}
		s.mutex.Unlock()
		if is(last) {
			return last
		}
		if time.Now().After(deadline) {
			t.Fatalf("no frame %s; the last one:\n%s", what, last)
		}
	}
}

func (s *fakeTerminal) expectText(t *testing.T, text string) string {
	t.Helper()
	return s.until(t, "shows "+text, func(frame string) bool { return strings.Contains(frame, text) })
}

// watch runs a table over agents; end waits until it has stopped.
func watch(t *testing.T, watch *Watch) (screen *fakeTerminal, resized chan os.Signal, end func() error) {
	t.Helper()
	screen, resized = &fakeTerminal{input: make(chan []byte)}, make(chan os.Signal, 1)
	screen.width.Store(220)
	live := &Live{
		Watch: watch, Clock: clock.System(), State: State{Order: Order{Key: ByName}}, Look: Look{Bars: true, Glyphs: asciiGlyphs()},
		Input: screen.input, Resized: resized, Size: func() (int, int) { return int(screen.width.Load()), 30 }, Output: screen,
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- live.Run(ctx) }()
	t.Cleanup(stop)
	return screen, resized, func() error { return <-ended }
}

// The table is refreshed; an agent that fails is reported and recovers; agents
// are added and removed; keys work; the user ends it.
func TestLive(t *testing.T) {
	good, broken := withReplies(t, "claims.json"), &atomic.Bool{}
	moody := testAgent(t, "moody", func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			http.Error(w, "on strike", http.StatusInternalServerError)
			return
		}
		answers(good)(w, r)
	})
	second, lost := testAgent(t, "second", answers(withReplies(t, "sharing.json"))), &atomic.Bool{}
	first := Listing{Agents: []Agent{moody, testAgent(t, "hangs", hangingAgent(t))}}
	screen, resized, end := watch(t, &Watch{
		Client: testClient(t), First: first, Interval: 20 * time.Millisecond, Relist: 50 * time.Millisecond, Rest: 100 * time.Millisecond,
		List: func(context.Context) (Listing, error) {
			if lost.Load() {
				return Listing{}, errors.New("the API server is away")
			}
			return Listing{Agents: append(first.Agents[:1:1], second)}, nil
		},
	})
	screen.expectText(t, "llama-pretrain")
	screen.expectText(t, "rerank-0") // the second agent was found
	broken.Store(true)
	frame := screen.expectText(t, "(moody): 500 Internal Server Error: on strike")
	if strings.Contains(frame, "llama-pretrain") || !strings.Contains(frame, "rerank-0") {
		t.Errorf("a claim that no agent reports is still listed, or one that an agent reports is not:\n%s", frame)
	}
	broken.Store(false)
	screen.expectText(t, "llama-pretrain")
	lost.Store(true)
	screen.expectText(t, "the API server is away")
	screen.input <- []byte("/rer")
	screen.expectText(t, "filter: rer_")
	screen.input <- []byte{0x1b} // alone: it is Escape only if nothing follows
	screen.expectText(t, "/ filter")
	screen.width.Store(40)
	resized <- nil
	screen.until(t, "fits the smaller terminal", func(frame string) bool {
		for line := range strings.SplitSeq(strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[J", "").Replace(frame), "\r\n") {
			if utf8.RuneCountInString(line) >= 40 {
				return false
			}
		}
		return true
	})
	screen.input <- []byte("q")
	if err := end(); err != nil {
		t.Error(err)
	}
}

// An agent that has failed is read again, and recovers.
func TestWatchRetriesFailedAgents(t *testing.T) {
	var asked atomic.Int32
	failing := testAgent(t, "failing", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answers([]byte(`{"apiVersion": "v1", "node": "back", "claims": []}`))(w, r)
	})
	fleet, ctx := NewFleet(), t.Context()
	ctx, stop := context.WithCancel(ctx)
	failed := false
	(&Watch{Client: testClient(t), First: Listing{Agents: []Agent{failing}}, Interval: 10 * time.Millisecond, Rest: 100 * time.Millisecond}).Run(ctx, func(change Change) {
		change(fleet)
		switch reading := fleet.Reading(noon, Wanted{}); {
		case len(reading.Failures) == 1:
			failed = true
		case reading.Answered == 1:
			stop()
		}
	})
	if !failed {
		t.Error("the failure was never reported")
	}
}

// The table ends with the context, with the terminal, or by Ctrl-C.
func TestLiveEnds(t *testing.T) {
	begin := func() (*fakeTerminal, func() error) {
		screen, _, end := watch(t, &Watch{Client: testClient(t), First: Listing{Agents: []Agent{testAgent(t, "hangs", hangingAgent(t))}}, Interval: time.Second})
		screen.expectText(t, "read 0 of 1 agent")
		return screen, end
	}
	screen, end := begin()
	close(screen.input)
	if err := end(); err != nil {
		t.Errorf("without input: %v", err)
	}
	screen, end = begin()
	screen.input <- []byte{3}
	if err := end(); err != nil {
		t.Errorf("at Ctrl-C: %v", err)
	}
	screen, end = begin()
	screen.mutex.Lock()
	screen.failed = errors.New("gone")
	screen.mutex.Unlock()
	if err := end(); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("without a terminal: %v", err)
	}
}
