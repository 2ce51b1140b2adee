package node

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// host is the owner of a process that runs in no pod.
func host() dra.Owner { return dra.Owner{} }

// ofPod is the owner of a process of a scene's pod "name", or of one of its
// containers "name/container".
func ofPod(name string) dra.Owner {
	pod, container, _ := strings.Cut(name, "/")
	if container == "" {
		container = "main"
	}
	return dra.Owner{PodUID: "pod-uid-of-" + pod, ContainerID: container + "-of-" + pod}
}

// work lets a process of the owner use the device from now on.
func (s *scene) addProcess(uuid string, pid int, owner dra.Owner, utilization, memory float64) {
	s.processLists[uuid] = append(s.processLists[uuid], device.Process{PID: pid, Utilization: utilization, Memory: memory})
	s.setOwner(pid, owner)
}

// setOwner sets the owner of a process.
func (s *scene) setOwner(pid int, owner dra.Owner) {
	owners := maps.Clone(s.facts.Processes.Owners)
	if owners == nil {
		owners = map[int]dra.Owner{}
	}
	owners[pid] = owner
	s.facts.Processes.Owners = owners
}

// removeProcess removes the owner of a process: it has not been looked up.
func (s *scene) removeProcess(pid int) {
	owners := maps.Clone(s.facts.Processes.Owners)
	delete(owners, pid)
	s.facts.Processes.Owners = owners
}

// split is the use of a device by the page: by claim (with its attribution), by
// pod, and unattributed; what is not there is absent.
func (s *scene) split(uuid string) map[string]float64 {
	reported := map[string]float64{}
	for _, row := range s.last.Rows() {
		if row.Labels.Get("uuid") != uuid {
			continue
		}
		who := row.Labels.Get("resourceclaim") + " " + row.Labels.Get("attribution")
		switch row.Family.Name {
		case "dra_claim_utilization_ratio":
			reported[who+" time"] = row.Value
		case "dra_claim_memory_used_bytes":
			reported[who+" memory"] = row.Value
		case "dra_device_unattributed_utilization_ratio":
			reported["unattributed time"] = row.Value
		case "dra_device_unattributed_memory_bytes":
			reported["unattributed memory"] = row.Value
		case "dra_pod_utilization_ratio":
			reported["pod "+row.Labels.Get("pod")+" time"] = row.Value
		case "dra_pod_memory_used_bytes":
			reported["pod "+row.Labels.Get("pod")+" memory"] = row.Value
		}
	}
	return reported
}

// expectSplit compares the page with what is wanted, within
// rounding.
func (s *scene) expectSplit(uuid string, want map[string]float64) {
	s.t.Helper()
	got := s.split(uuid)
	for who, value := range want {
		if found, there := got[who]; !there || math.Abs(found-value) > 1e-9*math.Max(1, value) {
			s.t.Errorf("%s of %s: %v (there: %v), want %v", who, uuid, found, there, value)
		}
	}
	for who, value := range got {
		if _, wanted := want[who]; !wanted {
			s.t.Errorf("%s of %s: %v, which should not be there", who, uuid, value)
		}
	}
}

// sharedGPU is a GPU at 80 % and 40 GB that two claims hold.
func sharedGPU(t testing.TB) *scene {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Utilization, 0.8)
	s.set("GPU-0", device.MemoryUsed, 40)
	s.allocate("ml/first", "gpu-0")
	s.allocate("ml/second", "gpu-0")
	s.processLists["GPU-0"] = []device.Process{}
	return s
}

// grant makes the container use another claim too.
func grant(pod *dra.Pod, container string, claims ...string) {
	for i := range pod.Containers {
		if pod.Containers[i].Name == container {
			for _, claim := range claims {
				pod.Containers[i].Uses = append(pod.Containers[i].Uses, dra.Use{Claim: claim})
			}
		}
	}
}

// share lets one more pod hold the claim.
func (s *scene) share(claim, pod string) {
	namespace, name, _ := strings.Cut(claim, "/")
	ref := dra.ClaimRef{Namespace: namespace, Name: name}
	for i := range s.facts.Cluster.Claims {
		if c := &s.facts.Cluster.Claims[i]; c.Ref == ref {
			c.ReservedFor = append(c.ReservedFor, dra.Consumer{Resource: "pods", Name: pod, UID: "pod-uid-of-" + pod})
		}
	}
	s.facts.Cluster.Pods = append(s.facts.Cluster.Pods, dra.Pod{
		Ref: dra.PodRef{Namespace: namespace, Name: pod}, UID: "pod-uid-of-" + pod, Node: sceneNode,
		Claims:     []dra.PodClaim{{Name: "gpu", Claim: name}},
		Containers: []dra.Container{{Name: "main", ID: "main-of-" + pod, Uses: []dra.Use{{Claim: name}}}},
	})
}

// plug lets a pod get a device through a device plugin.
func (s *scene) addPlugin(pod, uuid string) {
	ref := dra.PodRef{Namespace: "legacy", Name: pod}
	s.facts.Listing.Pods = append(s.facts.Listing.Pods, ref)
	s.facts.Listing.Plugins = append(s.facts.Listing.Plugins, dra.PluginAssignment{Pod: ref, Container: "main", Resource: "nvidia.com/gpu", DeviceIDs: []string{uuid + "::0"}})
	s.facts.ListedAt = s.now
}

// listClaims lets the kubelet list the claims of those names on GPU 0.
func (s *scene) listClaims(names ...string) {
	s.facts.Listing, s.facts.ListedAt = dra.PodResources{}, s.now
	for _, name := range names {
		pod := dra.PodRef{Namespace: "ml", Name: name}
		s.facts.Listing.Pods = append(s.facts.Listing.Pods, pod)
		s.facts.Listing.Assignments = append(s.facts.Listing.Assignments, dra.Assignment{Pod: pod, Container: "main", Claim: dra.ClaimRef(pod), Device: sceneID("gpu-0")})
	}
}

// twoClaims is a scene whose one pod has two claims on a GPU, and a claim of
// another pod beside them.
func twoClaims(t testing.TB) *scene {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Utilization, 0.8)
	s.allocate("ml/one", "gpu-0").ReservedFor[0].UID = "pod-uid-of-both"
	s.allocate("ml/two", "gpu-0").ReservedFor[0].UID = "pod-uid-of-both"
	s.allocate("ml/other", "gpu-0")
	s.facts.Cluster.Pods = s.facts.Cluster.Pods[2:]
	s.facts.Cluster.Pods = append(s.facts.Cluster.Pods, dra.Pod{
		Ref: dra.PodRef{Namespace: "ml", Name: "both"}, UID: "pod-uid-of-both", Node: sceneNode,
		Claims: []dra.PodClaim{{Name: "a", Claim: "one"}, {Name: "b", Claim: "two"}},
		Containers: []dra.Container{
			{Name: "left", ID: "left-of-both", Uses: []dra.Use{{Claim: "one"}}},
			{Name: "right", ID: "right-of-both", Uses: []dra.Use{{Claim: "two"}}},
			{Name: "none", ID: "none-of-both"},
		},
	})
	s.addProcess("GPU-0", 1, ofPod("both/left"), 0.3, 0)
	s.addProcess("GPU-0", 2, ofPod("both/right"), 0.2, 0)
	s.addProcess("GPU-0", 3, ofPod("other"), 0.1, 0)
	return s
}
