package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const snapshots = "../test/fakes/fixtures/moments"

// TestDecodeSnapshots decodes the responses of a real kubelet in the fixtures.
func TestDecodeSnapshots(t *testing.T) {
	answers, err := filepath.Glob(filepath.Join(snapshots, "*", "podresources.json"))
	if err != nil || len(answers) != 14 {
		t.Fatalf("want the responses of 14 snapshots, got %d, %v", len(answers), err)
	}
	for _, path := range answers {
		snapshot := filepath.Base(filepath.Dir(path))
		t.Run(snapshot, func(t *testing.T) {
			golden(t, filepath.Join("snapshots", snapshot+".txt"), render(Decode(readAnswer(t, path))))
		})
	}
}

func readAnswer(t testing.TB, path string) *podresourcesv1.ListPodResourcesResponse {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	answer := &podresourcesv1.ListPodResourcesResponse{}
	if err := protojson.Unmarshal(text, answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestDecodeKeepsNamesAsTheyAre has names with characters that label values must
// escape.
func TestDecodeKeepsNamesAsTheyAre(t *testing.T) {
	odd := "q\"u\\o\nte"
	decoded := Decode(oneDevice(odd))
	want := []dra.Assignment{{Pod: dra.PodRef{Namespace: odd, Name: odd}, Container: odd,
		Claim: dra.ClaimRef{Namespace: odd, Name: odd}, Device: dra.DeviceID{Driver: odd, Pool: odd, Name: odd},
		ShareID: odd, CDIDevices: []string{odd}}}
	if !reflect.DeepEqual(decoded.Assignments, want) {
		t.Errorf("got %q", decoded.Assignments)
	}
}

func TestDecodeMakesStringsValid(t *testing.T) {
	decoded := Decode(oneDevice("x\xff"))
	checkInvariants(t, decoded)
	if len(decoded.Assignments) != 1 || decoded.Assignments[0].Device.Name != "x\uFFFD" {
		t.Errorf("got %q", decoded.Assignments)
	}
	if len(decoded.Plugins) != 1 || decoded.Plugins[0].DeviceIDs[0] != "x\uFFFD" {
		t.Errorf("got %q", decoded.Plugins)
	}
}

// oneDevice is a response in which every string is s.
func oneDevice(s string) *podresourcesv1.ListPodResourcesResponse {
	return &podresourcesv1.ListPodResourcesResponse{PodResources: []*podresourcesv1.PodResources{{Namespace: s, Name: s,
		Containers: []*podresourcesv1.ContainerResources{{Name: s,
			Devices: []*podresourcesv1.ContainerDevices{{ResourceName: s, DeviceIds: []string{s}}},
			DynamicResources: []*podresourcesv1.DynamicResource{{ClaimNamespace: s, ClaimName: s,
				ClaimResources: []*podresourcesv1.ClaimResource{{DriverName: s, PoolName: s, DeviceName: s, ShareId: &s,
					CdiDevices: []*podresourcesv1.CDIDevice{{Name: s}}}}}}}}}}}
}

func TestDecodeSurvivesNil(t *testing.T) {
	checkInvariants(t, Decode(nil))
	answer := oneDevice("x")
	pod := answer.PodResources[0]
	container := pod.Containers[0]
	resource := container.DynamicResources[0]
	resource.ClaimResources[0].CdiDevices = []*podresourcesv1.CDIDevice{nil, {Name: "own"}}
	resource.ClaimResources = append([]*podresourcesv1.ClaimResource{nil}, resource.ClaimResources...)
	container.DynamicResources = append(container.DynamicResources, nil)
	container.Devices = append(container.Devices, nil)
	pod.Containers = append(pod.Containers, nil)
	answer.PodResources = append(answer.PodResources, nil)
	decoded := Decode(answer)
	if len(decoded.Assignments) != 1 || !slices.Equal(decoded.Assignments[0].CDIDevices, []string{"own"}) {
		t.Errorf("got %q", decoded.Assignments)
	}
}

// TestOwnCDIDevices checks the CDI devices that each device adds, for the lists of
// several devices of one claim in the order of the response.
func TestOwnCDIDevices(t *testing.T) {
	type listed struct {
		driver string
		cdi    []string
	}
	for name, test := range map[string]struct {
		entries []listed
		want    [][]string
	}{
		"a kubelet that accumulates": {
			[]listed{{"a", []string{"1"}}, {"a", []string{"1", "2"}}, {"a", []string{"1", "2", "3"}}},
			[][]string{{"1"}, {"2"}, {"3"}}},
		"a name that all devices share": {
			[]listed{{"a", []string{"common", "1"}}, {"a", []string{"common", "1", "common", "2"}}},
			[][]string{{"common", "1"}, {"common", "2"}}},
		"each driver begins with an empty list": {
			[]listed{{"a", []string{"1"}}, {"b", []string{"1", "2"}}},
			[][]string{{"1"}, {"1", "2"}}},
		"a device without CDI devices": {
			[]listed{{"a", []string{"1"}}, {"a", []string{"1"}}, {"a", []string{"1", "3"}}},
			[][]string{{"1"}, nil, {"3"}}},
		"a kubelet that does not accumulate": {
			[]listed{{"a", []string{"common", "1"}}, {"a", []string{"common", "2"}}},
			[][]string{{"common", "1"}, {"common", "2"}}},
		"a shorter list": {
			[]listed{{"a", []string{"1", "2"}}, {"a", []string{"1"}}},
			[][]string{{"1", "2"}, {"1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var before *podresourcesv1.ClaimResource
			for i, listed := range test.entries {
				entry := &podresourcesv1.ClaimResource{DriverName: listed.driver}
				for _, name := range listed.cdi {
					entry.CdiDevices = append(entry.CdiDevices, &podresourcesv1.CDIDevice{Name: name})
				}
				if got := cdiNames(ownCDIDevices(before, entry)); !slices.Equal(got, test.want[i]) {
					t.Errorf("entry %d: got %q, want %q", i, got, test.want[i])
				}
				before = entry
			}
		})
	}
}

// TestDecodePlugins merges entries that the kubelet lists once for each NUMA node.
func TestDecodePlugins(t *testing.T) {
	gpu := func(ids ...string) *podresourcesv1.ContainerDevices {
		return &podresourcesv1.ContainerDevices{ResourceName: "nvidia.com/gpu", DeviceIds: ids}
	}
	nic := &podresourcesv1.ContainerDevices{ResourceName: "example.com/nic", DeviceIds: []string{"nic-0"}}
	decoded := Decode(&podresourcesv1.ListPodResourcesResponse{PodResources: []*podresourcesv1.PodResources{{
		Namespace: "ml", Name: "train", Containers: []*podresourcesv1.ContainerResources{{
			Name: "main", Devices: []*podresourcesv1.ContainerDevices{gpu("GPU-2", "GPU-1"), nic, gpu("GPU-0", "GPU-1"), gpu()}}}}}})
	want := "pod ml/train\n" +
		"  main: plugin example.com/nic: [\"nic-0\"]\n" +
		"  main: plugin nvidia.com/gpu: [\"GPU-0\" \"GPU-1\" \"GPU-2\"]\n"
	if got := render(decoded); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	answers, _ := filepath.Glob(filepath.Join(snapshots, "*", "podresources.json"))
	for _, path := range answers {
		wire, err := proto.Marshal(readAnswer(f, path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
		f.Add(wire[:len(wire)/2])
	}
	f.Add([]byte{0x0a, 3, 0x0a, 1, 0xff})
	f.Add(answerOf137())
	f.Fuzz(func(t *testing.T, wire []byte) {
		answer := &podresourcesv1.ListPodResourcesResponse{}
		// A message that is decoded in part is valid input too.
		_ = proto.Unmarshal(wire, answer)
		decoded := Decode(answer)
		checkInvariants(t, decoded)
		slices.Reverse(answer.PodResources)
		if again := Decode(answer); !slices.Equal(again.Pods, decoded.Pods) || len(again.Assignments) != len(decoded.Assignments) {
			t.Error("the order of the pods changes the result")
		}
	})
}

// checkInvariants checks what Decode guarantees for any response.
func checkInvariants(t *testing.T, decoded dra.PodResources) {
	t.Helper()
	if text := fmt.Sprintf("%v", decoded); !utf8.ValidString(text) {
		t.Errorf("not UTF-8: %q", text)
	}
	if !strictlySorted(decoded.Pods, comparePods) || !strictlySorted(decoded.Assignments, compareAssignments) ||
		!strictlySorted(decoded.Plugins, comparePlugins) || !strictlySorted(decoded.WithoutDevices, compareClaims) {
		t.Errorf("not sorted, or something twice: %v", decoded)
	}
	for _, a := range decoded.Assignments {
		if _, known := slices.BinarySearchFunc(decoded.Pods, a.Pod, comparePods); !known {
			t.Errorf("%v is of a pod that is not listed", a)
		}
		if slices.Contains([]string{a.Container, a.Claim.Namespace, a.Claim.Name, a.Device.Driver, a.Device.Name}, "") {
			t.Errorf("%q lacks a name", a)
		}
	}
}

func strictlySorted[T any](values []T, compare func(a, b T) int) bool {
	for i := 1; i < len(values); i++ {
		if compare(values[i-1], values[i]) >= 0 {
			return false
		}
	}
	return true
}

// BenchmarkDecode decodes the response of a dense node: 128 containers in 64
// pods, each with one claim of four devices.
func BenchmarkDecode(b *testing.B) {
	answer := &podresourcesv1.ListPodResourcesResponse{}
	for p := range 64 {
		pod := &podresourcesv1.PodResources{Namespace: "team-" + fmt.Sprint(p%8), Name: fmt.Sprintf("worker-%02d", p)}
		claim := &podresourcesv1.DynamicResource{ClaimNamespace: pod.Namespace, ClaimName: pod.Name + "-gpus"}
		var cdi []*podresourcesv1.CDIDevice
		for d := range 4 {
			device := fmt.Sprintf("gpu-%d-mig-1g10gb-19-%d", p%8, d)
			cdi = append(cdi, &podresourcesv1.CDIDevice{Name: "k8s.gpu.nvidia.com/claim=" + pod.Name + "-" + device})
			claim.ClaimResources = append(claim.ClaimResources, &podresourcesv1.ClaimResource{
				DriverName: "gpu.nvidia.com", PoolName: "node-a", DeviceName: device, CdiDevices: slices.Clone(cdi)})
		}
		for _, container := range []string{"main", "sidecar"} {
			pod.Containers = append(pod.Containers, &podresourcesv1.ContainerResources{
				Name: container, DynamicResources: []*podresourcesv1.DynamicResource{claim}})
		}
		answer.PodResources = append(answer.PodResources, pod)
	}
	for b.Loop() {
		if decoded := Decode(answer); len(decoded.Assignments) != 512 {
			b.Fatalf("got %d assignments", len(decoded.Assignments))
		}
	}
}
