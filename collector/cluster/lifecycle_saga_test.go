package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// A saga is a small cluster whose objects tests change, at known instants. It
// tells the reducer of them as the API server would: in whole seconds, by
// clocks that may be off, live or in a list.
type saga struct {
	t      testing.TB
	config Config
	state  State
	now    clock.Instant
	began  clock.Instant
	off    map[string]time.Duration // by which a clock is ahead of ours: server, scheduler, kubelet
	lazy   bool                     // steps only when it is told to

	claims  map[string]*dra.ClaimLife
	pods    map[string]*dra.PodLife
	groups  map[string]*dra.Group
	nodes   map[string]*dra.NodeLife
	changes []Change
	uids    int

	observed []Observation
	traced   []trace.Trace
	last     Snapshot
}

func newSaga(t testing.TB) *saga {
	config := Config{Interval: time.Second, Traces: true, Once: true} // nobody diagnoses
	began := clock.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Elapsed: time.Hour}
	s := &saga{t: t, config: config, state: NewState(config), now: began, began: began, off: map[string]time.Duration{},
		claims: map[string]*dra.ClaimLife{}, pods: map[string]*dra.PodLife{}, groups: map[string]*dra.Group{}, nodes: map[string]*dra.NodeLife{}}
	s.node("new", true)
	s.node("old", false)
	return s
}

// at sets the time, in seconds after the beginning.
func (s *saga) at(seconds float64) *saga {
	after := time.Duration(seconds * float64(time.Second))
	s.now = clock.Instant{Wall: s.began.Wall.Add(after), Elapsed: s.began.Elapsed + after}
	return s
}

// stamp is what a clock writes down now.
func (s *saga) stamp(which string) time.Time {
	return s.now.Wall.Add(s.off[which]).Truncate(time.Second)
}

func (s *saga) uid() string {
	s.uids++
	return fmt.Sprint("uid-", s.uids)
}

// claim changes a claim, or makes it.
func (s *saga) claim(name string, edit ...func(*dra.ClaimLife)) *saga {
	now := dra.ClaimLife{Ref: dra.ClaimRef{Namespace: "ns", Name: name}, Classes: []string{"gpu"}, Created: s.stamp("server")}
	if before, known := s.claims[name]; known {
		now = *before
	} else {
		now.UID = s.uid()
	}
	for _, e := range edit {
		e(&now)
	}
	s.claims[name] = &now
	return s.tell(Change{Live: true, Claim: &now})
}

// pod changes a pod, or makes it.
func (s *saga) pod(name string, edit ...func(*dra.PodLife)) *saga {
	now := dra.PodLife{Ref: dra.PodRef{Namespace: "ns", Name: name}, Created: s.stamp("server")}
	if before, known := s.pods[name]; known {
		now = *before
	} else {
		now.UID = s.uid()
	}
	for _, e := range edit {
		e(&now)
	}
	s.pods[name] = &now
	return s.tell(Change{Live: true, Pod: &now})
}

func (s *saga) node(name string, prompt bool) *saga {
	s.nodes[name] = &dra.NodeLife{Name: name, SandboxPrompt: prompt}
	return s.tell(Change{Live: true, Node: s.nodes[name]})
}

func (s *saga) group(name string, claims ...dra.PodClaim) *saga {
	g := &dra.Group{Ref: dra.PodRef{Namespace: "ns", Name: name}, UID: "group-" + name, Claims: claims}
	s.groups[name] = g
	return s.tell(Change{Live: true, Group: g})
}

func (s *saga) goneClaim(name string) *saga {
	claim := s.claims[name]
	delete(s.claims, name)
	return s.tell(Change{Live: true, Gone: true, Claim: claim})
}

func (s *saga) gonePod(name string) *saga {
	pod := s.pods[name]
	delete(s.pods, name)
	return s.tell(Change{Live: true, Gone: true, Pod: pod})
}

func (s *saga) tell(change Change) *saga {
	change.At = s.now
	s.changes = append(s.changes, change)
	if !s.lazy {
		s.step()
	}
	return s
}

func (s *saga) step() {
	state, snapshot, _ := Step(s.state, Facts{Changes: s.changes, Synced: Synced{Claims: true, Pods: true, Slices: true, Classes: true, Nodes: true, Events: true}}, s.now)
	s.state, s.last, s.changes = state, snapshot, nil
	s.observed = append(s.observed, snapshot.Observations...)
	s.traced = append(s.traced, snapshot.Traces...)
}

// missed changes something of which no watch tells.
func (s *saga) missed(change func(*saga)) *saga {
	lazy, before := s.lazy, len(s.changes)
	s.lazy = true
	change(s)
	s.changes, s.lazy = s.changes[:before], lazy
	return s
}

// relist tells of everything there is, as a list does.
func (s *saga) relist() *saga {
	lazy := s.lazy
	s.lazy = true
	for _, name := range sorted(s.claims) {
		s.tell(Change{Claim: s.claims[name]})
	}
	for _, name := range sorted(s.groups) {
		s.tell(Change{Group: s.groups[name]})
	}
	for _, name := range sorted(s.pods) {
		s.tell(Change{Pod: s.pods[name]})
	}
	for _, name := range sorted(s.nodes) {
		s.tell(Change{Node: s.nodes[name]})
	}
	if s.lazy = lazy; !lazy {
		s.step()
	}
	return s
}

// restart begins anew, with the clock of another process.
func (s *saga) restart() *saga {
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

// saw fails the test unless exactly these durations were observed since it was
// asked last, in this order: "phase class duration".
func (s *saga) saw(want ...string) *saga {
	s.t.Helper()
	var got []string
	for _, o := range s.observed {
		phase := o.Phase
		if o.Family == s.state.families.ready {
			phase = phaseReady
		}
		got = append(got, fmt.Sprintf("%s %s %v", phase, o.DeviceClass, o.Took.Round(time.Millisecond)))
	}
	s.observed = nil
	if !slices.Equal(got, want) {
		s.t.Errorf("observed\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return s
}

// value is that of the one row of a family whose labels have these values in
// this order; false if there is none.
func (s *saga) value(family string, labels ...string) (float64, bool) {
	for _, row := range s.last.Rows {
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

// under fails the test unless these phases are under way: "pod claim phase
// seconds", since when in seconds after the beginning.
func (s *saga) under(want ...string) *saga {
	s.t.Helper()
	var got []string
	for _, row := range s.last.Rows {
		if row.Family == s.state.families.phaseSince {
			got = append(got, fmt.Sprint(row.Labels.Get("pod"), " ", row.Labels.Get("resourceclaim"), " ", row.Labels.Get("phase"), " ", int64(row.Value)-s.began.Wall.Unix()))
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("under way %q, want %q", got, want)
	}
	return s
}

func (s *saga) anomalies(phase string, want float64) *saga {
	s.t.Helper()
	if got, found := s.value("dra_exporter_clock_anomalies_total", phase); !found || got != want {
		s.t.Errorf("clock anomalies of %s: %v (%v), want %v", phase, got, found, want)
	}
	return s
}

// What happens to claims and pods.

func (s *saga) allocated(pods ...string) func(*dra.ClaimLife) {
	return func(c *dra.ClaimLife) {
		c.Allocated, c.AllocatedAt = true, s.stamp("scheduler")
		c.Results = []dra.AllocatedDevice{{Request: "r", Class: c.Classes[0], Device: dra.DeviceID{Driver: "d", Pool: "p", Name: fmt.Sprint("dev-", s.now.Elapsed)}}}
		for _, pod := range pods {
			s.reserved(pod)(c)
		}
	}
}

func (s *saga) reserved(pod string) func(*dra.ClaimLife) {
	return func(c *dra.ClaimLife) {
		c.ReservedFor = append(slices.Clone(c.ReservedFor), dra.Consumer{Resource: "pods", Name: pod, UID: s.pods[pod].UID})
	}
}

func unallocated(c *dra.ClaimLife) {
	c.Allocated, c.AllocatedAt, c.Results, c.ReservedFor, c.Binding = false, time.Time{}, nil, nil, dra.BindingNone
}

func binding(b dra.Binding) func(*dra.ClaimLife) { return func(c *dra.ClaimLife) { c.Binding = b } }

// bindingDone has the conditions come true as a driver with a clock writes it.
func (s *saga) bindingDone(c *dra.ClaimLife) {
	c.Binding, c.BindingSince = dra.BindingDone, s.stamp("driver")
}

func uses(claims ...string) func(*dra.PodLife) {
	return func(p *dra.PodLife) {
		for _, claim := range claims {
			p.Claims = append(slices.Clone(p.Claims), dra.PodClaim{Name: "ref-" + claim, Claim: claim})
		}
	}
}

func (s *saga) bound(node string) func(*dra.PodLife) {
	return func(p *dra.PodLife) { p.Node, p.Scheduled = node, s.stamp("server") }
}

func (s *saga) sandbox(p *dra.PodLife) { p.Sandbox = s.stamp(s.kubelet(p.Node)) }

func (s *saga) started(p *dra.PodLife) { p.Started = s.stamp(s.kubelet(p.Node)) }

// kubelet is whose clock a node has: its own if that is set.
func (s *saga) kubelet(node string) string {
	if _, own := s.off[node]; own {
		return node
	}
	return "kubelet"
}

// history is the history of a pod.
func (s *saga) history(pod string) *podHistory {
	return s.state.traces.histories[s.state.index.pods[dra.PodRef{Namespace: "ns", Name: pod}]]
}
