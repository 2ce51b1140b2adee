package diagnosis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const fixtures = "../../test/fakes/fixtures/moments"

// readItems reads the objects of one kind of a captured snapshot.
func readItems[T any](t *testing.T, snapshot, kind string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fixtures, snapshot, kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []T `json:"items"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// readCluster reads a snapshot of a real cluster. It has one node.
func readCluster(t *testing.T, snapshot string) *testCluster {
	w := newTestCluster(t)
	for _, class := range readItems[resourcev1.DeviceClass](t, snapshot, "deviceclasses") {
		w.classes = append(w.classes, &class)
		w.inventory.ApplyClass(class.Name, class.DeepCopy())
	}
	for _, slice := range readItems[resourcev1.ResourceSlice](t, snapshot, "resourceslices") {
		w.slice(&slice)
		if len(w.nodes) == 0 {
			w.node(*slice.Spec.NodeName, nil)
		}
	}
	for _, rule := range readItems[resourcev1.DeviceTaintRule](t, snapshot, "devicetaintrules") {
		w.rules = append(w.rules, &rule)
		w.inventory.ApplyRule(rule.Name, rule.DeepCopy())
	}
	for _, claim := range readItems[resourcev1.ResourceClaim](t, snapshot, "resourceclaims") {
		w.claims = append(w.claims, &claim)
		w.inventory.ApplyClaim(claim.Namespace, claim.Name, claim.DeepCopy())
	}
	return w
}

// What waited in the captured cluster, and why.
func TestSnapshots(t *testing.T) {
	w := readCluster(t, "01-round1")
	d := w.diagnoser()
	for _, test := range []struct {
		namespace, claim string
		reason           dra.PendingReason
		message          string
	}{
		{"h-pending", "too-many", dra.ReasonInsufficient, "request gpu asks for 9 devices, and only 8 of the 8 published match"},
		{"i-noclass", "noclass-gpu-mmqr5", dra.ReasonNoDeviceClass, "request gpu: device class gpu.acme.com does not exist"},
		{"h-pending", "does-not-exist", dra.ReasonNone, ""},
		{"a-exclusive", "train-gpu-qggr4", dra.ReasonNone, ""}, // allocated
	} {
		q := question(test.claim)
		q.Pod.Namespace = test.namespace
		v := d.Explain(t.Context(), q)[0]
		if v.Reason != test.reason || v.Message != test.message {
			t.Errorf("%s/%s: %q %q, want %q %q", test.namespace, test.claim, v.Reason, v.Message, test.reason, test.message)
		}
	}
}

// Were the claims of each captured snapshot requested once more, their diagnoses
// would agree with upstream's allocator.
func TestSnapshotsAgain(t *testing.T) {
	seen := make(map[dra.PendingReason]int)
	for _, snapshot := range []string{
		"00-baseline", "01-round1", "06a-init-running", "07a-example-drivers-binding-pending", "07b-example-drivers-all",
		"09a-taintrule-none", "09b-taintrule-noexecute", "10a-before-kubelet-restart",
	} {
		w := readCluster(t, snapshot)
		d := w.diagnoser()
		present := w.claims
		for _, held := range present {
			again := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: held.Name}, Spec: held.Spec}
			w.inventory.ApplyClaim(testNamespace, again.Name, again.DeepCopy())
			v := d.Explain(t.Context(), question(again.Name))[0]
			checkStages(t, v)
			seen[v.Reason]++
			allocatable, fatal := w.allocateAnywhere([]*resourcev1.ResourceClaim{again})
			if want := allocatable && fatal == nil; (v.Reason == dra.ReasonNone) != want {
				t.Errorf("%s: claim %s: %q %q; the allocator: %v %v", snapshot, held.Name, v.Reason, v.Message, allocatable, fatal)
			}
			w.inventory.ApplyClaim(testNamespace, again.Name, nil)
		}
	}
	if seen[dra.ReasonNone] == 0 || seen[dra.ReasonInsufficient] == 0 || seen[dra.ReasonNoDeviceClass] == 0 {
		t.Errorf("the snapshots show only %v", seen)
	}
}

// Without permission to read nodes those that slices name will do.
func TestUnreadableNodes(t *testing.T) {
	w := newTestCluster(t)
	w.class("gpu", `device.driver == "d"`)
	w.pool("d", "n1", devicesNamed(2)...)
	w.claim("c", spec(deviceRequest("main", 2)))
	v := w.diagnoser().Explain(t.Context(), question("c"))[0]
	if v.Reason != dra.ReasonNone || v.Detail.Fits != "n1" {
		t.Errorf("%q %q, fits %q", v.Reason, v.Message, v.Detail.Fits)
	}
}

// What comes from outside is valid UTF-8 in every diagnosis.
func TestForeignBytes(t *testing.T) {
	bad := "bad\xff"
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	w.pool("d", "n1", tainted(device(bad, "model", bad), bad, resourcev1.DeviceTaintEffectNoSchedule))
	for _, s := range []resourcev1.ResourceClaimSpec{
		spec(deviceRequest(bad, 1)),
		spec(deviceRequest(bad, 1, bad)),
		spec(deviceRequest(bad, 1, `device.attributes["d"].model.matches(device.attributes["d"].other)`)),
		spec(either(bad, deviceRequest(bad, 1))),
	} {
		w.claim("c", s)
		q := question("c")
		q.Refs[0].PodClaim = bad
		for _, v := range w.diagnoser().Explain(t.Context(), q) {
			text := v.PodClaim + v.Message
			for _, f := range v.Requests {
				text += f.Request + f.Class
			}
			for _, s := range v.Detail.Selectors {
				text += s.Where + s.Expression + s.Message + s.Device
			}
			for _, r := range v.Detail.Removed {
				text += r.Request + r.Because
				for _, d := range r.Examples {
					text += d.String()
				}
			}
			if clean(text) != text || !strings.Contains(text, "\uFFFD") {
				t.Errorf("not cleaned: %q", text)
			}
		}
	}
}
