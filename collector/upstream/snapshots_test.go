package upstream

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// Real clusters without these bugs show no sign of them, at any time up to an hour after
// they were recorded, and whatever their version.
func TestRealClusters(t *testing.T) {
	recorded, err := filepath.Glob("../../test/fakes/fixtures/moments/*")
	if err != nil || len(recorded) == 0 {
		t.Fatalf("no recorded clusters: %v", err)
	}
	for _, folder := range recorded {
		c, latest := readCluster(t, folder)
		if len(c.Pods) == 0 && len(c.Claims) == 0 && len(c.pools()) == 0 {
			t.Errorf("%s has no objects", folder)
		}
		for _, version := range []string{"", "v1.34.0", "v1.35.0", "v1.36.0", "v1.37.0"} {
			for _, later := range []time.Duration{0, time.Minute, time.Hour} {
				c.Server, c.Now = version, latest.Add(later)
				for _, found := range Find(c) {
					t.Errorf("%s at %q, %s later: %s: %s", folder, version, later, found.Bug.ID, found.Text)
				}
			}
		}
	}
}

// readCluster reads the objects of a recorded cluster, and the latest time in them.
func readCluster(t *testing.T, folder string) (c *ClusterObjects, latest time.Time) {
	t.Helper()
	var pods corev1.PodList
	var claims resourcev1.ResourceClaimList
	var slices resourcev1.ResourceSliceList
	var rules resourcev1.DeviceTaintRuleList
	for file, list := range map[string]any{"pods": &pods, "resourceclaims": &claims, "resourceslices": &slices, "devicetaintrules": &rules} {
		text, err := os.ReadFile(filepath.Join(folder, file+".yaml"))
		if errors.Is(err, os.ErrNotExist) {
			continue // not all moments have all
		}
		if err == nil {
			err = yaml.Unmarshal(text, list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c = NewClusterObjects(time.Time{}, "")
	c.PodsKnown = true
	kept := inventory.New()
	for i := range pods.Items {
		pod := decode.PodLifecycle(&pods.Items[i], decode.DefaultWorkloads())
		c.Apply(dra.Change{Pod: &pod})
		for _, at := range []time.Time{pod.Created, pod.Deleted, pod.Scheduled, pod.Started, pod.Ended} {
			if at.After(latest) {
				latest = at
			}
		}
	}
	for i := range claims.Items {
		claim := decode.ClaimLifecycle(&claims.Items[i])
		c.Apply(dra.Change{Claim: &claim})
		kept.ApplyClaim(claim.Ref.Namespace, claim.Ref.Name, &claims.Items[i])
	}
	for i := range slices.Items {
		kept.ApplySlice(slices.Items[i].Name, &slices.Items[i])
	}
	for i := range rules.Items {
		kept.ApplyRule(rules.Items[i].Name, &rules.Items[i])
	}
	c.Supply = kept.Supply()
	return c, latest
}
