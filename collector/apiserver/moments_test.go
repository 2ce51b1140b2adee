package apiserver

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/dra"
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
		text, err := os.ReadFile(filepath.Join("testdata", "moments", name, file+".yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return moment{pods: pods.Items, claims: claims.Items, slices: slices.Items}
}

func TestDecodesMomentsOfARealCluster(t *testing.T) {
	for _, name := range moments() {
		t.Run(name, func(t *testing.T) {
			captured := readMoment(t, name)
			var decoded struct {
				Pods      []dra.Pod
				Claims    []dra.Claim
				Published []dra.PublishedDevice
			}
			for i := range captured.pods {
				decoded.Pods = append(decoded.Pods, decodePod(&captured.pods[i], "app"))
			}
			for i := range captured.claims {
				decoded.Claims = append(decoded.Claims, decodeClaim(&captured.claims[i]))
			}
			for i := range captured.slices {
				decoded.Published = append(decoded.Published, decodeSlice(&captured.slices[i])...)
			}
			slices.SortFunc(decoded.Published, compareDevices)
			compareGolden(t, filepath.Join("testdata", "moments", name, "decoded.json"), decoded)
		})
	}
}

// compareGolden compares a value with the file, or, with UPDATE_GOLDEN set,
// writes the file anew.
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
		t.Errorf("%s differs; UPDATE_GOLDEN=1 go test writes it anew\n%s", path, text.String())
	}
}

func TestStrippedObjectsDecodeToTheSame(t *testing.T) {
	for _, name := range moments() {
		captured := readMoment(t, name)
		for i := range captured.pods {
			whole, keptWhole := recordPod(&captured.pods[i], "app", "nobody-has-it")
			light, keptLight := recordPod(stripPod(&captured.pods[i], "app", "nobody-has-it").(*corev1.Pod), "app", "nobody-has-it")
			if keptWhole != keptLight || !reflect.DeepEqual(whole, light) {
				t.Errorf("%s: pod %s\n whole %+v\n light %+v", name, captured.pods[i].Name, whole, light)
			}
		}
		for i := range captured.slices {
			whole, light := decodePoolSlice(&captured.slices[i]), decodePoolSlice(stripSlice(&captured.slices[i]).(*resourcev1.ResourceSlice))
			if !reflect.DeepEqual(whole, light) {
				t.Errorf("%s: slice %s\n whole %+v\n light %+v", name, captured.slices[i].Name, whole, light)
			}
		}
	}
}
