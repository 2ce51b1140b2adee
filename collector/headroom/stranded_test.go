package headroom

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// stranded returns the stranded devices, of a planner that knows what pods take.
func (c *testCluster) stranded() (found map[string]float64) {
	c.t.Helper()
	p := c.planner()
	p.options.KnowsNodes = func() bool { return true }
	latest := p.mustRefresh(c.t)
	if !latest.StrandedKnown {
		c.t.Error("stranded devices are not known")
	}
	found = map[string]float64{}
	for _, s := range latest.Stranded {
		found[fmt.Sprintf("%s on %s: %s", s.Driver, s.Node, s.Reason)] += s.Devices
	}
	return found
}

func (c *testCluster) expectStranded(want map[string]float64) {
	c.t.Helper()
	if got := c.stranded(); fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Errorf("stranded: %v, want %v", got, want)
	}
}

// strandedCluster has a node with two GPUs, two adapters and a GPU that can be
// partitioned, and a pod that uses a GPU with 4 CPUs and 16 GiB.
func strandedCluster(t *testing.T) *testCluster {
	c := newTestCluster(t, 1)
	for _, kind := range []string{"gpu", "nic", "part"} {
		c.class(kind, fmt.Sprintf(`device.driver == "%s.example.com"`, kind))
	}
	c.node("node-a", nil)
	publish := func(driver string, devices ...resourcev1.Device) {
		node := "node-a"
		slice := newSlice(driver, node, "", 1, devices...)
		slice.Spec.NodeName = &node
		c.slice(slice)
	}
	publish("gpu.example.com", device("gpu-0", "kind", "gpu"), device("gpu-1", "kind", "gpu"), device("gpu-2", "kind", "gpu"))
	publish("nic.example.com", device("nic-0", "kind", "nic"))
	c.partitions("node-a", 1)
	c.usedBy("user", 4000, 16<<30)
	return c
}

// usedBy has a pod with a claim for one GPU on node-a.
func (c *testCluster) usedBy(pod string, cpu, memory int64) {
	c.t.Helper()
	spec := *newDeviceSpec("gpu", 1)
	result := c.allocate(spec, c.nodes[0])
	if result == nil {
		c.t.Fatal("no GPU is free")
	}
	claim := &resourcev1.ResourceClaim{Spec: spec}
	claim.Status.Allocation = result
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: "uid"}}
	c.allocated = append(c.allocated, *result)
	c.inventory.ApplyClaim("team", pod, claim)
	c.inventory.ApplyPodRequests(nil, &dra.PodRequests{
		Node: "node-a", CPU: cpu, Memory: memory,
		User: &dra.ClaimUser{Pod: dra.PodRef{Namespace: "team", Name: pod}, Tolerations: []dra.Toleration{{Key: "gpu", Operator: "Exists", Effect: "NoSchedule"}}},
	})
}

func (c *testCluster) changeNode(change func(*corev1.Node)) {
	node := c.nodes[0].DeepCopy()
	change(node)
	c.inventory.ApplyNode(node.Name, node)
}

// TestStranded provokes each reason by itself.
func TestStranded(t *testing.T) {
	all := func(reason dra.StrandedReason) map[string]float64 {
		return map[string]float64{
			"gpu.example.com on node-a: " + string(reason): 2, "nic.example.com on node-a: " + string(reason): 1, "part.example.com on node-a: " + string(reason): 1,
		}
	}
	republish := func(c *testCluster, change func(*resourcev1.ResourceSlice)) {
		slice := c.slices[0].DeepCopy()
		change(slice)
		c.inventory.ApplySlice(slice.Name, slice)
	}
	gpu := func(reason dra.StrandedReason, devices float64) map[string]float64 {
		return map[string]float64{"gpu.example.com on node-a: " + string(reason): devices}
	}
	for name, test := range map[string]struct {
		change func(*testCluster)
		want   map[string]float64
	}{
		"none": {func(*testCluster) {}, nil},
		"no node is in the zone": {func(c *testCluster) {
			republish(c, func(s *resourcev1.ResourceSlice) { s.Spec.NodeName, s.Spec.NodeSelector = nil, inZone("a") })
		}, map[string]float64{"gpu.example.com on : no_node": 2}},
		"a node is in the zone": {func(c *testCluster) {
			republish(c, func(s *resourcev1.ResourceSlice) { s.Spec.NodeName, s.Spec.NodeSelector = nil, inZone("a") })
			c.changeNode(func(n *corev1.Node) { n.Labels = map[string]string{"zone": "a"} })
		}, nil},
		"the only node in the zone is cordoned": {func(c *testCluster) {
			republish(c, func(s *resourcev1.ResourceSlice) { s.Spec.NodeName, s.Spec.NodeSelector = nil, inZone("a") })
			c.changeNode(func(n *corev1.Node) { n.Labels, n.Spec.Unschedulable = map[string]string{"zone": "a"}, true })
		}, map[string]float64{"gpu.example.com on : node_cordoned": 2, "nic.example.com on node-a: node_cordoned": 1, "part.example.com on node-a: node_cordoned": 1}},
		"all nodes can use them, and one is not cordoned": {func(c *testCluster) {
			republish(c, func(s *resourcev1.ResourceSlice) { s.Spec.NodeName, s.Spec.AllNodes = nil, new(true) })
			c.changeNode(func(n *corev1.Node) { n.Spec.Unschedulable = true })
			c.node("node-b", nil)
		}, map[string]float64{"nic.example.com on node-a: node_cordoned": 1, "part.example.com on node-a: node_cordoned": 1}},
		"each device has a node, and one of them is gone": {func(c *testCluster) {
			republish(c, func(s *resourcev1.ResourceSlice) {
				s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
				for i := range s.Spec.Devices {
					s.Spec.Devices[i].NodeName = new([]string{"node-a", "node-a", "node-b"}[i])
				}
			})
		}, map[string]float64{"gpu.example.com on node-b: no_node": 1}},
		"the node is gone": {func(c *testCluster) {
			c.node("node-b", nil)
			c.inventory.ApplyNode("node-a", nil)
		}, all(dra.StrandedNoNode)},
		"another node has a pool of that name, and is cordoned": {func(c *testCluster) {
			slice := c.slices[0].DeepCopy()
			slice.Name, slice.Spec.NodeName = "other", new("node-b")
			for i := range slice.Spec.Devices {
				slice.Spec.Devices[i].Name = fmt.Sprintf("other-%d", i)
			}
			c.slice(slice)
			c.node("node-b", nil)
			c.changeNode(func(n *corev1.Node) { n.Spec.Unschedulable = n.Name == "node-a" })
		}, all(dra.StrandedNodeCordoned)},
		"cordoned": {func(c *testCluster) { c.changeNode(func(n *corev1.Node) { n.Spec.Unschedulable = true }) }, all(dra.StrandedNodeCordoned)},
		"not ready": {func(c *testCluster) {
			c.changeNode(func(n *corev1.Node) {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
			})
		}, all(dra.StrandedNodeNotReady)},
		"node tainted": {func(c *testCluster) {
			c.changeNode(func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "drain", Effect: corev1.TaintEffectNoSchedule}}
			})
		}, all(dra.StrandedNodeTainted)},
		"a taint that pods tolerate": {func(c *testCluster) {
			c.changeNode(func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
			})
		}, nil},
		"CPU": {func(c *testCluster) {
			c.inventory.ApplyPodRequests(nil, &dra.PodRequests{Node: "node-a", CPU: 25_000})
		}, gpu(dra.StrandedNodeCPU, 2)}, // 3 of 32 are left; pods with adapters or partitions request nothing
		"memory": {func(c *testCluster) {
			c.inventory.ApplyPodRequests(nil, &dra.PodRequests{Node: "node-a", Memory: 230 << 30})
		}, gpu(dra.StrandedNodeMemory, 2)},
		"pods": {func(c *testCluster) {
			c.changeNode(func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1") })
		}, all(dra.StrandedNodePods)},
		"incomplete pool": {func(c *testCluster) {
			republish(c, func(s *resourcev1.ResourceSlice) { s.Spec.Pool.ResourceSliceCount = 2 })
		}, gpu(dra.StrandedPoolIncomplete, 2)},
		"tainted by its driver": {func(c *testCluster) {
			republish(c, func(s *resourcev1.ResourceSlice) {
				s.Spec.Devices[1].Taints = []resourcev1.DeviceTaint{{Key: "unhealthy", Effect: resourcev1.DeviceTaintEffectNoExecute}}
			})
		}, gpu(dra.StrandedDriverTaint, 1)},
		"tainted by a rule": {func(c *testCluster) {
			driver, pool, name := "gpu.example.com", "node-a", "gpu-2"
			c.rule("drain", resourcev1.DeviceTaintSelector{Driver: &driver, Pool: &pool, Device: &name})
		}, gpu(dra.StrandedRuleTaint, 1)},
		"the rest of a partitioned device": {func(c *testCluster) { // 3 of 4 quarters are used, and the last one is gone
			for range 3 {
				c.hold(*quarter(), c.nodes[0])
			}
			slice := c.slices[3].DeepCopy()
			slice.Spec.Devices = slices.DeleteFunc(slice.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == "part-0-quarter-3" })
			c.inventory.ApplySlice(slice.Name, slice)
		}, map[string]float64{"part.example.com on node-a: partition_rest": 0.25}},
		"a partition is free": {func(c *testCluster) { c.hold(*quarter(), c.nodes[0]) }, nil},
		"no partner": {func(c *testCluster) { // claims want a GPU and an adapter, and there is only one
			c.template("pair", pair())
			c.inventory.ApplyClaim("team", "user", nil)
			c.hold(pair(), c.nodes[0])
		}, gpu(dra.StrandedPartnerMissing, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			c := strandedCluster(t)
			c.expectStranded(nil)
			test.change(c)
			c.expectStranded(test.want)
		})
	}
}

func inZone(zone string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}
}

// Devices that are requested with admin access are not taken: they do not make others
// usable.
func TestFragmentationIgnoresAdminAccess(t *testing.T) {
	for name, test := range map[string]struct {
		spec func() *resourcev1.ResourceClaimSpec
		want []dra.ClassFragmentation
	}{
		"two devices": {func() *resourcev1.ResourceClaimSpec { return newDeviceSpec("gpu", 2) }, []dra.ClassFragmentation{{Class: "gpu", Ratio: 1. / 3}}},
		"two devices, and access to one": {func() *resourcev1.ResourceClaimSpec {
			spec := newDeviceSpec("gpu", 2)
			spec.Devices.Requests = append(spec.Devices.Requests, newDeviceSpec("gpu", 1).Devices.Requests...)
			spec.Devices.Requests[1].Name = "monitor"
			spec.Devices.Requests[1].Exactly.AdminAccess = new(true)
			return spec
		}, []dra.ClassFragmentation{{Class: "gpu", Ratio: 1. / 3}}},
		"access to a device, and another device": {func() *resourcev1.ResourceClaimSpec {
			spec := newDeviceSpec("gpu", 1)
			spec.Devices.Requests[0].Exactly.AdminAccess = new(true)
			spec.Devices.Requests = append(spec.Devices.Requests, newDeviceSpec("nic", 1).Devices.Requests...)
			spec.Devices.Requests[1].Name = "nic"
			return spec
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := strandedCluster(t)
			c.inventory.ApplyClaim("team", "user", nil)
			c.template("train", *test.spec())
			if got := c.planner().mustRefresh(t).Classes; fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("fragmentation %v, want %v", got, test.want)
			}
		})
	}
}

// A device lacks a partner only where it is certain that no claim for both fits.
func TestPartnerOfANodeThatIsNotSearched(t *testing.T) {
	for name, change := range map[string]func(s *shape, key inventory.TraitsKey){
		"not to the end": func(s *shape, key inventory.TraitsKey) { s.found[key] = fill{more: true, left: s.found[key].left} },
		"not yet":        func(s *shape, key inventory.TraitsKey) { delete(s.found, key) },
	} {
		t.Run(name, func(t *testing.T) {
			c := strandedCluster(t)
			c.template("pair", pair())
			c.inventory.ApplyClaim("team", "user", nil)
			c.hold(pair(), c.nodes[0])
			p := c.planner()
			p.mustRefresh(t)
			if len(p.partnerless()) == 0 {
				t.Fatal("no device lacks a partner")
			}
			for _, s := range p.shapes {
				for key := range s.found {
					if len(s.requests) == 2 {
						change(s, key)
					}
				}
			}
			if found := p.partnerless(); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

func quarter() *resourcev1.ResourceClaimSpec {
	spec := newDeviceSpec("part", 1)
	spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: `device.attributes["part.example.com"].size == "quarter"`,
	}}}
	return spec
}

// pair requests a GPU and an adapter.
func pair() resourcev1.ResourceClaimSpec {
	spec := *newDeviceSpec("gpu", 1)
	spec.Devices.Requests = append(spec.Devices.Requests, newDeviceSpec("nic", 1).Devices.Requests...)
	spec.Devices.Requests[1].Name = "nic"
	return spec
}

// TestKeptNodes: what keeps an autoscaler from removing a node is reported while none of
// the node's devices is allocated.
func TestKeptNodes(t *testing.T) {
	bare := &dra.PodRequests{Node: "node-a", CPU: 100, KeptByClusterAutoscaler: dra.RemovalNoController}
	kept := &dra.PodRequests{Node: "node-a", CPU: 100, KeptByClusterAutoscaler: dra.RemovalPodAnnotation, KeptByKarpenter: dra.RemovalPodAnnotation}
	annotate := func(key string) func(c *testCluster) {
		return func(c *testCluster) {
			c.changeNode(func(n *corev1.Node) { n.Annotations = map[string]string{key: "true"} })
		}
	}
	for name, test := range map[string]struct {
		change func(*testCluster)
		want   string
	}{
		"nothing": {func(*testCluster) {}, ""},
		"a pod":   {func(c *testCluster) { c.inventory.ApplyPodRequests(nil, bare) }, "node-a no_controller 1"},
		"three pods": {func(c *testCluster) {
			c.inventory.ApplyPodRequests(nil, bare)
			c.inventory.ApplyPodRequests(nil, bare)
			c.inventory.ApplyPodRequests(nil, kept)
		}, "node-a pod_annotation 1 node-a no_controller 2"},
		"a pod that ended": {func(c *testCluster) { c.inventory.ApplyPodRequests(nil, bare); c.inventory.ApplyPodRequests(bare, nil) }, ""},
		"a pod elsewhere": {func(c *testCluster) {
			c.inventory.ApplyPodRequests(nil, &dra.PodRequests{Node: "b", KeptByClusterAutoscaler: dra.RemovalNoController})
		}, ""},
		"its annotation": {annotate("cluster-autoscaler.kubernetes.io/scale-down-disabled"), "node-a node_annotation 1"},
		"that of Karpenter, which did not make it": {annotate("karpenter.sh/do-not-disrupt"), ""},
		"a device is allocated": {func(c *testCluster) {
			c.inventory.ApplyPodRequests(nil, bare)
			c.usedBy("user", 1000, 1<<30)
		}, ""},
		"Karpenter": {func(c *testCluster) {
			c.changeNode(func(n *corev1.Node) {
				n.Labels = map[string]string{"karpenter.sh/nodepool": "gpu"}
				n.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
			})
			c.inventory.ApplyPodRequests(nil, bare)
			c.inventory.ApplyPodRequests(nil, kept)
		}, "node-a node_annotation 1 node-a pod_annotation 1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, 1)
			c.class("gpu", `device.driver == "gpu.example.com"`)
			c.node("node-a", nil)
			node := "node-a"
			slice := newSlice("gpu.example.com", node, "", 1, device("gpu-0", "kind", "gpu"), device("gpu-1", "kind", "gpu"))
			slice.Spec.NodeName = &node
			c.slice(slice)
			test.change(c)
			p := c.planner()
			p.options.KnowsNodes = func() bool { return true }
			var got []string
			for _, of := range p.mustRefresh(t).KeptNodes {
				got = append(got, fmt.Sprintf("%s %s %d", of.Node, of.Reason, of.Pods))
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("%q, want %q", text, test.want)
			}
		})
	}
}
