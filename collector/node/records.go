package node

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// records keeps the info rows of claims.
type records struct {
	node     string
	grace    time.Duration
	families *families
	byClaim  map[dra.ClaimRef]*record
	sorted   []*record      // live ones first; nil: outdated
	shown    []*model.Claim // nil: outdated
}

// record is the info rows of a claim. It is kept while the claim is on this node,
// and for the grace after that; a newer claim under the same name continues it.
type record struct {
	ref       dra.ClaimRef
	live      bool
	released  clock.Instant
	info      claimInfo
	labels    *metric.Labels
	model     *model.Claim // nil: outdated
	devices   infoRows[model.ClaimDevice]
	consumers infoRows[claimConsumer]
}

func newRecords(config Config, f *families) *records {
	return &records{node: config.Node, grace: config.Grace, families: f, byClaim: make(map[dra.ClaimRef]*record)}
}

// update applies the views. Labels are created again only for what has changed.
func (s *records) update(views []claimView, now clock.Instant) []Event {
	var events []Event
	present := make(map[dra.ClaimRef]bool, len(views))
	for i := range views {
		view := &views[i]
		present[view.ref] = true
		r, ok := s.byClaim[view.ref]
		if !ok {
			r = &record{ref: view.ref}
			s.byClaim[view.ref] = r
		}
		if !ok || r.info.uid != view.info.uid {
			events = append(events, Event{slog.LevelDebug, "claim is held on this node", []slog.Attr{slog.String("claim", view.ref.String()), slog.Int("devices", len(view.devices))}})
		}
		if !r.live {
			r.live, r.model, s.sorted = true, nil, nil
		}
		if r.update(view, now, s.families, s.node); r.model == nil {
			s.shown = nil
		}
	}
	for ref, r := range s.byClaim {
		if r.live && !present[ref] {
			r.live, r.released, r.model, s.sorted, s.shown = false, now, nil, nil, nil
		}
	}
	return events
}

// evict removes what the grace has ended of.
func (s *records) evict(now clock.Instant) {
	for ref, r := range s.byClaim {
		if !r.live && now.Since(r.released) > s.grace {
			delete(s.byClaim, ref)
			s.sorted, s.shown = nil, nil
		}
		devices, consumers := r.devices.evict(now, s.grace), r.consumers.evict(now, s.grace)
		if devices || consumers {
			r.model, s.shown = nil, nil
		}
	}
}

// all returns the records in the order of their rows: live ones come first, as
// the limit of series drops the last rows.
func (s *records) all() []*record {
	if s.sorted == nil {
		s.sorted = slices.SortedFunc(maps.Values(s.byClaim), func(a, b *record) int {
			return cmp.Or(compareFlags(a.live, b.live), compareClaims(a.ref, b.ref))
		})
	}
	return s.sorted
}

// models returns the claims, in the order of their rows.
func (s *records) models() []*model.Claim {
	if s.shown != nil {
		return s.shown
	}
	s.shown = []*model.Claim{}
	for _, r := range s.all() {
		if r.model == nil {
			r.model = r.newModel(s.families)
		}
		s.shown = append(s.shown, r.model)
	}
	return s.shown
}

func (r *record) newModel(f *families) *model.Claim {
	return &model.Claim{
		Ref: r.ref, UID: r.info.uid, Class: r.info.class, Template: r.info.template, Sharing: r.info.sharing,
		Admin: r.info.admin, Extended: r.info.extended, Live: r.live,
		Devices: r.devices.current, Consumers: listConsumers(r.consumers.current, f),
		PastDevices: r.devices.past(), PastConsumers: listConsumers(r.consumers.past(), f),
	}
}

func listConsumers(consumers []claimConsumer, f *families) []model.Consumer {
	list := make([]model.Consumer, len(consumers))
	for i, c := range consumers {
		list[i] = model.Consumer{
			UUID: c.uuid, Pod: c.pod, PodUID: c.podUID, Container: c.container,
			OwnerKind: c.ownerKind, OwnerName: c.ownerName, Labels: f.listLabels(c.labels),
		}
	}
	return list
}

func (s *records) rows(b *rowBuilder) {
	f, all := b.families, s.all()
	b.In(f.claimInfo)
	for _, r := range all {
		b.addFact(r.labels, r.live)
	}
	b.In(f.claimDeviceInfo)
	for _, r := range all {
		r.devices.addTo(b, r.live)
	}
	b.In(f.claimConsumerInfo)
	for _, r := range all {
		r.consumers.addTo(b, r.live)
	}
}

func (r *record) update(view *claimView, now clock.Instant, f *families, node string) {
	if r.labels == nil || r.info != view.info {
		r.info, r.model = view.info, nil
		r.labels = metric.NewLabels(f.claimInfo.Labels, node, r.ref.Namespace, r.ref.Name,
			r.info.uid, r.info.class, r.info.template, r.info.sharing, flag(r.info.admin), flag(r.info.extended))
	}
	changedDevices := r.devices.update(view.facts, now,
		func(a, b model.ClaimDevice) bool { return a.ID == b.ID && a.Share == b.Share },
		func(d model.ClaimDevice) *metric.Labels {
			return metric.NewLabels(f.claimDeviceInfo.Labels, node, r.ref.Namespace, r.ref.Name,
				d.Request, d.Class, d.ID.Driver, d.ID.Pool, d.ID.Name, d.UUID, d.Share)
		})
	changedConsumers := r.consumers.update(view.consumers, now,
		func(a, b claimConsumer) bool {
			return a.uuid == b.uuid && a.pod == b.pod && a.container == b.container
		},
		func(c claimConsumer) *metric.Labels {
			values := []string{node, r.ref.Namespace, r.ref.Name, c.uuid, c.pod, c.podUID, c.container, c.ownerKind, c.ownerName}
			return metric.NewLabels(f.claimConsumerInfo.Labels, append(values, c.labels.values(f.podLabels)...)...)
		})
	if changedDevices || changedConsumers {
		r.model = nil
	}
}
