package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// State is what the cluster role keeps from step to step: its stages. Step
// takes it over: a State that was given to Step must not be used again.
type State struct {
	config   Config
	families *families
	start    time.Time // of the first step: since when counters count

	index      *index
	clocks     *clocks
	lifecycle  *lifecycle
	phases     *currentPhases
	pending    *pending
	claims     *claimCounts
	failures   *failures
	histograms *histograms
	anomalies  *anomalies
	evictions  *evictions
	health     *healthReports
	supply     supplyRows
	traces     *traces
	workloads  *workloads
	domains    *computeDomains
	topology   *topology
	headroom   *headroomRows

	classesChanged bool // others exist than in the step before

	rows       *metric.Builder
	dropped    stableList[model.Counter]
	costLabels map[string]*metric.Labels // by namespace

	queuedFirst, queuedAgain *metric.Labels
}

// NewState returns the state before the first step.
func NewState(config Config) State {
	f, x, c := newFamilies(), newIndex(), newClocks()
	l, p := newLifecycle(f, c), newPending(x, config.Once)
	w := newWorkloads(f, x, l, &p.extended)
	return State{
		config:     config,
		families:   f,
		index:      x,
		clocks:     c,
		lifecycle:  l,
		phases:     newCurrentPhases(l),
		pending:    p,
		claims:     newClaimCounts(),
		failures:   newFailures(),
		histograms: newHistograms(f),
		anomalies:  newAnomalies(x, f),
		evictions:  newEvictions(),
		health:     newHealthReports(),
		traces:     newTraces(config.Traces, x, l, c),
		workloads:  w,
		domains:    newComputeDomains(x),
		topology:   newTopology(x, w),
		headroom:   newHeadroomRows(),
		rows:       metric.NewBuilder(config.MaxSeries, f.self.Dropped),
		costLabels: make(map[string]*metric.Labels),

		queuedFirst: metric.NewLabels(f.queuedDiagnoses.Labels, "first"),
		queuedAgain: metric.NewLabels(f.queuedDiagnoses.Labels, "again"),
	}
}

// Step moves the state to now: it applies the changes in their order, and
// evaluates what they concern. It is pure but for consuming the state: the same
// state, facts and now give the same result.
func Step(s State, facts Facts, now clock.Instant) (State, Snapshot, []Event) {
	s.begin(facts, now)
	for i := range facts.Changes {
		change := &facts.Changes[i]
		if u, replaced := s.index.replace(change); replaced {
			s.apply(&u)
		}
		u := s.index.apply(change)
		s.apply(&u)
	}
	changed := &s.index.changed
	s.phases.update()
	if s.classesChanged {
		for _, class := range s.failures.absent() {
			s.evictClass(class)
		}
		for c := range s.claims.claims {
			s.countClaim(c, now)
		}
	}
	for c := range changed.claims {
		s.countClaim(c, now)
	}
	for _, class := range s.claims.unusedClasses() {
		s.evictClass(class)
	}
	s.workloads.update(now)
	s.domains.update()
	s.topology.update(facts.Supply)
	s.anomalies.update()
	s.evictions.evictIdle()
	s.health.update(changed.pods)
	events := s.health.compare(facts.Supply)
	pending := s.pending.update(facts, now)
	for _, onset := range pending.onsets {
		s.failures.add(onset.class, string(onset.reason), 1, now.Wall)
	}
	s.failures.flush(s.pending, now)
	s.traces.applyPending(pending.changes, now)
	s.traces.flush(now)
	s.supply.update(facts.Supply, s.families)
	s.headroom.update(facts.Headroom, facts.Synced, s.families, now)
	m := &model.Cluster{
		Version: s.config.Version.Version, Sources: facts.Sources,
		DevicesKnown: facts.Synced.Slices && facts.Synced.Claims, NodesKnown: facts.Synced.Nodes,
		Pending: pending.refs,
	}
	snapshot := Snapshot{
		At:           now,
		Series:       s.allRows(facts, m),
		Model:        m,
		Questions:    pending.questions,
		Pending:      pending.refs,
		Observations: slices.Concat(s.histograms.observations, s.workloads.observed),
		Closed:       s.histograms.evicted,
		Opened:       slices.Concat(s.histograms.open(s.failures.classes, facts.Synced), s.workloads.opened),
		Traces:       s.traces.ended,
	}
	return s, snapshot, events
}

func (s *State) begin(facts Facts, now clock.Instant) {
	if s.start.IsZero() {
		s.start = now.Wall
	}
	s.index.changed.clear()
	s.lifecycle.begin(now)
	s.histograms.begin()
	s.classesChanged = s.failures.begin(facts.Supply, now.Wall)
	s.traces.begin()
}

// countClaim counts a claim, and has its class counted.
func (s *State) countClaim(c *claimEntry, now clock.Instant) {
	if class, ok := s.claims.update(c, s.failures.label); ok {
		s.failures.addClass(class, now.Wall)
	}
}

// evictClass removes the counters and histograms of a class of which nothing was
// observed.
func (s *State) evictClass(class string) {
	if s.failures.evictClass(class) {
		s.histograms.evictClass(class)
	}
}

// apply passes an update of the index, and the events that follow from it, to
// the stages that consume them.
func (s *State) apply(u *update) {
	events := s.lifecycle.apply(u)
	for i := range events {
		e := &events[i]
		switch e.kind {
		case phaseEnded:
			e.class = s.failures.counted(e.class, u.At.Wall)
			s.histograms.observe(e, s.traces.point(e))
		case bindingFailed:
			s.failures.add(e.class, failureBinding, 1, e.at.at.Wall)
			s.traces.apply(e)
		default:
			s.traces.apply(e)
		}
	}
	s.phases.apply(u)
	s.pending.apply(u)
	s.evictions.apply(u)
	s.domains.apply(u)
	s.topology.apply(u)
	switch {
	case u.Node != nil && !u.Gone:
		s.histograms.addKubelet(u.Node.SandboxPrompt)
	case u.Warning != nil && u.occurrences > 0:
		class := ""
		if u.Warning.Kind == dra.WarningPreparation { // a claim that cannot be created is not diagnosed yet
			class = s.pending.warningClass(u.Warning)
		}
		s.failures.applyWarning(u, class)
		s.traces.applyWarning(u)
	}
}

// allRows outputs the state, and adds it to the model. A family that needs a collection
// that cannot be read is left out, since half of it would be wrong.
func (s *State) allRows(facts Facts, m *model.Cluster) *metric.Snapshot {
	b, f, synced := s.rows, s.families, facts.Synced
	if synced.Claims && synced.Pods {
		s.pending.rows(b, f)
		if synced.Events {
			s.index.scaling.rows(b, f, s.pending.uids)
		}
		m.Phases = s.phases.rows(b, f)
	}
	s.failures.rows(b, f.failures)
	if synced.Claims {
		m.Claims = s.claims.rows(b, f.claims, synced.Pods)
		m.TerminatingClaims = s.anomalies.terminatingRows(b)
		if synced.Pods && s.pending.consistent() {
			m.OrphanedClaims = s.anomalies.orphanedRows(b)
		}
	}
	if synced.Pods {
		m.DeletedPods = s.anomalies.deletedRows(b)
		m.QueuedWorkloads = s.workloads.rows(b, f)
	}
	if synced.Nodes && synced.Pods && synced.Claims {
		s.topology.rows(b, f, synced.Slices)
	}
	m.ComputeDomains = s.domains.rows(b, f, synced)
	s.supply.rows(b, f, synced, m)
	s.headroom.rows(b, f, synced, m)
	if synced.Claims && synced.Pods && synced.Slices {
		m.Disagreements = s.health.rows(b, f)
	}
	if synced.Pods {
		m.Evictions = s.evictions.rows(b, f.evictions)
	}
	m.ClockErrors = s.lifecycle.rows(b, f, s.start)
	if facts.Work != nil {
		s.workRows(facts.Work)
	}
	if synced.Claims && synced.Pods {
		s.pending.undiagnosedRows(b, f)
	}
	f.self.Rows(b, s.config.Version, facts.Sources)
	f.self.DroppedRows(b)
	m.DroppedSeries = s.listDropped()
	limitModel(m, s.config.MaxSeries)
	return b.Finish()
}

// limitModel limits the lists of objects as families are limited, since pages and JSON
// have an entry for each; 0: no limit. What is only counted is complete.
func limitModel(m *model.Cluster, most int) {
	if most <= 0 {
		return
	}
	m.Pending, m.Phases = limited(m.Pending, most), limited(m.Phases, most)
	m.ComputeDomains, m.QueuedWorkloads = limited(m.ComputeDomains, most), limited(m.QueuedWorkloads, most)
	m.TerminatingClaims, m.OrphanedClaims = limited(m.TerminatingClaims, most), limited(m.OrphanedClaims, most)
	m.DeletedPods, m.Disagreements = limited(m.DeletedPods, most), limited(m.Disagreements, most)
}

func limited[T any](list []T, most int) []T { return list[:min(len(list), most)] }

// listDropped returns how many series the limits have dropped, by family.
func (s *State) listDropped() []model.Counter {
	for family, count := range s.rows.Dropped() {
		s.dropped.add(model.Counter{Name: family.Name, Count: count})
	}
	slices.SortFunc(s.dropped.next, func(a, b model.Counter) int { return cmp.Compare(a.Name, b.Name) })
	return s.dropped.take()
}

// workRows adds what diagnoses have cost, by namespace, and how many are queued.
func (s *State) workRows(work *dra.DiagnosisWork) {
	family := s.families.diagnosisSeconds
	s.rows.In(family)
	for _, cost := range work.Costs {
		labels := s.costLabels[cost.Namespace]
		if labels == nil {
			labels = metric.NewLabels(family.Labels, cost.Namespace)
			s.costLabels[cost.Namespace] = labels
		}
		s.rows.AddFrom(labels, cost.Took.Seconds(), s.start)
	}
	s.rows.In(s.families.queuedDiagnoses)
	s.rows.Add(s.queuedFirst, float64(work.First))
	s.rows.Add(s.queuedAgain, float64(work.Again))
}
