package page

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// newClusterView returns the view of a snapshot's rows at a time, as newView does
// for a node.
func newClusterView(rows []metric.Row, at time.Time) ClusterView {
	r := newClusterReader(at)
	readRows(rows, r, clusterFamilies())
	return r.assemble()
}

// clusterReader collects what rows say of each pending reference, class and pool. The
// order of the families does not matter.
type clusterReader struct {
	sourceReader
	view      ClusterView
	pending   map[pendingKey]*pendingRecord
	classes   map[string]*ClassSupply
	pools     map[poolKey]*poolRecord
	shared    map[capacityKey]*capacityRecord
	anomalies anomalyReader
}

func newClusterReader(at time.Time) *clusterReader {
	return &clusterReader{
		sourceReader: sourceReader{at: at},
		view:         ClusterView{At: at, Claims: map[string]float64{}},
		pending:      map[pendingKey]*pendingRecord{},
		classes:      map[string]*ClassSupply{},
		pools:        map[poolKey]*poolRecord{},
		shared:       map[capacityKey]*capacityRecord{},
		anomalies:    anomalyReader{at: at},
	}
}

// readClusterRow adds a row to what has been read.
type readClusterRow = func(*clusterReader, metric.Row)

// clusterFamilies maps each family to the function that reads its rows.
func clusterFamilies() map[string]readClusterRow {
	return map[string]readClusterRow{
		metric.ClaimPendingSinceTimestampSeconds: ofPending((*pendingRecord).since),
		metric.ClaimPendingReasonInfo:            ofPending(func(p *pendingRecord, row metric.Row) { p.Reason = row.Labels.Get("reason") }),
		metric.ClaimPendingRequestedDevices:      ofPending(func(p *pendingRecord, row metric.Row) { p.request(row).Asked = known(row.Value) }),
		metric.ClaimPendingCandidates:            ofPending((*pendingRecord).candidates),
		metric.ClaimPhaseSinceTimestampSeconds:   (*clusterReader).phaseSince,

		metric.Claims:          (*clusterReader).claims,
		metric.DeviceClassInfo: ofClass(func(c *ClassSupply, row metric.Row) { c.ExtendedResource = row.Labels.Get("extended_resource") }),
		metric.ClassDevices:    ofClass(func(c *ClassSupply, row metric.Row) { c.Devices.set(row) }),

		metric.ClassDevicesDown: ofClass(func(c *ClassSupply, row metric.Row) {
			if row.Value > 0 {
				c.Down = append(c.Down, DownDevices{row.Labels.Get("reason"), row.Value})
			}
		}),
		metric.ClassHeadroomClaims: ofFitting(func(f *FittingClaims, row metric.Row) { f.Claims = known(row.Value) }),
		metric.ClassHeadroomInfo:   ofFitting(func(f *FittingClaims, row metric.Row) { f.AtLeast = row.Labels.Get("exact") == "false" }),
		metric.Devices:             ofPool(func(p *poolRecord, row metric.Row) { p.devices.set(row) }),
		metric.PoolComplete:        ofPool(func(p *poolRecord, row metric.Row) { complete := row.Value == 1; p.complete = &complete }),
		metric.PoolSlices:          ofPool(func(p *poolRecord, row metric.Row) { p.slices = known(row.Value) }),
		metric.Capacity:            ofCapacity(func(c *capacityRecord, row metric.Row) { c.total = known(row.Value) }),
		metric.CapacityConsumed:    ofCapacity(func(c *capacityRecord, row metric.Row) { c.consumed = known(row.Value) }),

		metric.ClaimTerminatingSinceTimestampSeconds: ofAnomalies((*anomalyReader).terminating),
		metric.ClaimOrphaned:                         ofAnomalies((*anomalyReader).orphaned),
		metric.DeviceHealthDisagreement:              ofAnomalies((*anomalyReader).disagreement),
		metric.DeviceTaints:                          ofAnomalies((*anomalyReader).taint),
		metric.DevicesStranded:                       ofAnomalies((*anomalyReader).strandedDevices),
		metric.IdleNodeObstacles:                     ofAnomalies((*anomalyReader).idleNode),
		metric.PodDeletionTimestampSeconds:           ofAnomalies((*anomalyReader).deletedPod),
		metric.PodTaintEvictions:                     ofAnomalies((*anomalyReader).evictions),
		metric.ExporterClockAnomalies:                ofAnomalies((*anomalyReader).clockAnomalies),
		metric.ExporterSeriesDropped:                 ofAnomalies((*anomalyReader).droppedRows),

		metric.WorkloadQueuedSinceTimestampSeconds:        ofAnomalies((*anomalyReader).waitsInQueue),
		metric.ComputeDomainNodes:                         domainNodes,
		metric.ComputeDomainReady:                         ofDomain(func(d *domainRecord, row metric.Row) { d.notReady = row.Value == 0 }),
		metric.ComputeDomainPods:                          ofDomain(func(d *domainRecord, row metric.Row) { d.pods = row.Value }),
		metric.ComputeDomainRequestedNodes:                ofDomain(func(d *domainRecord, row metric.Row) { d.requested = known(row.Value) }),
		metric.ComputeDomainNotReadySinceTimestampSeconds: ofDomain(func(d *domainRecord, row metric.Row) { d.since = moment(row) }),

		metric.ExporterBuildInfo:                         func(r *clusterReader, row metric.Row) { r.view.Version = row.Labels.Get("version") },
		metric.ExporterSourceUp:                          (*clusterReader).sourceUp,
		metric.ExporterSourceErrorInfo:                   (*clusterReader).sourceError,
		metric.ExporterSourceLastSuccessTimestampSeconds: (*clusterReader).sourceSuccess,
	}
}

func ofPending(read func(*pendingRecord, metric.Row)) readClusterRow {
	return func(r *clusterReader, row metric.Row) {
		get := row.Labels.Get
		key := pendingKey{get("namespace"), get("pod"), get("pod_claim")}
		read(find(r.pending, key, pendingRecord{PendingRef: PendingRef{Namespace: key.namespace, Pod: key.pod, PodClaim: key.podClaim}}), row)
	}
}

func ofClass(read func(*ClassSupply, metric.Row)) readClusterRow {
	return func(r *clusterReader, row metric.Row) {
		name := row.Labels.Get("deviceclass")
		read(find(r.classes, name, ClassSupply{Name: name}), row)
	}
}

// ofFitting reads a row of the claims for a number of devices that fit. What else claims
// request is in the metrics alone.
func ofFitting(read func(*FittingClaims, metric.Row)) readClusterRow {
	return ofClass(func(c *ClassSupply, row metric.Row) {
		devices, err := strconv.Atoi(row.Labels.Get("shape"))
		if err != nil {
			return
		}
		at, ok := slices.BinarySearchFunc(c.Fitting, devices, func(f FittingClaims, devices int) int { return cmp.Compare(f.Devices, devices) })
		if !ok {
			c.Fitting = slices.Insert(c.Fitting, at, FittingClaims{Devices: devices})
		}
		read(&c.Fitting[at], row)
	})
}

func ofPool(read func(*poolRecord, metric.Row)) readClusterRow {
	return func(r *clusterReader, row metric.Row) {
		key := poolKey{row.Labels.Get("driver"), row.Labels.Get("pool")}
		pool := find(r.pools, key, poolRecord{poolKey: key})
		if node := row.Labels.Get("node"); node != "" {
			pool.node = node
		}
		read(pool, row)
	}
}

func ofCapacity(read func(*capacityRecord, metric.Row)) readClusterRow {
	return func(r *clusterReader, row metric.Row) {
		get := row.Labels.Get
		read(find(r.shared, capacityKey{get("driver"), get("pool"), get("device"), get("capacity")}, capacityRecord{}), row)
	}
}

func ofAnomalies(read func(*anomalyReader, metric.Row)) readClusterRow {
	return func(r *clusterReader, row metric.Row) { read(&r.anomalies, row) }
}

func (r *clusterReader) phaseSince(row metric.Row) {
	get := row.Labels.Get
	r.view.Phases = append(r.view.Phases, ActivePhase{get("namespace"), get("pod"), get("resourceclaim"), get("phase"), moment(row)})
}

func (r *clusterReader) claims(row metric.Row) {
	if count := known(row.Value); count != nil {
		r.view.Claims[row.Labels.Get("state")] += *count
	}
}

type pendingKey struct{ namespace, pod, podClaim string }

// pendingRecord is a reference. It is pending only if a row has its start: rows
// with its reason may be kept where those are dropped by a cap.
type pendingRecord struct {
	PendingRef
	pending bool
}

func (p *pendingRecord) since(row metric.Row) {
	p.pending, p.Since = true, moment(row)
	p.Claim, p.Class = row.Labels.Get("resourceclaim"), row.Labels.Get("deviceclass")
}

// request returns the counts of the row's request, new ones if there are none.
// The rows of a request are adjacent, so it is mostly the last one.
func (p *pendingRecord) request(row metric.Row) *RequestCounts {
	request := row.Labels.Get("request")
	for i := range slices.Backward(p.Requests) {
		if p.Requests[i].Request == request {
			return &p.Requests[i]
		}
	}
	p.Requests = append(p.Requests, RequestCounts{Request: request})
	return &p.Requests[len(p.Requests)-1]
}

func (p *pendingRecord) candidates(row metric.Row) {
	counts := p.request(row)
	if stage := counts.stage(row.Labels.Get("stage")); stage != nil {
		*stage = known(row.Value)
	}
}

type poolKey struct{ driver, pool string }

// poolRecord is a pool at its newest generation.
type poolRecord struct {
	poolKey
	node     string
	complete *bool
	slices   *float64
	devices  DeviceStates
}

type capacityKey struct{ driver, pool, device, capacity string }

type capacityRecord struct{ total, consumed *float64 }

// assemble returns the view, sorted.
func (r *clusterReader) assemble() ClusterView {
	view := r.view
	view.Sources = r.byName()
	view.Pending = make([]PendingRef, 0, len(r.pending))
	for _, p := range r.pending {
		if !p.pending {
			continue
		}
		slices.SortFunc(p.Requests, func(a, b RequestCounts) int { return cmp.Compare(a.Request, b.Request) })
		if p.gated() {
			view.Gated = append(view.Gated, p.PendingRef)
		} else {
			view.Pending = append(view.Pending, p.PendingRef)
		}
	}
	sortPending(view.Pending)
	sortPending(view.Gated)
	slices.SortFunc(view.Phases, func(a, b ActivePhase) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Phase, b.Phase))
	})
	for _, name := range slices.Sorted(maps.Keys(r.classes)) {
		view.Classes = append(view.Classes, *r.classes[name])
	}
	view.Drivers = r.drivers()
	for _, p := range r.pools {
		r.anomalies.pool(p)
	}
	view.Anomalies = r.anomalies.byKind()
	return view
}

// sortPending sorts by age, the oldest first.
func sortPending(pending []PendingRef) {
	slices.SortFunc(pending, func(a, b PendingRef) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.PodClaim, b.PodClaim))
	})
}

// drivers adds up the pools of each driver.
func (r *clusterReader) drivers() []DriverSupply {
	sums := map[string]*DriverSupply{}
	for _, p := range r.pools {
		sum := find(sums, p.driver, DriverSupply{Name: p.driver})
		sum.Pools++
		sum.Devices.add(p.devices)
	}
	uses := map[[2]string]*CapacityUse{}
	for key, record := range r.shared {
		if record.total == nil || record.consumed == nil {
			continue
		}
		use := find(uses, [2]string{key.driver, key.capacity}, CapacityUse{Name: key.capacity})
		use.Devices++
		use.Total += *record.total
		use.Consumed += *record.consumed
	}
	for key, use := range uses {
		driver := find(sums, key[0], DriverSupply{Name: key[0]})
		driver.Capacities = append(driver.Capacities, *use)
	}
	var sorted []DriverSupply
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		slices.SortFunc(sums[name].Capacities, func(a, b CapacityUse) int { return cmp.Compare(a.Name, b.Name) })
		sorted = append(sorted, *sums[name])
	}
	return sorted
}
