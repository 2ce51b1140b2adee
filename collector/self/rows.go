package self

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Rows adds which version runs and how its sources are.
func (f *Families) Rows(b *metric.Builder, v Build, sources []source.Status) {
	b.In(f.buildInfo)
	b.Add(f.cachedLabels(f.buildInfo, v.Version, v.Revision, v.GoVersion), 1)
	labels := make([]*metric.Labels, len(sources))
	for i, status := range sources {
		labels[i] = f.cachedLabels(f.sourceUp, status.Name)
	}
	b.In(f.sourceUp)
	for i, status := range sources {
		if !status.Released {
			b.Add(labels[i], flag(status.Up))
		}
	}
	b.In(f.sourceError)
	for _, status := range sources {
		if status.Reason != source.ReasonNone && !status.Released {
			b.Add(f.cachedLabels(f.sourceError, status.Name, string(status.Reason)), 1)
		}
	}
	b.In(f.sourceSuccess)
	for i, status := range sources {
		if !status.LastSuccess.IsZero() {
			b.Add(labels[i], float64(status.LastSuccess.Wall.UnixMilli())/1000)
		}
	}
	b.In(f.sourceErrors)
	for _, status := range sources {
		b.Add(f.cachedLabels(f.sourceErrors, status.Name, "failed"), float64(status.Errors))
		if status.Measures {
			b.Add(f.cachedLabels(f.sourceErrors, status.Name, "implausible"), float64(status.Refused))
		}
	}
	f.queueRows(b, labels, sources)
}

// queueRows adds how far behind the sources are that are watched.
func (f *Families) queueRows(b *metric.Builder, labels []*metric.Labels, sources []source.Status) {
	b.In(f.sourceLag)
	for i, status := range sources {
		if status.Queue.Watched {
			b.Add(labels[i], status.Queue.Lag.Seconds())
		}
	}
	b.In(f.sourceQueue)
	for i, status := range sources {
		if status.Queue.Watched {
			b.Add(labels[i], float64(status.Queue.Events))
		}
	}
}

// DroppedRows adds what the caps have dropped. It comes last.
func (f *Families) DroppedRows(b *metric.Builder) {
	b.In(f.Dropped)
	byName := func(a, b *metric.Family) int { return cmp.Compare(a.Name, b.Name) }
	for _, family := range slices.SortedFunc(maps.Keys(b.Dropped()), byName) {
		b.Add(f.cachedLabels(f.Dropped, family.Name), b.Dropped()[family])
	}
}

// cachedLabels returns the labels of a row, which are made once.
func (f *Families) cachedLabels(family *metric.Family, values ...string) *metric.Labels {
	key := rowKey{family: family}
	copy(key.values[:], values)
	labels := f.labels[key]
	if labels == nil {
		labels = metric.NewLabels(family.Labels, values...)
		f.labels[key] = labels
	}
	return labels
}

func flag(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
