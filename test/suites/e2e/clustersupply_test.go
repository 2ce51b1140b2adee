package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const gibibyte = 1 << 30

// deviceStates returns an error unless this many of the devices with these
// labels are allocated, free and unavailable.
func deviceStates(p *scrape.Page, family string, labels scrape.Labels, allocated, free, unavailable float64) error {
	var errs []error
	for state, want := range map[string]float64{"allocated": allocated, "free": free, "unavailable": unavailable} {
		if family == "dra_devices" && state == "unavailable" && want == 0 {
			errs = append(errs, hasNoRow(p, family, with(labels, "state", state)))
			continue
		}
		errs = append(errs, hasGauge(p, family, with(labels, "state", state), want))
	}
	return errors.Join(errs...)
}

func pool(driver, name, node string) scrape.Labels {
	return scrape.Labels{"driver": driver, "pool": name, "node": node}
}

// TestClusterSupply: the published devices, and those that are left, before
// and after allocations.
func TestClusterSupply(t *testing.T) {
	covers(t)
	t.Run("pools", testPools)
	t.Run("free", testFree)
	t.Run("allocated", testAllocated)
}

// testPools removes the incomplete pool afterwards: while any pool is
// incomplete, the scheduler allocates no request for all devices of a class.
func testPools(t *testing.T) {
	twoNodes(t)
	waitClusterPage(t, "the pools", func(p *scrape.Page) error {
		return errors.Join(
			deviceStates(p, "dra_devices", pool(pendingDriver, "node-a", "node-a"), 0, 5, 1), // one is tainted
			deviceStates(p, "dra_devices", pool(pendingDriver, "node-b", "node-b"), 0, 1, 0),
			deviceStates(p, "dra_devices", pool(pendingDriver, "incomplete", "node-a"), 0, 0, 1),
			deviceStates(p, "dra_devices", pool(pendingDriver, "fabric", ""), 0, 2, 0),
			hasGauge(p, "dra_pool_complete", pool(pendingDriver, "incomplete", "node-a"), 0),
			hasGauge(p, "dra_pool_slices", pool(pendingDriver, "incomplete", "node-a"), 1),
			hasGauge(p, "dra_pool_generation", pool(pendingDriver, "incomplete", "node-a"), 1),
			hasNoRow(p, "dra_pool_complete", pool(pendingDriver, "fabric", "")),
			hasNoRow(p, "dra_pool_slices", pool(pendingDriver, "fabric", "")),
			hasNoRow(p, "dra_pool_generation", pool(pendingDriver, "fabric", "")),
			deviceStates(p, "dra_class_devices", scrape.Labels{"deviceclass": "plain.pending"}, 0, 2, 0),
			deviceStates(p, "dra_class_devices", scrape.Labels{"deviceclass": "tainted.pending"}, 0, 0, 1),
			deviceStates(p, "dra_class_devices", scrape.Labels{"deviceclass": "incomplete.pending"}, 0, 0, 1),
			hasGauge(p, "dra_device_class_info", scrape.Labels{"deviceclass": "plain.pending", "extended_resource": "pending.example.com/plain"}, 1),
			hasGauge(p, "dra_device_taints", scrape.Labels{"driver": pendingDriver, "pool": "node-a", "key": "pending.example.com/worn", "effect": "NoSchedule"}, 1),
		)
	})
}

func testFree(t *testing.T) {
	waitClusterPage(t, "free devices", func(p *scrape.Page) error {
		return errors.Join(
			deviceStates(p, "dra_devices", pool(lifeDriver, "node-a", "node-a"), 0, 8, 0),
			hasNoRow(p, "dra_pool_complete", pool(lifeDriver, "node-a", "node-a")),
			deviceStates(p, "dra_class_devices", scrape.Labels{"deviceclass": "part.life"}, 0, 3, 0),
			hasGauge(p, "dra_capacity", scrape.Labels{"driver": lifeDriver, "device": "shared-0", "capacity": "memory"}, 80*gibibyte),
			hasGauge(p, "dra_capacity_consumed", scrape.Labels{"driver": lifeDriver, "device": "shared-0", "capacity": "memory"}, 0),
		)
	})
}

// testAllocated: an allocated half makes the whole card unavailable. A shared
// device loses the capacity that claims consume. Admin access uses no
// capacity.
func testAllocated(t *testing.T) {
	before := clusterPage(t)
	manifests, consumed := supplyManifests(t)
	deployText(t, "supply", manifests)
	for _, pod := range []string{"half", "share-16", "share-8", "extended", "choice", "monitor"} {
		running(t, "supply", pod)
	}
	waitClusterPage(t, "taken devices", func(p *scrape.Page) error {
		return errors.Join(
			// Allocated are a half, the shared device, the device of the
			// extended resource, and the one that the prioritized list chose.
			deviceStates(p, "dra_devices", pool(lifeDriver, "node-a", "node-a"), 4, 3, 1),
			deviceStates(p, "dra_class_devices", scrape.Labels{"deviceclass": "part.life"}, 1, 1, 1),
			deviceStates(p, "dra_class_devices", scrape.Labels{"deviceclass": "shared.life"}, 1, 0, 0),
			deviceStates(p, "dra_class_devices", scrape.Labels{"deviceclass": "gpu.life"}, 1, 1, 0),
			hasGauge(p, "dra_capacity_consumed", scrape.Labels{"driver": lifeDriver, "device": "shared-0", "capacity": "memory"}, consumed),
			reserved(p, "part.life", 1), reserved(p, "shared.life", 2),
			reserved(p, "gpu.life", 2),  // the extended resource and the claim with admin access
			reserved(p, "only.life", 1), // the choice of the prioritized list
			observed(before, p, "only.life", 1), observed(before, p, "gpu.life", 2),
			hasNoRow(p, "dra_claim_pending_since_timestamp_seconds", scrape.Labels{"namespace": "supply"}),
		)
	})
}

// supplyManifests returns the objects of testdata/claims/supply.yaml, and how
// much of the shared device's memory they consume. Kubernetes 1.34 allocates no
// request for memory there: the claims then get the default.
func supplyManifests(t *testing.T) (manifests string, consumed float64) {
	t.Helper()
	data, err := os.ReadFile("testdata/claims/supply.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if shared.Has(releases.CapacityRanges) {
		return string(data), (16 + 8) * gibibyte
	}
	requests := regexp.MustCompile(`, capacity: \{requests: \{memory: \w+\}\}`)
	if n := len(requests.FindAll(data, -1)); n != 2 {
		t.Fatalf("there are %d requests for memory, want 2", n)
	}
	return requests.ReplaceAllString(string(data), ""), (8 + 8) * gibibyte
}

func reserved(p *scrape.Page, class string, want float64) error {
	return hasGauge(p, "dra_claims", scrape.Labels{"namespace": "supply", "deviceclass": class, "state": "reserved"}, want)
}

// rule is a DeviceTaintRule, whose API version depends on the release. Its
// arguments are the version and the effect.
const rule = `
apiVersion: resource.k8s.io/%s
kind: DeviceTaintRule
metadata: {name: e2e}
spec:
  deviceSelector: {driver: life.example.com, pool: node-a, device: only-0}
  taint: {key: e2e.example.com/worn, value: "yes", effect: %s}
`

// applyRule creates the rule with this effect until the test ends.
func applyRule(t *testing.T, effect string) {
	t.Helper()
	text := fmt.Sprintf(rule, shared.TaintRuleVersion(), effect)
	if err := shared.Apply(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Delete(context.WithoutCancel(t.Context()), text); err != nil {
			t.Error(err)
		}
	})
}

// TestClusterTaintRules applies a rule of each effect to the only device of a
// class.
func TestClusterTaintRules(t *testing.T) {
	covers(t)
	only := scrape.Labels{"deviceclass": "only.life"}
	taint := func(effect string) scrape.Labels {
		return scrape.Labels{"driver": lifeDriver, "pool": "node-a", "key": "e2e.example.com/worn", "effect": effect}
	}
	t.Run("None", func(t *testing.T) {
		if !shared.Has(releases.TaintWithoutEffect) {
			return // TestFeatures asserts that the API server refuses it
		}
		applyRule(t, "None")
		waitClusterPage(t, "a taint without effect", func(p *scrape.Page) error {
			return errors.Join(hasGauge(p, "dra_device_taints", taint("None"), 1), deviceStates(p, "dra_class_devices", only, 0, 1, 0))
		})
	})
	t.Run("NoSchedule", func(t *testing.T) {
		applyRule(t, "NoSchedule")
		waitClusterPage(t, "a tainted device", func(p *scrape.Page) error {
			return errors.Join(hasGauge(p, "dra_device_taints", taint("NoSchedule"), 1), deviceStates(p, "dra_class_devices", only, 0, 0, 1))
		})
		deployText(t, "turns", heldPods)
		waitClusterPage(t, "a pod that does not tolerate it", func(p *scrape.Page) error {
			return hasReason(p, scrape.Labels{"namespace": "turns", "pod": "first"}, "tainted")
		})
		if text := explain(t, "pod", "turns/first"); !strings.Contains(text, "e2e.example.com/worn") {
			t.Errorf("explain does not name the taint:\n%s", text)
		}
	})
	t.Run("NoExecute", func(t *testing.T) {
		deployText(t, "turns", heldPods)
		running(t, "turns", "first")
		before := clusterPage(t)
		applyRule(t, "NoExecute")
		waitClusterPageWithin(t, unhealthyTimeout, "the eviction", func(p *scrape.Page) error {
			return counterIncreased(before, p, "dra_pod_taint_evictions_total", scrape.Labels{"namespace": "turns"})
		})
		waitPodGone(t, "turns", "first")
	})
	waitClusterPage(t, "the device to be free again", func(p *scrape.Page) error {
		return errors.Join(deviceStates(p, "dra_class_devices", only, 0, 1, 0), hasNoRow(p, "dra_device_taints", scrape.Labels{"key": "e2e.example.com/worn"}))
	})
}

func waitPodGone(t *testing.T, namespace, pod string) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "pod "+pod+" gone", func(ctx context.Context) error {
		_, err := shared.Client().CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	if err != nil {
		t.Fatal(err)
	}
}
