package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// headroomRows outputs the headroom, and adds up how long devices have been stranded.
// Labels are made once for each headroom.
type headroomRows struct {
	headroom *dra.Headroom
	known    bool          // what the headroom depends on was known at the step before
	last     clock.Instant // of that step

	shapes   []shapeLabels
	classes  []*metric.Labels
	stranded []*metric.Labels
	kept     []*metric.Labels

	seconds map[strandedKey]*strandedTotal
}

type shapeLabels struct{ shape, info *metric.Labels }

// strandedKey identifies a total.
type strandedKey struct {
	driver string
	reason dra.StrandedReason
}

// strandedTotal is how long devices were stranded, and since when that is counted.
type strandedTotal struct {
	labels  *metric.Labels
	seconds float64
	since   time.Time
}

func newHeadroomRows() *headroomRows {
	return &headroomRows{seconds: make(map[strandedKey]*strandedTotal)}
}

// update takes the headroom. Until now devices were stranded as the one before has it.
func (h *headroomRows) update(now *dra.Headroom, synced Synced, f *families, at clock.Instant) {
	if h.known {
		h.accrue(at.Since(h.last).Seconds())
	}
	h.last = at
	if h.headroom != now {
		h.headroom = now
		h.label(f)
	}
	h.known = now != nil && now.StrandedKnown && synced.Claims && synced.Slices && synced.Classes && synced.Nodes && synced.Pods
	if h.known {
		for i := range now.Stranded {
			h.total(&now.Stranded[i], f, at.Wall)
		}
	}
}

// total returns that of a driver and reason; it begins when there are such devices for
// the first time.
func (h *headroomRows) total(stranded *dra.StrandedDevices, f *families, now time.Time) *strandedTotal {
	key := strandedKey{stranded.Driver, stranded.Reason}
	if h.seconds[key] == nil {
		h.seconds[key] = &strandedTotal{labels: metric.NewLabels(f.strandedSeconds.Labels, stranded.Driver, string(stranded.Reason)), since: now}
	}
	return h.seconds[key]
}

func (h *headroomRows) accrue(seconds float64) {
	for i := range h.headroom.Stranded {
		stranded := &h.headroom.Stranded[i]
		if total := h.seconds[strandedKey{stranded.Driver, stranded.Reason}]; total != nil {
			total.seconds += stranded.Devices * seconds
		}
	}
}

func (h *headroomRows) label(f *families) {
	h.shapes, h.classes, h.stranded, h.kept = nil, nil, nil, nil
	if h.headroom == nil {
		return
	}
	for i := range h.headroom.Shapes {
		s := &h.headroom.Shapes[i]
		h.shapes = append(h.shapes, shapeLabels{
			shape: metric.NewLabels(f.headroomClaims.Labels, s.Class, s.Shape),
			info:  metric.NewLabels(f.headroomInfo.Labels, s.Class, s.Shape, strconv.FormatBool(s.Exact), string(s.Limit)),
		})
	}
	for i := range h.headroom.Classes {
		h.classes = append(h.classes, metric.NewLabels(f.fragmentation.Labels, h.headroom.Classes[i].Class))
	}
	for i := range h.headroom.Stranded {
		s := &h.headroom.Stranded[i]
		h.stranded = append(h.stranded, metric.NewLabels(f.stranded.Labels, s.Driver, s.Node, string(s.Reason)))
	}
	for _, node := range h.headroom.KeptNodes {
		h.kept = append(h.kept, metric.NewLabels(f.idleNodes.Labels, node.Node, node.Reason.String()))
	}
}

// rows adds the headroom to the rows and to the model. What depends on nodes or pods is
// left out while these are not known; so is everything while claims, slices or classes are
// not.
func (h *headroomRows) rows(b *metric.Builder, f *families, synced Synced, m *model.Cluster) {
	if h.headroom != nil && synced.Claims && synced.Slices && synced.Classes {
		m.Shapes = h.headroom.Shapes
		h.claimRows(b, f)
		if synced.Nodes && synced.Pods {
			h.podRows(b, f, m)
		}
	}
	b.In(f.strandedSeconds)
	for _, key := range slices.SortedFunc(maps.Keys(h.seconds), func(a, b strandedKey) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.reason, b.reason))
	}) {
		total := h.seconds[key]
		b.AddFrom(total.labels, total.seconds, total.since)
	}
}

func (h *headroomRows) claimRows(b *metric.Builder, f *families) {
	b.In(f.headroomClaims)
	for i := range h.shapes {
		b.Add(h.shapes[i].shape, float64(h.headroom.Shapes[i].Claims))
	}
	b.In(f.headroomInfo)
	for i := range h.shapes {
		b.Add(h.shapes[i].info, 1)
	}
	b.In(f.shapeClaims)
	for i := range h.shapes {
		b.Add(h.shapes[i].shape, float64(h.headroom.Shapes[i].Requests))
	}
	b.In(f.fragmentation)
	for i := range h.classes {
		b.Add(h.classes[i], h.headroom.Classes[i].Ratio)
	}
}

func (h *headroomRows) podRows(b *metric.Builder, f *families, m *model.Cluster) {
	b.In(f.headroomPods)
	for i := range h.shapes {
		if h.headroom.Shapes[i].PodsKnown {
			b.Add(h.shapes[i].shape, float64(h.headroom.Shapes[i].Pods))
		}
	}
	b.In(f.stranded)
	if h.headroom.StrandedKnown {
		m.Stranded, m.KeptNodes = h.headroom.Stranded, h.headroom.KeptNodes
		for i := range h.stranded {
			b.Add(h.stranded[i], h.headroom.Stranded[i].Devices)
		}
		b.In(f.idleNodes)
		for i := range h.kept {
			b.Add(h.kept[i], float64(h.headroom.KeptNodes[i].Pods))
		}
	}
}
