package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

func (s *scene) report(uuid string, by reporter) string {
	value, there := s.value("dra_device_healthy", "uuid", uuid, "by", by.String())
	switch {
	case !there:
		return "absent"
	case value == 1:
		return "healthy"
	default:
		return "unhealthy"
	}
}

func TestDriverReport(t *testing.T) {
	taint := func(key, effect string) dra.Taint { return dra.Taint{Key: key, Value: "79", Effect: effect} }
	for name, test := range map[string]struct {
		taints []dra.Taint
		want   string
	}{
		"no taint":                       {nil, "healthy"},
		"NoSchedule":                     {[]dra.Taint{taint("gpu.nvidia.com/xid", "NoSchedule")}, "unhealthy"},
		"NoExecute":                      {[]dra.Taint{taint("gpu.nvidia.com/gpu-lost", "NoExecute")}, "unhealthy"},
		"without effect":                 {[]dra.Taint{taint("gpu.nvidia.com/xid", "None")}, "healthy"},
		"unmonitored":                    {[]dra.Taint{taint("gpu.nvidia.com/unmonitored", "None")}, "absent"},
		"unmonitored and without effect": {[]dra.Taint{taint("gpu.nvidia.com/unmonitored", "None"), taint("gpu.nvidia.com/xid", "None")}, "absent"},
		"unmonitored and unhealthy":      {[]dra.Taint{taint("gpu.nvidia.com/unmonitored", "None"), taint("gpu.nvidia.com/xid", "NoExecute")}, "unhealthy"},
		"unmonitored and not scheduled":  {[]dra.Taint{taint("gpu.nvidia.com/unmonitored", "NoSchedule")}, "unhealthy"},
		"a key that ends alike":          {[]dra.Taint{taint("gpu.nvidia.com/notunmonitored", "None")}, "healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, gpu(0))
			s.facts.Cluster.Published[0].Taints = test.taints
			s.run(1)
			if got := s.report("GPU-0", byDriver); got != test.want {
				t.Errorf("the driver reports %s, want %s", got, test.want)
			}
		})
	}
}

// Taints come, change and go with the slice, and what was reported without one is
// not held against the device.
func TestTaints(t *testing.T) {
	s := newScene(t, gpu(0))
	s.allocate("ml/train", "gpu-0")
	pages := s.script("dra_device_taint", "dra_device_healthy")
	lost := dra.Taint{Key: "gpu.nvidia.com/gpu-lost", Effect: "NoExecute"}
	s.facts.Cluster.Published[0].Taints = []dra.Taint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: "NoSchedule"}, lost, lost}
	s.run(1)
	pages.show("two taints, one of them twice")
	s.facts.Cluster.Published[0].Taints = []dra.Taint{lost}
	s.run(1)
	pages.show("one is left")
	published := s.facts.Cluster.Published
	s.facts.Cluster.Published = nil
	s.run(2)
	pages.show("the slices vanished: no report")
	s.facts.Cluster.Published = published
	s.facts.Cluster.Published[0].Taints = nil
	s.run(1)
	pages.show("the slices are back, without taints")
	metrictest.CompareGolden(t, "testdata/health_taints.txt", pages.String())
}

// While slices are not fresh the driver's present report is not known; the last
// one is shown, and used again with the watch.
func TestDriverReportWhileSlicesAreStale(t *testing.T) {
	s := newScene(t, gpu(0))
	s.facts.Cluster.Published[0].Taints = []dra.Taint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: "NoSchedule"}}
	for _, want := range []string{"unhealthy", "absent", "unhealthy"} {
		s.facts.Cluster.SlicesFresh = want != "absent"
		s.run(2)
		if got := s.report("GPU-0", byDriver); got != want {
			t.Errorf("the driver reports %s, want %s", got, want)
		}
		if _, there := s.value("dra_device_taint_info", "key", "gpu.nvidia.com/xid"); !there {
			t.Error("its taint is not shown")
		}
	}
}

// A held device without known hardware has its driver's report, too.
func TestDriverReportOnUnknownHardware(t *testing.T) {
	s := newScene(t)
	s.facts.Cluster.Published = []dra.PublishedDevice{{ID: sceneID("gpu-vfio-0"), Node: sceneNode, Taints: []dra.Taint{{Key: "unhealthy", Effect: "NoExecute"}}}}
	s.allocate("ml/vm", "gpu-vfio-0")
	s.run(2)
	uuid := unknownUUID(sceneNode, sceneID("gpu-vfio-0"))
	if driver, hardware := s.report(uuid, byDriver), s.report(uuid, byHardware); driver != "unhealthy" || hardware != "absent" {
		t.Errorf("the driver reports %s, the hardware %s", driver, hardware)
	}
}

// kubeletScene is a claim of two GPUs by two requests, listed by the kubelet
// with the CDI ids given: of gpu-0 those of the first list, of gpu-1 the rest.
func kubeletScene(t testing.TB, first, second []string, health ...dra.ResourceHealth) *scene {
	s := newScene(t, gpu(0), gpu(1))
	claim := s.allocate("ml/train", "gpu-0", "gpu-1")
	claim.Requests = []dra.Request{{Name: "left", DeviceClass: "c"}, {Name: "right", DeviceClass: "c"}}
	claim.Results[0].Request, claim.Results[1].Request = "left", "right/sub"
	s.facts.Listing.Pods = []dra.PodRef{{Namespace: "ml", Name: "train"}}
	for i, ids := range [][]string{first, second} {
		if ids != nil {
			s.facts.Listing.Assignments = append(s.facts.Listing.Assignments, dra.Assignment{
				Pod: s.facts.Listing.Pods[0], Container: "main", Claim: claim.Ref, Device: sceneID(fmt.Sprintf("gpu-%d", i)), CDIDevices: ids,
			})
		}
	}
	s.facts.ListedAt = s.now
	s.facts.Cluster.Pods[0].Health = health
	return s
}

func TestKubeletReport(t *testing.T) {
	a, b, common := []string{"k/c=a", "k/c=x"}, []string{"k/c=b"}, []string{"k/c=common", "k/c=y"}
	says := func(request, id string, healthy bool) dra.ResourceHealth {
		return dra.ResourceHealth{PodClaim: "gpu", Request: request, ResourceID: id, Healthy: healthy}
	}
	for name, test := range map[string]struct {
		first, second []string // CDI ids; nil: not listed
		health        []dra.ResourceHealth
		want          string // of gpu-0, of gpu-1
	}{
		"nothing":                       {a, b, nil, "absent absent"},
		"by CDI id":                     {a, b, []dra.ResourceHealth{says("", "k/c=a", false), says("", "k/c=b", true)}, "unhealthy healthy"},
		"not by another id than first":  {a, b, []dra.ResourceHealth{says("", "k/c=x", false)}, "absent absent"},
		"contradictions: the worse":     {a, b, []dra.ResourceHealth{says("", "k/c=a", true), says("", "k/c=a", false), says("", "k/c=a", true)}, "unhealthy absent"},
		"one id of both":                {common, common, []dra.ResourceHealth{says("", "k/c=common", false)}, "absent absent"},
		"one id, known by the request":  {common, common, []dra.ResourceHealth{says("left", "k/c=common", false), says("right", "k/c=common", true)}, "unhealthy healthy"},
		"by name, without CDI devices":  {[]string{}, b, []dra.ResourceHealth{says("", "gpu.nvidia.com/node-a/gpu-0", false)}, "unhealthy absent"},
		"by name, not listed":           {nil, nil, []dra.ResourceHealth{says("", "gpu.nvidia.com/node-a/gpu-1", false)}, "absent unhealthy"},
		"not listed: any could be":      {nil, nil, []dra.ResourceHealth{says("", "k/c=a", false)}, "absent absent"},
		"not listed: the other one":     {a, nil, []dra.ResourceHealth{says("", "k/c=b", false)}, "absent unhealthy"},
		"not listed: it may be either":  {a, nil, []dra.ResourceHealth{says("", "k/c=a", false)}, "absent absent"},
		"not listed: the only one":      {nil, nil, []dra.ResourceHealth{says("left", "k/c=a", false)}, "unhealthy absent"},
		"another request":               {a, b, []dra.ResourceHealth{says("right", "k/c=a", false)}, "absent absent"},
		"a claim that the pod has not":  {a, b, []dra.ResourceHealth{{PodClaim: "other", ResourceID: "k/c=a"}}, "absent absent"},
		"a device that the claim lacks": {a, b, []dra.ResourceHealth{says("", "k/c=z", false)}, "absent absent"},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubeletScene(t, test.first, test.second, test.health...)
			s.run(2)
			if got := s.report("GPU-0", byKubelet) + " " + s.report("GPU-1", byKubelet); got != test.want {
				t.Errorf("the kubelet reports %s, want %s", got, test.want)
			}
		})
	}
}

// The kubelet's report is used while the pod watch is fresh, and ends with the
// hold.
func TestKubeletReportEnds(t *testing.T) {
	failed := dra.ResourceHealth{PodClaim: "gpu", Request: "left", ResourceID: "k/c=a"}
	for name, end := range map[string]func(*scene){
		"the watch is down":   func(s *scene) { s.facts.Cluster.Fresh = false },
		"the pod is finished": func(s *scene) { s.facts.Cluster.Pods[0].Terminal = true },
		"the pod is gone":     func(s *scene) { s.release("ml/train") },
		"the entry is gone":   func(s *scene) { s.facts.Cluster.Pods[0].Health = nil },
		"on another node":     func(s *scene) { s.facts.Cluster.Pods[0].Node = "node-b" },
	} {
		t.Run(name, func(t *testing.T) {
			s := kubeletScene(t, []string{"k/c=a"}, []string{"k/c=b"}, failed)
			s.run(2)
			if got := s.report("GPU-0", byKubelet); got != "unhealthy" {
				t.Fatalf("the kubelet reports %s at first", got)
			}
			end(s)
			s.run(1)
			if got := s.report("GPU-0", byKubelet); got != "absent" {
				t.Errorf("the kubelet's word is %s", got)
			}
		})
	}
}

// Of two reports about a shared device the worse one counts, in any order.
func TestKubeletReportOnASharedDevice(t *testing.T) {
	s := newScene(t, gpu(0))
	for i, healthy := range []bool{false, true} {
		s.allocate(fmt.Sprintf("ml/claim-%d", i), "gpu-0")
		s.facts.Cluster.Pods[i].Health = []dra.ResourceHealth{{PodClaim: "gpu", ResourceID: sceneID("gpu-0").String(), Healthy: healthy}}
	}
	s.run(2)
	if got := s.report("GPU-0", byKubelet); got != "unhealthy" {
		t.Errorf("the kubelet's word is %s", got)
	}
}

// The model has why the kubelet reports a device as unhealthy, while it does.
func TestKubeletMessage(t *testing.T) {
	report := func(id, message string) dra.ResourceHealth {
		return dra.ResourceHealth{PodClaim: "gpu", ResourceID: id, Message: message}
	}
	s := kubeletScene(t, []string{"k/c=a"}, []string{"k/c=b"},
		report("k/c=a", "fan 2"), report("k/c=a", "fan 1"), report("k/c=a", ""), report("k/c=b", ""), report("k/c=z", "of no device"))
	s.run(2)
	messages := func() map[string]string {
		found := map[string]string{}
		for _, d := range s.last.Model.Devices {
			if d.KubeletMessage != "" {
				found[d.UUID] = d.KubeletMessage
			}
		}
		return found
	}
	if got, want := fmt.Sprint(messages()), "map[GPU-0:fan 1]"; got != want {
		t.Errorf("the messages are %s, want %s", got, want)
	}
	for _, row := range s.last.Rows() {
		if strings.Contains(fmt.Sprint(row.Labels), "fan") {
			t.Errorf("a message is in a row: %v", row)
		}
	}
	s.facts.Cluster.Pods[0].Health = nil
	s.run(1)
	if found := messages(); len(found) > 0 {
		t.Errorf("afterwards the messages are %v", found)
	}
}
