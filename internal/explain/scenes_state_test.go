package explain_test

import (
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// stateScenes do not wait.
func stateTextCases() map[string]textCase {
	serving := clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-b", Name: "serve"}
	servingPod := clusterread.Subject{Kind: clusterread.KindPod, Namespace: "team-b", Name: "serve-0"}
	with := func(change func(*dra.ClaimLifecycle, *dra.PodLifecycle)) clusterread.Facts {
		f := facts(2)
		lifecycle := dra.ClaimLifecycle{
			Ref: dra.ClaimRef{Namespace: "team-b", Name: "serve"}, UID: "claim-serve", Created: ago(3 * time.Hour), Classes: []string{"gpu.example.com"},
			Allocated: true, AllocatedAt: ago(3*time.Hour - time.Second), Node: "node-a",
			Results:     []dra.AllocatedDevice{{Request: "gpu", Class: "gpu.example.com", Device: gpu("node-a", "gpu-0")}},
			ReservedFor: []dra.Consumer{{Resource: "pods", Name: "serve-0", UID: "serve-0"}},
			Finalizers:  []string{"resource.kubernetes.io/delete-protection"},
		}
		p := dra.PodLifecycle{
			Ref: dra.PodRef{Namespace: "team-b", Name: "serve-0"}, UID: "serve-0", Created: ago(3 * time.Hour), Node: "node-a",
			Claims: []dra.PodClaim{{Name: "gpu", Claim: "serve"}},
		}
		change(&lifecycle, &p)
		f.Objects.Apply(dra.Change{Claim: &lifecycle})
		f.Objects.Apply(dra.Change{Pod: &p, Gone: p.UID == ""})
		return f
	}
	gone := func(p *dra.PodLifecycle) { p.UID = "" }
	preparing := with(func(_ *dra.ClaimLifecycle, p *dra.PodLifecycle) { p.Scheduled = ago(10 * time.Minute) })
	preparing.Phases = []*model.Phase{{Pod: dra.PodRef{Namespace: "team-b", Name: "serve-0"}, Claim: "serve", Name: "preparation", Since: ago(10 * time.Minute)},
		{Pod: dra.PodRef{Namespace: "team-b", Name: "serve-1"}, Claim: "serve", Name: "start", Since: ago(time.Hour)}}
	preparing.Objects.Apply(dra.Change{Warning: &dra.Warning{Name: "team-b/serve-0.1", Kind: dra.WarningPreparation, Pod: dra.PodRef{Namespace: "team-b", Name: "serve-0"}, PodUID: "serve-0",
		Message: "Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered", Count: 12, Last: ago(time.Minute)}})
	unprepared := with(func(c *dra.ClaimLifecycle, p *dra.PodLifecycle) {
		c.NoPreparation, p.Scheduled = true, ago(10*time.Minute)
	})
	unprepared.Phases = []*model.Phase{{Pod: dra.PodRef{Namespace: "team-b", Name: "serve-0"}, Claim: "serve", Name: "start", Since: ago(10 * time.Minute)}}
	takes := with(func(_ *dra.ClaimLifecycle, p *dra.PodLifecycle) {
		p.Started = ago(time.Hour)
		p.Allocatable = []dra.ClaimAllocatable{
			{Claim: "serve", Resources: []dra.AllocatableAmount{{Resource: "cpu", Devices: "4"}, {Resource: "memory", Devices: "8Gi", PerPod: "100Mi", PerContainer: "50Mi"}}},
			{Claim: "other", Resources: []dra.AllocatableAmount{{Resource: "hugepages-2Mi", PerContainer: "2Mi"}}},
		}
	})
	return map[string]textCase{
		"node-allocatable":     {serving, takes},
		"node-allocatable-pod": {servingPod, takes},
		"no-preparation":       {servingPod, unprepared},
		"reserved":             {serving, facts(2)},
		"running-pod":          {servingPod, facts(2)},
		"reserved-preparation": {serving, preparing},
		"starting-pod":         {servingPod, preparing},
		"unused": {serving, with(func(c *dra.ClaimLifecycle, p *dra.PodLifecycle) {
			c.Allocated, c.AllocatedAt, c.Node, c.Results, c.ReservedFor = false, time.Time{}, "", nil, nil
			gone(p)
		})},
		"allocated-unreserved": {serving, with(func(c *dra.ClaimLifecycle, p *dra.PodLifecycle) { c.ReservedFor = nil; gone(p) })},
		"orphaned":             {serving, with(func(_ *dra.ClaimLifecycle, p *dra.PodLifecycle) { gone(p) })},
		"terminating-in-use":   {serving, with(func(c *dra.ClaimLifecycle, _ *dra.PodLifecycle) { c.Deleted = ago(time.Hour) })},
		"terminating-foreign": {serving, with(func(c *dra.ClaimLifecycle, p *dra.PodLifecycle) {
			c.Deleted, c.ReservedFor, c.Finalizers = ago(time.Hour), nil, []string{"audit.example.com/record", "resource.kubernetes.io/delete-protection"}
			gone(p)
		})},
		"binding-failed": {serving, with(func(c *dra.ClaimLifecycle, p *dra.PodLifecycle) { c.Binding, p.Node = dra.BindingFailed, "" })},
		"group": {serving, with(func(c *dra.ClaimLifecycle, p *dra.PodLifecycle) {
			c.ReservedFor, c.MadeFor = []dra.Consumer{{Resource: "podgroups", Name: "gang", UID: "gang"}}, dra.Consumer{Resource: "podgroups", Name: "gang", UID: "gang"}
			p.Started, c.Results[0].AdminAccess = ago(time.Hour), true
		})},
	}
}
