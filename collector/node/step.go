package node

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// State is what the node role remembers from step to step. Step takes it
// over: a State that was given to Step must not be used again.
type State struct {
	config Config
	step   uint64
	last   clock.Instant // of the step before

	devices   *devices
	join      *join
	matcher   *matcher
	plugins   plugins
	strangers []stranger // in the order of the views

	records map[dra.ClaimRef]*record
	tenures map[holdKey]*hold
	totals  map[namespaceKey]*namespaceTotals

	xidCodes   []xidCode
	signals    []signal
	violations map[string]*violations // by device class

	order   ordered
	reorder bool // something came or went since order was made

	splits     int // made so far
	userCauses userCauses

	resets    tally
	unmatched unmatched
	rows      rowBuilder
}

// unmatched counts what has no partner.
type unmatched struct {
	published, hardware int
	conflicting         map[string]bool // hardware that claims hold under several published names
}

// NewState returns the state before the first step.
func NewState(config Config) State {
	devices := newDevices(config)
	xids := xidTable()
	return State{
		xidCodes:   xids,
		signals:    signalTable(xids),
		violations: make(map[string]*violations),
		config:     config,
		devices:    devices,
		join:       newJoin(config.Node),
		matcher:    newMatcher(config.Node, devices),
		plugins:    plugins{absent: make(absences)},
		records:    make(map[dra.ClaimRef]*record),
		tenures:    make(map[holdKey]*hold),
		totals:     make(map[namespaceKey]*namespaceTotals),
		rows:       newRowBuilder(config),
	}
}

// Snapshot is everything there is to show of one moment. It is immutable.
type Snapshot struct {
	At   clock.Instant
	Rows []metric.Row
}

// Event is something that changed and belongs into the log, once.
type Event struct {
	Level   slog.Level
	Message string
	Attrs   []slog.Attr
}

// Step moves the state to now. It is pure but for consuming the state: the
// same state, facts and now give the same result.
func Step(s State, facts Facts, now clock.Instant) (State, Snapshot, []Event) {
	s.step++
	var events []Event
	s.devices.apply(facts.Samples, now)
	s.applyXIDs(now)
	joined := s.join.update(facts, s.devices.changes)
	if joined {
		s.join.resolve(s.matcher.update(facts, s.join.held()))
	}
	s.updatePlugins(facts, now)
	s.countHolders(now)
	events = s.grow(now, events)
	if joined {
		events = s.describeClaims(now, events)
		events = s.countUnmatched(facts, events)
		s.hearKubelet(facts)
	}
	events = s.warnOfStrangers(now, events)
	s.splitUse(facts, joined, now)
	s.takePrices(facts.Prices)
	s.priceDevices(now)
	s.keepLedger(now)
	events = s.judge(facts.Cluster, now, events)
	s.evict(now)
	s.last = now
	return s, Snapshot{At: now, Rows: s.allRows(facts, now)}, events
}

// grow takes in what the readings of this step add to what devices accrue. It
// comes after it is known who holds them.
func (s *State) grow(now clock.Instant, events []Event) []Event {
	s.resets.open(now.Wall)
	before := len(events)
	for uuid, u := range s.devices.byUUID {
		if resets := u.grow(s.config.Staleness()); resets > 0 {
			s.resets.total += float64(resets)
			events = append(events, Event{slog.LevelInfo, "hardware counters were reset", []slog.Attr{slog.String("uuid", uuid), slog.Int("counters", resets)}})
		}
		// The device's own integral of utilization.
		if g := &u.growth[meterBusy]; g.known {
			u.busy.add(g.amount, now.Wall)
		}
	}
	slices.SortFunc(events[before:], func(a, b Event) int {
		return strings.Compare(a.Attrs[0].Value.String(), b.Attrs[0].Value.String())
	})
	return events
}

// keepLedger credits every hold with what it got since the last step.
func (s *State) keepLedger(now clock.Instant) {
	held := make(map[holdKey]bool, len(s.tenures))
	for i := range s.join.views {
		view := &s.join.views[i]
		for _, d := range view.devices {
			key := holdKey{view.ref, d.uuid}
			if d.admin || held[key] {
				continue
			}
			held[key] = true
			s.keepTenure(key, view, now)
		}
	}
	for key, t := range s.tenures {
		if held[key] {
			continue
		}
		u, known := s.devices.byUUID[key.uuid]
		if t.held {
			t.release(now)
			s.reorder = true
			if known {
				u.holders.changed = true
			}
		}
		if known && len(t.stretches) > 0 {
			t.settle(u, now.Wall, s.totalsOf(namespaceKey{key.claim.Namespace, t.class, t.model}))
		}
	}
}

func (s *State) keepTenure(key holdKey, view *claimView, now clock.Instant) {
	t, known := s.tenures[key]
	if !known {
		t = &hold{key: key}
		s.tenures[key] = t
		s.reorder = true
	}
	u, class := s.devices.byUUID[key.uuid], view.classOn(key.uuid)
	u.holders.changed = u.holders.changed || !t.held
	if !t.held || t.class != class {
		s.openViolations(class, now.Wall)
		s.reorder = true
	}
	t.class, t.model = class, u.model()
	t.weight, t.allocated = u.weight(key.claim), u.allocated(key.claim)
	if view.charge == chargedElsewhere {
		t.weight = 0
	}
	_, t.uncounted = u.holders.uncounted()
	if t.held && view.missing {
		t.doubt(u, now.Elapsed)
		t.idle(u, s.config.IdleThreshold, now.Wall)
		return
	}
	totals := s.totalsOf(namespaceKey{key.claim.Namespace, t.class, t.model})
	t.accrue(u, t.hold(u, now.Elapsed), now.Wall, totals)
	t.open(u, now.Wall, totals)
	t.settle(u, now.Wall, totals)
	t.accrueBusy(&u.growth[meterBusy], now.Wall, totals)
	t.idle(u, s.config.IdleThreshold, now.Wall)
}

func (s *State) totalsOf(key namespaceKey) *namespaceTotals {
	totals, known := s.totals[key]
	if !known {
		totals = &namespaceTotals{}
		s.totals[key] = totals
		s.reorder = true
	}
	return totals
}

// allocated is the memory that a claim was given of the device: what it
// consumes, else all of it. Zero means unknown.
func (u *deviceState) allocated(claim dra.ClaimRef) float64 {
	for _, share := range u.holders.shares {
		if memory, consumes := share.consumed["memory"]; consumes && share.claim == claim {
			return memory
		}
	}
	if u.size > 0 {
		return u.size
	}
	return u.published.Capacity["memory"]
}

// evict forgets what nobody holds and nothing shows any more.
func (s *State) evict(now clock.Instant) {
	for key, t := range s.tenures {
		if !t.held && now.Since(t.released) > s.config.Grace {
			delete(s.tenures, key)
			s.reorder = true
		}
	}
	for ref, r := range s.records {
		if !r.live && now.Since(r.released) > s.config.Grace {
			delete(s.records, ref)
			s.reorder = true
		}
		r.devices.forget(now, s.config.Grace)
		r.consumers.forget(now, s.config.Grace)
	}
	s.plugins.rows.forget(now, s.config.Grace)
	s.devices.evict(now, s.config.Grace)
}

func (s *State) applyXIDs(now clock.Instant) {
	for _, u := range s.devices.byUUID {
		if u.present {
			u.xids.hear(u, s.xidCodes, s.step, s.last.Wall, now.Wall)
		} else {
			u.xids.rest()
		}
	}
}
