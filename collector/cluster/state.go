package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// State is what the cluster role keeps from step to step: its stages. Step
// takes it over: a State that was given to Step must not be used again.
type State struct {
	config   Config
	families definitions
	self     *self.Families
	start    time.Time // of the first step: since when counters count

	index      *index
	lifecycle  *lifecycle
	phases     *currentPhases
	pending    *pending
	claims     *claimCounts
	failures   *failures
	histograms *histograms
	anomalies  *anomalies
	evictions  *evictions
	health     *healthReports
	supplied   *supplied
	traces     *traces
	workloads  *workloads
	domains    *computeDomains
	topology   *topology
	stranded   *strandedTimes
	work       *diagnosisWork

	classesChanged bool // others exist than in the step before

	labelled *labelled
	rows     *metric.Builder
	dropped  stableList[model.Counter]
}

// NewState returns the state before the first step.
func NewState(config Config) State {
	exporter := self.NewFamilies()
	return State{
		config:     config,
		families:   newDefinitions(),
		self:       exporter,
		index:      newIndex(),
		lifecycle:  newLifecycle(),
		phases:     newCurrentPhases(),
		pending:    newPending(config.Once),
		claims:     newClaimCounts(),
		failures:   newFailures(),
		histograms: newHistograms(),
		anomalies:  newAnomalies(),
		evictions:  newEvictions(),
		health:     newHealthReports(),
		supplied:   &supplied{},
		traces:     newTraces(config.Traces),
		workloads:  newWorkloads(),
		domains:    newComputeDomains(),
		topology:   &topology{},
		stranded:   newStrandedTimes(),
		work:       &diagnosisWork{},
		labelled:   &labelled{},
		rows:       metric.NewBuilder(config.MaxSeries, exporter.Dropped),
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
	x, skews := s.index, &s.lifecycle.clocks
	s.phases.update(x.nodes)
	if s.classesChanged {
		for _, class := range s.failures.absent() {
			s.evictClass(class)
		}
		for _, c := range x.claims {
			if c.counted.count != nil {
				s.countClaim(c, now)
			}
		}
	}
	for c := range x.changed.claims {
		s.countClaim(c, now)
	}
	for _, class := range s.claims.unusedClasses() {
		s.evictClass(class)
	}
	s.workloads.update(x, skews, now)
	s.domains.update(x)
	s.topology.update(x.nodes, s.workloads.byName, facts.Supply)
	s.anomalies.update(x)
	s.evictions.evictIdle()
	s.health.update(x.changed.pods)
	events := s.health.compare(facts.Supply)
	pending := s.pending.update(x, facts, now)
	for _, onset := range pending.onsets {
		s.failures.add(onset.class, string(onset.reason), 1, now.Wall)
	}
	s.failures.flush(func(warning *dra.Warning) string { return s.pending.warningClass(warning, x) }, now)
	s.traces.applyPending(pending.changes, now)
	s.traces.flush(x, skews, now)
	s.stranded.update(facts.Headroom, facts.Synced, now)
	m := s.model(facts, &pending)
	series := s.allRows(m)
	limitModel(m, s.config.MaxSeries)
	snapshot := Snapshot{
		At:           now,
		Series:       series,
		Model:        m,
		Questions:    pending.questions,
		Pending:      pending.refs,
		Observations: append(s.histograms.observations, s.workloads.observed...),
		Closed:       s.histograms.evicted,
		Opened:       slices.Concat(s.histograms.open(s.failures.counts, facts.Synced), s.workloads.opened),
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
	x, skews := s.index, &s.lifecycle.clocks
	events := s.lifecycle.apply(u, x.nodes)
	for i := range events {
		e := &events[i]
		switch e.kind {
		case phaseEnded:
			e.class = s.failures.counted(e.class, u.At.Wall)
			s.histograms.observe(e, s.traces.point(e, x))
		case bindingFailed:
			s.failures.add(e.class, failureBinding, 1, e.at.at.Wall)
			s.traces.apply(e, x, skews)
		default:
			s.traces.apply(e, x, skews)
		}
	}
	s.phases.apply(u, x.nodes)
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
			class = s.pending.warningClass(u.Warning, x)
		}
		s.failures.applyWarning(u, class)
		s.traces.applyWarning(u, x, skews)
	}
}

// model returns what is known. A list that needs a collection that cannot be read is
// empty, since half of it would be wrong.
func (s *State) model(facts Facts, pending *pendingUpdate) *model.Cluster {
	synced := facts.Synced
	m := &model.Cluster{
		Version: s.config.Version.Version, Sources: facts.Sources,
		ClaimsKnown: synced.Claims, PodsKnown: synced.Pods, DevicesKnown: synced.Slices && synced.Claims, NodesKnown: synced.Nodes,
		Pending: pending.refs, Undiagnosed: pending.undiagnosed,
		Failures: s.failures.sorted(), ClockErrors: s.lifecycle.clockErrors(s.start), StrandedSeconds: s.stranded.totals(),
	}
	if synced.Claims {
		m.Claims, m.TerminatingClaims = s.claims.sorted(synced.Pods), s.anomalies.listTerminating()
	}
	if synced.Pods {
		m.DeletedPods, m.Evictions = s.anomalies.listDeleted(), s.evictions.counters()
		m.Workloads, m.QueuedWorkloads = s.workloads.list(&s.pending.extended)
	}
	if synced.Claims && synced.Pods {
		s.addReferences(m, synced)
	}
	m.ComputeDomains, m.DomainWorkloads = s.domains.lists(synced)
	s.supplied.list(m, facts.Supply, synced)
	addHeadroom(m, facts.Headroom, synced)
	if facts.Work != nil {
		m.DiagnosisSeconds, m.QueuedDiagnoses = s.work.lists(facts.Work, s.start)
	}
	return m
}

// addReferences adds what is known where both pods and claims are.
func (s *State) addReferences(m *model.Cluster, synced Synced) {
	m.Phases = s.phases.sorted()
	if synced.Events {
		m.Autoscalers = s.index.scaling.count(s.pending.uids)
	}
	if s.pending.consistent() {
		m.OrphanedClaims = s.anomalies.listOrphaned()
	}
	if synced.Nodes {
		m.NodeDomains, m.NodeReleases = s.topology.lists(s.index.nodes)
	}
	if synced.Slices {
		m.Health, m.Disagreements = s.health.lists()
	}
}

// allRows returns the rows of a model that is not limited yet, and adds to it what the
// limits have dropped.
func (s *State) allRows(m *model.Cluster) *metric.Snapshot {
	s.labelled.update(m)
	s.families.Fill(s.labelled, s.rows)
	s.self.Rows(s.rows, s.config.Version, m.Sources)
	s.self.DroppedRows(s.rows)
	m.DroppedSeries = s.listDropped()
	return s.rows.Finish()
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

// diagnosisWork is what diagnoses have cost, and how many are queued.
type diagnosisWork struct {
	seconds, queued stableList[model.Counter]
}

func (d *diagnosisWork) lists(work *dra.DiagnosisWork, start time.Time) (costs, queued []model.Counter) {
	for _, cost := range work.Costs {
		d.seconds.add(model.Counter{Name: cost.Namespace, Count: cost.Took.Seconds(), Since: start})
	}
	d.queued.add(model.Counter{Name: "first", Count: float64(work.First)})
	d.queued.add(model.Counter{Name: "again", Count: float64(work.Again)})
	return d.seconds.take(), d.queued.take()
}
