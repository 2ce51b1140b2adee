package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// A testCluster is a small cluster whose objects tests change at known times.
// It delivers the changes to the reducer as the API server does: with
// timestamps in whole seconds, of clocks that may be skewed, by a watch or in a
// list.
type testCluster struct {
	t          testing.TB
	config     Config
	state      State
	now        clock.Instant
	began      clock.Instant
	off        map[string]time.Duration // how far a clock is ahead of ours: server, scheduler, kubelet
	manualStep bool                     // makes a step only when step is called

	claims  map[string]*dra.ClaimLifecycle
	pods    map[string]*dra.PodLifecycle
	groups  map[string]*dra.Group
	nodes   map[string]*dra.Node
	changes []Change
	uids    int

	observed  []Observation
	traced    []trace.Trace
	last      Snapshot
	afterStep func() // is called after each step; may be nil
}

func newTestCluster(t testing.TB) *testCluster {
	config := Config{Interval: time.Second, Traces: true, Once: true} // there are no diagnoses
	began := clock.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Elapsed: time.Hour}
	s := &testCluster{t: t, config: config, state: NewState(config), now: began, began: began, off: map[string]time.Duration{},
		claims: map[string]*dra.ClaimLifecycle{}, pods: map[string]*dra.PodLifecycle{}, groups: map[string]*dra.Group{}, nodes: map[string]*dra.Node{}}
	s.node("new", true)
	s.node("old", false)
	return s
}

// at sets the time, in seconds after the start.
func (s *testCluster) at(seconds float64) *testCluster {
	after := time.Duration(seconds * float64(time.Second))
	s.now = clock.Instant{Wall: s.began.Wall.Add(after), Elapsed: s.began.Elapsed + after}
	return s
}

// stamp returns the present time by a clock, in whole seconds.
func (s *testCluster) stamp(which string) time.Time {
	return s.now.Wall.Add(s.off[which]).Truncate(time.Second)
}

func (s *testCluster) uid() string {
	s.uids++
	return fmt.Sprint("uid-", s.uids)
}

// claim changes or creates a claim.
func (s *testCluster) claim(name string, edit ...func(*dra.ClaimLifecycle)) *testCluster {
	now := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ns", Name: name}, Classes: []string{"gpu"}, Created: s.stamp("server")}
	if before, known := s.claims[name]; known {
		now = *before
	} else {
		now.UID = s.uid()
	}
	for _, e := range edit {
		e(&now)
	}
	s.claims[name] = &now
	return s.deliver(Change{Live: true, Claim: &now})
}

// pod changes or creates a pod.
func (s *testCluster) pod(name string, edit ...func(*dra.PodLifecycle)) *testCluster {
	now := dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: name}, Created: s.stamp("server")}
	if before, known := s.pods[name]; known {
		now = *before
	} else {
		now.UID = s.uid()
	}
	for _, e := range edit {
		e(&now)
	}
	s.pods[name] = &now
	return s.deliver(Change{Live: true, Pod: &now})
}

func (s *testCluster) node(name string, prompt bool) *testCluster {
	s.nodes[name] = &dra.Node{Name: name, SandboxPrompt: prompt}
	return s.deliver(Change{Live: true, Node: s.nodes[name]})
}

func (s *testCluster) group(name string, claims ...dra.PodClaim) *testCluster {
	g := &dra.Group{Ref: dra.PodRef{Namespace: "ns", Name: name}, UID: "group-" + name, Claims: claims}
	s.groups[name] = g
	return s.deliver(Change{Live: true, Group: g})
}

func (s *testCluster) goneClaim(name string) *testCluster {
	claim := s.claims[name]
	delete(s.claims, name)
	return s.deliver(Change{Live: true, Gone: true, Claim: claim})
}

func (s *testCluster) gonePod(name string) *testCluster {
	pod := s.pods[name]
	delete(s.pods, name)
	return s.deliver(Change{Live: true, Gone: true, Pod: pod})
}

func (s *testCluster) deliver(change Change) *testCluster {
	change.At = s.now
	s.changes = append(s.changes, change)
	if !s.manualStep {
		s.step()
	}
	return s
}

func (s *testCluster) step() {
	state, snapshot, _ := Step(s.state, Facts{Changes: s.changes, Synced: Synced{Claims: true, Pods: true, Slices: true, Classes: true, Nodes: true, Events: true}}, s.now)
	s.state, s.last, s.changes = state, snapshot, nil
	s.observed = append(s.observed, snapshot.Observations...)
	s.traced = append(s.traced, snapshot.Traces...)
	if s.afterStep != nil {
		s.afterStep()
	}
}

// unreported makes a change that no watch delivers.
func (s *testCluster) unreported(change func(*testCluster)) *testCluster {
	manual, before := s.manualStep, len(s.changes)
	s.manualStep = true
	change(s)
	s.changes, s.manualStep = s.changes[:before], manual
	return s
}

// relist delivers all objects, as a list does.
func (s *testCluster) relist() *testCluster {
	manual := s.manualStep
	s.manualStep = true
	for _, name := range sorted(s.claims) {
		s.deliver(Change{Claim: s.claims[name]})
	}
	for _, name := range sorted(s.groups) {
		s.deliver(Change{Group: s.groups[name]})
	}
	for _, name := range sorted(s.pods) {
		s.deliver(Change{Pod: s.pods[name]})
	}
	for _, name := range sorted(s.nodes) {
		s.deliver(Change{Node: s.nodes[name]})
	}
	if s.manualStep = manual; !manual {
		s.step()
	}
	return s
}

// restart starts again with an empty state and the clock of a new process.
func (s *testCluster) restart() *testCluster {
	s.began.Elapsed -= s.now.Elapsed - time.Millisecond
	s.now.Elapsed = time.Millisecond
	s.state = NewState(s.config)
	return s.relist()
}

func sorted[T any](of map[string]T) []string {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// expectObserved fails the test unless exactly these durations were observed
// since the last call, in this order: "phase class duration".
func (s *testCluster) expectObserved(want ...string) *testCluster {
	s.t.Helper()
	var got []string
	for _, o := range s.observed {
		got = append(got, fmt.Sprintf("%s %s %v", o.Phase, o.DeviceClass, o.Took.Round(time.Millisecond)))
	}
	s.observed = nil
	if !slices.Equal(got, want) {
		s.t.Errorf("observed\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return s
}

// value returns the value of the row of a family with these label values, in
// order; false if there is none.
func (s *testCluster) value(family string, labels ...string) (float64, bool) {
	for _, row := range s.last.Rows() {
		if row.Family.Name != family {
			continue
		}
		var values []string
		for _, name := range row.Family.Labels {
			values = append(values, row.Labels.Get(name))
		}
		if slices.Equal(values, labels) {
			return row.Value, true
		}
	}
	return 0, false
}

// expectPhases fails the test unless these phases have not ended: "pod claim
// phase seconds", their begin in seconds after the start.
func (s *testCluster) expectPhases(want ...string) *testCluster {
	s.t.Helper()
	var got []string
	for _, row := range s.last.Rows() {
		if row.Family.Name == metric.ClaimPhaseSinceTimestampSeconds {
			got = append(got, fmt.Sprint(row.Labels.Get("pod"), " ", row.Labels.Get("resourceclaim"), " ", row.Labels.Get("phase"), " ", int64(row.Value)-s.began.Wall.Unix()))
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("under way %q, want %q", got, want)
	}
	return s
}

func (s *testCluster) expectAnomalies(phase string, want float64) *testCluster {
	s.t.Helper()
	if got, found := s.value("dra_exporter_clock_anomalies_total", phase); !found || got != want {
		s.t.Errorf("clock anomalies of %s: %v (%v), want %v", phase, got, found, want)
	}
	return s
}

// Changes to claims and pods.

func (s *testCluster) allocated(pods ...string) func(*dra.ClaimLifecycle) {
	return func(c *dra.ClaimLifecycle) {
		c.Allocated, c.AllocatedAt = true, s.stamp("scheduler")
		c.Results = []dra.AllocatedDevice{{Request: "r", Class: c.Classes[0], Device: dra.DeviceID{Driver: "d", Pool: "p", Name: fmt.Sprint("dev-", s.now.Elapsed)}}}
		for _, pod := range pods {
			s.reserved(pod)(c)
		}
	}
}

func (s *testCluster) reserved(pod string) func(*dra.ClaimLifecycle) {
	return func(c *dra.ClaimLifecycle) {
		c.ReservedFor = append(slices.Clone(c.ReservedFor), dra.Consumer{Resource: "pods", Name: pod, UID: s.pods[pod].UID})
	}
}

// unprepared has all devices of the claim skip preparation.
func unprepared(c *dra.ClaimLifecycle) { c.NoPreparation = true }

func unallocated(c *dra.ClaimLifecycle) {
	c.NoPreparation = false
	c.Allocated, c.AllocatedAt, c.Results, c.ReservedFor, c.Binding = false, time.Time{}, nil, nil, dra.BindingNone
}

func binding(b dra.Binding) func(*dra.ClaimLifecycle) {
	return func(c *dra.ClaimLifecycle) { c.Binding = b }
}

// bindingDone sets the conditions to true, with the timestamp of a driver's
// clock.
func (s *testCluster) bindingDone(c *dra.ClaimLifecycle) {
	c.Binding, c.BindingSince = dra.BindingDone, s.stamp("driver")
}

func uses(claims ...string) func(*dra.PodLifecycle) {
	return func(p *dra.PodLifecycle) {
		for _, claim := range claims {
			p.Claims = append(slices.Clone(p.Claims), dra.PodClaim{Name: "ref-" + claim, Claim: claim})
		}
	}
}

func (s *testCluster) bound(node string) func(*dra.PodLifecycle) {
	return func(p *dra.PodLifecycle) { p.Node, p.Scheduled = node, s.stamp("server") }
}

func (s *testCluster) sandbox(p *dra.PodLifecycle) { p.Sandbox = s.stamp(s.kubelet(p.Node)) }

func (s *testCluster) started(p *dra.PodLifecycle) { p.Started = s.stamp(s.kubelet(p.Node)) }

// kubelet returns the name of a node's clock: its own if one is set.
func (s *testCluster) kubelet(node string) string {
	if _, own := s.off[node]; own {
		return node
	}
	return "kubelet"
}

// history returns the history of a pod.
func (s *testCluster) history(pod string) *podHistory {
	return s.state.traces.histories[s.state.index.pods[dra.PodRef{Namespace: "ns", Name: pod}]]
}
