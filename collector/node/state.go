// Package node is the node role: which claims hold which devices of this node,
// and how much of them they use.
//
// Facts come in as one struct of values. Step applies them to a State, which is a
// list of stages, each of which takes values from the stages before:
//
//	devices    samples of the hardware, and held devices without known hardware
//	join       which claims are held, and by which pods, and which of their devices are
//	           bundled
//	matcher    which hardware each device is that a driver published
//	plugins    which containers got devices through device plugins
//	holders    who holds each device, and with which share of it
//	counters   by how much the quantities of each device have grown
//	records    facts about claims
//	workloads  the workloads of pods
//	topology   where devices are, and how near those of a claim are to each other
//	unmatched  devices of claims without known hardware, and the other way round
//	splits     use of shared devices by the processes of each holder
//	prices     what each device costs
//	ledger     what each claim got of each device, and totals of namespaces
//	health     signals, XIDs, reports of drivers and the kubelet, violations
//	incidents  how often devices fail, and for how long they were watched
//
// The result is a Snapshot: what all stages know as a model.Node, and the rows that the
// families make of it (families.go). Runner has the clock and the goroutine, and
// publishes each snapshot by one atomic store.
package node

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// State is what the node role keeps from step to step: its stages. Step takes it
// over: a State that was given to Step must not be used again.
type State struct {
	config Config

	devices   *devices
	join      *join
	matcher   *matcher
	plugins   *plugins
	counters  *counters
	records   *records
	workloads *workloads
	topology  *topology
	unmatched *unmatched
	splits    *splits
	prices    *prices
	ledger    *ledger
	health    *health
	incidents *incidents

	families metric.Definitions[*labelled]
	self     *self.Families
	labelled *labelled
	builder  *metric.Builder
}

// NewState returns the state before the first step.
func NewState(config Config) State {
	health, families := newHealth(config), self.NewFamilies()
	return State{
		config:    config,
		devices:   newDevices(config),
		join:      newJoin(config.Node),
		matcher:   newMatcher(config),
		plugins:   newPlugins(config.Node),
		counters:  newCounters(config),
		records:   newRecords(config),
		workloads: &workloads{},
		topology:  &topology{},
		unmatched: newUnmatched(config.Node),
		splits:    &splits{staleness: config.Staleness()},
		prices:    &prices{grace: config.Grace, list: config.Prices},
		ledger:    newLedger(config),
		health:    health,
		incidents: newIncidents(config, health),

		families: define(config),
		self:     families,
		labelled: newLabelled(),
		builder:  metric.NewBuilder(config.MaxSeries, families.Dropped),
	}
}

// Step moves the state to now. It is pure but for consuming the state: the same
// state, facts and now give the same result.
func Step(s State, facts Facts, now clock.Instant) (State, Snapshot, []Event) {
	devices := s.devices
	devices.identify(facts.Samples, facts.Locations, now)
	again := s.join.update(facts, devices.changes)
	if again {
		s.join.resolve(s.matcher.update(devices, facts, s.join.held()))
	}
	views := s.join.views
	s.matcher.addNamed(devices, now)
	devices.read(now)
	s.matcher.addHeld(devices, views, now)
	events := s.plugins.update(devices, facts, now)
	held := holding{again, views, s.join.uncertain, s.join.recreated, s.plugins.consumers, s.plugins.unresolved}
	updateHolders(devices, &held, now)
	events = append(events, s.counters.update(devices.all(), holdersKnown(facts, s.config.Node), now)...)
	if again {
		markSharing(devices, views)
		s.topology.update(devices, views, facts.Cluster.Published)
		events = slices.Concat(events, s.records.update(views, now), s.unmatched.update(devices, views, facts.Cluster.Published, now))
		s.health.applyKubelet(kubeletReports(s.config.Node, facts, views))
	}
	s.workloads.update(facts.Cluster, now)
	events = append(events, s.unmatched.overdue(facts.Sources, now)...)
	s.splits.update(devices, facts, &held, now)
	s.prices.update(devices, facts.Prices, views, now)
	s.health.openViolations(s.ledger.update(devices, views, now), now)
	events = append(events, s.health.update(devices, s.ledger, facts.Cluster.SlicesFresh, now)...)
	s.incidents.update(devices, now)
	s.evict(now)
	m := s.model(facts)
	return s, Snapshot{At: now, Series: s.rows(m), Model: m}, events
}

// evict removes what is not held or sampled any more and whose grace has ended.
func (s *State) evict(now clock.Instant) {
	s.ledger.evict(now)
	s.records.evict(now)
	s.workloads.evict(now, s.config.Grace)
	s.plugins.evict(now, s.config.Grace)
	if s.devices.evict(now, s.config.Grace) {
		s.incidents.evict(s.devices)
	}
}

// model returns what is known now.
func (s *State) model(facts Facts) *model.Node {
	return &model.Node{
		Name: s.config.Node, Version: s.config.Version.Version, SampledAt: s.devices.newestSample().Wall, Sources: facts.Sources,
		ProcessAttribution: s.devices.attributes(facts.Processes.State).String(), Currency: s.prices.currency(),
		Access: model.Access{
			State: facts.Access.State.String(), Released: facts.Access.Reason,
			Mode: s.config.Access.Mode, ModeReason: s.config.Access.Reason,
		},
		Devices: s.deviceModels(), Claims: s.records.models(), Holds: s.ledger.models(), Pods: podUses(s.devices.all()),
		Plugins: s.plugins.consumers, PastPlugins: s.plugins.past, Workloads: s.workloads.facts.current, PastWorkloads: s.workloads.past,
		ClaimAlignments: s.topology.claims, PodAlignments: s.topology.pods, Totals: s.ledger.totalModels(),
		Incidents: s.incidents.models(), Violations: s.health.violations.models(),
		Unmatched: s.unmatched.models(), Conflicting: len(s.unmatched.conflicting),
		Unresolved: s.plugins.unresolvedModels(), Uncounted: countUncounted(s.devices), Resets: s.counters.resets.model(),
	}
}

// deviceModels returns what each stage knows of the devices.
func (s *State) deviceModels() []model.Device {
	all := s.devices.all()
	devices := make([]model.Device, len(all))
	for i, d := range all {
		d.describe(s.devices.locations)
		m := &devices[i]
		m.Identity, m.Details, m.Past, m.Fresh, m.Readings = d.shownIdentity, d.shownDetails, d.isPast(), d.fresh, d.readings
		m.Busy, m.Holders = d.growth.busy.model(), d.holders.model()
		d.split.setModel(m)
		m.Prices, m.PastPrices = d.prices.facts.current, d.prices.facts.past()
		s.health.setModel(&m.Health, d)
		m.HeldFailures = d.incidents.failures.model()
	}
	return devices
}

// rows returns the rows of a model, and those of the exporter itself. The last ones are
// how many rows of the others were dropped.
func (s *State) rows(m *model.Node) *metric.Snapshot {
	s.labelled.apply(m)
	s.families.Fill(s.labelled, s.builder)
	s.self.Rows(s.builder, s.config.Version, m.Sources)
	s.self.DroppedRows(s.builder)
	return s.builder.Finish()
}
