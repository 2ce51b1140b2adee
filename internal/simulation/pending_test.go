package simulation

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

	"github.com/dra-exporter/dra-exporter/internal/simulation/apiserver"
)

// world is all that the scheduler's allocator looks at.
type world struct {
	nodes   []*corev1.Node
	classes map[string]*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
	claims  []*resourcev1.ResourceClaim
	rules   []*resourcev1.DeviceTaintRule
}

func (w *world) List() ([]*resourcev1.DeviceClass, error) {
	return slices.Collect(maps.Values(w.classes)), nil
}

func (w *world) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := w.classes[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("there is no class %s", name)
}

// newWorld is the cluster while all who stay are there, and of the visitors
// those that are named.
func newWorld(t *testing.T, visitors ...string) *world {
	t.Helper()
	h, err := readHardware(1)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	w := &world{classes: map[string]*resourcev1.DeviceClass{}}
	w.add(staticObjects(h, scenario(), newRandom(1, "standing"))...)
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

func (w *world) add(objects ...apiserver.Object) {
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
func (w *world) held() structured.AllocatedState {
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
func (w *world) tainted() []*resourcev1.ResourceSlice {
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

// fits names the nodes on which the scheduler's allocator finds devices for
// a claim.
func (w *world) fits(t *testing.T, claim *resourcev1.ResourceClaim) string {
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

// asks is the claim of a row, as it is before it gets anything.
func asks(row workload) *resourcev1.ResourceClaim {
	return newInstance(row, 0, 1, time.Unix(0, 0)).claim
}

// count makes the first request ask for so many.
func count(n int64) func(*world, *resourcev1.ResourceClaim) {
	return func(_ *world, claim *resourcev1.ResourceClaim) { claim.Spec.Devices.Requests[0].Exactly.Count = n }
}

// TestEachWaitsForItsOwnReason asks the scheduler's allocator: nobody who waits
// for devices can have them, and a change of what it is said to wait for, and
// of nothing else, lets it.
func TestEachWaitsForItsOwnReason(t *testing.T) {
	nothing := func(*world, *resourcev1.ResourceClaim) {}
	for name, test := range map[string]struct {
		before string // where it fits as it is
		cure   func(*world, *resourcev1.ResourceClaim)
		after  string
	}{
		"pretrain-70b": {"", count(2), remoteNode},
		"blackwell": {"", func(_ *world, claim *resourcev1.ResourceClaim) {
			claim.Spec.Devices.Requests[0].Exactly.Selectors = nil
		}, nodeName + " " + remoteNode},
		"train": {"", count(2), remoteNode},
		"mpi": {"", func(_ *world, claim *resourcev1.ResourceClaim) {
			claim.Spec.Devices.Constraints = nil
		}, remoteNode},
		"hello-gpu": {"", func(w *world, _ *resourcev1.ResourceClaim) {
			w.classes["gpu.acme.com"] = w.classes[classGPU]
		}, nodeName + " " + remoteNode},
		"burst": {"", count(1), nodeName},
		"protein": {"", func(w *world, _ *resourcev1.ResourceClaim) {
			w.claims = slices.DeleteFunc(w.claims, func(c *resourcev1.ResourceClaim) bool { return c.Namespace == "research" })
		}, nodeName},
		"sorter": {"", func(w *world, _ *resourcev1.ResourceClaim) {
			for _, slice := range w.slices {
				slice.Spec.Pool.ResourceSliceCount = min(slice.Spec.Pool.ResourceSliceCount, 1+int64(strings.Count(slice.Spec.Driver, "nvidia")))
			}
		}, nodeName + " " + remoteNode},
		"typo":     {nodeName + " " + remoteNode, nothing, nodeName + " " + remoteNode}, // if only its claim were there
		"homework": {nodeName + " " + remoteNode, nothing, nodeName + " " + remoteNode}, // likewise
		"etl":      {nodeName + " " + remoteNode, nothing, nodeName + " " + remoteNode}, // if only there were processors
		"nightly":  {"", count(2), remoteNode},                                          // gated, and it would have to wait even if it were not
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(pendingWorkloads(), func(w pendingWorkload) bool { return w.name == name })
			if at < 0 {
				t.Fatal("there is nobody of that name")
			}
			w, claim := newWorld(t, "finetune"), asks(pendingWorkloads()[at].workload)
			if got := w.fits(t, claim); got != test.before {
				t.Errorf("it fits on %q, want %q", got, test.before)
			}
			test.cure(w, claim)
			if got := w.fits(t, claim); got != test.after {
				t.Errorf("after the cure it fits on %q, want %q", got, test.after)
			}
		})
	}
	if names := len(pendingWorkloads()); names != 12 {
		t.Errorf("%d wait, and 12 are asked about", names)
	}
}

// Visitors that find their device taken or tainted have to wait for it, and
// have nothing else to wait for.
func TestVisitorsWaitForTheirDevices(t *testing.T) {
	for name, hinders := range map[string]func(*world){
		"dock": func(w *world) {
			for _, claim := range newWorld(t, "fold").claims {
				w.add(claim)
			}
		},
		"transcode": func(w *world) { w.add(newInstance(row(t, "transcode"), 0, 1, time.Unix(0, 0)).rule()) },
	} {
		w, claim := newWorld(t), asks(row(t, name))
		if got := w.fits(t, claim); got != remoteNode {
			t.Errorf("%s: it fits on %q", name, got)
		}
		if hinders(w); w.fits(t, claim) != "" {
			t.Errorf("%s: it fits though it is hindered", name)
		}
	}
	for name, want := range map[string]string{"fold": remoteNode, "assay": remoteNode, "sweep": remoteNode, "tutorial": remoteNode, "aligner": nodeName + " " + remoteNode} {
		if got := newWorld(t).fits(t, asks(row(t, name))); got != want {
			t.Errorf("%s: it fits on %q, want %q", name, got, want)
		}
	}
}

// What the scenario says of waiting pods follows from the seed alone.
func TestThePopulationFollowsFromTheSeed(t *testing.T) {
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
