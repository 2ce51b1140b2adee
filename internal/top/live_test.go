package top

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// watchedScreen applies what a Watch reports to a display, until the test ends.
func watchedScreen(t *testing.T, watch *Watch) (until func(what string, is func(frame string) bool) string) {
	t.Helper()
	s := newScreen(&Live{Watch: watch, Clock: clock.System(), Order: Order{Key: ByName}, Look: Look{Bars: true, Glyphs: asciiGlyphs()}})
	s.width, s.height = 220, 40
	var mutex sync.Mutex
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		watch.Run(ctx, func(change FleetChange) {
			mutex.Lock()
			defer mutex.Unlock()
			s.Update(change)
		})
	})
	t.Cleanup(func() { stop(); running.Wait() })
	return func(what string, is func(string) bool) string {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			mutex.Lock()
			s.Update(tick{})
			frame := strings.Join(linesOf(s), "\n")
			mutex.Unlock()
			if is(frame) {
				return frame
			}
			if time.Now().After(deadline) {
				t.Fatalf("no frame %s; the last one:\n%s", what, frame)
			}
		}
	}
}

// The table is refreshed; an agent that fails is reported and recovers; agents
// are added and removed.
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
	first := AgentList{Agents: []Agent{moody, testAgent(t, "hangs", hangingAgent(t))}}
	until := watchedScreen(t, &Watch{
		Client: testClient(t), First: first, Interval: 20 * time.Millisecond, Relist: 50 * time.Millisecond, Rest: 100 * time.Millisecond,
		List: func(context.Context) (AgentList, error) {
			if lost.Load() {
				return AgentList{}, errors.New("the API server is away")
			}
			return AgentList{Agents: append(first.Agents[:1:1], second)}, nil
		},
	})
	expect := func(text string) string {
		t.Helper()
		return until("shows "+text, func(frame string) bool { return strings.Contains(frame, text) })
	}
	expect("llama-pretrain")
	expect("rerank-0") // the second agent was found
	broken.Store(true)
	frame := expect("(moody): 500 Internal Server Error: on strike")
	if strings.Contains(frame, "llama-pretrain") || !strings.Contains(frame, "rerank-0") {
		t.Errorf("a claim that no agent reports is still listed, or one that an agent reports is not:\n%s", frame)
	}
	broken.Store(false)
	expect("llama-pretrain")
	lost.Store(true)
	expect("the API server is away")
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
	(&Watch{Client: testClient(t), First: AgentList{Agents: []Agent{failing}}, Interval: 10 * time.Millisecond, Rest: 100 * time.Millisecond}).Run(ctx, func(change FleetChange) {
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

// fakeTerminal receives what the program writes.
type fakeTerminal struct {
	mutex   sync.Mutex
	written bytes.Buffer
	failed  error
}

func (f *fakeTerminal) Write(text []byte) (int, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.failed != nil {
		return 0, f.failed
	}
	return f.written.Write(text)
}

func (f *fakeTerminal) text() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.written.String()
}

// The program ends with the context, with the terminal, by a key and by a panic,
// and leaves the terminal's other screen each time that it can.
func TestLiveEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(input *io.PipeWriter, output *fakeTerminal, stop func(), crash *atomic.Bool)
		want string // of the error; empty for none
	}{
		"q":        {func(in *io.PipeWriter, _ *fakeTerminal, _ func(), _ *atomic.Bool) { _, _ = in.Write([]byte("q")) }, ""},
		"Ctrl-C":   {func(in *io.PipeWriter, _ *fakeTerminal, _ func(), _ *atomic.Bool) { _, _ = in.Write([]byte{3}) }, ""},
		"no input": {func(in *io.PipeWriter, _ *fakeTerminal, _ func(), _ *atomic.Bool) { _ = in.Close() }, ""},
		"context":  {func(_ *io.PipeWriter, _ *fakeTerminal, stop func(), _ *atomic.Bool) { stop() }, ""},
		"panic":    {func(_ *io.PipeWriter, _ *fakeTerminal, _ func(), crash *atomic.Bool) { crash.Store(true) }, "bug"},
		"no output": {func(_ *io.PipeWriter, out *fakeTerminal, _ func(), _ *atomic.Bool) {
			out.mutex.Lock()
			out.failed = errors.New("gone")
			out.mutex.Unlock()
		}, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			input, keys := io.Pipe()
			defer keys.Close()
			output, crash, now := &fakeTerminal{}, &atomic.Bool{}, clock.System()
			live := &Live{
				Watch: &Watch{Client: testClient(t), First: AgentList{Agents: []Agent{testAgent(t, "hangs", hangingAgent(t))}}, Interval: time.Second},
				Clock: func() clock.Instant {
					if crash.Load() {
						panic("the clock is broken")
					}
					return now()
				},
				Look: Look{Glyphs: asciiGlyphs()}, Input: input, Output: output, Width: 100, Height: 20,
			}
			ended := make(chan error, 1)
			go func() { ended <- live.Run(ctx) }()
			for deadline := time.Now().Add(time.Minute); !strings.Contains(output.text(), "0 of 1 agent"); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("it shows %q", output.text())
				}
			}
			test.end(keys, output, stop, crash)
			err := <-ended
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("it ends with %v, want %q", err, test.want)
			}
			if text := output.text(); test.want != "gone" && (!strings.Contains(text, "\x1b[?1049h") || !strings.Contains(text, "\x1b[?1049l")) {
				t.Errorf("the other screen is not left: %q", text)
			}
		})
	}
}
