package explain_test

import (
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// textCases returns the cases with golden texts, by the name of the file.
func textCases() map[string]textCase {
	all := deviceTextCases()
	for name, one := range otherTextCases() {
		all[name] = one
	}
	for name, one := range stateTextCases() {
		all[name] = one
	}
	return all
}

func deviceTextCases() map[string]textCase {
	took := func(stage dra.Stage, count int, because string, examples ...dra.DeviceID) dra.Removal {
		return dra.Removal{Request: "gpus", Stage: stage, Count: count, Because: because, Examples: examples}
	}
	tainted := facts(2, pendingRef(dra.ReasonTainted, "request gpus asks for 2 devices; 4 of 4 devices that match have taints which it does not tolerate",
		diagnosis(dra.ReasonTainted, 2, [dra.Stages]int{12, 8, 4}, dra.Detail{Removed: []dra.Removal{
			took(dra.StageClass, 4, "class gpu.example.com", dra.DeviceID{Driver: "nic.example.com", Pool: "node-a", Name: "nic-0"}),
			took(dra.StageSelectors, 4, `device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0`, gpu("node-b", "gpu-0")),
			{Request: "gpus", Stage: dra.StageUntainted, Count: 4, Because: "taint maintenance=planned:NoSchedule of the rule maintenance", Rule: "maintenance",
				Taint: &dra.Taint{Key: "maintenance", Value: "planned", Effect: "NoSchedule"}, Examples: []dra.DeviceID{gpu("node-a", "gpu-0"), gpu("node-a", "gpu-1")}},
			{Request: "gpus", Stage: dra.StageUntainted, Count: 1, Because: "taint lost:NoExecute of the driver",
				Taint: &dra.Taint{Key: "lost", Effect: "NoExecute"}, Examples: []dra.DeviceID{gpu("node-a", "gpu-1")}},
		}})))
	tainted.Supply = &dra.Supply{Evictions: []dra.RuleEviction{
		{Rule: "maintenance", InProgress: true, Reason: "PodsPendingEviction", Message: "3 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller."},
		{Rule: "other", Reason: "NotStarted"},
	}}
	incomplete := facts(4, pendingRef(dra.ReasonPoolIncomplete, "request gpus asks for 4 devices; 2 can be allocated, and 4 more once all slices of their pools are published",
		diagnosis(dra.ReasonPoolIncomplete, 4, [dra.Stages]int{8, 8, 8, 8, 2, 2}, dra.Detail{})))
	incomplete.Supply = &dra.Supply{Pools: []*dra.PoolSupply{
		{Driver: "gpu.example.com", Pool: "node-a", Node: "node-a", Generation: 3, Slices: 1, Complete: true},
		{Driver: "gpu.example.com", Pool: "node-b", Node: "node-b", Generation: 7, Slices: 1},
	}}
	constrained := facts(2, pendingRef(dra.ReasonConstraints, "the claim's constraints leave no node on which its requests can be allocated together",
		diagnosis(dra.ReasonConstraints, 2, [dra.Stages]int{8, 8, 8, 8, 4, 2}, dra.Detail{Holders: []dra.Holder{serve}, Nodes: []dra.NodeDiagnosis{{Node: "node-b", Free: map[string]int{"gpus": 2}, Message: "cannot allocate all claims"}}})))
	constrainedSpec := spec(2)
	constrainedSpec.Requests[0].Derived = map[string]string{"example.com/side": `device.attributes["gpu.example.com"].numa % 2`}
	constrainedSpec.Constraints = []clusterread.Constraint{{Requests: []string{"gpus"}, MatchAttribute: "resource.kubernetes.io/pcieRoot"}, {DistinctAttribute: "gpu.example.com/socket"}}
	constrained.Claims[dra.ClaimRef{Namespace: "team-a", Name: "train-0-gpus-x7k2p"}] = constrainedSpec
	broken := diagnosis(dra.ReasonNoMatchingDevice, 2, [dra.Stages]int{12, 8}, dra.Detail{Selectors: []dra.SelectorError{
		{Where: "request gpus", Expression: `device.attributes["gpu.example.com"].memory > 40`, Message: "ERROR: <input>:1:48: found no matching overload for '_>_'"},
		{Where: "class gpu.example.com", Expression: `device.attributes["gpu.example.com"].model == "H100"`, Device: "gpu.example.com/node-b/gpu-0", Message: "no such key: model"},
	}})
	return map[string]textCase{
		"insufficient-devices": {claim, facts(4, pendingRef(dra.ReasonInsufficient, "request gpus asks for 4 devices; of 4 devices that match and have no untolerated taint, 2 can still be allocated",
			diagnosis(dra.ReasonInsufficient, 4, [dra.Stages]int{12, 8, 4, 4, 2, 2}, dra.Detail{
				Removed: []dra.Removal{
					took(dra.StageClass, 4, "class gpu.example.com", dra.DeviceID{Driver: "nic.example.com", Pool: "node-a", Name: "nic-0"}),
					took(dra.StageFree, 2, "held", gpu("node-a", "gpu-0"), gpu("node-a", "gpu-1")),
				},
				Holders: []dra.Holder{leftover, serve}, HoldersInAll: 37, OnOneNode: map[string]int{"gpus": 4},
				Nodes: []dra.NodeDiagnosis{{Node: "node-a", Free: map[string]int{"gpus": 2}, Message: "2 of 4 devices are free"}},
			})))},
		"too-few-published": {pod, facts(9, pendingRef(dra.ReasonInsufficient, "request gpus asks for 9 devices, and only 8 of the 8 published match",
			diagnosis(dra.ReasonInsufficient, 9, [dra.Stages]int{8, 8, 8, 8, 6, 6}, dra.Detail{Holders: []dra.Holder{serve}})))},
		"fragmented": {pod, facts(4, pendingRef(dra.ReasonFragmented, "request gpus asks for 4 devices; 5 are free, but no node has more than 3 of them",
			diagnosis(dra.ReasonFragmented, 4, [dra.Stages]int{12, 12, 8, 8, 5, 3}, dra.Detail{
				Holders: []dra.Holder{serve},
				Nodes:   []dra.NodeDiagnosis{{Node: "node-a", Free: map[string]int{"gpus": 3}}, {Node: "node-b", Free: map[string]int{"gpus": 2}}},
			})))},
		"tainted":                   {pod, tainted},
		"pool-incomplete":           {pod, incomplete},
		"constraints-unsatisfiable": {pod, constrained},
		"broken-selector":           {pod, facts(2, pendingRef(dra.ReasonNoMatchingDevice, "request gpus: the selector of request gpus does not compile: found no matching overload for '_>_'", broken))},
		"no-matching-device": {claim, facts(2, pendingRef(dra.ReasonNoMatchingDevice, "request gpus asks for 2 devices, and its selectors match none of 8 devices of class gpu.example.com",
			diagnosis(dra.ReasonNoMatchingDevice, 2, [dra.Stages]int{12, 8}, dra.Detail{})))},
		"class-selects-nothing": {pod, facts(2, pendingRef(dra.ReasonNoMatchingDevice, "request gpus asks for 2 devices, and class gpu.example.com selects none of 12 devices",
			diagnosis(dra.ReasonNoMatchingDevice, 2, [dra.Stages]int{12}, dra.Detail{})))},
		"nothing-published": {pod, facts(2, pendingRef(dra.ReasonNoMatchingDevice, "request gpus asks for 2 devices, and no device is published",
			diagnosis(dra.ReasonNoMatchingDevice, 2, [dra.Stages]int{}, dra.Detail{})))},
		"no-device-class": {pod, noClass()},
		"prioritized":     {pod, prioritized()},
		"extended":        {clusterread.Subject{Kind: clusterread.KindPod, Namespace: "team-a", Name: "infer"}, extended()},
	}
}

func noClass() clusterread.Facts {
	w := pendingRef(dra.ReasonNoDeviceClass, "request gpus: device class gpus.example.com does not exist",
		diagnosis(dra.ReasonNoDeviceClass, 2, [dra.Stages]int{12}, dra.Detail{}))
	w.DeviceClass, w.Diagnosis.Requests[0].Class = "gpus.example.com", "gpus.example.com"
	f := facts(2, w)
	wrong := spec(2)
	wrong.Requests[0].DeviceClass = "gpus.example.com"
	f.Claims[dra.ClaimRef{Namespace: "team-a", Name: "train-0-gpus-x7k2p"}] = wrong
	return f
}

// prioritized requests two large devices or else four small ones.
func prioritized() clusterread.Facts {
	w := pendingRef(dra.ReasonInsufficient, "request gpus/small asks for 4 devices; of 8 devices that match and have no untolerated taint, 1 can still be allocated", nil)
	w.DeviceClass = dra.DeviceClassMultiple
	w.Diagnosis = &dra.Diagnosis{Reason: dra.ReasonInsufficient, Requests: []dra.RequestStages{
		{Request: "gpus/large", Class: "large.example.com", Count: 2, Left: [dra.Stages]int{12, 4, 4, 4, 0, 0}},
		{Request: "gpus/small", Class: "small.example.com", Count: 4, Left: [dra.Stages]int{12, 8, 8, 8, 1, 1}},
	}}
	f := facts(2, w)
	f.Claims[dra.ClaimRef{Namespace: "team-a", Name: "train-0-gpus-x7k2p"}] = clusterread.Spec{Requests: []clusterread.Request{{Name: "gpus", FirstAvailable: []clusterread.Request{
		{Name: "gpus/large", DeviceClass: "large.example.com", Count: 2, Tolerations: []string{"maintenance:NoSchedule", "*=:*"}},
		{Name: "gpus/small", DeviceClass: "small.example.com", Count: 4, Capacity: map[string]string{"memory": "10Gi", "compute": "2"}},
	}}}}
	return f
}

// extended is a pod that requests devices as an extended resource.
func extended() clusterread.Facts {
	f := facts(2, cluster.PendingRef{
		Pod: dra.PodRef{Namespace: "team-a", Name: "infer"}, PodUID: "infer", PodClaim: "example.com/gpu", DeviceClass: "gpu.example.com",
		Since: ago(90 * time.Second), Reason: dra.ReasonInsufficient, Message: "request example.com/gpu asks for 2 devices; of 8 devices that match and have no untolerated taint, 1 can still be allocated",
		Diagnosis: &dra.Diagnosis{Reason: dra.ReasonInsufficient, Requests: []dra.RequestStages{{Request: "example.com/gpu", Class: "gpu.example.com", Count: 2, Left: [dra.Stages]int{8, 8, 8, 8, 1, 1}}}},
	})
	f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: "infer"}, UID: "infer", Created: ago(90 * time.Second), Extended: map[string]int64{"example.com/gpu": 2}}})
	return f
}
