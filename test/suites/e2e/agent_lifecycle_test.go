package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestInitContainer: init containers hold their claims while they run,
// although the kubelet does not list them. A completed pod releases its
// claims.
func TestInitContainer(t *testing.T) {
	covers(t)
	deploy(t, "init")
	for pod, consumers := range map[string][]string{
		"warm":     {"warm/main", "warm/warm"}, // and the main container after it
		"prepares": {"prepares/prepare"},
	} {
		want := wantedClaim{claim: pod + "-gpu-*", class: "gpu.example.com", template: "single-gpu", devices: []wantedDevice{
			{"gpu.example.com/gpu-?", "gpu", "exclusive", consumers},
		}}
		eventually(t, "the claim of "+pod, func(p *scrape.Page) error {
			infos, err := currentClaims(t, p, "init")
			if err != nil {
				return err
			}
			if err := want.check(p, infos); err != nil {
				return err
			}
			return initContainerRuns(t, pod)
		})
	}
	for _, container := range []string{"prepare", "main"} {
		waitListed(t, "init", "prepares", container)
	}
	if _, err := shared.WaitPod(t.Context(), "init", "completes", corev1.PodSucceeded); err != nil {
		t.Error(err)
	}
	running(t, "init", "warm")
	running(t, "init", "prepares")
	p := eventually(t, "the completed pod's claim to be gone", func(p *scrape.Page) error {
		return heldOnly(p, "init", "prepares-gpu-*", "warm-gpu-*")
	})
	checkInjected(t, p, "init")
}

// initContainerRuns fails unless the pod's init container runs now, so that it ran when
// the claim was exported.
func initContainerRuns(t *testing.T, name string) error {
	t.Helper()
	pod, err := shared.Client().CoreV1().Pods("init").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status := pod.Status.InitContainerStatuses
	switch {
	case len(status) == 1 && status[0].State.Terminated != nil:
		t.Fatalf("the claim of %s was shown only when the init container had run", name)
	case len(status) != 1 || status[0].State.Running == nil:
		return errors.New("the init container does not run yet")
	}
	return nil
}

// heldOnly returns an error unless exactly these claims of a namespace hold
// devices.
func heldOnly(p *scrape.Page, namespace string, names ...string) error {
	rows := p.Rows("dra_claim_held", scrape.Labels{"namespace": namespace})
	if len(rows) != len(names) {
		return fmt.Errorf("%d claims hold devices, not %d: %v", len(rows), len(names), rows)
	}
	for i, row := range rows {
		if !matches(row.Labels["resourceclaim"], names[i]) {
			return fmt.Errorf("%s holds a device, not %s", row.Labels["resourceclaim"], names[i])
		}
	}
	return nil
}

// TestPodDeleted: gauges end with dra_claim_held, and counters are kept for
// the grace period. Both are rules of every page. This test checks that both
// happen.
func TestPodDeleted(t *testing.T) {
	covers(t)
	deploy(t, "exclusive")
	running(t, "exclusive", "train")
	before, _ := waitShown(t, "exclusive", wantedExclusive())
	held, err := before.One("dra_claim_held", scrape.Labels{"namespace": "exclusive"})
	if err != nil {
		t.Fatal(err)
	}
	claim := scrape.Labels{"namespace": "exclusive", "resourceclaim": held.Labels["resourceclaim"]}
	remove(t, "exclusive", "train")
	released := eventually(t, "the claim to let go", func(p *scrape.Page) error { return heldOnly(p, "exclusive") })
	for _, name := range []string{"dra_claim_held_seconds_total", "dra_claim_busy_seconds_total", "dra_claim_nvlink_transmit_bytes_total", "dra_claim_info", "dra_claim_consumer_info"} {
		if released.Count(name, claim) != 1 {
			t.Errorf("%s is gone with the hold", name)
		}
	}
	free, err := released.One("dra_device_holders", scrape.Labels{"uuid": held.Labels["uuid"], "kind": "claim"})
	if err != nil || free.Value != 0 {
		t.Errorf("the device is held by %v claims (%v)", free.Value, err)
	}
	last := eventually(t, "the end of the grace", func(p *scrape.Page) error {
		for _, name := range p.Names("dra_claim_") {
			if p.Count(name, claim) > 0 {
				return fmt.Errorf("%s is there", name)
			}
		}
		return nil
	})
	if lived := last.At.Sub(released.At); lived < grace-2*time.Second {
		t.Errorf("counters lived on for %s, not %s", lived, grace)
	}
	total, err := last.One("dra_namespace_busy_seconds_total", scrape.Labels{"namespace": "exclusive", "deviceclass": "gpu.example.com"})
	if err != nil || total.Value == 0 {
		t.Errorf("the namespace's total is %v (%v)", total.Value, err)
	}
}

// remove deletes a pod and waits until it is gone.
func remove(t *testing.T, namespace, pod string) {
	t.Helper()
	if _, err := shared.Kubectl(t.Context(), "delete", "pod", "--namespace", namespace, pod, "--wait=true", "--timeout=60s"); err != nil {
		t.Fatal(err)
	}
}

// recreatedClaim is a claim that requests one particular GPU, and its pod.
const recreatedClaim = `
apiVersion: v1
kind: Namespace
metadata: {name: again}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: same-name, namespace: again}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].index == 1"}}]}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: same-name, namespace: again}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: same-name}]
`

// TestClaimRecreated: while a claim is deleted and created again under its
// name, no page lacks its counters, and none has a lower value than the page
// before.
func TestClaimRecreated(t *testing.T) {
	covers(t)
	deployText(t, "again", recreatedClaim)
	first := running(t, "again", "same-name")
	want := wantedClaim{claim: "same-name", class: "gpu.example.com", devices: []wantedDevice{
		{"gpu.example.com/gpu-1", "gpu", "exclusive", []string{"same-name/main"}},
	}}
	_, before := waitShown(t, "again", want)
	check := watcher.CheckRule(countersNeverFall("again", before))
	for life := range 2 {
		remove(t, "again", "same-name")
		if _, err := shared.Kubectl(t.Context(), "delete", "resourceclaim", "--namespace=again", "same-name"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the claim to let go", func(p *scrape.Page) error { return heldOnly(p, "again") })
		if err := shared.Apply(t.Context(), recreatedClaim); err != nil {
			t.Fatal(err)
		}
		pod := running(t, "again", "same-name")
		if pod.UID == first.UID {
			t.Fatalf("life %d: the pod is the same", life+2)
		}
		_, after := waitShown(t, "again", want)
		if uid := claimUID(t, after); uid == claimUID(t, before) {
			t.Errorf("life %d: the page still has the claim's first UID, %s", life+2, uid)
		}
	}
	endRuleCheck(t, check, 10)
}

func claimUID(t *testing.T, p *scrape.Page) string {
	t.Helper()
	info, err := p.One("dra_claim_info", scrape.Labels{"namespace": "again"})
	if err != nil {
		t.Fatal(err)
	}
	return info.Labels["claim_uid"]
}

// countersNeverFall returns a rule that the first page's counters of a
// namespace are on each later page, and never lower.
func countersNeverFall(namespace string, first *scrape.Page) scrape.Rule {
	before := first
	return func(p *scrape.Page) (broken []error) {
		for name := range counterSources() {
			for _, row := range before.Rows(name, scrape.Labels{"namespace": namespace}) {
				now, err := p.One(name, row.Labels)
				if err != nil {
					broken = append(broken, err)
				} else if now.Value < row.Value {
					broken = append(broken, fmt.Errorf("%s%s fell from %v to %v", name, row.Labels, row.Value, now.Value))
				}
			}
		}
		if len(broken) == 0 {
			before = p
		}
		return broken
	}
}

// endRuleCheck ends a check that must have read at least this many pages,
// without a violation.
func endRuleCheck(t *testing.T, check *scrape.RuleCheck, atLeast int) {
	t.Helper()
	pages, err := check.End()
	if err == nil && pages < atLeast {
		err = fmt.Errorf("only %d pages were seen", pages)
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d pages were looked at", pages)
}

// waitDevicesPublished waits until every driver's devices are published. After
// a kubelet or a driver was down, their slices are published late.
func waitDevicesPublished(t *testing.T) {
	t.Helper()
	for _, driver := range []string{"gpu.example.com", "share.example.com", "part.example.com", "gpu.nvidia.com", lifeDriver} {
		if err := shared.Process("driver-" + driver).WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	err := cluster.Eventually(t.Context(), "every source of the agent", func(ctx context.Context) error {
		p, err := watcher.Next(ctx)
		if err != nil {
			return err
		}
		for _, row := range p.Rows("dra_exporter_source_up", nil) {
			if row.Value != 1 {
				return errors.New(row.Labels["source"] + " is down")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
