package page

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// clusterReader gathers what rows say of each waiting reference, claim, pool
// and class. The order of the families does not matter to it.
type clusterReader struct {
	sourceReader
	view    ClusterView
	waiting map[waitKey]*waitingOf
	classes map[string]*ClassSupply
	pools   map[poolKey]*pool
	shared  map[capacityKey]*capacityOf
	odd     oddities
}

type waitKey struct{ namespace, pod, podClaim string }

// waitingOf is a reference, and whether a row says that
// it waits: rows about why it does may outlive their caps differently.
type waitingOf struct {
	Waiting
	waits bool
}

type poolKey struct{ driver, pool string }

// pool is one pool at its newest generation.
type pool struct {
	poolKey
	node     string
	complete *bool
	slices   *float64
	devices  DeviceStates
}

type capacityKey struct{ driver, pool, device, capacity string }

type capacityOf struct{ total, consumed *float64 }

func newClusterReader(at time.Time) *clusterReader {
	return &clusterReader{
		sourceReader: sourceReader{at: at},
		view:         ClusterView{At: at, Claims: map[string]float64{}},
		waiting:      map[waitKey]*waitingOf{},
		classes:      map[string]*ClassSupply{},
		pools:        map[poolKey]*pool{},
		shared:       map[capacityKey]*capacityOf{},
	}
}

// find returns what is known under a key, which begin begins.
func find[K comparable, V any](known map[K]*V, key K, begin V) *V {
	if found := known[key]; found != nil {
		return found
	}
	begun := begin // the address of begin itself would cost an allocation for every row
	known[key] = &begun
	return &begun
}

// reference finds the waiting reference that the row is about, or begins it.
func (r *clusterReader) reference(row metric.Row) *waitingOf {
	get := row.Labels.Get
	key := waitKey{get("namespace"), get("pod"), get("pod_claim")}
	return find(r.waiting, key, waitingOf{Waiting: Waiting{Namespace: key.namespace, Pod: key.pod, PodClaim: key.podClaim}})
}

func (r *clusterReader) pendingSince(row metric.Row) {
	w := r.reference(row)
	w.waits, w.Since = true, moment(row)
	w.Claim, w.Class = row.Labels.Get("resourceclaim"), row.Labels.Get("deviceclass")
}

func (r *clusterReader) pendingReason(row metric.Row) {
	r.reference(row).Reason = row.Labels.Get("reason")
}

// funnel finds the request that the row is about, or begins it. The rows of a
// request stand together, so that it is mostly the last one.
func (r *clusterReader) funnel(row metric.Row) *Funnel {
	of, request := r.reference(row), row.Labels.Get("request")
	for i := range slices.Backward(of.Funnel) {
		if of.Funnel[i].Request == request {
			return &of.Funnel[i]
		}
	}
	of.Funnel = append(of.Funnel, Funnel{Request: request})
	return &of.Funnel[len(of.Funnel)-1]
}

func (r *clusterReader) pendingRequested(row metric.Row) { r.funnel(row).Asked = known(row.Value) }

func (r *clusterReader) pendingCandidates(row metric.Row) {
	funnel := r.funnel(row)
	if stage := funnel.stage(row.Labels.Get("stage")); stage != nil {
		*stage = known(row.Value)
	}
}

func (r *clusterReader) phaseSince(row metric.Row) {
	get := row.Labels.Get
	r.view.Underway = append(r.view.Underway, Underway{get("namespace"), get("pod"), get("resourceclaim"), get("phase"), moment(row)})
}

func (r *clusterReader) claims(row metric.Row) {
	if count := known(row.Value); count != nil {
		r.view.Claims[row.Labels.Get("state")] += *count
	}
}

func (r *clusterReader) class(row metric.Row) *ClassSupply {
	name := row.Labels.Get("deviceclass")
	return find(r.classes, name, ClassSupply{Name: name})
}

func (r *clusterReader) classInfo(row metric.Row) {
	r.class(row).ExtendedResource = row.Labels.Get("extended_resource")
}

func (r *clusterReader) classDevices(row metric.Row) { r.class(row).Devices.set(row) }

// pool finds the pool that the row is about, or begins it.
func (r *clusterReader) pool(row metric.Row) *pool {
	key := poolKey{row.Labels.Get("driver"), row.Labels.Get("pool")}
	found := find(r.pools, key, pool{poolKey: key})
	if node := row.Labels.Get("node"); node != "" {
		found.node = node
	}
	return found
}

func (r *clusterReader) devices(row metric.Row)    { r.pool(row).devices.set(row) }
func (r *clusterReader) poolSlices(row metric.Row) { r.pool(row).slices = known(row.Value) }

func (r *clusterReader) poolComplete(row metric.Row) {
	complete := row.Value == 1
	r.pool(row).complete = &complete
}

// set stores a count of devices under the row's state.
func (s *DeviceStates) set(row metric.Row) {
	switch row.Labels.Get("state") {
	case "allocated":
		s.Allocated = known(row.Value)
	case "free":
		s.Free = known(row.Value)
	case "unavailable":
		s.Unavailable = known(row.Value)
	}
}

// capacity finds the capacity that the row is about, or begins it.
func (r *clusterReader) capacity(row metric.Row) *capacityOf {
	get := row.Labels.Get
	return find(r.shared, capacityKey{get("driver"), get("pool"), get("device"), get("capacity")}, capacityOf{})
}

func (r *clusterReader) capacityTotal(row metric.Row)    { r.capacity(row).total = known(row.Value) }
func (r *clusterReader) capacityConsumed(row metric.Row) { r.capacity(row).consumed = known(row.Value) }

func (r *clusterReader) clusterBuild(row metric.Row) { r.view.Version = row.Labels.Get("version") }
