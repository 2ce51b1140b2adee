package cluster

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeInputs are the Inputs of a Runner, controlled by a test.
type fakeInputs struct {
	mu        sync.Mutex
	changes   []Change
	settled   bool
	takes     []time.Time
	diagnoses int
	questions []dra.Question // of the last call of SetQuestions
	slow      time.Duration  // duration of each step
	traces    bool           // traces are exported, sampled by even ids
	traced    []trace.Trace
	wake      chan struct{}
}

func (f *fakeInputs) inputs() Inputs {
	return Inputs{
		Drain: func() []Change {
			f.mu.Lock()
			defer f.mu.Unlock()
			taken := f.changes
			f.changes = nil
			f.takes = append(f.takes, time.Now())
			return taken
		},
		Synced: func() Synced {
			return Synced{Claims: true, Pods: true, Slices: true, Classes: true, Nodes: true, Events: true}
		},
		Supply:       func() *dra.Supply { time.Sleep(f.slow); return nil },
		Diagnoses:    func() []dra.Diagnosis { return nil },
		SetQuestions: func(q []dra.Question) { f.mu.Lock(); f.diagnoses++; f.questions = q; f.mu.Unlock() },
		Statuses:     func() []source.Status { return nil },
		Settled:      func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.settled },
		Wake:         f.wake,
		Traced:       func(t []trace.Trace) { f.traced = append(f.traced, t...) },
		Sampled:      sampled,
	}
}

func sampled(id trace.ID) bool { return id[0]%2 == 0 }

// counts returns how often the Runner took changes and replaced the questions.
func (f *fakeInputs) counts() (takes, asked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.takes), f.diagnoses
}

func (f *fakeInputs) deliver(changes ...Change) {
	f.mu.Lock()
	f.changes = append(f.changes, changes...)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run starts a Runner in the time of a synctest bubble and returns it and a
// function that stops it.
func run(t *testing.T, f *fakeInputs) (*Runner, *prometheus.Registry, func()) {
	t.Helper()
	f.wake = make(chan struct{}, 1)
	registry := prometheus.NewPedanticRegistry()
	r, err := NewRunner(Config{Interval: 10 * time.Second, Traces: f.traces}, f.inputs(), registry, clock.System(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	return r, registry, func() { stop(); <-done }
}

func TestNoSnapshotBeforeLists(t *testing.T) {
	for name, after := range map[string]time.Duration{"once settled": 7 * time.Second, "without, after a minute": 0} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeInputs{}
			r, _, stop := run(t, f)
			defer stop()
			want := settleTime
			if after > 0 {
				want = after
				time.AfterFunc(after, func() { f.mu.Lock(); f.settled = true; f.mu.Unlock() })
			}
			time.Sleep(want - 50*time.Millisecond)
			synctest.Wait()
			if takes, _ := f.counts(); r.Latest() != nil || takes > 0 {
				t.Errorf("%s: a snapshot after less than %v", name, want)
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if _, asked := f.counts(); r.Latest() == nil || asked != 1 {
				t.Errorf("%s: no snapshot after %v, asked %d times", name, want, asked)
			}
		})
	}
}

// steps delivers a change every five milliseconds for five seconds and returns
// the number of steps.
func steps(t *testing.T, slow time.Duration) (count int) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeInputs{settled: true, slow: slow}
		_, _, stop := run(t, f)
		for range 1000 {
			f.deliver()
			time.Sleep(5 * time.Millisecond)
		}
		stop()
		count = len(f.takes)
	})
	return count
}

func TestStepsAreSpaced(t *testing.T) {
	if got := steps(t, 0); got < 90 || got > 101 {
		t.Errorf("%d steps in five seconds, want one in 50 ms", got)
	}
	if got := steps(t, 100*time.Millisecond); got < 11 || got > 13 {
		t.Errorf("%d steps of 100 ms in five seconds, want a quarter of the time", got)
	}
}

func TestStepsWithoutChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeInputs{settled: true}
		_, _, stop := run(t, f)
		time.Sleep(65 * time.Second)
		stop()
		if len(f.takes) != 7 {
			t.Errorf("%d steps in 65 seconds, want one every ten", len(f.takes))
		}
	})
}

// Questions are sent when they have changed, and not at each step.
func TestQuestionsAreSentOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeInputs{settled: true}
		_, _, stop := run(t, f)
		defer stop()
		p := dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: "a"}, UID: "a", Claims: []dra.PodClaim{{Name: "r", Template: "one"}}}
		for i, step := range []struct {
			changes   []Change
			asked     int
			questions int
		}{{nil, 1, 0}, {nil, 1, 0}, {[]Change{{Pod: &p}}, 2, 1}, {nil, 2, 1}, {[]Change{{Pod: &p, Gone: true}}, 3, 0}, {nil, 3, 0}} {
			f.deliver(step.changes...)
			time.Sleep(time.Minute)
			synctest.Wait()
			if _, asked := f.counts(); asked != step.asked || len(f.questions) != step.questions {
				t.Errorf("%d: asked %d times, %+v last", i, asked, f.questions)
			}
		}
	})
}

func TestStopBeforeSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeInputs{}
		r, _, stop := run(t, f)
		time.Sleep(time.Second)
		stop()
		if r.Latest() != nil || len(f.takes) != 0 {
			t.Error("it stepped")
		}
	})
}

// The reducer's observations are in the histograms, which exist from 0.
func TestDurationsAreInHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clock.System()
		f := &fakeInputs{settled: true}
		_, registry, stop := run(t, f)
		defer stop()
		deliver := func(change Change) {
			change.Live, change.At = true, now()
			f.deliver(change)
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		claim := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ns", Name: "c"}, UID: "c", Classes: []string{"gpu"}, Created: now().Wall}
		deliver(Change{Node: &dra.Node{Name: "new", SandboxPrompt: true}})
		deliver(Change{Claim: &claim})
		deliver(Change{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: "a"}, UID: "a", Created: now().Wall, Claims: []dra.PodClaim{{Name: "r", Claim: "c"}}}})
		for _, phase := range []string{"allocation", "scheduling", "preparation", "start"} {
			if count, sum, found := histogram(t, registry, "dra_allocation_duration_seconds", phase); !found || count != 0 || sum != 0 {
				t.Errorf("%s before: %d, %v s (%v)", phase, count, sum, found)
			}
		}
		if _, _, found := histogram(t, registry, "dra_allocation_duration_seconds", "preparation_start"); found {
			t.Error("a phase of older kubelets, of which there are none")
		}
		allocated := claim
		allocated.Allocated, allocated.Results = true, []dra.AllocatedDevice{{Class: "gpu"}}
		deliver(Change{Claim: &allocated})
		if count, sum, _ := histogram(t, registry, "dra_allocation_duration_seconds", "allocation"); count != 1 || sum != 2 {
			t.Errorf("allocation: %d, %v s, want 1 of 2 s", count, sum)
		}
		if count, _, found := histogram(t, registry, "dra_claim_ready_duration_seconds", ""); !found || count != 0 {
			t.Errorf("ready: %d (%v)", count, found)
		}
	})
}

// Histograms of a class are removed with its last claim, unless something was
// observed.
func TestHistogramsOfDeletedClass(t *testing.T) {
	for name, observed := range map[string]bool{"nothing was observed": false, "something was": true} {
		synctest.Test(t, func(t *testing.T) {
			now := clock.System()
			f := &fakeInputs{settled: true}
			_, registry, stop := run(t, f)
			defer stop()
			deliver := func(changes ...Change) {
				for i := range changes {
					changes[i].Live, changes[i].At = true, now()
				}
				f.deliver(changes...)
				time.Sleep(2 * time.Second)
				synctest.Wait()
			}
			claim := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ns", Name: "c"}, UID: "c", Classes: []string{"gpu"}, Created: now().Wall}
			pod := dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: "a"}, UID: "a", Created: now().Wall, Claims: []dra.PodClaim{{Name: "r", Claim: "c"}}}
			deliver(Change{Claim: &claim}, Change{Pod: &pod})
			last := claim
			if observed {
				last.Allocated, last.Results = true, []dra.AllocatedDevice{{Class: "gpu"}}
				deliver(Change{Claim: &last})
			}
			if _, _, found := histogram(t, registry, "dra_allocation_duration_seconds", "allocation"); !found {
				t.Errorf("%s: no histogram", name)
			}
			deliver(Change{Claim: &last, Gone: true})
			for family, phase := range map[string]string{"dra_allocation_duration_seconds": "allocation", "dra_claim_ready_duration_seconds": ""} {
				if _, _, found := histogram(t, registry, family, phase); found != observed {
					t.Errorf("%s: %s after the last claim: %v", name, family, found)
				}
			}
		})
	}
}

func histogram(t *testing.T, registry *prometheus.Registry, family, phase string) (count uint64, sum float64, found bool) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if f.GetName() == family && labels["phase"] == phase && labels["deviceclass"] == "gpu" {
				return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum(), true
			}
		}
	}
	return 0, 0, false
}

func TestHistogramsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	for i, failed := range []bool{false, true} {
		if _, err := NewRunner(Config{}, Inputs{}, registry, clock.System(), log); (err != nil) != failed {
			t.Errorf("runner %d: %v", i, err)
		}
	}
}
