package node

import (
	"log/slog"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// A record is what the info rows say of a claim. It lives while the claim is
// on this node, and the grace beyond; a newer claim under the same name
// replaces it.
type record struct {
	ref       dra.ClaimRef
	live      bool
	released  clock.Instant
	info      claimInfo
	devices   []claimDevice
	consumers []claimConsumer

	infoLabels     *metric.Labels
	deviceLabels   []*metric.Labels
	consumerLabels []*metric.Labels
}

// describeClaims brings the records up to date with the views. Labels are
// made anew only where something changed.
func (s *State) describeClaims(now clock.Instant, events []Event) []Event {
	for _, r := range s.records {
		if r.live {
			r.live, r.released = false, now
		}
	}
	for i := range s.views {
		view := &s.views[i]
		r, known := s.records[view.ref]
		if !known {
			r = &record{ref: view.ref}
			s.records[view.ref] = r
			s.reorder = true
		}
		if !known || r.info.uid != view.info.uid {
			events = append(events, s.taken(view)...)
		}
		r.live = true
		r.update(view, s.rows.families, s.config.Node)
	}
	return events
}

// taken tells the log of a claim that is new here, and of its devices whose
// hardware is unknown.
func (s *State) taken(view *claimView) []Event {
	claim := slog.String("claim", view.ref.String())
	events := []Event{{slog.LevelDebug, "claim is held on this node", []slog.Attr{claim, slog.Int("devices", len(view.devices))}}}
	for _, d := range view.devices {
		if d.uuid == unknownUUID(s.config.Node, d.id) {
			events = append(events, Event{slog.LevelWarn, "device of a claim matches no hardware", []slog.Attr{claim, slog.String("device", d.id.String())}})
		}
	}
	return events
}

func (r *record) update(view *claimView, f *families, node string) {
	if r.infoLabels == nil || r.info != view.info {
		r.info = view.info
		r.infoLabels = metric.NewLabels(f.claimInfo.Labels, node, r.ref.Namespace, r.ref.Name,
			r.info.uid, r.info.class, r.info.template, r.info.sharing, flag(r.info.admin), flag(r.info.extended))
	}
	if r.deviceLabels == nil || !slices.EqualFunc(r.devices, view.devices, sameDevice) {
		r.devices = view.devices
		r.deviceLabels = make([]*metric.Labels, len(r.devices))
		for i, d := range r.devices {
			r.deviceLabels[i] = metric.NewLabels(f.claimDeviceInfo.Labels, node, r.ref.Namespace, r.ref.Name,
				d.request, d.class, d.id.Driver, d.id.Pool, d.id.Name, d.uuid, d.shareID)
		}
	}
	if r.consumerLabels == nil || !slices.Equal(r.consumers, view.consumers) {
		r.consumers = view.consumers
		r.consumerLabels = make([]*metric.Labels, len(r.consumers))
		for i, c := range r.consumers {
			r.consumerLabels[i] = metric.NewLabels(f.claimConsumerInfo.Labels, node, r.ref.Namespace, r.ref.Name,
				c.uuid, c.pod, c.podUID, c.container, c.ownerKind, c.ownerName)
		}
	}
}

// sameDevice compares what dra_claim_device_info shows.
func sameDevice(a, b claimDevice) bool {
	return a.id == b.id && a.uuid == b.uuid && a.request == b.request && a.class == b.class && a.shareID == b.shareID
}

func flag(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
