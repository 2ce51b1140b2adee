package apiserver

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
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
		text, err := os.ReadFile(filepath.Join("decode", "testdata", "snapshots", name, file+".yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return snapshot{pods: pods.Items, claims: claims.Items, slices: slices.Items}
}
