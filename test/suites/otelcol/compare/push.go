package compare

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Push is one collection of metrics, merged from its requests.
type Push struct {
	Snapshot time.Time // of the rows
	Sent     time.Time // of the live metrics; zero if none have arrived
	Resource map[string]string

	rows, live map[string]series
	ended      map[string]bool // keys of points without a value
	duplicates []string        // keys of points with two different values
}

// EndedSeries returns the series, as metric{attributes}, that the push marks
// as ended by a point without a value, sorted.
func (p *Push) EndedSeries() []string { return slices.Sorted(maps.Keys(p.ended)) }

// Of returns the metrics whose resource has all these attributes.
func Of(all []pmetric.Metrics, resource map[string]string) []pmetric.Metrics {
	var some []pmetric.Metrics
	for _, request := range all {
		kept := pmetric.NewMetrics()
		request.CopyTo(kept)
		kept.ResourceMetrics().RemoveIf(func(of pmetric.ResourceMetrics) bool {
			has := stringMap(of.Resource().Attributes())
			for name, value := range resource {
				if has[name] != value {
					return true
				}
			}
			return false
		})
		if kept.ResourceMetrics().Len() > 0 {
			some = append(some, kept)
		}
	}
	return some
}

// Pushes merges the requests of one sender into pushes, oldest first: rows
// with the same time, and the live metrics that were collected while that
// snapshot was the newest. A snapshot that was pushed twice results in two
// pushes with the same rows. Requests may be split anywhere, and may occur
// twice.
func Pushes(requests []pmetric.Metrics) []*Push {
	snapshots, alive := map[uint64]*Push{}, map[uint64]*Push{}
	for _, request := range requests {
		for _, of := range request.ResourceMetrics().All() {
			for _, scope := range of.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					sort(m, stringMap(of.Resource().Attributes()), snapshots, alive)
				}
			}
		}
	}
	return together(snapshots, alive)
}

// sort assigns the points of a metric to the push of their time.
func sort(m pmetric.Metric, resource map[string]string, snapshots, alive map[uint64]*Push) {
	for at, s := range points(m) {
		to := snapshots
		if live(m.Name(), s.kind) {
			to = alive
		}
		push := to[at]
		if push == nil {
			push = &Push{Resource: resource, rows: map[string]series{}, ended: map[string]bool{}}
			to[at] = push
		}
		if s.ended {
			push.ended[s.key()] = true
			continue
		}
		if old, known := push.rows[s.key()]; known && (!same(old.parts, s.parts) || old.start != s.start) {
			push.duplicates = append(push.duplicates, s.key())
		}
		push.rows[s.key()] = s
	}
}

// together assigns to each snapshot the live metrics of the time from it to
// the next.
func together(snapshots, alive map[uint64]*Push) []*Push {
	var all []*Push
	times := slices.Sorted(maps.Keys(snapshots))
	for i, at := range times {
		push := snapshots[at]
		push.Snapshot = pcommon.Timestamp(at).AsTime()
		whole := false
		for sent, other := range alive {
			if sent < at || i+1 < len(times) && sent >= times[i+1] {
				continue
			}
			one := *push
			one.Sent, one.live = pcommon.Timestamp(sent).AsTime(), other.rows
			one.duplicates = slices.Concat(push.duplicates, other.duplicates)
			one.ended = maps.Clone(push.ended)
			maps.Copy(one.ended, other.ended)
			all, whole = append(all, &one), true
		}
		if !whole {
			all = append(all, push)
		}
	}
	slices.SortFunc(all, func(a, b *Push) int {
		return cmp.Or(a.Snapshot.Compare(b.Snapshot), a.Sent.Compare(b.Sent))
	})
	return all
}

func stringMap(of pcommon.Map) map[string]string {
	all := map[string]string{}
	for name, value := range of.All() {
		all[name] = value.AsString()
	}
	return all
}

// Points returns the number of points in the push.
func (p *Push) Points() int { return len(p.rows) + len(p.live) }
