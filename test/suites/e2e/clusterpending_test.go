package e2e

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// pendingCase is the expected report of a pod with a pending claim.
type pendingCase struct {
	pod       string
	reference string // within the pod; of an extended resource, its name
	claim     string // name of the ResourceClaim; empty where there is none
	class     string
	scheduler string           // part of the real scheduler's message on the pod, empty for none
	reason    string           // the exporter's reason
	left      map[string][]int // by request: devices left by each stage after the published devices
	explained []string         // parts of the output of `explain pod`
}

func pendingCases() []pendingCase {
	const cannot = "2 cannot allocate all claims"
	one := func(left ...int) map[string][]int { return map[string][]int{"main": left} }
	return []pendingCase{
		{"claim-missing", "device", "", "", "", "claim_missing", nil, []string{"create ResourceClaim never-created"}},
		{"claim-not-created", "device", "", "", "", "claim_not_created", nil, []string{"never-created"}},
		{"no-device-class", "device", "no-device-class", "never-created", "device class never-created does not exist", "no_device_class", nil, []string{"create DeviceClass never-created"}},
		{"no-matching-device", "device", "no-matching-device", "plain.pending", cannot, "no_matching_device", one(2, 0, 0, 0, 0), []string{"widen the selectors", "size >= 99"}},
		{"undetermined", "device", "undetermined", "plain.pending", cannot, "undetermined", nil, []string{
			"cannot be diagnosed: one of its selectors has", "simplify the selectors of the claim",
		}},
		{"bad-selector", "device", "bad-selector", "plain.pending", "no such key: nosuch", "no_matching_device", one(2, 0, 0, 0, 0), []string{"no such key: nosuch", "CEL expression of request main"}},
		{"tainted", "device", "tainted", "tainted.pending", cannot, "tainted", one(1, 1, 0, 0, 0), []string{"pending.example.com/worn", "tolerations: ["}},
		{"insufficient", "device", "insufficient", "plain.pending", cannot, "insufficient_devices", one(2, 2, 2, 2, 1), []string{"asks for 3 devices"}},
		{"waiter", "device", "waiter", "single.pending", cannot, "insufficient_devices", one(1, 1, 1, 0, 0), []string{"pending/holder"}},
		{"fragmented", "device", "fragmented", "plain.pending", cannot, "fragmented", one(2, 2, 2, 2, 1), []string{"no node has more than 1 of them", "no node has 2 usable devices"}},
		{"constraints", "device", "constraints", "pair.pending", cannot, "constraints_unsatisfiable", one(2, 2, 2, 2, 2), []string{"relax the constraint", "pending.example.com/root"}},
		{"incomplete", "device", "incomplete", "incomplete.pending", cannot, "pool_incomplete", one(1, 1, 1, 0, 0), []string{"pool incomplete has"}},
		{"all-mode", "device", "all-mode", "incomplete.pending", "is currently being updated", "pool_incomplete", one(1, 1, 1, 0, 0), []string{"pool incomplete has"}},
		// While any driver has an incomplete pool, the scheduler allocates no
		// request for all devices of a class.
		{"all-others", "device", "all-others", "fabric.pending", "is currently being updated", "pool_incomplete", nil, []string{"pool incomplete has"}},
		{"binding", "device", "binding", "bind.pending", "", "binding_conditions", nil, []string{"binding conditions", "pending.example.com"}},
		{"other", "device", "other", "fabric.pending", "2 Insufficient cpu", "other_constraints", one(2, 2, 2, 2, 2), []string{"Insufficient cpu"}},
		{"affinity", "device", "affinity", "fabric.pending", "didn't match Pod's node affinity/selector", "other_constraints", one(2, 2, 2, 2, 2), []string{"node affinity/selector"}},
		{"elsewhere", "device", "holder", "single.pending", "1 resourceclaim not available on the node", "other_constraints", nil, []string{"resourceclaim not available on the node"}},
		{"gated", "device", "gated", "fabric.pending", "Scheduling is blocked due to non-empty scheduling gates", "scheduling_gated", nil, []string{"scheduling gates", "the owner of the gates removes them"}},
		{"first-available", "device", "first-available", "multiple", cannot, "tainted", map[string][]int{
			"main/four": {2, 2, 2, 2, 1}, "main/worn": {1, 1, 0, 0, 0},
		}, []string{"main/four", "main/worn"}},
		{"extended", "pending.example.com/plain", "", "plain.pending", cannot, "insufficient_devices", map[string][]int{
			"pending.example.com/plain": {2, 2, 2, 2, 1},
		}, []string{"Extended resource pending.example.com/plain"}},
	}
}

// TestClusterPending provokes every reason with real objects. The real
// scheduler's message on each pod confirms that the provocation is valid.
func TestClusterPending(t *testing.T) {
	covers(t)
	twoNodes(t)
	deploy(t, "pending")
	deploy(t, "pending-quota")
	for _, want := range pendingCases() {
		t.Run(want.pod, func(t *testing.T) {
			if want.pod == "incomplete" && !shared.Has(releases.IncompletePools) {
				testIncompletePoolAllocated(t)
				return
			}
			want.test(t, "pending")
		})
	}
	t.Run("quota", func(t *testing.T) {
		pendingCase{"quota", "device", "", "plain.pending", "", "quota", nil, []string{"raise the quota", "pending-quota"}}.test(t, "pending-quota")
	})
	t.Run("oversized", func(t *testing.T) {
		waitClusterPage(t, "one claim beyond the limit of selectors", func(p *scrape.Page) error {
			return hasGauge(p, "dra_exporter_oversized_specs", scrape.Labels{"limit": "selector"}, 1)
		})
	})
	t.Run("claim-unusable", testUnusable)
	t.Run("unknown", testUnknown)
	t.Run("unused", testUnused)
	t.Run("nothing else", func(t *testing.T) {
		p := clusterPage(t)
		for _, namespace := range []string{"pending", "pending-quota"} {
			for _, row := range p.Rows("dra_claim_pending_since_timestamp_seconds", scrape.Labels{"namespace": namespace}) {
				if !slices.ContainsFunc(pendingCases(), func(w pendingCase) bool { return w.pod == row.Labels["pod"] }) && row.Labels["pod"] != "quota" {
					t.Errorf("%v is said to wait", row.Labels)
				}
			}
		}
		allReasons(t, p)
	})
}

// allReasons fails the test unless each reason of the closed set is on the
// page, except for those whose tests clean up first, that of gangs (TestGang), and the
// one that lasts until a claim is diagnosed.
func allReasons(t *testing.T, p *scrape.Page) {
	t.Helper()
	found := map[string]bool{"unknown": true, "claim_unusable": true, "pending_diagnosis": true, "gang_quorum": true, "queue_quota": true, "compute_domain": true}
	for _, row := range p.Rows("dra_claim_pending_reason_info", nil) {
		found[row.Labels["reason"]] = true
	}
	for _, reason := range scrape.Reasons() {
		if !found[reason] {
			t.Errorf("nothing waits for the reason %s: there are %v", reason, slices.Sorted(maps.Keys(found)))
		}
	}
}

// testIncompletePoolAllocated: Kubernetes 1.34 allocates from an incomplete pool.
// The claim is deleted, because its device must be free for the other cases.
func testIncompletePoolAllocated(t *testing.T) {
	waitClusterPage(t, "a claim on an incomplete pool", func(p *scrape.Page) error {
		return hasGauge(p, "dra_claims", scrape.Labels{"namespace": "pending", "deviceclass": "incomplete.pending", "state": "reserved"}, 1)
	})
	for _, object := range []string{"pod/incomplete", "resourceclaim/incomplete"} {
		if _, err := shared.Kubectl(t.Context(), "delete", "--namespace", "pending", object, "--force", "--grace-period=0", "--timeout=60s"); err != nil {
			t.Fatal(err)
		}
	}
}

func (w pendingCase) test(t *testing.T, namespace string) {
	t.Helper()
	if err := waitSchedulerMessage(t.Context(), namespace, w.pod, w.scheduler); err != nil {
		t.Fatalf("the provocation is none: %v", err)
	}
	waitClusterPage(t, w.reason+" for "+w.pod, func(p *scrape.Page) error { return w.check(t, p, namespace) })
	text := explain(t, "pod", namespace+"/"+w.pod)
	for _, words := range append(w.explained, ": "+w.reason) { // as in the heading: some pods are named after the reason
		if !strings.Contains(text, words) {
			t.Errorf("explain does not say %q:\n%s", words, text)
		}
	}
	w.comparePage(t, namespace)
}

// comparePage compares the report on the pod's page with what explain prints. Ages differ,
// a page repeats a report for a while, and the cluster role does not keep what an allocated
// claim requested, nor selectors that exceed a limit.
func (w pendingCase) comparePage(t *testing.T, namespace string) {
	t.Helper()
	age := regexp.MustCompile(`[0-9]+ (s|min|h)\b( [0-9]+ (s|min)\b)?`)
	requested := regexp.MustCompile(` Requested: .*?( ResourceClaim | Devices after each stage: | Devices: | Removed: | Best nodes: | Reserved for: | Pod |$)`)
	printed, shown := "", ""
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := cluster.Eventually(ctx, "the page shows what explain prints", func(ctx context.Context) error {
		printed = age.ReplaceAllString(explain(t, "pod", namespace+"/"+w.pod), "AGE")
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, clusterURL+"pod?"+url.Values{"namespace": {namespace}, "name": {w.pod}}.Encode(), nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		_, report, _ := strings.Cut(string(text), `aria-label="Whole report">`)
		report, _, _ = strings.Cut(report, "</pre>")
		shown = age.ReplaceAllString(strings.Join(strings.Fields(html.UnescapeString(report)), " "), "AGE")
		if !strings.Contains(shown, " Requested: ") {
			printed = requested.ReplaceAllString(printed, "$1")
		}
		if shown != printed {
			return errors.New("they differ")
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v\nthe page shows\n%s\nexplain prints\n%s", err, shown, printed)
	}
}

func (w pendingCase) check(t *testing.T, p *scrape.Page, namespace string) error {
	pod := scrape.Labels{"namespace": namespace, "pod": w.pod, "pod_claim": w.reference}
	since, err := p.One("dra_claim_pending_since_timestamp_seconds", pod)
	if err != nil {
		return err
	}
	if since.Labels["resourceclaim"] != w.claim || since.Labels["deviceclass"] != w.class {
		return fmt.Errorf("it waits for %v", since.Labels)
	}
	if expected, err := pendingSince(t.Context(), namespace, w.pod, w.claim); err != nil || since.Value != expected {
		return fmt.Errorf("it waits since %v, not %v (%w)", since.Value, expected, err)
	}
	reason, err := p.One("dra_claim_pending_reason_info", pod)
	if err != nil {
		return err
	}
	if reason.Labels["reason"] != w.reason {
		return fmt.Errorf("the reason is %s", reason.Labels["reason"])
	}
	return w.checkStages(t, p, pod)
}

func (w pendingCase) checkStages(t *testing.T, p *scrape.Page, pod scrape.Labels) error {
	published, err := publishedDevices(t.Context())
	if err != nil {
		return err
	}
	for request, left := range w.left {
		for i, want := range append([]int{published}, left...) {
			labels := maps.Clone(pod)
			labels["request"], labels["stage"] = request, scrape.Stages()[i]
			if err := hasGauge(p, "dra_claim_pending_candidates", labels, float64(want)); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitSchedulerMessage waits until the scheduler has written a message on a
// pod that contains words.
func waitSchedulerMessage(ctx context.Context, namespace, pod, words string) error {
	return cluster.Eventually(ctx, "the scheduler's word on "+pod, func(ctx context.Context) error {
		found, err := shared.Client().CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
		if err != nil || words == "" {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("it says %v", found.Status.Conditions)
	})
}

// pendingSince returns max(the claim's creation, that of its oldest consumer
// that still exists), from the API server. If the claim was already allocated
// for other pods, it returns the creation of the pod.
func pendingSince(ctx context.Context, namespace, pod, claim string) (float64, error) {
	pods, err := shared.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	oldest, made, given := math.Inf(1), math.Inf(-1), false
	if claim != "" {
		found, err := shared.Client().ResourceV1().ResourceClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
		if err != nil {
			return 0, err
		}
		made, given = float64(found.CreationTimestamp.Unix()), found.Status.Allocation != nil
	}
	for _, p := range pods.Items {
		names := claim != "" && len(p.Spec.ResourceClaims) == 1 && claimName(p.Spec.ResourceClaims[0]) == claim
		if p.Name == pod || names && !given {
			oldest = min(oldest, float64(p.CreationTimestamp.Unix()))
		}
	}
	return max(oldest, made), nil
}

func claimName(claim corev1.PodResourceClaim) string {
	if claim.ResourceClaimName == nil {
		return ""
	}
	return *claim.ResourceClaimName
}

// publishedDevices counts the devices of all pools, each at its latest
// generation.
func publishedDevices(ctx context.Context) (count int, err error) {
	found, err := shared.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	newest := map[string]int64{}
	pool := func(slice *resourceapi.ResourceSlice) string { return slice.Spec.Driver + "/" + slice.Spec.Pool.Name }
	for i := range found.Items {
		slice := &found.Items[i]
		newest[pool(slice)] = max(newest[pool(slice)], slice.Spec.Pool.Generation)
	}
	for i := range found.Items {
		if slice := &found.Items[i]; slice.Spec.Pool.Generation == newest[pool(slice)] {
			count += len(slice.Spec.Devices)
		}
	}
	return count, nil
}

const unusableClaim = `
apiVersion: v1
kind: Namespace
metadata: {name: pending-unusable}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: ending, namespace: pending-unusable, finalizers: [pending.example.com/keep]}
spec: {devices: {requests: [{name: main, exactly: {deviceClassName: fabric.pending}}]}}
`

const unusablePod = `
apiVersion: v1
kind: Pod
metadata: {name: unusable, namespace: pending-unusable}
spec:
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimName: ending}]
`

// testUnusable checks a pod that names a claim which is being deleted, and which
// a finalizer keeps.
func testUnusable(t *testing.T) {
	deployText(t, "pending-unusable", unusableClaim)
	if err := shared.Client().ResourceV1().ResourceClaims("pending-unusable").Delete(t.Context(), "ending", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	deployText(t, "pending-unusable", unusablePod)
	t.Cleanup(func() { removeFinalizers(t, "pending-unusable", "ending") })
	pendingCase{"unusable", "device", "ending", "fabric.pending", "", "claim_unusable", nil, []string{
		"wait until ResourceClaim ending is deleted",
	}}.test(t, "pending-unusable")
}

const unscheduledPod = `
apiVersion: v1
kind: Namespace
metadata: {name: pending-silent}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: silent, namespace: pending-silent}
spec: {devices: {requests: [{name: main, exactly: {deviceClassName: fabric.pending}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: silent, namespace: pending-silent}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {kubernetes.io/hostname: node-b}
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimName: silent}]
`

// testUnknown: the scheduler does not run, and nothing prevents the
// allocation. When the scheduler runs again the pod is bound and no claim is
// pending.
func testUnknown(t *testing.T) {
	scheduler := shared.Process("scheduler")
	kill(t, scheduler)
	deployText(t, "pending-silent", unscheduledPod)
	pendingCase{"silent", "device", "silent", "fabric.pending", "", "unknown", map[string][]int{"main": {2, 2, 2, 2, 2}}, []string{"check that the scheduler runs"}}.test(t, "pending-silent")
	start(t, scheduler)
	waitClusterPage(t, "nothing to wait", func(p *scrape.Page) error {
		return hasNoRow(p, "dra_claim_pending_since_timestamp_seconds", scrape.Labels{"namespace": "pending-silent"})
	})
}

// testUnused: a claim to which no pod refers is counted as unused, and is not
// pending.
func testUnused(t *testing.T) {
	p := waitClusterPage(t, "the unused claim", func(p *scrape.Page) error {
		return hasGauge(p, "dra_claims", scrape.Labels{"namespace": "pending", "deviceclass": "plain.pending", "state": "unused"}, 1)
	})
	if err := hasNoRow(p, "dra_claim_pending_since_timestamp_seconds", scrape.Labels{"resourceclaim": "unused"}); err != nil {
		t.Error(err)
	}
	if text := explain(t, "claim", "pending/unused"); !strings.Contains(text, "pending/unused is unused") {
		t.Errorf("explain does not say that it is unused:\n%s", text)
	}
}
