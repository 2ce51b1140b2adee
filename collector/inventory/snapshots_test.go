package inventory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// snapshot is what was captured of a real cluster at one instant.
type snapshot struct {
	slices    resourcev1.ResourceSliceList
	claims    resourcev1.ResourceClaimList
	classes   resourcev1.DeviceClassList
	rules     resourcev1.DeviceTaintRuleList
	templates resourcev1.ResourceClaimTemplateList
}

func readSnapshot(t testing.TB, name string) *snapshot {
	t.Helper()
	m := &snapshot{}
	for file, list := range map[string]any{"resourceslices": &m.slices, "resourceclaims": &m.claims, "deviceclasses": &m.classes,
		"devicetaintrules": &m.rules, "resourceclaimtemplates": &m.templates} {
		text, err := os.ReadFile(filepath.Join("..", "..", "test", "fakes", "fixtures", "moments", name, file+".yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// apply applies the snapshot to an inventory. Objects that are not in it any more
// are gone.
func (m *snapshot) apply(inv *Inventory) {
	gone := map[string]bool{}
	for name := range inv.slices.byName {
		gone[name] = true
	}
	for i := range m.slices.Items {
		delete(gone, m.slices.Items[i].Name)
		inv.ApplySlice(m.slices.Items[i].Name, &m.slices.Items[i])
	}
	for name := range gone {
		inv.ApplySlice(name, nil)
	}
	for i := range m.claims.Items {
		inv.ApplyClaim(m.claims.Items[i].Namespace, m.claims.Items[i].Name, &m.claims.Items[i])
	}
	for i := range m.classes.Items {
		inv.ApplyClass(m.classes.Items[i].Name, &m.classes.Items[i])
	}
	for i := range m.rules.Items {
		inv.ApplyRule(m.rules.Items[i].Name, &m.rules.Items[i])
	}
	for i := range m.templates.Items {
		inv.ApplyTemplate(m.templates.Items[i].Namespace, m.templates.Items[i].Name, &m.templates.Items[i])
	}
	node := &corev1.Node{}
	node.Name = "node-a"
	inv.ApplyNode(node.Name, node)
}

// text writes a supply so that a person can check it.
func text(supply *dra.Supply) []byte {
	var to bytes.Buffer
	for _, p := range supply.Pools {
		fmt.Fprintf(&to, "pool %s/%s on %q: generation %d, %d slices, complete: %v\n", p.Driver, p.Pool, p.Node, p.Generation, p.Slices, p.Complete)
		fmt.Fprintf(&to, "  %s: %s\n", stateText(p.Devices), strings.Join(p.Names, " "))
		for _, c := range p.Capacity {
			fmt.Fprintf(&to, "  %s %s: %.0f of %.0f\n", c.Device, c.Capacity, c.Consumed, c.Total)
		}
	}
	for _, c := range supply.Classes {
		fmt.Fprintf(&to, "class %s %q: counted: %v %s%s\n", c.Class, c.ExtendedResource, c.Counted, stateText(c.Devices), c.Error)
	}
	for _, taint := range supply.Taints {
		fmt.Fprintf(&to, "taint %s:%s on %s/%s: %d\n", taint.Taint.Key, taint.Taint.Effect, taint.Driver, taint.Pool, taint.Devices)
	}
	for _, d := range supply.Tainted {
		fmt.Fprintf(&to, "tainted %v: %v, by rules %v, held by %v\n", d.Device, d.Taints, d.ByRules, d.Holders)
	}
	return to.Bytes()
}

func stateText(devices [dra.DeviceStates]int) string {
	return fmt.Sprintf("%d allocated, %d free, %d unavailable", devices[dra.DeviceAllocated], devices[dra.DeviceFree], devices[dra.DeviceUnavailable])
}

func TestSupplyOfSnapshots(t *testing.T) {
	for _, name := range []string{"01-round1", "03-driver-down-slices-wiped", "07b-example-drivers-all", "09a-taintrule-none", "09b-taintrule-noexecute"} {
		t.Run(name, func(t *testing.T) {
			inv := New()
			readSnapshot(t, name).apply(inv)
			compareGolden(t, filepath.Join("testdata", name+".txt"), text(supplyOf(inv)))
		})
	}
}

// compareGolden compares text with the file, or, with UPDATE_GOLDEN set, writes
// the file.
func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has\n%s\nnow it is\n%s", path, want, got)
	}
}

// The kubelet deletes the slices of a driver that is down, while claims still
// hold its devices: the pool stays, where it was, with nothing to give.
func TestPoolWithoutSlicesStaysWhileHeld(t *testing.T) {
	inv := New()
	readSnapshot(t, "02-driver-down-allocated-not-prepared").apply(inv)
	before := supplyOf(inv).Pools[0]
	readSnapshot(t, "03-driver-down-slices-wiped").apply(inv)
	after := supplyOf(inv).Pools[0]
	want := dra.PoolSupply{Driver: before.Driver, Pool: before.Pool, Node: "node-a", Generation: before.Generation}
	if before.Slices != 1 || before.Node != "node-a" || fmt.Sprint(*after) != fmt.Sprint(want) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	for ref := range inv.claims.claims {
		inv.ApplyClaim(ref.Namespace, ref.Name, nil)
	}
	if pools := supplyOf(inv).Pools; len(pools) != 0 {
		t.Errorf("nothing holds anything, and there are pools: %+v", pools[0])
	}
}

func TestObjectsOfSnapshot(t *testing.T) {
	inv := New()
	captured := readSnapshot(t, "09a-taintrule-none")
	captured.apply(inv)
	class, known := inv.ClassFor(resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com")
	if !known || class.Name != "gpu.nvidia.com" {
		t.Errorf("the implicit extended resource means %v", class)
	}
	for i := range captured.claims.Items {
		c := &captured.claims.Items[i]
		spec, _ := inv.Spec(c.Namespace, c.Name, "")
		inv.ApplyClaim(c.Namespace, c.Name, c.DeepCopy())
		if again, _ := inv.Spec(c.Namespace, c.Name, ""); again != spec {
			t.Errorf("claim %s is applied again, and requests something else", c.Name)
		}
		if spec == nil || spec.String() != c.Spec.String() {
			t.Errorf("claim %s: its specification is %v", c.Name, spec)
		}
		allocation, allocated := inv.Allocation(c.Namespace, c.Name)
		if allocated != (c.Status.Allocation != nil) || allocated && (allocation.Node != "node-a" || allocation.Selector != nil) {
			t.Errorf("claim %s: allocated %v: %+v", c.Name, allocated, allocation)
		}
	}
	for i := range captured.templates.Items {
		template := &captured.templates.Items[i]
		spec, _ := inv.Spec(template.Namespace, "", template.Name)
		if spec == nil || spec.String() != template.Spec.Spec.String() {
			t.Errorf("template %s is known: %v", template.Name, spec != nil)
		}
		inv.ApplyTemplate(template.Namespace, template.Name, template.DeepCopy())
		if again, _ := inv.Spec(template.Namespace, "", template.Name); again != spec {
			t.Errorf("template %s is applied again, and requests something else", template.Name)
		}
	}
	if len(inv.specs.specs.values) >= len(captured.claims.Items)+len(captured.templates.Items) {
		t.Error("the same specification is kept several times")
	}
	if names := inv.Nodes(); !slices.Equal(names, []string{"node-a"}) {
		t.Errorf("nodes are %v", names)
	}
}
