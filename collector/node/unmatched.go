package node

import (
	"log/slog"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// A stranger is a device of a claim here whose hardware nobody knows.
type stranger struct {
	claim  dra.ClaimRef
	uid    string // of the claim
	device dra.DeviceID
	since  clock.Instant // when the claim was first seen to hold it, or it lost its hardware
	warned bool
}

func (a stranger) same(b stranger) bool {
	return a.claim == b.claim && a.uid == b.uid && a.device == b.device
}

// acquaintance is how long a stranger may stay one before the log is told: a
// partition is made after its claim has been allocated, and an agent that
// starts hears of claims before it has seen all hardware.
const acquaintance = 30 * time.Second

// meetStrangers finds the strangers anew, and tells the log of those it was
// warned of whose hardware is known now.
func (s *State) meetStrangers(now clock.Instant, events []Event) []Event {
	before := s.strangers
	s.strangers = nil
	for i := range s.join.views {
		view := &s.join.views[i]
		for _, d := range view.devices {
			met := stranger{claim: view.ref, uid: view.info.uid, device: d.id, since: now}
			at := slices.IndexFunc(before, met.same)
			switch {
			case d.uuid == unknownUUID(s.config.Node, d.id):
				if at >= 0 {
					met = before[at]
				}
				if !slices.ContainsFunc(s.strangers, met.same) { // a claim may hold one device twice
					s.strangers = append(s.strangers, met)
				}
			case at >= 0 && before[at].warned:
				before[at].warned = false
				events = append(events, Event{slog.LevelInfo, "device of a claim matches hardware now", append(met.attributes(), slog.String("uuid", d.uuid))})
			}
		}
	}
	return events
}

// warnOfStrangers tells the log, once, of each that has been one for long.
func (s *State) warnOfStrangers(now clock.Instant, events []Event) []Event {
	for i := range s.strangers {
		known := &s.strangers[i]
		if !known.warned && now.Since(known.since) >= acquaintance {
			known.warned = true
			events = append(events, Event{slog.LevelWarn, "device of a claim matches no hardware", known.attributes()})
		}
	}
	return events
}

func (a stranger) attributes() []slog.Attr {
	return []slog.Attr{slog.String("claim", a.claim.String()), slog.String("device", a.device.String())}
}

// countUnmatched counts allocated devices without hardware, and hardware
// that the vendor's own driver, which publishes here, does not name.
func (s *State) countUnmatched(facts Facts, events []Event) []Event {
	before := s.unmatched.conflicting
	s.unmatched = unmatched{}
	held, names := make(map[dra.DeviceID]bool), make(map[string]dra.DeviceID)
	for _, view := range s.join.views {
		for _, d := range view.devices {
			if !held[d.id] && d.uuid == unknownUUID(s.config.Node, d.id) {
				s.unmatched.published++
			}
			held[d.id] = true
			switch first, named := names[d.uuid]; {
			case !named:
				names[d.uuid] = d.id
			case first != d.id && !s.unmatched.conflicting[d.uuid]:
				if s.unmatched.conflicting == nil {
					s.unmatched.conflicting = make(map[string]bool)
				}
				s.unmatched.conflicting[d.uuid] = true
				if !before[d.uuid] {
					events = append(events, Event{slog.LevelWarn, "claims hold one device under two published names", []slog.Attr{
						slog.String("uuid", d.uuid), slog.String("device", first.String()), slog.String("other", d.id.String())}})
				}
			}
		}
	}
	drivers, cut := make(map[string]bool), make(map[string]bool)
	for _, p := range facts.Cluster.Published {
		drivers[p.ID.Driver] = true
		if p.ParentPCIAddress != "" {
			cut[p.ParentPCIAddress] = true // its parts are published, not the card
		}
	}
	parents := make(map[string]bool)
	for _, u := range s.devices.byUUID {
		if u.present && u.device.IsPartition() {
			parents[u.device.ParentUUID] = true
		}
	}
	for uuid, u := range s.devices.byUUID {
		if u.present && !u.isPublished && !parents[uuid] && !cut[u.device.PCIBusID] && drivers[vendors.DriverOf(u.device.Vendor)] {
			s.unmatched.hardware++
		}
	}
	return events
}
