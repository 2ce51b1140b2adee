package node

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// incidents counts what happens to the devices of a model, by kind, and for how long
// they were watched for it: what a rate of failures needs. A device and its partitions
// are one. An incident begins when a kind begins to be present, and lasts as long as it
// is; an Xid that is no signal is present for the hold of signals. What was present when
// it was first read has no known beginning, and is no incident.
type incidents struct {
	hold          time.Duration // of an Xid that is no signal
	staleness     time.Duration // a longer time between two steps was not watched
	watchThrottle bool

	signals  []signal
	xidCodes []xidCode

	byModel map[driverModel]*modelIncidents
	sorted  []driverModel // of byModel; nil: outdated
	last    clock.Instant // of the step before; zero: none
}

// driverModel is what incidents are counted by.
type driverModel struct{ model, driverVersion string }

func (k incidentKind) set() kindSet { return 1 << k }

// modelIncidents are the totals of the devices of a model, by kind: each kind is open
// since a device was watched for it, or had it.
type modelIncidents [incidentTotals][incidentKinds]tally

func newIncidents(config Config, health *health) *incidents {
	return &incidents{
		hold: config.HealthHold, staleness: config.Staleness(), watchThrottle: config.ThrottleRatio > 0,
		signals: health.signals, xidCodes: health.xidCodes, byModel: make(map[driverModel]*modelIncidents),
	}
}

// update applies the health of all devices.
func (s *incidents) update(devices *devices, now clock.Instant) {
	all, passed := devices.all(), time.Duration(0)
	if elapsed := now.Since(s.last); !s.last.IsZero() && elapsed <= s.staleness {
		passed = elapsed
	}
	s.last = now
	for _, d := range all {
		incidents := &d.incidents
		incidents.before, incidents.present, incidents.begun = incidents.present, 0, 0
		incidents.earlier, incidents.watched = incidents.watched, 0
	}
	for _, d := range all {
		present, begun := s.examine(d, now)
		whole := &devices.whole(d).incidents
		whole.present |= present
		whole.begun |= begun
		whole.watched |= s.watched(d)
	}
	for _, d := range all {
		if d.hardware && devices.whole(d) == d {
			s.account(d, devices, passed.Seconds(), now.Wall)
		}
	}
}

// whole returns the device that a partition is cut from, if it is known; else the
// device itself.
func (s *devices) whole(d *deviceState) *deviceState {
	if d.device.IsPartition() {
		if parent := s.parent(d); parent != nil {
			return parent
		}
	}
	return d
}

// examine returns the kinds that are present on a device or a partition, and those of
// them whose beginning is known.
func (s *incidents) examine(d *deviceState, now clock.Instant) (present, begun kindSet) {
	h := &d.health
	for _, r := range h.raised {
		signal, kinds := &s.signals[r.signal], kindSet(0)
		if r.critical && r.signal != signalParent {
			kinds |= incidentUnhealthy.set()
		}
		if signal.incident != noIncident && r.critical == signal.critical {
			kinds |= signal.incident.set()
		}
		present |= kinds
		if r.inherited {
			continue
		}
		begun |= kinds
	}
	for i := range h.xids.counts[:max(0, len(h.xids.counts)-1)] {
		x, kind := &h.xids.counts[i], s.xidCodes[i].class.incident()
		if kind == noIncident || x.last.IsZero() {
			continue
		}
		switch age := now.Elapsed - x.at; {
		case x.grew && age <= max(s.hold, s.staleness):
			present |= kind.set()
			begun |= kind.set()
		case age < s.hold:
			present |= kind.set()
		}
	}
	incidents, reported := &d.incidents, h.reports[byDriver]
	if reported == unhealthy {
		present |= incidentTaint.set()
		if incidents.driver == healthy {
			begun |= incidentTaint.set()
		}
	}
	if reported != unreported {
		incidents.driver = reported
	}
	return present, begun
}

// account adds what has happened to a device since the step before, seconds ago; 0: how
// long ago that was is not known, or too long.
func (s *incidents) account(d *deviceState, devices *devices, seconds float64, now time.Time) {
	incidents, totals := &d.incidents, s.totals(driverModel{d.model(), d.device.DriverVersion})
	watched := incidents.watched
	if watched&incidentUnhealthy.set() != 0 {
		incidents.failures.open(now)
	}
	claims, held := 0, false
	onsets := incidents.begun &^ incidents.before
	if onsets != 0 {
		claims, held = len(devices.claimsOn(d)), slices.ContainsFunc(devices.holdersOn(d), (*deviceHolders).isHeld)
	}
	if held && onsets&incidentUnhealthy.set() != 0 {
		incidents.failures.add(1, now)
	}
	for kind := range incidentKinds {
		set := kind.set()
		if (watched|incidents.present)&set != 0 {
			for total := range totals {
				totals[total][kind].open(now)
			}
		}
		switch {
		case incidents.before&set != 0:
			totals[incidentSeconds][kind].total += seconds
		case incidents.earlier&watched&set != 0:
			totals[incidentWatchedSeconds][kind].total += seconds
		}
		if onsets&set != 0 {
			totals[incidentCount][kind].total++
			totals[incidentClaims][kind].total += float64(claims)
		}
	}
}

func (s *incidents) totals(key driverModel) *modelIncidents {
	totals := s.byModel[key]
	if totals == nil {
		totals = new(modelIncidents)
		s.byModel[key], s.sorted = totals, nil
	}
	return totals
}

// watched returns the kinds that would be noticed if they happened to a device now.
func (s *incidents) watched(d *deviceState) kindSet {
	h, kinds := &d.health, kindSet(0)
	if h.reports[byDriver] != unreported {
		kinds |= incidentTaint.set()
	}
	if !d.fresh {
		return kinds
	}
	if h.hasReadings() {
		kinds |= incidentUnhealthy.set()
	}
	if h.xids.watched {
		for _, kind := range []incidentKind{incidentXIDApplication, incidentXIDUnclear, incidentXIDReset, incidentXIDService} {
			kinds |= kind.set()
		}
	}
	reads := func(kind incidentKind, quantities ...device.Quantity) {
		if slices.ContainsFunc(quantities, func(q device.Quantity) bool { return len(d.of(q)) > 0 }) {
			kinds |= kind.set()
		}
	}
	reads(incidentLost, device.Lost)
	reads(incidentECC, device.ECCErrors)
	reads(incidentRemap, device.RowRemapPending, device.RowRemapFailed)
	reads(incidentLink, device.NVLinks, device.FabricState, device.NetworkLinks)
	if s.watchThrottle {
		reads(incidentThrottling, device.Throttled)
	}
	reads(incidentOther, device.RecoveryAction, device.DriverHealth)
	for _, reading := range d.of(device.HealthCheck) {
		kinds |= s.signals[dcgmSignal(reading.Details[0])].incident.set()
	}
	return kinds
}

// evict removes the totals of models of which no device is left.
func (s *incidents) evict(devices *devices) {
	left := make(map[driverModel]bool, len(s.byModel))
	for _, d := range devices.all() {
		left[driverModel{d.model(), d.device.DriverVersion}] = true
	}
	maps.DeleteFunc(s.byModel, func(key driverModel, _ *modelIncidents) bool { return !left[key] })
	s.sorted = nil
}

// models returns the totals of models of devices, by kind.
func (s *incidents) models() []model.Incidents {
	if s.sorted == nil {
		s.sorted = slices.SortedFunc(maps.Keys(s.byModel), func(a, b driverModel) int {
			return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.driverVersion, b.driverVersion))
		})
	}
	list := make([]model.Incidents, 0, len(s.sorted)*int(incidentKinds))
	for _, key := range s.sorted {
		totals := s.byModel[key]
		for kind := range incidentKinds {
			if totals[incidentCount][kind].isOpen() {
				list = append(list, model.Incidents{
					Model: key.model, DriverVersion: key.driverVersion, Kind: kind.String(),
					Count: totals[incidentCount][kind].model(), WatchedSeconds: totals[incidentWatchedSeconds][kind].model(),
					Seconds: totals[incidentSeconds][kind].model(), Claims: totals[incidentClaims][kind].model(),
				})
			}
		}
	}
	return list
}
