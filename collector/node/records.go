package node

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// records keeps the facts about claims.
type records struct {
	grace     time.Duration
	podLabels []string // names of the labels of pods in rows
	byClaim   map[dra.ClaimRef]*record
	sorted    []*record      // live ones first; nil: outdated
	shown     []*model.Claim // nil: outdated
}

// record is the facts about a claim. It is kept while the claim is on this node,
// and for the grace after that; a newer claim under the same name continues it.
type record struct {
	ref       dra.ClaimRef
	live      bool
	released  clock.Instant
	info      claimInfo
	model     *model.Claim // nil: outdated
	devices   factList[model.ClaimDevice]
	consumers factList[claimConsumer]
}

func newRecords(config Config) *records {
	s := &records{grace: config.Grace, byClaim: make(map[dra.ClaimRef]*record)}
	for _, key := range config.PodLabels {
		s.podLabels = append(s.podLabels, podLabelName(key))
	}
	return s
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
		if r.update(view, now); r.model == nil {
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
			r.model = r.newModel(s.podLabels)
		}
		s.shown = append(s.shown, r.model)
	}
	return s.shown
}

func (r *record) newModel(podLabels []string) *model.Claim {
	return &model.Claim{
		Ref: r.ref, UID: r.info.uid, Class: r.info.class, Template: r.info.template, Sharing: r.info.sharing,
		Admin: r.info.admin, Extended: r.info.extended, Live: r.live,
		Devices: r.devices.current, Consumers: listConsumers(r.consumers.current, podLabels),
		PastDevices: r.devices.past(), PastConsumers: listConsumers(r.consumers.past(), podLabels),
	}
}

func listConsumers(consumers []claimConsumer, podLabels []string) []model.Consumer {
	list := make([]model.Consumer, len(consumers))
	for i, c := range consumers {
		list[i] = model.Consumer{
			UUID: c.uuid, Pod: c.pod, PodUID: c.podUID, Container: c.container,
			OwnerKind: c.ownerKind, OwnerName: c.ownerName, Labels: c.labels.list(podLabels),
		}
	}
	return list
}

func (r *record) update(view *claimView, now clock.Instant) {
	changedDevices := r.devices.update(view.facts, now,
		func(a, b model.ClaimDevice) bool { return a.ID == b.ID && a.Share == b.Share })
	changedConsumers := r.consumers.update(view.consumers, now, func(a, b claimConsumer) bool {
		return a.uuid == b.uuid && a.pod == b.pod && a.container == b.container
	})
	if r.info != view.info || changedDevices || changedConsumers {
		r.info, r.model = view.info, nil
	}
}
