package inventory

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nvidiaSlice is a slice as NVIDIA's driver publishes it: eight whole GPUs of a
// node.
func nvidiaSlice(node int) *resourcev1.ResourceSlice {
	name := fmt.Sprintf("node-%05d", node)
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("00000-gpu.nvidia.com-%s-2qjsh", name), UID: types.UID(name)}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}}
	text := func(v string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &v} }
	version := func(v string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{VersionValue: &v} }
	for i := range 8 {
		product := []string{"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA H200"}[node%3]
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"architecture": text("Hopper"), "brand": text("Nvidia"), "productName": text(product), "type": text("gpu"),
				"uuid":                  text(fmt.Sprintf("GPU-%08x-0a6b-4e0a-bf0b-%012x", node, i)),
				"cudaComputeCapability": version("9.0.0"), "cudaDriverVersion": version("13.0.0"), "driverVersion": version("580.65.6"),
				"resource.kubernetes.io/pciBusID": text(fmt.Sprintf("0000:%02x:00.0", 0x19+16*i)),
				"resource.kubernetes.io/pcieRoot": text(fmt.Sprintf("pci0000:%02x", 0x15+16*i)),
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("81559Mi")}},
		})
	}
	return s
}

// denseSlice is the worst that the API allows: 128 devices of 32 attributes.
func denseSlice(node int) *resourcev1.ResourceSlice {
	s := nvidiaSlice(node)
	s.Spec.Devices = nil
	for i := range 128 {
		d := resourcev1.Device{Name: fmt.Sprintf("dev-%d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		for a := range 32 {
			d.Attributes[resourcev1.QualifiedName(fmt.Sprintf("attribute%d", a))] = resourcev1.DeviceAttribute{StringValue: new(fmt.Sprintf("value-%d-%d", a, i*(1-min(a, 1))*1000+node*(1-min(a, 1))))}
		}
		s.Spec.Devices = append(s.Spec.Devices, d)
	}
	return s
}

func heldBy(node, gpu int) *resourcev1.ResourceClaim {
	name := fmt.Sprintf("node-%05d", node)
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", node%50), Name: fmt.Sprintf("train-%d-%d-gpu-qggr4", node, gpu)}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
		Request: "gpu", Driver: "gpu.nvidia.com", Pool: name, Device: fmt.Sprintf("gpu-%d", gpu)}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}}}}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: fmt.Sprintf("train-%d-%d", node, gpu)}}
	return c
}

func waiting(i int) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i%50), Name: fmt.Sprintf("wait-%d-gpu-qggr4", i)}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: int64(1 + i%8),
		Selectors: selectors(`device.attributes["gpu.nvidia.com"].productName.startsWith("NVIDIA H")`)}}}
	return c
}

func big(nodes int) *Inventory {
	inv := New()
	inv.ApplyClass("gpu.nvidia.com", &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{
		Selectors: selectors(`device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`)}})
	for node := range nodes {
		s := nvidiaSlice(node)
		inv.ApplySlice(s.Name, s)
		inv.ApplyNode(s.Spec.Pool.Name, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Spec.Pool.Name}})
	}
	return inv
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

const benchNodes = 10_000

func BenchmarkMemory(b *testing.B) {
	for name, c := range map[string]struct {
		slices, each, held, waiting int
		slice                       func(int) *resourcev1.ResourceSlice
	}{
		"8devices":  {benchNodes, 8, 7, 30_000, nvidiaSlice},
		"dense":     {625, 128, 0, 0, denseSlice},
		"noclaims":  {benchNodes, 8, 0, 0, nvidiaSlice},
		"noclaims1": {benchNodes / 10, 8, 0, 0, nvidiaSlice},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				inv := New()
				for node := range c.slices {
					s := c.slice(node)
					inv.ApplySlice(s.Name, s)
					for gpu := range c.held {
						claim := heldBy(node, gpu)
						inv.ApplyClaim(claim.Namespace, claim.Name, claim)
					}
				}
				for i := range c.waiting {
					claim := waiting(i)
					inv.ApplyClaim(claim.Namespace, claim.Name, claim)
				}
				supplyOf(inv)
				after := heap()
				b.ReportMetric(float64(after-before)/(1<<20), "MiB")
				b.ReportMetric(float64(after-before)/float64(c.slices*c.each), "B/device")
				packed := 0
				for _, s := range inv.slices.byName {
					packed += len(s.packed)
				}
				b.ReportMetric(float64(packed)/(1<<20), "MiB-packed")
				runtime.KeepAlive(inv)
			}
		})
	}
}

func BenchmarkSupply(b *testing.B) {
	inv := big(benchNodes)
	supplyOf(inv)
	b.Run("slice", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			s := nvidiaSlice(i % benchNodes)
			s.Spec.Devices[0].Attributes["driverVersion"] = resourcev1.DeviceAttribute{VersionValue: new(fmt.Sprintf("580.65.%d", i))}
			inv.ApplySlice(s.Name, s)
			supplyOf(inv)
		}
	})
	b.Run("claim", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			c := heldBy(i%benchNodes, i%8)
			inv.ApplyClaim(c.Namespace, c.Name, c)
			supplyOf(inv)
		}
	})
	b.Run("500claims", func(b *testing.B) {
		i := 0
		for b.Loop() {
			for range 500 {
				i++
				c := heldBy(i%benchNodes, i%7)
				inv.ApplyClaim(c.Namespace, c.Name, c)
			}
			supplyOf(inv)
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			for _, p := range inv.pools.sorted {
				inv.pools.outdated[p] = struct{}{}
			}
			inv.version++
			supplyOf(inv)
		}
	})
}

func BenchmarkSelect(b *testing.B) {
	inv := big(benchNodes)
	for name, expression := range map[string]string{
		"product": `device.attributes["gpu.nvidia.com"].productName == "H%d"`,
		"uuid":    `device.attributes["gpu.nvidia.com"].uuid == "GPU-%08x-0a6b-4e0a-bf0b-000000000001"`,
		"whole":   `size(device.attributes["gpu.nvidia.com"]) > %d`,
	} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				request := Request{Class: "gpu.nvidia.com", Selectors: selectors(fmt.Sprintf(expression, i))}
				if err := inv.EvaluateRequest(b.Context(), nil, request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("50", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			for j := range 50 {
				request := Request{Class: "gpu.nvidia.com", Selectors: selectors(fmt.Sprintf(`device.attributes["gpu.nvidia.com"].productName == "H%d-%d"`, i, j))}
				if err := inv.EvaluateRequest(b.Context(), nil, request); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		request := Request{Class: "gpu.nvidia.com", Selectors: selectors(`device.attributes["gpu.nvidia.com"].productName == "NVIDIA H200"`)}
		if err := inv.EvaluateRequest(b.Context(), nil, request); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			inv.Count(request)
		}
	})
	b.Run("onnode", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			if _, _, err := inv.NodeSupply(fmt.Sprintf("node-%05d", i%benchNodes)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
