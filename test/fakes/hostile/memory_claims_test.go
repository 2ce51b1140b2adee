package hostile

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// memorySync lists everything from an API server into an inventory, and calls
// a function meanwhile. It returns what the reducer would receive.
func memorySync(t *testing.T, url string, kept *inventory.Inventory) (*apiserver.ClusterWatch, []apiserver.Change) {
	t.Helper()
	cluster, err := apiserver.NewClusterWatch(apiserver.ClusterWatchOptions{
		Config: &rest.Config{Host: url}, Keeper: kept, Log: slog.New(slog.DiscardHandler), Clock: clock.System(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { cluster.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	var changes []apiserver.Change
	for deadline := time.Now().Add(6 * time.Minute); !memorySynced(cluster); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not all is listed: %+v", cluster.Statuses())
		}
		changes = append(changes, cluster.Drain()...)
	}
	return cluster, append(changes, cluster.Drain()...)
}

// memorySynced reports whether all kinds of these tests have been listed.
// Synced does not include templates.
func memorySynced(cluster *apiserver.ClusterWatch) bool {
	synced := cluster.Synced()
	if !synced.Claims || !synced.Pods || !synced.Slices || !synced.Classes || !synced.Nodes {
		return false
	}
	for _, status := range cluster.Statuses() {
		if status.Name == "resourceclaimtemplates" && !status.Up {
			return false
		}
	}
	return true
}

// memoryPeak samples the heap until stop is called, which returns the maximum.
func memoryPeak() (stop func() uint64) {
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				most.Store(max(most.Load(), memoryHeap()))
			}
		}
	}()
	return func() uint64 { close(done); <-ended; return most.Load() }
}

// memoryHeap returns the size of objects on the heap, including garbage.
func memoryHeap() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

func memoryAfterGC() uint64 {
	runtime.GC()
	runtime.GC()
	return memoryHeap()
}

// TestLargeObjects: however large claims, templates and pods are, little of
// each is kept, and few are in memory at the same time. 100 objects of 900 KB
// are 90 MB.
func TestLargeObjects(t *testing.T) {
	const count, size = 100, 900_000
	const maxKept, maxPeak = 16 << 20, 120 << 20
	burdened := memoryClaim(3000)
	burdened.Spec.Devices.Requests = burdened.Spec.Devices.Requests[:1]
	memoryMetadata(&burdened.ObjectMeta, size)
	for name, c := range map[string]struct {
		path   string
		object memoryObject
	}{
		"selectors": {memoryClaims, memoryClaim(size)},
		"metadata":  {memoryClaims, burdened},
		"templates": {memoryTemplates, memoryTemplate(size)},
		"pods":      {memoryPods, memoryPodOfManyClaims(size)},
	} {
		for _, streams := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/streams=%t", name, streams), func(t *testing.T) {
				server := startMemoryServer(t, streams)
				server.add(t, c.path, c.object, count)
				before := memoryAfterGC()
				peak := memoryPeak()
				kept := inventory.New()
				cluster, changes := memorySync(t, server.url(), kept)
				highest := peak()
				live := memoryAfterGC()
				runtime.KeepAlive(cluster)
				runtime.KeepAlive(changes)
				if want := count; c.path != memoryTemplates && len(changes) < want {
					t.Errorf("%d changes of %d objects", len(changes), want)
				}
				t.Logf("kept %.1f MiB, at most %.1f MiB", float64(int64(live)-int64(before))/(1<<20), float64(int64(highest)-int64(before))/(1<<20))
				if int64(live)-int64(before) > maxKept {
					t.Errorf("%d MiB are kept", (live-before)>>20)
				}
				if int64(highest)-int64(before) > maxPeak {
					t.Errorf("%d MiB are held at one time", (highest-before)>>20)
				}
				runtime.KeepAlive(kept)
			})
		}
	}
}

// TestPagesOfLargeObjects: all objects arrive in pages of at most 8 MiB, after
// a few longer ones, which are cut off. Objects of ordinary size arrive in
// pages of 500.
func TestPagesOfLargeObjects(t *testing.T) {
	for _, c := range []struct {
		size, count, cutOff, most int
	}{{900_000, 40, 2, 60}, {20_000, 600, 1, 20}, {500, 1500, 0, 3}} {
		server := startMemoryServer(t, false)
		claim := memoryClaim(c.size)
		server.add(t, memoryClaims, claim, c.count)
		var mu sync.Mutex
		var long, short, came int
		server.paged = func(path string, limit, bytes, objects int) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case path != memoryClaims || limit == 1: // discovery requests a single claim
			case bytes > 8<<20:
				long++
			default:
				short, came = short+1, came+objects
			}
		}
		kept := inventory.New()
		_, changes := memorySync(t, server.url(), kept)
		if len(changes) != c.count {
			t.Errorf("%d bytes: %d claims of %d", c.size, len(changes), c.count)
		}
		mu.Lock()
		if came < c.count || long > c.cutOff || short > c.most {
			t.Errorf("%d bytes: %d of %d claims came in %d pages; %d pages were too long", c.size, came, c.count, short, long)
		}
		mu.Unlock()
	}
}

// TestLargeClaimsAreUndetermined: their reason is undetermined and names the
// limit. An ordinary claim has its own reason.
func TestLargeClaimsAreUndetermined(t *testing.T) {
	server := startMemoryServer(t, true)
	server.addSupply(t)
	server.add(t, memoryClaims, memoryClaim(300_000), 20)
	kept := inventory.New()
	memorySync(t, server.url(), kept)
	ordinary := memoryClaim(0)
	ordinary.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "main", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com", Count: 9}}}
	kept.ApplyClaim("tenant", "ordinary", ordinary)
	diagnoser := diagnosis.New(diagnosis.Options{Inventory: kept, Clock: clock.System(), Log: slog.New(slog.DiscardHandler), Budget: 0.25})
	for claim, want := range map[string]struct {
		reason  dra.PendingReason
		message string
	}{
		"claim-" + memoryNumber(7): {dra.ReasonUndetermined, "cannot be diagnosed: one of its selectors has "},
		"ordinary":                 {dra.ReasonInsufficient, "request main"},
	} {
		diagnoses := diagnoser.Explain(t.Context(), dra.Question{Pod: dra.PodRef{Namespace: "tenant", Name: "pod"}, Refs: []dra.PendingRef{{PodClaim: "gpu", Claim: claim}}})
		if len(diagnoses) != 1 || diagnoses[0].Reason != want.reason || !strings.Contains(diagnoses[0].Message, want.message) {
			t.Errorf("%s: %+v", claim, diagnoses)
		}
	}
	if counted := kept.Supply().Oversized[dra.SpecLimitSelector]; counted != 20 {
		t.Errorf("%d are counted", counted)
	}
}

// TestProjectionLosesNothing: for random objects within the limits, the
// diagnosis of the kept parts equals that of the whole objects.
func TestProjectionLosesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 2))
	server, err := simulated.Start(t.Context(), simulated.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole, objects := inventory.New(), memoryObjects(random)
	for _, object := range objects {
		if err := server.Put(object); err != nil {
			t.Fatal(err)
		}
		switch object := object.DeepCopyObject().(type) {
		case *corev1.Node:
			whole.ApplyNode(object.Name, object)
		case *resourcev1.DeviceClass:
			whole.ApplyClass(object.Name, object)
		case *resourcev1.ResourceSlice:
			whole.ApplySlice(object.Name, object)
		case *resourcev1.ResourceClaim:
			whole.ApplyClaim(object.Namespace, object.Name, object)
		case *resourcev1.ResourceClaimTemplate:
			whole.ApplyTemplate(object.Namespace, object.Name, object)
		}
	}
	projected := inventory.New()
	memorySync(t, server.Config().Host, projected)
	diagnosers := map[string]*diagnosis.Diagnoser{}
	for name, from := range map[string]*inventory.Inventory{"whole": whole, "projected": projected} {
		if err := from.EvaluateClasses(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		diagnosers[name] = diagnosis.New(diagnosis.Options{Inventory: from, Clock: clock.System(), Log: slog.New(slog.DiscardHandler), Budget: 1})
	}
	a, b := *whole.Supply(), *projected.Supply()
	if a.Version, b.Version = 0, 0; !reflect.DeepEqual(a, b) {
		t.Errorf("whole: %+v\nprojected: %+v", a, b)
	}
	reasons := map[dra.PendingReason]int{}
	for _, object := range objects {
		question := dra.Question{Pod: dra.PodRef{Namespace: object.GetNamespace(), Name: "pod"}, Refs: []dra.PendingRef{{PodClaim: "gpu"}}}
		switch object.(type) {
		case *resourcev1.ResourceClaim:
			question.Refs[0].Claim = object.GetName()
		case *resourcev1.ResourceClaimTemplate:
			question.Refs[0].Template = object.GetName()
		default:
			continue
		}
		found, foundToo := diagnosers["whole"].Explain(t.Context(), question), diagnosers["projected"].Explain(t.Context(), question)
		for _, diagnoses := range [][]dra.Diagnosis{found, foundToo} {
			for i := range diagnoses {
				diagnoses[i].Version = 0
			}
		}
		if !reflect.DeepEqual(found, foundToo) {
			t.Errorf("%s\nwhole: %+v\nprojected: %+v", object.GetName(), found, foundToo)
		}
		for _, diagnosis := range found {
			reasons[diagnosis.Reason]++
		}
	}
	if len(reasons) < 4 {
		t.Errorf("few reasons are tried: %v", reasons)
	}
}

// memoryObjects returns a few nodes with devices, and random claims and
// templates with all fields that the projection omits.
func memoryObjects(random *rand.Rand) []simulated.Object {
	var objects []simulated.Object
	opaque := kruntime.RawExtension{Raw: []byte(`{"sharing":{"strategy":"MPS"},"secret":"` + strings.Repeat("x", 5000) + `"}`)}
	config := resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "gpu.example.com", Parameters: opaque}}
	burden := metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": strings.Repeat("d", 5000)}}
	for _, name := range []string{"big", "small", "none"} {
		class := &resourcev1.DeviceClass{ObjectMeta: *burden.DeepCopy()}
		class.Name = name
		class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(`device.attributes["gpu.example.com"].kind == %q`, name)}}}
		class.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: config}}
		objects = append(objects, class)
	}
	for n := range 4 {
		node := &corev1.Node{ObjectMeta: *burden.DeepCopy()}
		node.Name = fmt.Sprintf("node-%d", n)
		slice := &resourcev1.ResourceSlice{ObjectMeta: *burden.DeepCopy()}
		slice.Name = "slice-" + node.Name
		slice.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1}, NodeName: &node.Name}
		for d := range 1 + random.IntN(4) {
			kind, size := []string{"big", "small"}[random.IntN(2)], int64(random.IntN(80))
			device := resourcev1.Device{Name: fmt.Sprintf("gpu-%d", d), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"kind": {StringValue: &kind}, "size": {IntValue: &size}}}
			if random.IntN(5) == 0 {
				device.Taints = []resourcev1.DeviceTaint{{Key: "unhealthy", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			}
			slice.Spec.Devices = append(slice.Spec.Devices, device)
		}
		objects = append(objects, node, slice)
	}
	for i := range 60 {
		spec := memoryRandomSpec(random)
		spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: config}}
		if i%3 == 0 {
			template := &resourcev1.ResourceClaimTemplate{ObjectMeta: *burden.DeepCopy()}
			template.Namespace, template.Name, template.Spec.Spec = "a", fmt.Sprintf("template-%d", i), spec
			objects = append(objects, template)
			continue
		}
		claim := &resourcev1.ResourceClaim{ObjectMeta: *burden.DeepCopy(), Spec: spec}
		claim.Namespace, claim.Name = "a", fmt.Sprintf("claim-%d", i)
		if i%10 == 1 {
			claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r0", Driver: "gpu.example.com", Pool: fmt.Sprintf("node-%d", random.IntN(4)), Device: "gpu-0"}},
				Config:  []resourcev1.DeviceAllocationConfiguration{{Source: resourcev1.AllocationConfigSourceClaim, DeviceConfiguration: config}},
			}}
			claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "holder", UID: "u"}}
		}
		objects = append(objects, claim)
	}
	return objects
}

func memoryRandomSpec(random *rand.Rand) resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	class := func() string { return []string{"big", "small", "none", "unknown"}[random.IntN(4)] }
	selectors := func() (all []resourcev1.DeviceSelector) {
		for range random.IntN(2) {
			all = append(all, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(`device.attributes["gpu.example.com"].size >= %d`, random.IntN(80))}})
		}
		return all
	}
	tolerations := func() []resourcev1.DeviceToleration {
		if random.IntN(2) == 0 {
			return nil
		}
		return []resourcev1.DeviceToleration{{Key: "unhealthy", Operator: resourcev1.DeviceTolerationOpExists}}
	}
	for r := range 1 + random.IntN(2) {
		request := resourcev1.DeviceRequest{Name: fmt.Sprintf("r%d", r)}
		if random.IntN(3) > 0 {
			request.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: class(), Selectors: selectors(), Tolerations: tolerations(), AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1 + int64(random.IntN(3))}
		} else {
			for a := range 2 {
				request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprintf("s%d", a), DeviceClassName: class(), Selectors: selectors(), Tolerations: tolerations(), AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1})
			}
		}
		spec.Devices.Requests = append(spec.Devices.Requests, request)
	}
	if random.IntN(3) == 0 {
		kind := resourcev1.FullyQualifiedName("gpu.example.com/kind")
		spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &kind}}
	}
	return spec
}
