package node

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// health is what is known of a unit's health. docs/health.md says how it is
// judged.
type health struct {
	watches
	raised   []raised // the signals that are present, in the order of their ids
	violated uint8    // constraints of the signals that were present before, a bit each
	judged   uint64   // quantities that it has been judged by before, a bit each
	words    [voices]word
	labels   healthLabels
}

// A voice is who speaks of a device's health.
type voice int

const (
	byDriver voice = iota
	byHardware
	byKubelet
	voices
)

func (v voice) String() string {
	return [voices]string{byDriver: "driver", byHardware: "hardware", byKubelet: "kubelet"}[v]
}

// A word is what a voice says.
type word uint8

const (
	silent word = iota
	sick
	well
)

// verdict is the word of somebody who knows.
func verdict(healthy bool) word {
	if healthy {
		return well
	}
	return sick
}

// raised is a signal that is present: from its onset until it has not been
// raised for the hold.
type raised struct {
	signal    signalID
	critical  bool
	inherited bool          // it was there when its quantity was first read: nobody saw the onset
	since     clock.Instant // its onset
	last      clock.Instant // when it was last raised, or could not be judged
}

// raise notes a signal in the present step. What it returns is good until the
// next is raised.
func (h *health) raise(id signalID, critical bool, now clock.Instant) *raised {
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

// isSick reports whether a critical signal is present.
func (h *health) isSick() bool {
	return slices.ContainsFunc(h.raised, func(r raised) bool { return r.critical })
}

// judge brings every unit's health up to date: whole devices first, because
// their partitions are as sick as they are.
func (s *State) judge(cluster Cluster, now clock.Instant, events []Event) []Event {
	s.arrange()
	for _, partitions := range []bool{false, true} {
		for _, u := range s.devices.all() {
			if u.device.IsPartition() == partitions {
				events = s.judgeUnit(u, now, events)
				u.health.words[byDriver] = u.driverWord(cluster)
			}
		}
	}
	return events
}

func (s *State) judgeUnit(u *deviceState, now clock.Instant, events []Event) []Event {
	h, parent := &u.health, s.devices.parent(u)
	if u.holders.haveChanged() {
		h.ports.restart()
	}
	if u.fresh {
		u.examine(s.config, now)
	}
	s.raiseXIDs(u, now)
	if parent != nil && parent.health.isSick() {
		h.raise(signalParent, true, now)
	}
	events = s.settleSignals(u, now, events)
	s.countViolations(u)
	switch {
	case h.isSick():
		h.words[byHardware] = sick
	case u.testifies(), u.present && parent != nil && parent.health.words[byHardware] == well:
		h.words[byHardware] = well
	default:
		h.words[byHardware] = silent
	}
	return events
}

// testifies reports whether anything that is known now speaks of the unit's
// health.
func (u *deviceState) testifies() bool {
	if !u.fresh {
		return false
	}
	return u.xids.listening || slices.ContainsFunc(testimony(), func(q device.Quantity) bool { return len(u.of(q)) > 0 })
}

// raiseXIDs raises the signals of the Xids that were counted in this step,
// unless they are older than a signal lasts: a source may tell at first what
// happened long before.
func (s *State) raiseXIDs(u *deviceState, now clock.Instant) {
	recent := max(s.config.HealthHold, s.config.Staleness())
	for i := range u.xids.accounts[:max(0, len(u.xids.accounts)-1)] {
		a, x := &u.xids.accounts[i], &s.xidCodes[i]
		if a.grown == s.step && x.constraint != noConstraint && now.Wall.Sub(a.last) <= recent {
			u.health.raise(firstXIDSignal+signalID(i), x.class.critical(), now)
		}
	}
}

// settleSignals tells of signals that are new, and forgets those that had not
// been raised for the hold when the device was read last. The hold begins anew
// while the device cannot be read or waits for recovery. What a partition has of
// its parent ends with the parent's sickness; the parent's lines tell of it.
func (s *State) settleSignals(u *deviceState, now clock.Instant, events []Event) []Event {
	h := &u.health
	if len(h.raised) == 0 {
		return events
	}
	waits := !u.fresh || u.waitsForRecovery()
	kept := h.raised[:0]
	for _, r := range h.raised {
		ofParent, hold := r.signal == signalParent, s.config.HealthHold
		if waits && !ofParent {
			r.last = now
		}
		lasts := r.last == now || u.at.Since(r.last) < hold && !ofParent
		if lasts {
			kept = append(kept, r)
		} else {
			h.labels.signals = nil
		}
		switch {
		case ofParent:
		case r.since == now:
			events = append(events, s.signalEvent(onsetLevel(r), "a device has a new health signal", u, r))
		case !lasts:
			events = append(events, s.signalEvent(slog.LevelInfo, "a health signal of a device has cleared", u, r))
		}
	}
	h.raised = kept
	return events
}

func (s *State) signalEvent(level slog.Level, message string, u *deviceState, r raised) Event {
	event := Event{Level: level, Message: message, Attrs: []slog.Attr{
		slog.String("uuid", u.uuid), slog.String("signal", s.signals[r.signal].name), slog.String("severity", severity(r.critical)),
	}}
	if claims := s.claimsOn(u); len(claims) > 0 {
		event.Attrs = append(event.Attrs, slog.String("claims", strings.Join(claims, " ")))
	}
	return event
}

func onsetLevel(r raised) slog.Level {
	if r.critical {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func severity(critical bool) string {
	if critical {
		return "critical"
	}
	return "warning"
}

// driverWord is what the driver's taints say, as long as a slice has the
// device and slices are as new as can be. A driver that calls the device
// unmonitored says nothing of it.
func (u *deviceState) driverWord(cluster Cluster) word {
	if !u.inSlice || !cluster.SlicesFresh {
		return silent
	}
	said := well
	for _, taint := range u.published.Taints {
		switch {
		case taint.Effect == "NoSchedule" || taint.Effect == "NoExecute":
			return sick
		case strings.HasSuffix(taint.Key, "/unmonitored"):
			said = silent
		}
	}
	return said
}
