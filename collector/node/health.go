package node

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// health determines the health of all devices by the hardware's signals, and
// collects what the driver and the kubelet report.
type health struct {
	node          string
	hold          time.Duration // for how long a signal must have been gone until it is cleared
	staleness     time.Duration
	throttleRatio float64

	devices  *devices
	holders  *holders
	counters *counters
	ledger   *ledger

	xidCodes   []xidCode
	signals    []signal
	byDevice   map[*deviceState]*deviceHealth
	kubelet    map[string]report // by uuid
	violations *violations
	last       time.Time // of the step before; zero: none
}

func newHealth(config Config, devices *devices, holders *holders, counters *counters, ledger *ledger) *health {
	xids := xidTable()
	return &health{
		node: config.Node, hold: config.HealthHold, staleness: config.Staleness(), throttleRatio: config.ThrottleRatio,
		devices: devices, holders: holders, counters: counters, ledger: ledger,
		xidCodes: xids, signals: signalTable(xids), byDevice: make(map[*deviceState]*deviceHealth),
		violations: newViolations(config.Node),
	}
}

// update determines the health of every device: of whole devices first, because
// their partitions depend on it. Its events are about signals.
func (s *health) update(slicesFresh bool, now clock.Instant) []Event {
	var events []Event
	for _, partitions := range []bool{false, true} {
		for _, d := range s.devices.all() {
			if d.device.IsPartition() == partitions {
				events = append(events, s.updateDevice(s.add(d), now)...)
				reports := &s.of(d).reports
				reports[byDriver], reports[byKubelet] = driverReport(d, slicesFresh), s.kubelet[d.uuid]
			}
		}
	}
	s.last = now.Wall
	return events
}

// applyKubelet replaces the health, by uuid, that the kubelet reports.
func (s *health) applyKubelet(reports map[string]report) { s.kubelet = reports }

func (s *health) add(d *deviceState) *deviceHealth {
	h := s.byDevice[d]
	if h == nil {
		h = &deviceHealth{device: d}
		s.byDevice[d] = h
	}
	return h
}

// of returns the health of a device; nil if it is not known.
func (s *health) of(d *deviceState) *deviceHealth { return s.byDevice[d] }

func (s *health) remove(d *deviceState) { delete(s.byDevice, d) }

func (s *health) updateDevice(h *deviceHealth, now clock.Instant) []Event {
	d, holders, parent := h.device, s.holders.of(h.device), s.of(s.devices.parent(h.device))
	h.begin()
	h.xids.apply(d, s.xidCodes, s.last, now.Wall)
	if holders.changed() {
		h.watches.ports.restart()
	}
	if d.fresh {
		h.examine(s.counters.of(d), holders.isHeld(), s.throttleRatio, s.staleness, now)
	}
	h.examineXIDs(s.xidCodes, max(s.hold, s.staleness), now)
	if parent != nil && parent.isUnhealthy() {
		h.raise(signalParent, true, now)
	}
	events := s.clearSignals(h, now)
	if onsets := h.onsets(s.signals); onsets != 0 {
		for _, class := range s.classesOn(d) {
			s.violations.add(class, onsets)
		}
	}
	switch {
	case h.isUnhealthy():
		h.reports[byHardware] = unhealthy
	case h.hasReadings(), d.present && parent != nil && parent.reports[byHardware] == healthy:
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
func (s *health) clearSignals(h *deviceHealth, now clock.Instant) []Event {
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
			h.labels.signals = nil
		}
		switch {
		case ofParent:
		case r.since == now && r.critical:
			events = append(events, s.signalEvent(slog.LevelWarn, "a device has a new health signal", d, r))
		case r.since == now:
			events = append(events, s.signalEvent(slog.LevelInfo, "a device has a new health signal", d, r))
		case !lasts:
			events = append(events, s.signalEvent(slog.LevelInfo, "a health signal of a device has cleared", d, r))
		}
	}
	h.raised = kept
	return events
}

func (s *health) signalEvent(level slog.Level, message string, d *deviceState, r raised) Event {
	event := Event{Level: level, Message: message, Attrs: []slog.Attr{
		slog.String("uuid", d.uuid), slog.String("signal", s.signals[r.signal].name), slog.String("severity", severity(r.critical)),
	}}
	if claims := s.claimsOn(d); len(claims) > 0 {
		event.Attrs = append(event.Attrs, slog.String("claims", strings.Join(claims, " ")))
	}
	return event
}

// holdersOn returns the holders of a device, and of its partitions.
func (s *health) holdersOn(d *deviceState) []*deviceHolders {
	var holders []*deviceHolders
	for _, on := range s.devices.all() {
		if on == d || on.device.ParentUUID == d.uuid {
			holders = append(holders, s.holders.of(on))
		}
	}
	return holders
}

// classesOn returns the device classes through which claims hold a device or a
// partition of it, each once.
func (s *health) classesOn(d *deviceState) []string {
	var classes []string
	for _, h := range s.holdersOn(d) {
		for _, share := range h.shares {
			if class, held := s.ledger.classOf(share.claim, h.device.uuid); held && !slices.Contains(classes, class) {
				classes = append(classes, class)
			}
		}
	}
	return classes
}

// claimsOn returns the claims that hold a device or a partition of it, sorted,
// each once.
func (s *health) claimsOn(d *deviceState) []string {
	var claims []string
	for _, h := range s.holdersOn(d) {
		for _, share := range h.shares {
			claims = append(claims, share.claim.String())
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

func (s *health) rows(b *rowBuilder) {
	f, all := b.families, make([]*deviceHealth, 0, len(s.byDevice))
	for _, d := range s.devices.all() {
		h := s.of(d)
		h.label(f, s.node, s.signals, s.xidCodes)
		all = append(all, h)
	}
	b.In(f.deviceHealthy)
	for _, h := range all {
		for by, reported := range h.reports {
			if reported != unreported {
				b.Add(h.labels.reporters[by], one(reported == healthy))
			}
		}
	}
	b.In(f.healthSignal)
	for _, h := range all {
		for _, labels := range h.labels.signals {
			b.Add(labels, 1)
		}
	}
	b.In(f.taintInfo)
	for _, h := range all {
		if h.device.inSlice {
			for _, labels := range h.labels.taints {
				b.Add(labels, 1)
			}
		}
	}
	b.In(f.xidErrors)
	for _, h := range all {
		for i := range h.xids.counts {
			b.addTally(h.xids.counts[i].labels, h.xids.counts[i].tally)
		}
	}
	b.In(f.xidLast)
	for _, h := range all {
		for i := range h.xids.counts {
			if x := &h.xids.counts[i]; !x.last.IsZero() {
				b.Add(x.labels, float64(x.last.UnixMilli())/1000)
			}
		}
	}
	s.violations.rows(b)
}
