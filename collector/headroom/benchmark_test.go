package headroom

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// largeCluster has so many nodes of ten kinds with eight devices each, 20 classes, and
// six templates for each class: with the four sizes that are always counted, ten shapes
// each. Of every third node devices are allocated.
func largeCluster(b *testing.B, nodes int) *testCluster {
	c := newTestCluster(b, 1)
	for i := range 20 {
		c.class(fmt.Sprintf("class-%d", i), fmt.Sprintf(`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model in ["model-%d", "model-%d"]`, i%10, (i+i/10)%10))
		for j := range 6 {
			spec := *newDeviceSpec(fmt.Sprintf("class-%d", i), int64(1+j%3))
			if j > 2 {
				attribute := resourcev1.FullyQualifiedName(root)
				spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
			} else {
				spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
					Expression: fmt.Sprintf(`device.attributes["gpu.example.com"].model == "model-%d"`, i%10),
				}}}
			}
			c.template(fmt.Sprintf("template-%d-%d", i, j), spec)
		}
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		c.node(name, nil)
		var devices []resourcev1.Device
		for j := range 8 {
			devices = append(devices, device(fmt.Sprintf("gpu-%d", j), "model", fmt.Sprintf("model-%d", i%10), root, fmt.Sprintf("root-%d", j/4), "uuid", fmt.Sprintf("GPU-%d-%d", i, j)))
		}
		slice := newSlice("gpu.example.com", name, "", 1, devices...)
		slice.Spec.NodeName = &name
		c.inventory.ApplySlice(slice.Name, slice)
		if i%3 == 0 {
			c.take(name, i%8)
		}
	}
	return c
}

// take allocates the first devices of a node.
func (c *testCluster) take(node string, devices int) {
	result := resourcev1.AllocationResult{}
	for i := range devices {
		result.Devices.Results = append(result.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "devices", Driver: "gpu.example.com", Pool: node, Device: fmt.Sprintf("gpu-%d", i),
		})
	}
	claim := &resourcev1.ResourceClaim{Spec: *newDeviceSpec("class-0", int64(max(devices, 1)))}
	claim.Status.Allocation = &result
	c.inventory.ApplyClaim("team", "of-"+node, claim)
}

// BenchmarkHeadroom computes the headroom of a large cluster for the first time, and
// after changes: of one claim, of a hundred, and of a class. heap-MB is what the planner
// keeps.
func BenchmarkHeadroom(b *testing.B) {
	for _, nodes := range []int{1000, 10_000} {
		c := largeCluster(b, nodes)
		p := c.planner()
		p.options.Shapes = 200
		p.options.KnowsNodes = func() bool { return true }
		refresh := func(b *testing.B) {
			if err := p.refresh(context.Background(), func(context.Context) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("nodes=%d/first", nodes), func(b *testing.B) {
			for b.Loop() {
				p = c.planner()
				p.options.Shapes = 200
				p.options.KnowsNodes = func() bool { return true }
				before := heap()
				refresh(b)
				b.ReportMetric(float64(heap()-before)/1e6, "heap-MB")
				b.ReportMetric(float64(len(p.shapes)), "shapes")
			}
		})
		for _, changes := range []int{1, 100} {
			b.Run(fmt.Sprintf("nodes=%d/changes=%d", nodes, changes), func(b *testing.B) {
				round := 0
				for b.Loop() {
					round++
					for i := range changes {
						c.take(fmt.Sprintf("node-%05d", (round*7919+i*13)%nodes), (round+i)%8)
					}
					refresh(b)
				}
			})
		}
		b.Run(fmt.Sprintf("nodes=%d/class", nodes), func(b *testing.B) {
			round := 0
			for b.Loop() {
				round++
				c.class("class-0", fmt.Sprintf(`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model != "x%d"`, round))
				refresh(b)
			}
		})
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
