package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// world is all that the scheduler's allocator looks at.
type pendingFixture struct {
	nodes   []*corev1.Node
	classes map[string]*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
	claims  []*resourcev1.ResourceClaim
	rules   []*resourcev1.DeviceTaintRule
}

func (w *pendingFixture) List() ([]*resourcev1.DeviceClass, error) {
	return slices.Collect(maps.Values(w.classes)), nil
}

func (w *pendingFixture) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := w.classes[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("there is no class %s", name)
}

// newPendingFixture returns the cluster with all permanent workloads, and the
// named temporary ones.
func newPendingFixture(t *testing.T, visitors ...string) *pendingFixture {
	t.Helper()
	h, err := readHardware(1)
	if err != nil {
		t.Fatal(err)
	}
	training, err := readTrainingHardware(1)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	w := &pendingFixture{classes: map[string]*resourcev1.DeviceClass{}}
	w.add(staticObjects(h, scenario(), newRandom(1, "standing"))...)
	w.add(nodeObjects(trainingNode, training, newRandom(1, trainingNode))...)
	w.add(existingObjects(1, now)...)
	for _, row := range scenario() {
		if row.lasts == 0 || slices.Contains(visitors, row.name) {
			if i := newInstance(row, 0, 1, now); i.claim != nil {
				allocate(i.claim, row, i.pods, now, i.random)
				w.add(i.claim)
			}
		}
	}
	return w
}

func (w *pendingFixture) add(objects ...apiserver.Object) {
	for _, object := range objects {
		switch of := object.(type) {
		case *corev1.Node:
			w.nodes = append(w.nodes, of)
		case *resourcev1.DeviceClass:
			w.classes[of.Name] = of
		case *resourcev1.ResourceSlice:
			w.slices = append(w.slices, of)
		case *resourcev1.ResourceClaim:
			w.claims = append(w.claims, of)
		case *resourcev1.DeviceTaintRule:
			w.rules = append(w.rules, of)
		}
	}
}

// held is what claims hold; those with admin access hold nothing.
func (w *pendingFixture) held() structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range w.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, of := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(of.Driver, of.Pool, of.Device)
			switch {
			case of.AdminAccess != nil:
			case of.ShareID != nil:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, of.ShareID))
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, of.ConsumedCapacity))
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	return state
}

// tainted are the slices with the taints of the rules.
func (w *pendingFixture) tainted() []*resourcev1.ResourceSlice {
	var patched []*resourcev1.ResourceSlice
	for _, slice := range w.slices {
		slice = slice.DeepCopy()
		for _, rule := range w.rules {
			for at, device := range slice.Spec.Devices {
				if of := rule.Spec.DeviceSelector; *of.Driver == slice.Spec.Driver && *of.Pool == slice.Spec.Pool.Name && *of.Device == device.Name {
					slice.Spec.Devices[at].Taints = append(slice.Spec.Devices[at].Taints, rule.Spec.Taint)
				}
			}
		}
		patched = append(patched, slice)
	}
	return patched
}

// fits returns the nodes on which the scheduler's allocator finds devices for a
// claim.
func (w *pendingFixture) fits(t *testing.T, claim *resourcev1.ResourceClaim) string {
	t.Helper()
	all := structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true,
	}
	allocator, err := structured.NewAllocator(t.Context(), all, w.held(), w, w.tainted(), cel.NewCache(100, cel.Features{EnableConsumableCapacity: true}))
	if err != nil {
		t.Fatal(err)
	}
	var fitting []string
	for _, node := range w.nodes {
		result, err := allocator.Allocate(t.Context(), node, []*resourcev1.ResourceClaim{claim})
		if err != nil && !strings.Contains(err.Error(), "there is no class") {
			t.Fatal(err)
		}
		if result != nil {
			fitting = append(fitting, node.Name)
		}
	}
	slices.Sort(fitting)
	return strings.Join(fitting, " ")
}

// claimOf returns the claim of a row before its allocation.
func claimOf(row workload) *resourcev1.ResourceClaim {
	return newInstance(row, 0, 1, time.Unix(0, 0)).claim
}

// count sets the count of the first request.
func count(n int64) func(*pendingFixture, *resourcev1.ResourceClaim) {
	return func(_ *pendingFixture, claim *resourcev1.ResourceClaim) {
		claim.Spec.Devices.Requests[0].Exactly.Count = n
	}
}

// TestPendingReasons checks with the scheduler's allocator that no pending
// workload can be allocated, and that each can be once only its stated obstacle
// is removed.
func TestPendingReasons(t *testing.T) {
	nothing := func(*pendingFixture, *resourcev1.ResourceClaim) {}
	for name, test := range map[string]struct {
		before string // where it fits as it is
		cure   func(*pendingFixture, *resourcev1.ResourceClaim)
		after  string
	}{
		"pretrain-70b": {"", count(2), remoteNode},
		"blackwell": {"", func(_ *pendingFixture, claim *resourcev1.ResourceClaim) {
			claim.Spec.Devices.Requests[0].Exactly.Selectors = nil
		}, nodeName + " " + remoteNode},
		"train": {"", count(2), remoteNode},
		"mpi": {"", func(_ *pendingFixture, claim *resourcev1.ResourceClaim) {
			claim.Spec.Devices.Constraints = nil
		}, remoteNode},
		"hello-gpu": {"", func(w *pendingFixture, _ *resourcev1.ResourceClaim) {
			w.classes["gpu.acme.com"] = w.classes[classGPU]
		}, nodeName + " " + remoteNode},
		"burst": {"", count(1), nodeName},
		"protein": {"", func(w *pendingFixture, _ *resourcev1.ResourceClaim) {
			w.claims = slices.DeleteFunc(w.claims, func(c *resourcev1.ResourceClaim) bool { return c.Namespace == "research" })
		}, nodeName},
		"sorter": {"", func(w *pendingFixture, _ *resourcev1.ResourceClaim) {
			for _, slice := range w.slices {
				slice.Spec.Pool.ResourceSliceCount = min(slice.Spec.Pool.ResourceSliceCount, 1+int64(strings.Count(slice.Spec.Driver, "nvidia")))
			}
		}, nodeName + " " + remoteNode + " " + trainingNode},
		"typo":       {nodeName + " " + remoteNode, nothing, nodeName + " " + remoteNode}, // if only its claim were there
		"homework":   {nodeName + " " + remoteNode, nothing, nodeName + " " + remoteNode}, // likewise
		"etl":        {nodeName + " " + remoteNode, nothing, nodeName + " " + remoteNode}, // if only there were processors
		"post-train": {nodeName + " " + remoteNode, nothing, nodeName + " " + remoteNode}, // if only its gang were complete
		"moe": {"", func(w *pendingFixture, _ *resourcev1.ResourceClaim) {
			w.classes["compute-domain-default-channel.nvidia.com"] = w.classes[classGPU]
		}, nodeName + " " + remoteNode},
		"nightly": {"", count(2), remoteNode}, // gated, and it would have to wait even if it were not
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(pendingWorkloads(), func(w pendingWorkload) bool { return w.name == name })
			if at < 0 {
				t.Fatal("there is no workload of that name")
			}
			w, claim := newPendingFixture(t, "finetune"), claimOf(pendingWorkloads()[at].workload)
			if got := w.fits(t, claim); got != test.before {
				t.Errorf("it fits on %q, want %q", got, test.before)
			}
			test.cure(w, claim)
			if got := w.fits(t, claim); got != test.after {
				t.Errorf("after the cure it fits on %q, want %q", got, test.after)
			}
		})
	}
	if names := len(pendingWorkloads()); names != 14 {
		t.Errorf("%d wait, and 14 are asked about", names)
	}
}

// Temporary workloads whose device is allocated or tainted are pending for it,
// and for nothing else.
func TestTemporarilyPendingWorkloads(t *testing.T) {
	for name, hinders := range map[string]func(*pendingFixture){
		"dock": func(w *pendingFixture) {
			for _, claim := range newPendingFixture(t, "fold").claims {
				w.add(claim)
			}
		},
		"transcode": func(w *pendingFixture) { w.add(newInstance(row(t, "transcode"), 0, 1, time.Unix(0, 0)).rule()) },
	} {
		w, claim := newPendingFixture(t), claimOf(row(t, name))
		if got := w.fits(t, claim); got != remoteNode {
			t.Errorf("%s: it fits on %q", name, got)
		}
		if hinders(w); w.fits(t, claim) != "" {
			t.Errorf("%s: it fits though it is hindered", name)
		}
	}
	for name, want := range map[string]string{"fold": remoteNode, "assay": remoteNode, "sweep": remoteNode, "tutorial": remoteNode, "aligner": nodeName + " " + remoteNode + " " + trainingNode} {
		if got := newPendingFixture(t).fits(t, claimOf(row(t, name))); got != want {
			t.Errorf("%s: it fits on %q, want %q", name, got, want)
		}
	}
}

// The pending pods of the scenario depend only on the seed.
func TestObjectsDependOnSeed(t *testing.T) {
	names := func(seed uint64) string {
		var all []string
		for _, object := range existingObjects(seed, time.Unix(1e9, 0)) {
			all = append(all, fmt.Sprintf("%T %s/%s %s %s", object, object.GetNamespace(), object.GetName(), object.GetUID(), object.GetCreationTimestamp()))
		}
		return strings.Join(all, "\n")
	}
	if first, again := names(1), names(1); first != again {
		t.Error("one seed gives several clusters")
	}
	if names(1) == names(2) {
		t.Error("several seeds give one cluster")
	}
}
