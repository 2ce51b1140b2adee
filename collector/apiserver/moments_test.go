package apiserver

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// moment is what was captured of a real cluster at one instant.
type moment struct {
	pods   []corev1.Pod
	claims []resourcev1.ResourceClaim
	slices []resourcev1.ResourceSlice
}

func moments() []string { return []string{"01-round1", "06c-pod-succeeded", "09a-taintrule-none"} }

func readMoment(t testing.TB, name string) moment {
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
	return moment{pods: pods.Items, claims: claims.Items, slices: slices.Items}
}
