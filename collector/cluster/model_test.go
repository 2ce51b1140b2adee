package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// TestModelAgreesWithRows compares the model of each step of random histories with the
// rows of that step: what both have must be the same, and both lack the same while a
// collection cannot be read.
func TestModelAgreesWithRows(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	seen := make(map[string]int)
	for seed := range seeds {
		o := newRandomCluster(seed, 7)
		h := newHarness(t)
		for range 60 {
			for range 1 + o.random.IntN(4) {
				o.change(h)
			}
			o.changeFacts(h)
			h.step(time.Duration(o.random.IntN(3000)) * time.Millisecond)
			compareModel(t, &h.last, seen)
		}
	}
	compareModel(t, &newFullHarness(t).last, seen)
	for seed := range seeds / 4 {
		c := newRandomHistory(t, seed, map[string]int{})
		c.afterStep = func() { compareModel(t, &c.last, seen) }
		c.off["kubelet"] = 10 * time.Minute
		c.run(c.outages(true))
	}
	for name := range modelFamilies() {
		if seen[name] == 0 && name != metric.ExporterSeriesDropped {
			t.Errorf("no history has %s", name)
		}
	}
}

// changeFacts changes at random what is read, supplied and diagnosed.
func (o *randomCluster) changeFacts(h *harness) {
	synced := allSynced()
	for _, flag := range []*bool{&synced.Claims, &synced.Pods, &synced.Slices, &synced.Classes, &synced.Nodes, &synced.Events} {
		*flag = o.random.IntN(10) > 0
	}
	h.facts.Synced = synced
	if o.random.IntN(3) == 0 {
		h.facts.Supply, h.facts.Headroom = randomSupply(o.random), randomHeadroom(o.random)
	}
	h.facts.Sources = nil
	for _, name := range []string{"pods", "resourceclaims", "resourceslices"} {
		status := source.Status{Name: name, Up: o.random.IntN(10) > 0}
		if !status.Up {
			status.Reason = source.ReasonPermission
		}
		if o.random.IntN(4) > 0 {
			status.LastSuccess = h.now.Add(-time.Duration(o.random.IntN(9999)) * time.Millisecond)
		}
		h.facts.Sources = append(h.facts.Sources, status)
	}
	h.facts.Diagnoses = o.diagnoses()
	for i := range h.facts.Diagnoses {
		if d := &h.facts.Diagnoses[i]; o.random.IntN(3) == 0 { // a request twice, and one for all devices
			d.Requests = append(d.Requests, dra.RequestStages{Request: d.Requests[0].Request, Count: 7}, dra.RequestStages{Request: "all"})
		}
	}
}

// randomSupply returns a supply with pools and classes in any state; a pool may have a
// device twice.
func randomSupply(random *rand.Rand) *dra.Supply {
	supply := testSupply()
	for _, pool := range supply.Pools {
		pool.Slices, pool.Complete = random.IntN(3), random.IntN(3) > 0
		for range random.IntN(4) {
			pool.Capacity = append(pool.Capacity, dra.CapacitySupply{
				Device: "gpu-" + strconv.Itoa(random.IntN(2)), Capacity: "memory", Total: float64(random.IntN(9)), Consumed: float64(random.IntN(9)),
			})
		}
	}
	for i := range supply.Classes {
		class := &supply.Classes[i]
		class.Counted = random.IntN(4) > 0
		for reason := range class.Down {
			class.Down[reason] = random.IntN(3)
		}
	}
	return supply
}

// randomHeadroom returns a headroom, nil at times.
func randomHeadroom(random *rand.Rand) *dra.Headroom {
	if random.IntN(4) == 0 {
		return nil
	}
	headroom := testHeadroom()
	headroom.StrandedKnown = random.IntN(3) > 0
	for i := range headroom.Shapes {
		headroom.Shapes[i].Claims = random.IntN(5)
	}
	return headroom
}

// TestModelIsLimited checks that the lists of objects have the limit of series, and that
// the model counts which rows were cut.
func TestModelIsLimited(t *testing.T) {
	h := newHarness(t)
	h.state = NewState(Config{MaxSeries: 2})
	for _, name := range []string{"a/0", "a/1", "a/2"} {
		h.update(pod(name, 10, "gpu<one"))
	}
	h.step(time.Second)
	h.step(time.Second)
	if len(h.last.Model.Pending) != 2 {
		t.Errorf("the model has %d references", len(h.last.Model.Pending))
	}
	at := slices.IndexFunc(h.last.Model.DroppedSeries, func(c model.Counter) bool { return c.Name == metric.ClaimPendingReasonInfo })
	if at < 0 || h.last.Model.DroppedSeries[at].Count != 2 {
		t.Errorf("the model has the dropped series %v", h.last.Model.DroppedSeries)
	}
	lines := modelLines(h.last.Model)
	for _, line := range modelRowLines(h.last.Rows()) {
		if !slices.Contains(lines, line) {
			t.Errorf("the model does not have %s", line)
		}
	}
}

// TestModelIsShared checks that what has not changed is the same in memory in the next
// model.
func TestModelIsShared(t *testing.T) {
	h := newFullHarness(t)
	h.update(claim("team/more", 12, deleted(50, "keep")))
	h.step(time.Second)
	first := h.last.Model
	h.update(claim("other/new", 60)) // another count of claims alone
	h.step(time.Second)
	second := h.last.Model
	for name, same := range map[string]bool{
		"pending":       sameList(first.Pending, second.Pending),
		"phases":        sameList(first.Phases, second.Phases),
		"pools":         sameList(first.Pools, second.Pools),
		"classes":       sameList(first.Classes, second.Classes),
		"taints":        sameList(first.Taints, second.Taints),
		"shapes":        sameList(first.Shapes, second.Shapes),
		"stranded":      sameList(first.Stranded, second.Stranded),
		"kept nodes":    sameList(first.KeptNodes, second.KeptNodes),
		"domains":       sameList(first.ComputeDomains, second.ComputeDomains),
		"queued":        sameList(first.QueuedWorkloads, second.QueuedWorkloads),
		"terminating":   sameList(first.TerminatingClaims, second.TerminatingClaims),
		"orphaned":      sameList(first.OrphanedClaims, second.OrphanedClaims),
		"deleted pods":  sameList(first.DeletedPods, second.DeletedPods),
		"disagreements": sameList(first.Disagreements, second.Disagreements),
		"evictions":     sameList(first.Evictions, second.Evictions),
		"clock errors":  sameList(first.ClockErrors, second.ClockErrors),
		"autoscalers":   sameList(first.Autoscalers, second.Autoscalers),
		"failures":      sameList(first.Failures, second.Failures),
		"fragmentation": sameList(first.Fragmentation, second.Fragmentation),
		"rules":         sameList(first.RuleEvictions, second.RuleEvictions),
		"oversized":     sameList(first.Oversized, second.Oversized),
		"nodes":         sameList(first.NodeDomains, second.NodeDomains),
		"releases":      sameList(first.NodeReleases, second.NodeReleases),
		"domain users":  sameList(first.DomainWorkloads, second.DomainWorkloads),
		"workloads":     sameList(first.Workloads, second.Workloads),
		"health":        sameList(first.Health, second.Health),
		"costs":         sameList(first.DiagnosisSeconds, second.DiagnosisSeconds),
		"queue":         sameList(first.QueuedDiagnoses, second.QueuedDiagnoses),
	} {
		if !same {
			t.Errorf("the list of %s is another one, or empty", name)
		}
	}
	others := 0
	for _, count := range second.Claims {
		if !slices.Contains(first.Claims, count) {
			others++
		}
	}
	if others != 1 || len(first.Claims) < 2 {
		t.Errorf("%d of %d counts of claims are others", others, len(second.Claims))
	}
}

// sameList reports whether two lists that are not empty are one in memory.
func sameList[T any](a, b []T) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// compareModel compares the model of a snapshot with its rows, and counts these.
func compareModel(t *testing.T, snapshot *Snapshot, seen map[string]int) {
	t.Helper()
	got, want := modelLines(snapshot.Model), modelRowLines(snapshot.Rows())
	if !slices.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Fatalf("the model has %q, the rows %q", got[at:min(at+3, len(got))], want[at:min(at+3, len(want))])
	}
	for _, row := range snapshot.Rows() {
		seen[row.Family.Name]++
	}
}

// modelFamilies are the families whose rows the model has as well, each with the labels
// that are compared: all that the pages show.
func modelFamilies() map[string][]string {
	reference := func(more ...string) []string { return append([]string{"namespace", "pod", "pod_claim"}, more...) }
	pool, capacity := []string{"driver", "pool", "node"}, []string{"driver", "pool", "device", "capacity"}
	domain := []string{"namespace", "compute_domain"}
	return map[string][]string{
		metric.ClaimPendingSinceTimestampSeconds: reference("resourceclaim", "deviceclass"),
		metric.ClaimPendingReasonInfo:            reference("reason"),
		metric.ClaimPendingRequestedDevices:      reference("request"),
		metric.ClaimPendingCandidates:            reference("request", "stage"),
		metric.ClaimPhaseSinceTimestampSeconds:   {"namespace", "pod", "resourceclaim", "phase"},
		metric.Claims:                            {"namespace", "deviceclass", "state"},

		metric.DeviceClassInfo:     {"deviceclass", "extended_resource"},
		metric.ClassDevices:        {"deviceclass", "state"},
		metric.ClassDevicesDown:    {"deviceclass", "reason"},
		metric.ClassHeadroomClaims: {"deviceclass", "shape"},
		metric.ClassHeadroomInfo:   {"deviceclass", "shape", "exact", "limit"},
		metric.Devices:             append(pool, "state"),
		metric.PoolComplete:        pool,
		metric.PoolSlices:          pool,
		metric.Capacity:            capacity,
		metric.CapacityConsumed:    capacity,
		metric.DeviceTaints:        {"driver", "pool", "key", "effect"},
		metric.DevicesStranded:     {"driver", "node", "reason"},
		metric.IdleNodeObstacles:   {"node", "reason"},

		metric.ClaimTerminatingSinceTimestampSeconds: {"namespace", "resourceclaim"},
		metric.ClaimOrphaned:                         {"namespace", "resourceclaim"},
		metric.PodDeletionTimestampSeconds:           {"namespace", "pod", "node"},
		metric.DeviceHealthDisagreement:              {"driver", "pool", "device"},
		metric.PodTaintEvictions:                     {"namespace"},
		metric.ExporterClockAnomalies:                {"phase"},
		metric.ExporterSeriesDropped:                 {"family"},
		metric.WorkloadQueuedSinceTimestampSeconds:   {"namespace", "workload_kind", "workload", "reason"},

		metric.ComputeDomainReady:                         domain,
		metric.ComputeDomainRequestedNodes:                domain,
		metric.ComputeDomainNodes:                         append(domain, "clique", "state"),
		metric.ComputeDomainNotReadySinceTimestampSeconds: domain,
		metric.ComputeDomainPods:                          domain,

		metric.ExporterBuildInfo:                         {"version"},
		metric.ExporterSourceUp:                          {"source"},
		metric.ExporterSourceErrorInfo:                   {"source", "reason"},
		metric.ExporterSourceLastSuccessTimestampSeconds: {"source"},
	}
}

// modelRowLines are the rows of what the model has, sorted. It does not have the devices
// on whose health driver and kubelet agree.
func modelRowLines(rows []metric.Row) []string {
	var lines []string
	families := modelFamilies()
	for _, row := range rows {
		name := row.Family.Name
		labels, ok := families[name]
		if !ok || row.Value == 0 && name == metric.DeviceHealthDisagreement {
			continue
		}
		var values []string
		for _, label := range labels {
			values = append(values, row.Labels.Get(label))
		}
		lines = append(lines, modelLine(name, row.Value, values...))
	}
	slices.Sort(lines)
	return lines
}

func modelLine(family string, value float64, labels ...string) string {
	return fmt.Sprintf("%s %q %v", family, labels, value)
}

// modelLineList collects the lines of a model.
type modelLineList []string

func (l *modelLineList) add(family string, value float64, labels ...string) {
	*l = append(*l, modelLine(family, value, labels...))
}

// addTime adds a time, which rows have in seconds.
func (l *modelLineList) addTime(family string, value time.Time, labels ...string) {
	l.add(family, float64(value.Unix()), labels...)
}

func (l *modelLineList) addDevices(family string, devices [dra.DeviceStates]int, labels ...string) {
	for state := range dra.DeviceState(dra.DeviceStates) {
		l.add(family, float64(devices[state]), append(labels, state.String())...)
	}
}

func (l *modelLineList) addCounters(family string, counters []model.Counter) {
	for _, counter := range counters {
		l.add(family, counter.Count, counter.Name)
	}
}

// modelLines are the lines of a model, sorted.
func modelLines(c *model.Cluster) []string {
	var l modelLineList
	for _, ref := range c.Pending {
		l.addPending(ref, c.NodesKnown)
	}
	for _, phase := range c.Phases {
		l.addTime(metric.ClaimPhaseSinceTimestampSeconds, phase.Since, phase.Pod.Namespace, phase.Pod.Name, phase.Claim, phase.Name)
	}
	for _, count := range c.Claims {
		for state, claims := range count.States {
			if claims.Known {
				l.add(metric.Claims, claims.Value, count.Namespace, count.Class, model.ClaimState(state).String())
			}
		}
	}
	l.addSupply(c)
	l.addDomains(c.ComputeDomains)
	l.addAnomalies(c)
	l.add(metric.ExporterBuildInfo, 1, c.Version)
	for _, status := range c.Sources {
		l.add(metric.ExporterSourceUp, flag(status.Up), status.Name)
		if status.Reason != source.ReasonNone {
			l.add(metric.ExporterSourceErrorInfo, 1, status.Name, string(status.Reason))
		}
		if !status.LastSuccess.IsZero() {
			l.add(metric.ExporterSourceLastSuccessTimestampSeconds, float64(status.LastSuccess.Wall.UnixMilli())/1000, status.Name)
		}
	}
	slices.Sort(l)
	return l
}

func (l *modelLineList) addPending(ref *model.PendingRef, nodes bool) {
	key := []string{ref.Pod.Namespace, ref.Pod.Name, ref.PodClaim}
	with := func(more ...string) []string { return append(key[:3:3], more...) }
	l.addTime(metric.ClaimPendingSinceTimestampSeconds, ref.Since, with(ref.Claim, ref.DeviceClass)...)
	l.add(metric.ClaimPendingReasonInfo, 1, with(string(ref.Reason))...)
	if ref.Diagnosis == nil {
		return
	}
	for i, f := range ref.Diagnosis.Requests {
		if slices.ContainsFunc(ref.Diagnosis.Requests[:i], func(other dra.RequestStages) bool { return other.Request == f.Request }) {
			continue
		}
		if f.Count > 0 {
			l.add(metric.ClaimPendingRequestedDevices, float64(f.Count), with(f.Request)...)
		}
		for stage := range dra.Stage(dra.Stages) {
			if stage != dra.StageBestNode || nodes {
				l.add(metric.ClaimPendingCandidates, float64(f.Left[stage]), with(f.Request, stage.String())...)
			}
		}
	}
}

func (l *modelLineList) addSupply(c *model.Cluster) {
	for _, pool := range c.Pools {
		if !pool.Complete {
			l.add(metric.PoolComplete, 0, pool.Driver, pool.Pool, pool.Node)
			l.add(metric.PoolSlices, float64(pool.Slices), pool.Driver, pool.Pool, pool.Node)
		}
		if c.DevicesKnown && pool.Slices > 0 {
			l.addDevices(metric.Devices, pool.Devices, pool.Driver, pool.Pool, pool.Node)
		}
		for _, capacity := range pool.DistinctCapacities {
			l.add(metric.Capacity, capacity.Total, pool.Driver, pool.Pool, capacity.Device, capacity.Capacity)
			if c.DevicesKnown {
				l.add(metric.CapacityConsumed, capacity.Consumed, pool.Driver, pool.Pool, capacity.Device, capacity.Capacity)
			}
		}
	}
	for _, class := range c.Classes {
		l.add(metric.DeviceClassInfo, 1, class.Class, class.ExtendedResource)
		if !c.DevicesKnown || !class.Counted {
			continue
		}
		l.addDevices(metric.ClassDevices, class.Devices, class.Class)
		for reason := range dra.DownReason(dra.DownReasons) {
			if c.NodesKnown {
				l.add(metric.ClassDevicesDown, float64(class.Down[reason]), class.Class, reason.String())
			}
		}
	}
	for _, shape := range c.Shapes {
		l.add(metric.ClassHeadroomClaims, float64(shape.Claims), shape.Class, shape.Shape)
		l.add(metric.ClassHeadroomInfo, 1, shape.Class, shape.Shape, strconv.FormatBool(shape.Exact), string(shape.Limit))
	}
	for _, count := range c.Taints {
		l.add(metric.DeviceTaints, float64(count.Devices), count.Driver, count.Pool, count.Taint.Key, count.Taint.Effect)
	}
	for _, stranded := range c.Stranded {
		l.add(metric.DevicesStranded, stranded.Devices, stranded.Driver, stranded.Node, string(stranded.Reason))
	}
	for _, node := range c.KeptNodes {
		l.add(metric.IdleNodeObstacles, float64(node.Pods), node.Node, node.Reason.String())
	}
}

func (l *modelLineList) addDomains(domains []model.ComputeDomain) {
	for _, d := range domains {
		key := []string{d.Ref.Namespace, d.Ref.Name}
		l.add(metric.ComputeDomainReady, flag(d.Ready), key...)
		if d.NumNodes > 0 {
			l.add(metric.ComputeDomainRequestedNodes, float64(d.NumNodes), key...)
		}
		counts := map[[2]string]float64{}
		for _, node := range d.Nodes {
			counts[[2]string{node.Clique, map[bool]string{true: "ready", false: "not_ready"}[node.Ready]}]++
		}
		for group, count := range counts {
			l.add(metric.ComputeDomainNodes, count, append(key[:2:2], group[:]...)...)
		}
		if !d.NotReadySince.IsZero() {
			l.addTime(metric.ComputeDomainNotReadySinceTimestampSeconds, d.NotReadySince, key...)
		}
		if d.Pods.Known {
			l.add(metric.ComputeDomainPods, d.Pods.Value, key...)
		}
	}
}

func (l *modelLineList) addAnomalies(c *model.Cluster) {
	for _, claim := range c.TerminatingClaims {
		l.addTime(metric.ClaimTerminatingSinceTimestampSeconds, claim.Since, claim.Ref.Namespace, claim.Ref.Name)
	}
	for _, ref := range c.OrphanedClaims {
		l.add(metric.ClaimOrphaned, 1, ref.Namespace, ref.Name)
	}
	for _, pod := range c.DeletedPods {
		l.addTime(metric.PodDeletionTimestampSeconds, pod.Due, pod.Pod.Namespace, pod.Pod.Name, pod.Node)
	}
	for _, device := range c.Disagreements {
		l.add(metric.DeviceHealthDisagreement, 1, device.Driver, device.Pool, device.Name)
	}
	for _, w := range c.QueuedWorkloads {
		l.addTime(metric.WorkloadQueuedSinceTimestampSeconds, w.Since, w.Namespace, w.Kind, w.Name, w.Reason)
	}
	l.addCounters(metric.PodTaintEvictions, c.Evictions)
	l.addCounters(metric.ExporterClockAnomalies, c.ClockErrors)
	l.addCounters(metric.ExporterSeriesDropped, c.DroppedSeries)
}
