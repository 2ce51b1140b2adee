package node

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// deviceHealth is the health of one device. docs/health.md describes how it is
// determined.
type deviceHealth struct {
	device   *deviceState
	source   string // of the samples that watches have observed
	watches  watches
	xids     xidCounts
	raised   []raised // the signals that are present, in the order of their ids
	violated uint8    // constraints of the signals that were present before, a bit each
	examined uint64   // quantities that have been examined before, a bit each
	reports  [reporters]report
	labels   healthLabels
}

// healthLabels are created when the device first has something of the kind, and
// again when what they are about has changed.
type healthLabels struct {
	of        *metric.Labels // the device's labels at that time
	reporters [reporters]*metric.Labels
	signals   []*metric.Labels // of the signals that are present
	taints    []*metric.Labels
	taintsOf  []dra.Taint // what taints were created for
}

// raised is a signal that is present: from its onset until it has not been raised
// for the hold.
type raised struct {
	signal    signalID
	critical  bool
	inherited bool          // it was there when its quantity was first read: the onset was not observed
	since     clock.Instant // its onset
	last      clock.Instant // when it was last raised, or could not be examined
}

// raise raises a signal in this step. The result is valid until the next one is
// raised.
func (h *deviceHealth) raise(id signalID, critical bool, now clock.Instant) *raised {
	at, present := slices.BinarySearchFunc(h.raised, raised{signal: id, critical: critical}, raised.compare)
	if !present {
		h.raised = slices.Insert(h.raised, at, raised{signal: id, critical: critical, since: now})
		h.labels.signals = nil
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
		if a.grew && x.constraint != noConstraint && now.Wall.Sub(a.last) <= recent {
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
	value, known := h.device.reading(q)
	return known && value > 0
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
	requested, known := h.recovery()
	return requested || !known && h.positive(device.RowRemapPending)
}

func (h *deviceHealth) fabricFailed() bool {
	return slices.ContainsFunc(h.device.of(device.FabricState), func(r device.Reading) bool { return r.Value > 0 && r.Details[0] == "failure" })
}

// uncorrected is the number of uncorrected memory errors.
func (h *deviceHealth) uncorrected() (count float64, known bool) {
	for _, reading := range h.device.of(device.ECCErrors) {
		if reading.Details[0] == "uncorrected" {
			return reading.Value, true
		}
	}
	return 0, false
}

// label creates the labels of the device's health that are outdated.
func (h *deviceHealth) label(f *families, node string, signals []signal, xids []xidCode) {
	d := h.device
	if h.labels.of != d.labels.plain {
		h.labels = healthLabels{of: d.labels.plain}
		h.xids.removeLabels()
	}
	parent, l := d.device.ParentUUID, &h.labels
	h.xids.label(f, xids, node, d.uuid, parent)
	for by, reported := range h.reports {
		if reported != unreported && l.reporters[by] == nil {
			l.reporters[by] = metric.NewLabels(f.deviceHealthy.Labels, node, d.uuid, parent, reporter(by).String())
		}
	}
	if len(l.signals) != len(h.raised) {
		l.signals = nil
		for _, r := range h.raised {
			l.signals = append(l.signals, metric.NewLabels(f.healthSignal.Labels, node, d.uuid, parent, signals[r.signal].name, severity(r.critical)))
		}
	}
	if taints := d.published.Taints; d.inSlice && !slices.Equal(l.taintsOf, taints) {
		l.taintsOf, l.taints = taints, nil
		for i, t := range taints {
			if !slices.Contains(taints[:i], t) { // a taint may be in the slice twice
				l.taints = append(l.taints, metric.NewLabels(f.taintInfo.Labels, node, d.uuid, parent, t.Key, t.Value, t.Effect))
			}
		}
	}
}
