package node

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// health determines the health of all devices by the hardware's signals, and
// collects what the driver and the kubelet report.
type health struct {
	hold          time.Duration // for how long a signal must have been gone until it is cleared
	staleness     time.Duration
	throttleRatio float64

	xidCodes   []xidCode
	signals    []signal
	kubelet    kubeletHealth
	violations *violations
	last       clock.Instant // of the step before; zero: none
}

func newHealth(config Config) *health {
	xids := xidTable()
	return &health{
		hold: config.HealthHold, staleness: config.Staleness(), throttleRatio: config.ThrottleRatio,
		xidCodes: xids, signals: signalTable(xids),
		violations: newViolations(),
	}
}

// update determines the health of every device: of whole devices first, because
// their partitions depend on it. Its events are about signals.
func (s *health) update(devices *devices, ledger *ledger, slicesFresh bool, now clock.Instant) []Event {
	var events []Event
	for _, partitions := range []bool{false, true} {
		for _, d := range devices.all() {
			if d.device.IsPartition() == partitions {
				events = append(events, s.updateDevice(d, devices, ledger, now)...)
				reports := &d.health.reports
				reports[byDriver], reports[byKubelet] = driverReport(d, slicesFresh), s.kubelet.reports[d.uuid]
			}
		}
	}
	s.last = now
	return events
}

// openViolations creates the counters of classes that hold a device.
func (s *health) openViolations(classes []string, now clock.Instant) {
	s.violations.open(classes, now.Wall)
}

// applyKubelet replaces the health that the kubelet reports.
func (s *health) applyKubelet(reported kubeletHealth) { s.kubelet = reported }

func (s *health) updateDevice(d *deviceState, devices *devices, ledger *ledger, now clock.Instant) []Event {
	h, holders, parent := &d.health, &d.holders, devices.parent(d)
	h.begin()
	h.xids.apply(d, s.xidCodes, s.last, now)
	if holders.changed() {
		h.watches.ports.restart()
	}
	if d.fresh {
		h.examine(&d.growth, holders.isHeld(), s.throttleRatio, s.staleness, now)
	}
	h.examineXIDs(s.xidCodes, max(s.hold, s.staleness), now)
	if parent != nil && parent.health.isUnhealthy() {
		h.raise(signalParent, true, now)
	}
	events := s.clearSignals(h, devices, now)
	if onsets := h.onsets(s.signals); onsets != 0 {
		for _, class := range classesOn(devices, ledger, d) {
			s.violations.add(class, onsets)
		}
	}
	switch {
	case h.isUnhealthy():
		h.reports[byHardware] = unhealthy
	case h.hasReadings(), d.present && parent != nil && parent.health.reports[byHardware] == healthy:
		h.reports[byHardware] = healthy
	default:
		h.reports[byHardware] = unreported
	}
	return events
}

// clearSignals removes the signals that had not been raised for the hold when the
// device was read last. The hold begins again while the device cannot be read or
// needs recovery. The signal of a partition's parent ends with the parent's own
// signals, and has no events of its own.
func (s *health) clearSignals(h *deviceHealth, devices *devices, now clock.Instant) []Event {
	if len(h.raised) == 0 {
		return nil
	}
	var events []Event
	d := h.device
	waits := !d.fresh || h.needsRecovery()
	kept := h.raised[:0]
	for _, r := range h.raised {
		ofParent := r.signal == signalParent
		if waits && !ofParent {
			r.last = now
		}
		lasts := r.last == now || d.at.Since(r.last) < s.hold && !ofParent
		if lasts {
			kept = append(kept, r)
		} else {
			h.shownSignals = nil
		}
		switch {
		case ofParent:
		case r.since == now && r.critical:
			events = append(events, s.signalEvent(slog.LevelWarn, "a device has a new health signal", d, devices, r))
		case r.since == now:
			events = append(events, s.signalEvent(slog.LevelInfo, "a device has a new health signal", d, devices, r))
		case !lasts:
			events = append(events, s.signalEvent(slog.LevelInfo, "a health signal of a device has cleared", d, devices, r))
		}
	}
	h.raised = kept
	return events
}

func (s *health) signalEvent(level slog.Level, message string, d *deviceState, devices *devices, r raised) Event {
	event := Event{Level: level, Message: message, Attrs: []slog.Attr{
		slog.String("uuid", d.uuid), slog.String("signal", s.signals[r.signal].name), slog.String("severity", severity(r.critical)),
	}}
	if claims := devices.claimsOn(d); len(claims) > 0 {
		event.Attrs = append(event.Attrs, slog.String("claims", strings.Join(claims, " ")))
	}
	return event
}

// holdersOn returns the holders of a device, and of its partitions.
func (s *devices) holdersOn(d *deviceState) []*deviceHolders {
	var holders []*deviceHolders
	for _, whole := range s.all() {
		if whole == d || whole.device.ParentUUID == d.uuid {
			holders = append(holders, &whole.holders)
		}
	}
	return holders
}

// classesOn returns the device classes through which claims hold a device or a
// partition of it, each once.
func classesOn(devices *devices, ledger *ledger, d *deviceState) []string {
	var classes []string
	for _, h := range devices.holdersOn(d) {
		for _, share := range h.shares {
			if class, held := ledger.heldClass(share.claim, h.device.uuid); held && !slices.Contains(classes, class) {
				classes = append(classes, class)
			}
		}
	}
	return classes
}

// claimsOn returns the claims that hold a device or a partition of it, sorted,
// each once.
func (s *devices) claimsOn(d *deviceState) []string {
	var claims []string
	for _, h := range s.holdersOn(d) {
		for _, share := range h.shares {
			claims = append(claims, share.claim.String())
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// setModel sets the health of a device.
func (s *health) setModel(m *model.Health, d *deviceState) {
	h := &d.health
	h.show(s.signals)
	m.ByHardware, m.ByDriver, m.ByKubelet = h.reports[byHardware], h.reports[byDriver], h.reports[byKubelet]
	if m.ByKubelet == unhealthy {
		m.KubeletMessage = s.kubelet.messages[d.uuid]
	}
	m.XIDsWatched, m.XIDs = h.xids.watched, h.xids.shown
	m.Signals = h.shownSignals
	if d.inSlice {
		m.Taints = h.shownTaints
	}
}

// raise raises a signal in this step. The result is valid until the next one is
// raised.
func (h *deviceHealth) raise(id signalID, critical bool, now clock.Instant) *raised {
	at, ok := slices.BinarySearchFunc(h.raised, raised{signal: id, critical: critical}, raised.compare)
	if !ok {
		h.raised = slices.Insert(h.raised, at, raised{signal: id, critical: critical, since: now})
		h.shownSignals = nil
	}
	h.raised[at].last = now
	return &h.raised[at]
}

// compare orders signals by id, critical ones first.
func (r raised) compare(other raised) int {
	if r.signal != other.signal {
		return int(r.signal - other.signal)
	}
	return compareFlags(r.critical, other.critical)
}

// isUnhealthy reports whether a critical signal is present.
func (h *deviceHealth) isUnhealthy() bool {
	return slices.ContainsFunc(h.raised, func(r raised) bool { return r.critical })
}

// begin begins a step. What was observed of samples of another source does not
// apply to this one's.
func (h *deviceHealth) begin() {
	if h.source != h.device.source {
		h.source, h.watches = h.device.source, watches{}
	}
}

// examine raises the signals that the readings give: of a state for as long as it
// lasts, and of what grew or has been down for a while.
func (h *deviceHealth) examine(growth *deviceGrowth, held bool, throttleRatio float64, limit time.Duration, now clock.Instant) {
	h.examineStates(now)
	w, at := &h.watches, h.device.at
	raise := func(id signalID, critical, present bool) {
		if present {
			h.raise(id, critical, now)
		}
	}
	if h.device.newer {
		raise(signalECC, true, w.ecc.grew(h.uncorrected()))
		w.observeLinks(h.device, limit)
		w.observeThrottling(growth, limit)
	}
	raise(signalNVLink, true, w.links.missed(at))
	raise(signalNetworkLink, held, w.ports.missed(at))
	if throttleRatio > 0 {
		raise(signalThermal, true, w.thermal.share() > throttleRatio)
		raise(signalPowerBrake, true, w.brake.share() > throttleRatio)
	}
}

// examineStates raises the signals that a single sample gives.
func (h *deviceHealth) examineStates(now clock.Instant) {
	raise := func(q device.Quantity, id signalID, critical, present bool) {
		if present {
			r := h.raise(id, critical, now)
			r.inherited = r.inherited || h.examined&(1<<q) == 0
		}
	}
	requested, _ := h.recovery()
	raise(device.Lost, signalLost, true, h.positive(device.Lost))
	raise(device.RecoveryAction, signalRecoveryAction, true, requested)
	raise(device.RowRemapFailed, signalRemapFailed, true, h.positive(device.RowRemapFailed))
	raise(device.RowRemapPending, signalRemapPending, false, h.positive(device.RowRemapPending))
	raise(device.FabricState, signalFabric, true, h.fabricFailed())
	for _, reading := range h.device.of(device.HealthCheck) {
		result := reading.Details[1]
		raise(device.HealthCheck, dcgmSignal(reading.Details[0]), result == "fail", reading.Value > 0 && (result == "fail" || result == "warn"))
	}
	for _, reading := range h.device.of(device.DriverHealth) {
		state := reading.Details[1]
		raise(device.DriverHealth, signalDriver, state == "unhealthy", reading.Value > 0 && state != "healthy")
	}
	for _, reading := range h.device.readings {
		h.examined |= 1 << reading.Quantity
	}
}

// examineXIDs raises the signals of the Xids that were counted in this step,
// unless they are older than a signal lasts: the first report of a source may be
// about errors of long before.
func (h *deviceHealth) examineXIDs(table []xidCode, recent time.Duration, now clock.Instant) {
	for i := range h.xids.counts[:max(0, len(h.xids.counts)-1)] {
		a, x := &h.xids.counts[i], &table[i]
		if a.grew && x.constraint != noConstraint && now.Elapsed-a.at <= recent {
			h.raise(firstXIDSignal+signalID(i), x.class.critical(), now)
		}
	}
}

// onsets returns the constraints, a bit each, of which a violation began in this
// step, however many signals have it. A state that was there when it was first
// read began at a time that is not known, and is no onset.
func (h *deviceHealth) onsets(signals []signal) uint8 {
	violated, begun := uint8(0), uint8(0)
	for _, r := range h.raised {
		c := signals[r.signal].constraint
		if c == noConstraint {
			continue
		}
		violated |= 1 << c
		if !r.inherited {
			begun |= 1 << c
		}
	}
	onsets := begun &^ h.violated
	h.violated = violated
	return onsets
}

// hasReadings reports whether anything that is known now is about the device's
// health.
func (h *deviceHealth) hasReadings() bool {
	if !h.device.fresh {
		return false
	}
	return h.xids.watched || slices.ContainsFunc(healthQuantities(), func(q device.Quantity) bool { return len(h.device.of(q)) > 0 })
}

func (h *deviceHealth) positive(q device.Quantity) bool {
	value, ok := h.device.reading(q)
	return ok && value > 0
}

// recovery reports whether the hardware requests a recovery action, and whether
// that is known.
func (h *deviceHealth) recovery() (requested, known bool) {
	for _, r := range h.device.of(device.RecoveryAction) {
		if r.Value > 0 {
			return r.Details[0] != "none", true
		}
	}
	return false, false
}

// needsRecovery reports whether the hardware needs a reset, or more, before a
// problem is over. If it does not report a recovery action, a remapped row that
// is pending until a reset means the same.
func (h *deviceHealth) needsRecovery() bool {
	requested, ok := h.recovery()
	return requested || !ok && h.positive(device.RowRemapPending)
}

func (h *deviceHealth) fabricFailed() bool {
	return slices.ContainsFunc(h.device.of(device.FabricState), func(r device.Reading) bool { return r.Value > 0 && r.Details[0] == "failure" })
}

// uncorrected is the count of uncorrected memory errors; nil: it is not known.
func (h *deviceHealth) uncorrected() *device.Reading {
	readings := h.device.of(device.ECCErrors)
	for i := range readings {
		if readings[i].Details[0] == "uncorrected" {
			return &readings[i]
		}
	}
	return nil
}

// show brings the signals and taints that are shown up to date. Lists that have not
// changed stay the same.
func (h *deviceHealth) show(signals []signal) {
	if h.shownSignals == nil && len(h.raised) > 0 {
		h.shownSignals = make([]model.Signal, 0, len(h.raised))
		for _, r := range h.raised {
			h.shownSignals = append(h.shownSignals, model.Signal{Name: signals[r.signal].name, Critical: r.critical})
		}
	}
	if taints := h.device.published.Taints; h.device.inSlice && !slices.Equal(h.taints, taints) {
		h.taints, h.shownTaints = taints, nil
		for i, t := range taints {
			if !slices.Contains(taints[:i], t) { // a taint may be in the slice twice
				h.shownTaints = append(h.shownTaints, t)
			}
		}
	}
}

// violations counts the violations that began while a claim held the device or a
// partition of it, by device class. They are never removed while the process
// lives.
type violations struct {
	byClass map[string]*[constraints]tally
	sorted  []string // classes; nil: outdated
}

func newViolations() *violations {
	return &violations{byClass: make(map[string]*[constraints]tally)}
}

// open creates the counters of classes that do not have them yet.
func (s *violations) open(classes []string, now time.Time) {
	for _, class := range classes {
		if s.byClass[class] != nil {
			continue
		}
		v := new([constraints]tally)
		for c := range v {
			v[c].open(now)
		}
		s.byClass[class], s.sorted = v, nil
	}
}

// add counts a violation of each of the constraints, a bit each.
func (s *violations) add(class string, violated uint8) {
	for c := range constraints {
		if violated&(1<<c) != 0 {
			s.byClass[class][c].total++
		}
	}
}

// models returns the counts, by class and constraint.
func (s *violations) models() []model.Violations {
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.byClass))
	}
	list := make([]model.Violations, 0, len(s.sorted)*int(constraints))
	for _, class := range s.sorted {
		for c := range constraints {
			list = append(list, model.Violations{Class: class, Constraint: c.String(), Count: s.byClass[class][c].model()})
		}
	}
	return list
}
