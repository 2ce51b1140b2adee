package cluster

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// definition is a family with what makes its rows of a model.
type definition = metric.Definition[*labelled]

// definitions are the families of the cluster role in the order of their rows. They are
// documented in docs/metrics.md, which is generated from them.
type definitions = metric.Definitions[*labelled]

// labelled is a model, and labels of its records that several families have. It keeps
// them from one model to the next.
type labelled struct {
	*model.Cluster
	pending   labelList[*model.PendingRef, [2]string, pendingLabels]
	pools     labelList[*dra.PoolSupply, [2]string, poolLabels]
	shapes    labelList[dra.ShapeHeadroom, [2]string, *metric.Labels]
	workloads labelList[*model.Workload, [3]string, workloadLabels]
	domains   labelList[model.ComputeDomain, dra.PodRef, domainLabels]
}

// labelList is a list of records, and the labels of each, which belong to its key.
type labelList[R any, K comparable, L any] struct {
	cache  metric.LabelCache[K, L]
	list   []R
	labels []*L
}

// take takes the present list. One that is the same in memory costs nothing.
func (l *labelList[R, K, L]) take(list []R, key func(R) K) (changed bool) {
	if len(list) == len(l.list) && (len(list) == 0 || &list[0] == &l.list[0]) {
		return false
	}
	l.list, l.labels = list, l.cache.Align(len(list), func(i int) K { return key(list[i]) })
	return true
}

// update takes the present model.
func (l *labelled) update(m *model.Cluster) {
	l.Cluster = m
	if l.pending.take(m.Pending, func(ref *model.PendingRef) [2]string { return [2]string{ref.PodUID, ref.PodClaim} }) {
		for i, ref := range m.Pending {
			l.pending.labels[i].update(ref)
		}
	}
	if l.pools.take(m.Pools, func(pool *dra.PoolSupply) [2]string { return [2]string{pool.Driver, pool.Pool} }) {
		for i, pool := range m.Pools {
			l.pools.labels[i].update(pool)
		}
	}
	l.shapes.take(m.Shapes, func(shape dra.ShapeHeadroom) [2]string { return [2]string{shape.Class, shape.Shape} })
	if l.workloads.take(m.Workloads, func(w *model.Workload) [3]string { return [3]string{w.Namespace, w.Kind, w.Name} }) {
		for i, w := range m.Workloads {
			l.workloads.labels[i].update(w)
		}
	}
	l.domains.take(m.ComputeDomains, func(domain model.ComputeDomain) dra.PodRef { return domain.Ref })
}

// cached returns labels of the family that is being filled, which are made once.
func cached(place **metric.Labels, b *metric.Builder, values ...string) *metric.Labels {
	if *place == nil {
		*place = metric.NewLabels(b.Family().Labels, values...)
	}
	return *place
}

// pendingLabels are the labels of a reference.
type pendingLabels struct {
	ref           *model.PendingRef // that they are of
	since, reason *metric.Labels
	requests      []requestLabels // as its diagnosis has them; nil: not made yet
}

// requestLabels are those of a request of a diagnosis. One that occurs twice has none the
// second time, so that no page has a label set twice.
type requestLabels struct {
	requested  *metric.Labels
	candidates [dra.Stages]*metric.Labels
}

// update drops the labels that have other values now.
func (l *pendingLabels) update(ref *model.PendingRef) {
	previous := l.ref
	if previous == ref {
		return
	}
	l.ref = ref
	if previous == nil {
		return
	}
	if previous.Pod != ref.Pod {
		l.since, l.reason, l.requests = nil, nil, nil
	}
	if previous.Claim != ref.Claim || previous.DeviceClass != ref.DeviceClass {
		l.since = nil
	}
	if previous.Reason != ref.Reason || previous.Workload != ref.Workload {
		l.reason = nil
	}
	sameRequest := func(a, b dra.RequestStages) bool { return a.Request == b.Request }
	if !slices.EqualFunc(requests(previous), requests(ref), sameRequest) {
		l.requests = nil
	}
}

// requests returns what the diagnosis of a reference has of its requests.
func requests(ref *model.PendingRef) []dra.RequestStages {
	if ref.Diagnosis == nil {
		return nil
	}
	return ref.Diagnosis.Requests
}

// distinct yields the requests of the diagnosis with their labels, each once.
func (l *pendingLabels) distinct(yield func(*dra.RequestStages, *requestLabels) bool) {
	all := requests(l.ref)
	if l.requests == nil && len(all) > 0 {
		l.requests = make([]requestLabels, len(all))
	}
	for i := range all {
		request := all[i].Request
		isSame := func(other dra.RequestStages) bool { return other.Request == request }
		if !slices.ContainsFunc(all[:i], isSame) && !yield(&all[i], &l.requests[i]) {
			return
		}
	}
}

// poolLabels are the labels of a pool.
type poolLabels struct {
	pool    *dra.PoolSupply // that they are of
	name    *metric.Labels
	states  [dra.DeviceStates]*metric.Labels
	details *poolDetails // nil: the pool has none, or they are not made yet
}

// poolDetails are the labels of what few pools have.
type poolDetails struct {
	capacities []*metric.Labels                   // as the pool's Capacity; nil for one that occurs twice
	partitions [][dra.DeviceStates]*metric.Labels // as the pool's Partitions
}

// update drops the labels that have other values now.
func (l *poolLabels) update(pool *dra.PoolSupply) {
	previous := l.pool
	if previous == pool {
		return
	}
	l.pool = pool
	switch {
	case previous == nil:
	case previous.Node != pool.Node:
		*l = poolLabels{pool: pool}
	case l.details != nil:
		if !sameCapacities(previous.Capacity, pool.Capacity) {
			l.details.capacities = nil
		}
		if !samePartitions(previous.Partitions, pool.Partitions) {
			l.details.partitions = nil
		}
	}
}

func sameCapacities(a, b []dra.CapacitySupply) bool {
	return slices.EqualFunc(a, b, func(a, b dra.CapacitySupply) bool {
		return a.Device == b.Device && a.Capacity == b.Capacity
	})
}

func samePartitions(a, b []dra.PartitionSupply) bool {
	return slices.EqualFunc(a, b, func(a, b dra.PartitionSupply) bool { return a.Type == b.Type })
}

// capacityRows adds the rows of capacities that occur once: a page that has a label set
// twice cannot be scraped.
func (l *poolLabels) capacityRows(b *metric.Builder, value func(*dra.CapacitySupply) float64) {
	if len(l.pool.Capacity) == 0 {
		return
	}
	if l.details == nil {
		l.details = &poolDetails{}
	}
	if l.details.capacities == nil {
		l.details.capacities = make([]*metric.Labels, len(l.pool.Capacity))
		for i, c := range l.pool.DistinctCapacities {
			l.details.capacities[i] = metric.NewLabels(b.Family().Labels, l.pool.Driver, l.pool.Pool, c.Device, c.Capacity)
		}
	}
	for i, labels := range l.details.capacities {
		if labels != nil {
			b.Add(labels, value(&l.pool.Capacity[i]))
		}
	}
}

// partitionRows adds the rows of partitions.
func (l *poolLabels) partitionRows(b *metric.Builder) {
	if len(l.pool.Partitions) == 0 {
		return
	}
	if l.details == nil {
		l.details = &poolDetails{}
	}
	if l.details.partitions == nil {
		l.details.partitions = make([][dra.DeviceStates]*metric.Labels, len(l.pool.Partitions))
	}
	for i := range l.pool.Partitions {
		partition := &l.pool.Partitions[i]
		for state, count := range partition.Devices {
			labels := cached(&l.details.partitions[i][state], b, l.pool.Driver, l.pool.Pool, l.pool.Node, partition.Type, dra.DeviceState(state).String())
			b.Add(labels, float64(count))
		}
	}
}

// workloadLabels are the labels of a workload.
type workloadLabels struct {
	workload   *model.Workload // that they are of
	info, name *metric.Labels
	states     [model.PodStates]*metric.Labels
	levels     [dra.TopologyLevels]*metric.Labels
}

// update drops the labels that have other values now.
func (l *workloadLabels) update(w *model.Workload) {
	if l.workload != nil && l.workload.Queue != w.Queue {
		l.info = nil
	}
	l.workload = w
}

// domainLabels are the labels of a ComputeDomain.
type domainLabels struct {
	name  *metric.Labels
	nodes map[cliqueState]*metric.Labels // that there were so far
}

// cliqueState is what nodes of a ComputeDomain are counted by.
type cliqueState struct{ clique, state string }

// rowValues are the values of the labels of a row, which identify it, in the order of its
// family; empty beyond them.
type rowValues [4]string

// listed is a family that has a row for each record of a list. A counter has the time at
// which it was 0.
func listed[R any](family metric.Family, list func(*labelled) []R, values func(R) rowValues, value func(R) (float64, time.Time)) definition {
	return keyed(family, list, values, values, value)
}

// keyed is listed with other keys than the values of labels.
func keyed[R any, K comparable](
	family metric.Family, list func(*labelled) []R, key func(R) K, values func(R) rowValues, value func(R) (float64, time.Time),
) definition {
	var rows labelList[R, K, *metric.Labels]
	return definition{Family: family, Fill: func(m *labelled, b *metric.Builder) {
		rows.take(list(m), key)
		for i, record := range rows.list {
			labels := rows.labels[i]
			if *labels == nil {
				texts := values(record)
				*labels = metric.NewLabels(b.Family().Labels, texts[:len(b.Family().Labels)]...)
			}
			count, start := value(record)
			b.AddFrom(*labels, count, start)
		}
	}}
}

// counted is a family of counters, or of numbers.
func counted(family metric.Family, list func(*labelled) []model.Counter) definition {
	return listed(family, list,
		func(c model.Counter) rowValues { return rowValues{c.Name} },
		func(c model.Counter) (float64, time.Time) { return c.Count, c.Since })
}

// The values of gauges.

func number[N int | int64 | float64](value N) (float64, time.Time) {
	return float64(value), time.Time{}
}

func unixSeconds(at time.Time) (float64, time.Time) { return float64(at.Unix()), time.Time{} }

func constant[R any](R) (float64, time.Time) { return 1, time.Time{} }

func flag(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
