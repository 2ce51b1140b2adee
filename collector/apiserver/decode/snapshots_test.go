package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// snapshot is the recorded objects of a real cluster at one time.
type snapshot struct {
	pods   []corev1.Pod
	claims []resourcev1.ResourceClaim
	slices []resourcev1.ResourceSlice
}

func snapshots() []string { return []string{"01-round1", "06c-pod-succeeded", "09a-taintrule-none"} }

func readSnapshot(t testing.TB, name string) snapshot {
	t.Helper()
	var pods corev1.PodList
	var claims resourcev1.ResourceClaimList
	var slices resourcev1.ResourceSliceList
	for file, list := range map[string]any{"pods": &pods, "resourceclaims": &claims, "resourceslices": &slices} {
		text, err := os.ReadFile(filepath.Join("testdata", "snapshots", name, file+".yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return snapshot{pods: pods.Items, claims: claims.Items, slices: slices.Items}
}

func TestSnapshots(t *testing.T) {
	for _, name := range snapshots() {
		t.Run(name, func(t *testing.T) {
			captured := readSnapshot(t, name)
			var decoded struct {
				Pods      []dra.Pod
				Claims    []dra.Claim
				Published []dra.PublishedDevice
			}
			for i := range captured.pods {
				decoded.Pods = append(decoded.Pods, Pod(&captured.pods[i], PodFields{Labels: []string{"app"}, Workloads: DefaultWorkloads()}))
			}
			for i := range captured.claims {
				decoded.Claims = append(decoded.Claims, Claim(&captured.claims[i]))
			}
			for i := range captured.slices {
				decoded.Published = append(decoded.Published, NewSliceRecord(&captured.slices[i]).Devices...)
			}
			slices.SortFunc(decoded.Published, func(a, b dra.PublishedDevice) int {
				return cmp.Or(cmp.Compare(a.ID.Driver, b.ID.Driver), cmp.Compare(a.ID.Pool, b.ID.Pool), cmp.Compare(a.ID.Name, b.ID.Name))
			})
			compareGolden(t, filepath.Join("testdata", "snapshots", name, "decoded.json"), decoded)
		})
	}
}

func TestLifecyclesOfSnapshots(t *testing.T) {
	for _, name := range append(snapshots(), "07a-example-drivers-binding-pending") {
		t.Run(name, func(t *testing.T) {
			var pods corev1.PodList
			var claims resourcev1.ResourceClaimList
			for file, list := range map[string]any{"pods": &pods, "resourceclaims": &claims} {
				text, err := os.ReadFile(filepath.Join("testdata", "snapshots", name, file+".yaml"))
				if err == nil {
					err = yaml.Unmarshal(text, list)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var lifecycles struct {
				Claims []dra.ClaimLifecycle
				Pods   []dra.PodLifecycle
			}
			for i := range claims.Items {
				lifecycles.Claims = append(lifecycles.Claims, ClaimLifecycle(&claims.Items[i]))
			}
			for i := range pods.Items {
				lifecycles.Pods = append(lifecycles.Pods, PodLifecycle(&pods.Items[i], DefaultWorkloads()))
			}
			compareGolden(t, filepath.Join("testdata", "snapshots", name, "lifecycles.json"), lifecycles)
		})
	}
}

// compareGolden compares a value with the file, or, with UPDATE_GOLDEN set,
// writes the file.
func compareGolden(t *testing.T, path string, value any) {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, text.Bytes()) {
		t.Errorf("%s differs; UPDATE_GOLDEN=1 go test writes it\n%s", path, text.String())
	}
}
