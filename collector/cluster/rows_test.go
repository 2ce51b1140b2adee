package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// testSupply returns one pool of each kind: shared by several claims,
// incomplete, without slices, without a node.
func testSupply() *dra.Supply {
	return &dra.Supply{
		Version: 7,
		Pools: []*dra.PoolSupply{
			{Driver: "gpu.example.com", Pool: "node-a", Node: "node-a", Generation: 3, Slices: 2, Complete: true, Devices: [dra.DeviceStates]int{2, 1, 1}, Names: []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"},
				Capacity:   []dra.CapacitySupply{{Device: "gpu-1", Capacity: "memory", Total: 80e9, Consumed: 20e9}},
				Partitions: []dra.PartitionSupply{{Type: "1g.10gb", Devices: [dra.DeviceStates]int{1, 6, 0}}, {Type: "7g.80gb", Devices: [dra.DeviceStates]int{0, 0, 1}}}},
			{Driver: "gpu.example.com", Pool: "node-b", Node: "node-b", Generation: 1, Slices: 1, Devices: [dra.DeviceStates]int{0, 0, 4}},
			{Driver: "gpu.example.com", Pool: "node-c", Node: "node-c"},
			{Driver: "net.example.com", Pool: "fabric", Generation: 1, Slices: 1, Complete: true, Devices: [dra.DeviceStates]int{0, 16, 0}},
		},
		Classes: []dra.ClassSupply{
			{Class: "broken.example.com", Error: "does not compile"},
			{Class: "gpu.example.com", ExtendedResource: "example.com/gpu", Counted: true, Devices: [dra.DeviceStates]int{2, 1, 5}},
		},
		Evictions: []dra.RuleEviction{{Rule: "drain", InProgress: true, Reason: "PodsPendingEviction"}, {Rule: "look", Reason: "NoEffect"}},
		Taints:    []dra.TaintCount{{Driver: "gpu.example.com", Pool: "node-a", Taint: dra.Taint{Key: "example.com/unhealthy", Effect: "NoSchedule"}, Devices: 1}},
		Tainted: []dra.TaintedDevice{
			{Device: deviceOf("gpu-0"), Taints: []dra.Taint{{Key: "example.com/unhealthy", Effect: "NoSchedule"}}},
			{Device: deviceOf("gpu-2"), Taints: []dra.Taint{{Key: "example.com/unmonitored", Effect: "None"}}},
			{Device: deviceOf("gpu-3"), ByRules: []dra.Taint{{Key: "maintenance", Effect: "NoSchedule"}}},
		},
	}
}

// testHeadroom is what fits, as tests of rows and of rules see it.
func testHeadroom() *dra.Headroom {
	return &dra.Headroom{
		Shapes: []dra.ShapeHeadroom{
			{Class: "gpu.example.com", Shape: "1", Requests: 40, Claims: 17, Exact: true, Limit: dra.ReasonInsufficient, Pods: 15, PodsKnown: true},
			{Class: "gpu.example.com", Shape: "1 gpu.example.com + 1 net.example.com, same example.com/root", Claims: 9, Limit: dra.ReasonNone, Pods: 9, PodsKnown: true},
			{Class: "gpu.example.com", Shape: "8", Requests: 2, Claims: 0, Exact: true, Limit: dra.ReasonFragmented, PodsKnown: true},
		},
		Classes:       []dra.ClassFragmentation{{Class: "gpu.example.com", Ratio: 0.25}},
		StrandedKnown: true,
		Stranded: []dra.StrandedDevices{
			{Driver: "gpu.example.com", Node: "node-b", Reason: dra.StrandedPoolIncomplete, Devices: 4},
			{Driver: "gpu.example.com", Node: "node-c", Reason: dra.StrandedPartitionRest, Devices: 0.25},
			{Driver: "net.example.com", Reason: dra.StrandedRuleTaint, Devices: 2},
		},
		KeptNodes: []dra.KeptNode{{Node: "node-d", Reason: dra.RemovalNoController, Pods: 2}},
	}
}

// newFullHarness has one object of each kind, so that every family has a row.
func newFullHarness(t testing.TB) *harness {
	h := newHarness(t)
	h.live = false
	runs := pod("team/runs", 20, "gpu=held")
	runs.Node, runs.Health = "node-a", []dra.ResourceHealth{
		{PodClaim: "gpu", Request: "gpu", ResourceID: "gpu.example.com/node-a/gpu-0", Healthy: true},
		{PodClaim: "gpu", Request: "gpu", ResourceID: "gpu.example.com/node-a/gpu-1", Healthy: true},
		{PodClaim: "gpu", Request: "gpu", ResourceID: "gpu.example.com/node-a/gpu-2", Healthy: true},
		{PodClaim: "gpu", Request: "gpu", ResourceID: "gpu.example.com/node-a/gpu-3", Healthy: false},
	}
	runs = member(runs, "JobSet/train", "0", 2)
	pending, gated := member(pod("team/waits", 40, "gpu=wanted"), "JobSet/train", "0", 2), pod("other/gated", 30, "gpu<one")
	gated.Gated = true
	channel := member(pod("team/channel", 46, "channel<channel"), "JobSet/train", "0", 2)
	channel.Node = "node-a"
	ending := pod("team/ending", 15, "gpu=held")
	ending.Node, ending.Deleted, ending.Grace = "node-a", second(48), 30*time.Second
	h.update(ending, claim("team/held", 10, withDevices("gpu-0", "gpu-1", "gpu-2", "gpu-3"), reserved("runs")), runs,
		claim("team/wanted", 41), pending, pod("team/waits-too", 45, "gpu=wanted"), gated, channel, claim("team/unused", 5),
		claim("team/kept", 6, withDevices("gpu-7")), claim("team/orphan", 7, withDevices("gpu-8"), reserved("ghost")),
		claim("other/stuck", 8, deleted(50, "resource.kubernetes.io/delete-protection")))
	h.update(dra.KueueWorkload{Ref: dra.PodRef{Namespace: "team", Name: "job-next-1"}, UID: "k", Workload: dra.Workload{Kind: "Job", Name: "next", Queue: "q"}, Pods: 4, Claims: true,
		Waiting: &dra.KueueWaiting{Reason: "WaitingForQuota", Message: "too little", Since: second(35)}},
		dra.ComputeDomain{Ref: dra.PodRef{Namespace: "team", Name: "nvl"}, UID: "d", Created: second(3), Template: "channel", NumNodes: 3, Ready: true,
			Nodes: []dra.ComputeDomainNode{{Name: "node-a", Clique: "c.1", Ready: true}, {Name: "node-b", Clique: "c.1", Ready: true}, {Name: "node-c", Ready: true}}})
	h.update(dra.Autoscaling{Name: "team/e", Pod: pending.Ref, PodUID: pending.UID, Autoscaler: dra.ClusterAutoscaler, State: dra.AutoscalingDeclined, Message: "1 max node group size reached", Last: second(45)})
	h.update(dra.Node{Name: "node-a", Domains: dra.Domains{"c.1", "rack-7", "hall-2"}}, dra.Node{Name: "node-b", Domains: dra.Domains{"c.1", "rack-7", ""}, Release: dra.ReleaseLabel{Key: "nvidia.com/gpu.deploy.client", Value: "paused-for-driver-upgrade"}})
	h.facts.Headroom = testHeadroom()
	h.facts.Supply, h.facts.Work = testSupply(), &dra.DiagnosisWork{Costs: []dra.DiagnosisCost{{Namespace: "team", Took: 1500 * time.Millisecond}}, First: 3, Again: 20}
	h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(pending, "gpu", dra.ReasonInsufficient, "one is free", 9, 8, 8, 6, 1, 1)}
	h.step(time.Second)
	h.live = true
	runs.Evicted = true
	h.update(runs, dra.ComputeDomain{Ref: dra.PodRef{Namespace: "team", Name: "nvl"}, UID: "d", Created: second(3), Template: "channel", NumNodes: 3,
		Nodes: []dra.ComputeDomainNode{{Name: "node-a", Clique: "c.1", Ready: true}, {Name: "node-b", Clique: "c.1"}}})
	h.step(time.Second)
	return h
}

func TestPage(t *testing.T) {
	h := newFullHarness(t)
	for level, name := range metric.Levels() { // test/suites/prometheus evaluates rules, alerts and dashboards over them
		rows := metric.NewFilter(metric.Level(level), nil, nil).Rows(h.last.Rows())
		metrictest.CompareGolden(t, "testdata/levels/"+name+".txt", metrictest.Text(t, metric.NewPage(rows)))
	}
}

// Every family of the table has rows, except histograms and counters of dropped
// rows.
func TestEveryFamilyHasRows(t *testing.T) {
	shown := map[string]bool{}
	for _, row := range newFullHarness(t).last.Rows() {
		shown[row.Family.Name] = true
		if row.Family.Type == metric.Counter && row.Start.IsZero() && strings.HasPrefix(row.Family.Name, "dra_allocation") {
			t.Errorf("%s does not say when it began", row.Family.Name)
		}
	}
	except := []string{"dra_exporter_series_dropped_total", "dra_exporter_source_error_info", "dra_exporter_source_last_success_timestamp_seconds"}
	for _, f := range Families() {
		if !shown[f.Name] && f.Type != metric.Histogram && !slices.Contains(except, f.Name) {
			t.Errorf("no row of %s", f.Name)
		}
	}
}

// Without a collection, exactly the families that need it are absent.
func TestForbiddenKinds(t *testing.T) {
	const undiagnosed = "dra_exporter_undiagnosed_since_timestamp_seconds"
	pending := []string{"dra_claim_pending_since_timestamp_seconds", "dra_claim_pending_reason_info", "dra_claim_pending_requested_devices", "dra_claim_pending_candidates", "dra_claim_phase_since_timestamp_seconds", "dra_autoscaler_pending_pods", undiagnosed}
	pools := []string{"dra_pool_complete", "dra_pool_slices", "dra_pool_generation", "dra_capacity", "dra_device_taints"}
	states := []string{"dra_devices", "dra_partition_devices", "dra_class_devices", "dra_class_devices_down", "dra_capacity_consumed"}
	headroom := []string{"dra_class_headroom_claims", "dra_class_headroom_info", "dra_class_shape_claims", "dra_class_fragmentation_ratio"}
	rooms := []string{"dra_class_headroom_pods", "dra_devices_stranded", "dra_idle_node_obstacles"}
	states = append(append(states, headroom...), rooms...)
	topology := []string{"dra_node_topology_info", "dra_node_release_info", "dra_workload_topology_domains", "dra_workload_topology_least_domains"}
	pending = append(pending, topology...) // they need the same
	all := familiesOf(newFullHarness(t))
	for name, test := range map[string]struct {
		forbid func(*Synced)
		gone   []string
	}{
		"claims":  {func(s *Synced) { s.Claims = false }, slices.Concat(pending, states, []string{"dra_claims", "dra_claim_orphaned", "dra_claim_terminating_since_timestamp_seconds", "dra_device_health_disagreement", "dra_exporter_oversized_specs"})},
		"pods":    {func(s *Synced) { s.Pods = false }, slices.Concat(pending, rooms, []string{"dra_claim_orphaned", "dra_device_health_disagreement", "dra_pod_deletion_timestamp_seconds", "dra_pod_taint_evictions_total", "dra_workload_info", "dra_workload_pods", "dra_workload_min_pods", "dra_workload_queued_since_timestamp_seconds", "dra_compute_domain_pods", "dra_compute_domain_workload_info"})},
		"slices":  {func(s *Synced) { s.Slices = false }, slices.Concat(pools, states, []string{"dra_device_health_disagreement", "dra_claim_pending_requested_devices", "dra_claim_pending_candidates", undiagnosed, "dra_workload_topology_least_domains"})},
		"classes": {func(s *Synced) { s.Classes = false }, slices.Concat(headroom, rooms, []string{"dra_device_class_info", "dra_class_devices", "dra_class_devices_down", "dra_claim_pending_requested_devices", "dra_claim_pending_candidates", undiagnosed})},
		"nodes":   {func(s *Synced) { s.Nodes = false }, slices.Concat(topology, rooms, []string{"dra_class_devices_down"})},
		"events":  {func(s *Synced) { s.Events = false }, []string{"dra_autoscaler_pending_pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFullHarness(t)
			test.forbid(&h.facts.Synced)
			h.step(time.Second)
			left := familiesOf(h)
			for family := range all {
				if left[family] == slices.Contains(test.gone, family) {
					t.Errorf("%s: shown %v", family, left[family])
				}
			}
		})
	}
	t.Run("states that take pods", func(t *testing.T) {
		h := newFullHarness(t)
		h.facts.Synced.Pods = false
		h.step(time.Second)
		shown := map[string]bool{}
		for _, row := range h.last.Rows() {
			if row.Family.Name == "dra_claims" {
				shown[row.Labels.Get("state")] = true
			}
		}
		if got := slices.Sorted(maps.Keys(shown)); !slices.Equal(got, []string{"allocated", "reserved", "terminating"}) {
			t.Errorf("states %v", got)
		}
	})
}

func familiesOf(h *harness) map[string]bool {
	shown := map[string]bool{}
	for _, row := range h.last.Rows() {
		shown[row.Family.Name] = true
	}
	return shown
}

func TestFamilies(t *testing.T) {
	if err := metrictest.Validate(Families()); err != nil {
		t.Error(err)
	}
}

// TestOwnerlessWorkloads: below the level full, a pod without an owner is no workload,
// unless a queue holds it: the table of queues joins the family.
func TestOwnerlessWorkloads(t *testing.T) {
	families := Families()
	i := slices.IndexFunc(families, func(f *metric.Family) bool { return f.Name == "dra_workload_info" })
	if i < 0 {
		t.Fatal("there is no dra_workload_info")
	}
	row := func(kind, name, queue string) metric.Row {
		return metric.Row{Family: families[i], Labels: metric.NewLabels(families[i].Labels, "lab", kind, name, queue), Value: 1}
	}
	var shown []string
	for _, r := range metric.NewFilter(metric.LevelDefault, nil, nil).Rows([]metric.Row{row("Job", "train", ""), row("Pod", "shell", ""), row("Pod", "batch", "night")}) {
		shown = append(shown, r.Labels.Get("workload"))
	}
	if want := []string{"train", "batch"}; !slices.Equal(shown, want) {
		t.Errorf("shown are %q, want %q", shown, want)
	}
}
