package node

import (
	"log/slog"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// A record is what the info rows say of a claim. It lives while the claim is
// on this node, and the grace beyond; a newer claim under the same name goes
// on with it.
type record struct {
	ref       dra.ClaimRef
	live      bool
	released  clock.Instant
	info      claimInfo
	labels    *metric.Labels
	devices   infoRows[deviceFact]
	consumers infoRows[claimConsumer]
}

// deviceFact is what dra_claim_device_info says.
type deviceFact struct {
	id                           dra.DeviceID
	uuid, request, class, shared string
}

// describeClaims brings the records up to date with the views. Labels are
// made anew only where something changed.
func (s *State) describeClaims(now clock.Instant, events []Event) []Event {
	here := make(map[dra.ClaimRef]bool, len(s.join.views))
	for i := range s.join.views {
		view := &s.join.views[i]
		here[view.ref] = true
		if view.info.sharing == sharingNone && s.sharesCapacity(view) {
			view.info.sharing = sharingCapacity
		}
		r, known := s.records[view.ref]
		if !known {
			r = &record{ref: view.ref}
			s.records[view.ref] = r
		}
		if !known || r.info.uid != view.info.uid {
			events = append(events, Event{slog.LevelDebug, "claim is held on this node", []slog.Attr{slog.String("claim", view.ref.String()), slog.Int("devices", len(view.devices))}})
		}
		if !r.live {
			r.live, s.reorder = true, true
		}
		r.update(view, now, s.rows.families, s.config.Node)
	}
	for ref, r := range s.records {
		if r.live && !here[ref] {
			r.live, r.released, s.reorder = false, now, true
		}
	}
	return s.meetStrangers(now, events)
}

// sharesCapacity reports whether the claim holds a device that its driver
// lets several claims hold, and another one does.
func (s *State) sharesCapacity(view *claimView) bool {
	for _, d := range view.devices {
		if u, known := s.devices.byUUID[d.uuid]; known && !d.admin && u.published.MultipleAllocations && u.holders.claims > 1 {
			return true
		}
	}
	return false
}

func (r *record) update(view *claimView, now clock.Instant, f *families, node string) {
	if r.labels == nil || r.info != view.info {
		r.info = view.info
		r.labels = metric.NewLabels(f.claimInfo.Labels, node, r.ref.Namespace, r.ref.Name,
			r.info.uid, r.info.class, r.info.template, r.info.sharing, flag(r.info.admin), flag(r.info.extended))
	}
	r.devices.update(view.facts, now,
		func(a, b deviceFact) bool { return a.id == b.id && a.shared == b.shared },
		func(d deviceFact) *metric.Labels {
			return metric.NewLabels(f.claimDeviceInfo.Labels, node, r.ref.Namespace, r.ref.Name,
				d.request, d.class, d.id.Driver, d.id.Pool, d.id.Name, d.uuid, d.shared)
		})
	r.consumers.update(view.consumers, now,
		func(a, b claimConsumer) bool {
			return a.uuid == b.uuid && a.pod == b.pod && a.container == b.container
		},
		func(c claimConsumer) *metric.Labels {
			values := []string{node, r.ref.Namespace, r.ref.Name, c.uuid, c.pod, c.podUID, c.container, c.ownerKind, c.ownerName}
			return metric.NewLabels(f.claimConsumerInfo.Labels, append(values, c.labels.values(f.podLabels)...)...)
		})
}
