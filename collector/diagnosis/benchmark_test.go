package diagnosis

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const (
	benchmarkNodes   = 10000
	benchmarkWaiting = 1000
)

// gpus publishes eight devices of a node with the attributes of NVIDIA's
// driver.
func (w *testCluster) gpus(node int) *resourcev1.ResourceSlice {
	name := fmt.Sprintf("node-%05d", node)
	var devices []resourcev1.Device
	for i := range 8 {
		devices = append(devices, device(fmt.Sprintf("gpu-%d", i),
			"type", "gpu", "uuid", fmt.Sprintf("GPU-%d-%d", node, i), "minor", i, "index", i, "brand", "Nvidia",
			"productName", []string{"NVIDIA H100 80GB HBM3", "NVIDIA B200"}[node%2], "architecture", []string{"Hopper", "Blackwell"}[node%2],
			"cudaComputeCapability", "9.0.0", "driverVersion", "580.65.6", "cudaDriverVersion", "13.0.0",
			"resource.kubernetes.io/pciBusID", fmt.Sprintf("0000:%02x:00.0", i), "resource.kubernetes.io/pcieRoot", fmt.Sprintf("pci0000:%02x", i/2)))
	}
	return w.pool("gpu.nvidia.com", name, devices...)
}

// bigCluster has 80,000 devices, of which each node's first five are held, and
// 1,000 pods that are pending for claims of as many different specifications.
// None of them can be allocated; a third fails by counts, a third by
// constraints, so that the allocator runs on 50 nodes twice, a third on one
// node only.
func bigCluster(b *testing.B, specifications int) (*testCluster, []dra.Question) {
	w := newTestCluster(b)
	w.class("gpu", `device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'`)
	for node := range benchmarkNodes {
		name := fmt.Sprintf("node-%05d", node)
		w.node(name, map[string]string{"zone": fmt.Sprint(node % 3)})
		slice := w.gpus(node)
		w.slices = nil
		held := &resourcev1.ResourceClaim{Spec: spec(deviceRequest("main", 5))}
		held.Status.Allocation = &resourcev1.AllocationResult{}
		for i := range 5 {
			held.Status.Allocation.Devices.Results = append(held.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
				Request: "main", Driver: slice.Spec.Driver, Pool: name, Device: fmt.Sprintf("gpu-%d", i),
			})
		}
		w.inventory.ApplyClaim("held", name, held)
	}
	var questions []dra.Question
	for i := range benchmarkWaiting {
		name := fmt.Sprintf("c%04d", i)
		w.inventory.ApplyClaim(testNamespace, name, &resourcev1.ResourceClaim{Spec: benchmarkSpec(i % specifications)})
		questions = append(questions, questionOf("pod-"+name, name))
	}
	return w, questions
}

func benchmarkSpec(n int) resourcev1.ResourceClaimSpec {
	product := fmt.Sprintf(`device.attributes['gpu.nvidia.com'].productName == '%s' && device.attributes['gpu.nvidia.com'].minor < %d`,
		[]string{"NVIDIA H100 80GB HBM3", "NVIDIA B200"}[n%2], 100+n)
	switch n % 3 {
	case 0:
		return spec(deviceRequest("main", 4, product)) // three are free on each node
	case 1:
		s := spec(deviceRequest("main", 3, product))
		s.Devices.Constraints = []resourcev1.DeviceConstraint{matchAttribute("resource.kubernetes.io/pcieRoot")}
		return s
	default:
		return spec(deviceRequest("main", 2, product), deviceRequest("other", 2, product))
	}
}

// BenchmarkChange is the work from a change that concerns everything (a slice
// is published again) until all claims are diagnosed again, without rests.
func BenchmarkChange(b *testing.B) {
	for _, specifications := range []int{1, 10, 50, 200} {
		b.Run(fmt.Sprintf("specs=%d", specifications), func(b *testing.B) {
			w, questions := bigCluster(b, specifications)
			d := w.diagnoser().newQueue()
			d.exchange.ask(questions)
			all := func() {
				d.refresh()
				finishAll(b, d)
				d.publish()
			}
			all()
			if got := len(d.diagnoses()); got != benchmarkWaiting {
				b.Fatalf("%d diagnoses", got)
			}
			generation := int64(1)
			before := processorTime(b)
			for b.Loop() {
				generation++
				slice := w.gpus(int(generation))
				slice = slice.DeepCopy()
				slice.Spec.Pool.Generation = generation
				w.inventory.ApplySlice(slice.Name, slice)
				all()
			}
			b.ReportMetric(float64((processorTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// processorTime is the CPU time of the process: on a busy machine elapsed time
// is not meaningful.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkFirst is the work until 1,000 references are diagnosed for the first
// time, all selectors included.
func BenchmarkFirst(b *testing.B) {
	for _, specifications := range []int{50, 1000} {
		b.Run(fmt.Sprintf("specs=%d", specifications), func(b *testing.B) {
			w, questions := bigCluster(b, specifications)
			var spent time.Duration
			for b.Loop() {
				d := w.diagnoser().newQueue()
				d.exchange.ask(questions)
				before := processorTime(b)
				d.refresh()
				finishAll(b, d)
				d.publish()
				spent += processorTime(b) - before
				b.StopTimer()
				w, questions = bigCluster(b, specifications)
				b.StartTimer()
			}
			b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// finishAll gives turns until there is nothing to do.
func finishAll(b *testing.B, q *queue) {
	b.Helper()
	for {
		worked, err := q.work(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if !worked {
			return
		}
	}
}
