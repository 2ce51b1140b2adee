package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// parseCluster returns the model that the rows of a cluster are of, in any order; nil of
// nil. A pool without a row of its slices has one, and is complete.
func parseCluster(rows []metric.Row) *model.Cluster {
	if rows == nil {
		return nil
	}
	p := clusterParser{cluster: &model.Cluster{}, pending: map[[3]string]*model.PendingRef{}}
	for _, row := range rows {
		parseSource(&p.cluster.Sources, row)
		p.reference(row)
		p.claim(row)
		p.pool(row)
		p.class(row)
		p.domain(row)
		p.anomaly(row)
		p.counter(row)
	}
	return p.cluster
}

type clusterParser struct {
	cluster *model.Cluster
	pending map[[3]string]*model.PendingRef
}

// reference reads a row of a pending reference. It is pending if a row has its start.
func (p clusterParser) reference(row metric.Row) {
	get := row.Labels.Get
	key := [3]string{get("namespace"), get("pod"), get("pod_claim")}
	if key[2] == "" {
		return
	}
	ref := p.pending[key]
	if ref == nil {
		ref = &model.PendingRef{Pod: dra.PodRef{Namespace: key[0], Name: key[1]}, PodClaim: key[2]}
		p.pending[key] = ref
	}
	request := func() *dra.RequestStages {
		if ref.Diagnosis == nil {
			ref.Diagnosis = &dra.Diagnosis{}
		}
		return element(&ref.Diagnosis.Requests, dra.RequestStages{Request: get("request")}, func(f *dra.RequestStages) bool { return f.Request == get("request") })
	}
	switch row.Family.Name {
	case metric.ClaimPendingSinceTimestampSeconds:
		ref.Since, ref.Claim, ref.DeviceClass = moment(row), get("resourceclaim"), get("deviceclass")
		p.cluster.Pending = append(p.cluster.Pending, ref)
	case metric.ClaimPendingReasonInfo:
		ref.Reason = dra.PendingReason(get("reason"))
	case metric.ClaimPendingRequestedDevices:
		request().Count = int64(row.Value)
	case metric.ClaimPendingCandidates:
		for stage := range dra.Stage(dra.Stages) {
			if get("stage") == stage.String() {
				request().Left[stage] = int(row.Value)
				p.cluster.NodesKnown = p.cluster.NodesKnown || stage == dra.StageBestNode
			}
		}
	}
}

// claim reads a row of a claim, or of a number of claims.
func (p clusterParser) claim(row metric.Row) {
	get := row.Labels.Get
	ref, pod := dra.ClaimRef{Namespace: get("namespace"), Name: get("resourceclaim")}, dra.PodRef{Namespace: get("namespace"), Name: get("pod")}
	switch row.Family.Name {
	case metric.ClaimPhaseSinceTimestampSeconds:
		p.cluster.Phases = append(p.cluster.Phases, &model.Phase{Pod: pod, Claim: ref.Name, Name: get("phase"), Since: moment(row)})
	case metric.Claims:
		count := &model.ClaimCount{Namespace: get("namespace"), Class: get("deviceclass")}
		for state := range model.ClaimState(model.ClaimStates) {
			if get("state") == state.String() {
				count.States[state] = model.Optional{Value: row.Value, Known: true}
			}
		}
		p.cluster.Claims = append(p.cluster.Claims, count)
	case metric.ClaimTerminatingSinceTimestampSeconds:
		p.cluster.TerminatingClaims = append(p.cluster.TerminatingClaims, model.TerminatingClaim{Ref: ref, Since: moment(row)})
	case metric.ClaimOrphaned:
		p.cluster.OrphanedClaims = append(p.cluster.OrphanedClaims, ref)
	case metric.PodDeletionTimestampSeconds:
		p.cluster.DeletedPods = append(p.cluster.DeletedPods, model.DeletedPod{Pod: pod, Node: get("node"), Due: moment(row)})
	}
}

// pool reads a row of a pool.
func (p clusterParser) pool(row metric.Row) {
	get := row.Labels.Get
	find := func() *dra.PoolSupply {
		begin := &dra.PoolSupply{Driver: get("driver"), Pool: get("pool"), Slices: 1, Complete: true}
		pool := *element(&p.cluster.Pools, begin, func(pool **dra.PoolSupply) bool { return (*pool).Driver == begin.Driver && (*pool).Pool == begin.Pool })
		pool.Node = cmp.Or(get("node"), pool.Node)
		return pool
	}
	capacity := func() *dra.CapacitySupply {
		begin := dra.CapacitySupply{Device: get("device"), Capacity: get("capacity")}
		return element(&find().Capacity, begin, func(c *dra.CapacitySupply) bool { return c.Device == begin.Device && c.Capacity == begin.Capacity })
	}
	switch row.Family.Name {
	case metric.Devices:
		parseDevices(&find().Devices, row)
		p.cluster.DevicesKnown = true
	case metric.PoolComplete:
		find().Complete = row.Value == 1
	case metric.PoolSlices:
		find().Slices = int(row.Value)
	case metric.Capacity:
		capacity().Total = row.Value
	case metric.CapacityConsumed:
		capacity().Consumed = row.Value
		p.cluster.DevicesKnown = true
	case metric.DeviceTaints:
		p.cluster.Taints = append(p.cluster.Taints, dra.TaintCount{
			Driver: get("driver"), Pool: get("pool"), Taint: dra.Taint{Key: get("key"), Effect: get("effect")}, Devices: int(row.Value),
		})
	}
}

func parseDevices(devices *[dra.DeviceStates]int, row metric.Row) {
	for state := range dra.DeviceState(dra.DeviceStates) {
		if row.Labels.Get("state") == state.String() {
			devices[state] = int(row.Value)
		}
	}
}

// class reads a row of a device class.
func (p clusterParser) class(row metric.Row) {
	get := row.Labels.Get
	find := func() *dra.ClassSupply {
		begin := dra.ClassSupply{Class: get("deviceclass")}
		return element(&p.cluster.Classes, begin, func(c *dra.ClassSupply) bool { return c.Class == begin.Class })
	}
	shape := func() *dra.ShapeHeadroom {
		begin := dra.ShapeHeadroom{Class: get("deviceclass"), Shape: get("shape"), Exact: true}
		return element(&p.cluster.Shapes, begin, func(s *dra.ShapeHeadroom) bool { return s.Class == begin.Class && s.Shape == begin.Shape })
	}
	switch row.Family.Name {
	case metric.DeviceClassInfo:
		find().ExtendedResource = get("extended_resource")
	case metric.ClassDevices:
		class := find()
		class.Counted, p.cluster.DevicesKnown = true, true
		parseDevices(&class.Devices, row)
	case metric.ClassDevicesDown:
		for reason := range dra.DownReason(dra.DownReasons) {
			if get("reason") == reason.String() {
				find().Down[reason] = int(row.Value)
				p.cluster.NodesKnown = true
			}
		}
	case metric.ClassHeadroomClaims:
		shape().Claims = int(row.Value)
	case metric.ClassHeadroomInfo:
		shape().Exact = get("exact") != "false"
	}
}

// domain reads a row of a ComputeDomain.
func (p clusterParser) domain(row metric.Row) {
	get := row.Labels.Get
	find := func() *model.ComputeDomain {
		ref := dra.PodRef{Namespace: get("namespace"), Name: get("compute_domain")}
		begin := model.ComputeDomain{ComputeDomain: &dra.ComputeDomain{Ref: ref, Ready: true}}
		return element(&p.cluster.ComputeDomains, begin, func(d *model.ComputeDomain) bool { return d.Ref == ref })
	}
	switch row.Family.Name {
	case metric.ComputeDomainReady:
		find().Ready = row.Value == 1
	case metric.ComputeDomainRequestedNodes:
		find().NumNodes = int64(row.Value)
	case metric.ComputeDomainNodes:
		nodes := slices.Repeat([]dra.ComputeDomainNode{{Clique: get("clique"), Ready: get("state") == "ready"}}, int(row.Value))
		find().Nodes = append(find().Nodes, nodes...)
	case metric.ComputeDomainNotReadySinceTimestampSeconds:
		find().NotReadySince = moment(row)
	case metric.ComputeDomainPods:
		find().Pods = model.Optional{Value: row.Value, Known: true}
	}
}

// anomaly reads a row of what may look wrong.
func (p clusterParser) anomaly(row metric.Row) {
	get := row.Labels.Get
	switch row.Family.Name {
	case metric.DeviceHealthDisagreement:
		if row.Value == 1 {
			p.cluster.Disagreements = append(p.cluster.Disagreements, dra.DeviceID{Driver: get("driver"), Pool: get("pool"), Name: get("device")})
		}
	case metric.DevicesStranded:
		p.cluster.Stranded = append(p.cluster.Stranded, dra.StrandedDevices{Driver: get("driver"), Node: get("node"), Reason: dra.StrandedReason(get("reason")), Devices: row.Value})
	case metric.IdleNodeObstacles:
		for _, reason := range dra.RemovalObstacles() {
			if strings.HasPrefix(get("reason"), reason.String()) {
				p.cluster.KeptNodes = append(p.cluster.KeptNodes, dra.KeptNode{Node: get("node"), Reason: reason, Pods: int(row.Value)})
			}
		}
	case metric.WorkloadQueuedSinceTimestampSeconds:
		p.cluster.QueuedWorkloads = append(p.cluster.QueuedWorkloads, model.QueuedWorkload{
			Namespace: get("namespace"), Kind: get("workload_kind"), Name: get("workload"), Reason: get("reason"), Since: moment(row),
		})
	}
}

// counter reads a row of a counter of the exporter, or of its version.
func (p clusterParser) counter(row metric.Row) {
	get := row.Labels.Get
	switch row.Family.Name {
	case metric.PodTaintEvictions:
		p.cluster.Evictions = append(p.cluster.Evictions, model.Counter{Name: get("namespace"), Count: row.Value})
	case metric.ExporterClockAnomalies:
		p.cluster.ClockErrors = append(p.cluster.ClockErrors, model.Counter{Name: get("phase"), Count: row.Value})
	case metric.ExporterSeriesDropped:
		p.cluster.DroppedSeries = append(p.cluster.DroppedSeries, model.Counter{Name: get("family"), Count: row.Value})
	case metric.ExporterBuildInfo:
		p.cluster.Version = get("version")
	}
}
