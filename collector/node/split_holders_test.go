package node

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestSplitOfTwoClaimsOfOnePod(t *testing.T) {
	apart := map[string]float64{"one process time": 0.3, "two process time": 0.2, "other process time": 0.1, "unattributed time": 0, "pod both time": 0.5, "pod other time": 0.1}
	ambiguous := map[string]float64{"one shared time": 0.8, "two shared time": 0.8, "other process time": 0.1, "unattributed time": 0, "pod both time": 0.5, "pod other time": 0.1}
	for _, test := range []struct {
		name    string
		prepare func(*scene)
		want    map[string]float64
	}{
		{"their containers distinguish them", func(*scene) {}, apart},
		{"a container uses one of them, and another device of the other", func(s *scene) {
			s.allocate("ml/one", "gpu-0", "gpu-1")
			s.facts.Cluster.Pods = s.facts.Cluster.Pods[:2]
			claims := s.facts.Cluster.Claims
			two := claims[len(claims)-1]
			two.ReservedFor = claims[0].ReservedFor
			two.Results[1].Request = "far"
			s.facts.Cluster.Claims = append([]dra.Claim{two}, claims[1:len(claims)-1]...)
			s.facts.Cluster.Pods[1].Containers[0].Uses = []dra.Use{{Claim: "one", Request: "gpu"}}
			s.facts.Cluster.Pods[1].Containers[1].Uses = []dra.Use{{Claim: "two"}, {Claim: "one", Request: "far"}}
		}, apart},
		{"a container uses both", func(s *scene) { grant(&s.facts.Cluster.Pods[1], "none", "one", "two") }, ambiguous},
		{"a process of a container that uses neither is unattributed", func(s *scene) { s.setOwner(1, ofPod("both/none")) },
			map[string]float64{"one process time": 0, "two process time": 0.2, "other process time": 0.1, "unattributed time": 0.3, "pod both time": 0.2, "pod other time": 0.1}},
		{"a process whose container is not known", func(s *scene) { s.setOwner(1, dra.Owner{PodUID: "pod-uid-of-both"}) }, ambiguous},
		{"a container that is not created, so far as is known", func(s *scene) { s.facts.Cluster.Pods[1].Containers[0].ID = "" }, ambiguous},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := twoClaims(t)
			s.t = t
			test.prepare(s)
			s.step(time.Second)
			s.expectSplit("GPU-0", test.want)
		})
	}
}

// A claim that several pods share is the sum of them.
func TestSplitOfOneClaimOfSeveralPods(t *testing.T) {
	s := sharedGPU(t)
	s.share("ml/first", "third")
	s.addProcess("GPU-0", 1, ofPod("first"), 0.1, 10)
	s.addProcess("GPU-0", 2, ofPod("third"), 0.2, 5)
	s.addProcess("GPU-0", 3, ofPod("second"), 0.3, 1)
	s.step(time.Second)
	s.expectSplit("GPU-0", map[string]float64{
		"first process time": 0.3, "second process time": 0.3, "unattributed time": 0, "pod first time": 0.1, "pod second time": 0.3, "pod third time": 0.2,
		"first process memory": 15, "second process memory": 1, "unattributed memory": 0, "pod first memory": 10, "pod second memory": 1, "pod third memory": 5,
	})
	s.release("ml/second")
	s.setOwner(3, dra.Owner{Gone: true})
	s.step(time.Second)
	s.expectSplit("GPU-0", map[string]float64{
		"first exclusive time": 0.8, "unattributed time": 0, "pod first time": 0.1, "pod third time": 0.2,
		"first exclusive memory": 40, "unattributed memory": 0, "pod first memory": 10, "pod third memory": 5,
	})
}

func TestSplitWithDevicePlugins(t *testing.T) {
	s := sharedGPU(t)
	s.addPlugin("notebook", "GPU-0")
	s.addProcess("GPU-0", 1, ofPod("first"), 0.1, 10)
	s.addProcess("GPU-0", 2, ofPod("notebook"), 0.2, 5)
	s.addProcess("GPU-0", 3, host(), 0.3, 1)
	s.step(time.Second)
	// The pod's UID is not known yet: its process may be the one of pod 2.
	s.expectSplit("GPU-0", map[string]float64{
		"first process time": 0.1, "second process time": 0, "unattributed time": 0.3, "pod first time": 0.1, "pod second time": 0,
		"first process memory": 10, "second process memory": 0, "unattributed memory": 1, "pod first memory": 10, "pod second memory": 0,
	})
	s.facts.Cluster.PluginPods = []dra.Pod{{Ref: dra.PodRef{Namespace: "legacy", Name: "notebook"}, UID: "pod-uid-of-notebook"}}
	s.step(time.Second)
	s.expectSplit("GPU-0", map[string]float64{
		"first process time": 0.1, "second process time": 0, "unattributed time": 0.3, "pod first time": 0.1, "pod second time": 0, "pod notebook time": 0.2,
		"first process memory": 10, "second process memory": 0, "unattributed memory": 1, "pod first memory": 10, "pod second memory": 0, "pod notebook memory": 5,
	})
}

// A claim that has not been read yet may hold the device or may not: its pod's use
// is neither another holder's nor unattributed.
func TestSplitWithAnUncertainClaim(t *testing.T) {
	s := sharedGPU(t)
	s.step(time.Second)
	third := s.allocate("ml/third", "gpu-0")
	s.facts.Cluster.Unread = []dra.ClaimRef{third.Ref}
	s.facts.Cluster.Claims = s.facts.Cluster.Claims[:2]
	s.listClaims("third")
	s.addProcess("GPU-0", 1, ofPod("first"), 0.1, 10)
	s.addProcess("GPU-0", 2, ofPod("third"), 0.2, 5)
	s.addProcess("GPU-0", 3, host(), 0.3, 1)
	s.step(time.Second)
	s.expectSplit("GPU-0", map[string]float64{
		"first process time": 0.1, "second process time": 0, "unattributed time": 0.3, "pod first time": 0.1, "pod second time": 0,
		"first process memory": 10, "second process memory": 0, "unattributed memory": 1, "pod first memory": 10, "pod second memory": 0,
	})
}

// A pod that only the kubelet reports has no UID: its claim stays shared.
func TestSplitWhileTheWatchIsStale(t *testing.T) {
	s := sharedGPU(t)
	s.step(time.Second)
	s.facts.Cluster.Fresh = false
	s.listClaims("first", "second", "third")
	s.addProcess("GPU-0", 1, ofPod("first"), 0.1, 10)
	s.addProcess("GPU-0", 2, ofPod("third"), 0.2, 5)
	s.step(time.Second)
	s.expectSplit("GPU-0", map[string]float64{
		"first process time": 0.1, "second process time": 0, "third shared time": 0.8, "unattributed time": 0, "pod first time": 0.1, "pod second time": 0,
		"first process memory": 10, "second process memory": 0, "third shared memory": 40, "unattributed memory": 0, "pod first memory": 10, "pod second memory": 0,
	})
}

// Users are updated whichever of their causes has changed.
func TestUsersAreUpdated(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.set("GPU-0", device.Utilization, 0.8)
	s.set("GPU-0", device.MemoryUsed, 40)
	s.allocate("ml/first", "gpu-0")
	s.allocate("ml/second", "gpu-0")
	s.immutable = true
	s.processLists["GPU-1"] = []device.Process{}
	s.step(time.Second)
	s.step(time.Second)
	s.addProcess("GPU-0", 1, ofPod("first"), 0.1, 10)
	s.addProcess("GPU-0", 2, ofPod("notebook"), 0.2, 5)
	s.step(time.Second)
	want := map[string]float64{
		"first process time": 0.1, "second process time": 0, "unattributed time": 0.2, "pod first time": 0.1, "pod second time": 0,
		"first process memory": 10, "second process memory": 0, "unattributed memory": 5, "pod first memory": 10, "pod second memory": 0,
	}
	s.expectSplit("GPU-0", want) // a first list
	s.addPlugin("notebook", "GPU-0")
	s.step(time.Second)
	want["unattributed time"], want["unattributed memory"] = 0, 0
	s.expectSplit("GPU-0", want) // a pod with a device plugin
	s.facts.Cluster.PluginPods = []dra.Pod{{Ref: dra.PodRef{Namespace: "legacy", Name: "notebook"}, UID: "pod-uid-of-notebook"}}
	s.step(time.Second)
	want["pod notebook time"], want["pod notebook memory"] = 0.2, 5
	s.expectSplit("GPU-0", want) // and its UID
}
