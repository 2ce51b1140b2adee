package apiserver

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

func TestFactsOfSnapshot(t *testing.T) {
	captured := readSnapshot(t, "01-round1")
	var objects []simulated.Object
	want := NodeFacts{PodsFresh: true}
	named := map[dra.ClaimRef]bool{}
	for i := range captured.pods {
		objects = append(objects, &captured.pods[i])
		if pod := decode.Pod(&captured.pods[i], decode.PodFields{Labels: []string{"team"}, Workloads: decode.DefaultWorkloads()}); pod.Node == "node-a" {
			want.Pods = append(want.Pods, pod)
			for _, claim := range pod.Claims {
				named[dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: claim.Claim}] = true
			}
		}
	}
	for i := range captured.claims {
		objects = append(objects, &captured.claims[i])
		if claim := decode.Claim(&captured.claims[i]); named[claim.Ref] {
			want.Claims = append(want.Claims, claim)
		}
	}
	for i := range captured.slices {
		objects = append(objects, &captured.slices[i])
	}
	c := startNodeTest(t, nil, objects...)
	got := c.until("all is known", func(f NodeFacts) bool { return len(f.Claims) == len(want.Claims) && len(f.Published) == 8 })
	if !got.PodsFresh || len(want.Claims) < 7 || !reflect.DeepEqual(got.Pods, want.Pods) || !reflect.DeepEqual(got.Claims, want.Claims) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, claim := range want.Claims {
		if n := c.requestCount("get resourceclaims " + claim.Ref.Name); n != 1 {
			t.Errorf("claim %s was read %d times", claim.Ref, n)
		}
	}
	for what, limit := range map[string]int{"list pods": 0, "list resourceslices": 0, "watch pods": 1, "watch resourceslices": 1, "list resourceclaims": 0, "watch resourceclaims": 0} {
		if n := c.requestCount(what); n > limit {
			t.Errorf("%s: asked %d times", what, n)
		}
	}
	for _, status := range c.node.Statuses() {
		if !status.Up || status.Reason != source.ReasonNone || status.LastSuccess.IsZero() {
			t.Errorf("source %+v", status)
		}
	}
	if again := c.node.Latest(); !reflect.DeepEqual(again, got) || &again.Pods[0] != &got.Pods[0] {
		t.Error("facts are recreated though nothing has changed")
	}
}

func TestFollowsClaimToAllocationAndRecreation(t *testing.T) {
	c := startNodeTest(t, nil, podWithClaim("train", "pod-1", "gpu"), claim("gpu", "claim-1", "", ""))
	c.until("the claim is known unallocated", func(f NodeFacts) bool { return hasClaim("claim-1")(f) && !f.Claims[0].Allocated })
	c.put(claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1"))
	c.until("the claim is allocated", func(f NodeFacts) bool { return f.Claims[0].Allocated && f.Claims[0].ReservedForPod("pod-1") })
	c.delete(podWithClaim("train", "", ""), claim("gpu", "", "", ""))
	c.until("pod and claim are gone", func(f NodeFacts) bool { return len(f.Pods) == 0 && len(f.Claims) == 0 })
	c.put(claim("gpu", "claim-2", "node-a", "gpu-4", "pod-2"), podWithClaim("train", "pod-2", "gpu"))
	c.until("the new claim has the name", hasClaim("claim-2"))
}

func TestRecreatedClaimReplacesOld(t *testing.T) {
	c := startNodeTest(t, nil, podWithClaim("one", "pod-1", "gpu"), claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1"))
	c.until("the claim is known", hasClaim("claim-1"))
	c.delete(claim("gpu", "", "", ""))
	c.put(claim("gpu", "claim-2", "node-a", "gpu-3", "pod-1", "pod-2"), podWithClaim("two", "pod-2", "gpu"))
	facts := c.until("the new claim replaces the old", hasClaim("claim-2"))
	if len(facts.Claims) != 1 {
		t.Errorf("claims are %+v", facts.Claims)
	}
}

func TestReadsNoClaimsForTerminatedPods(t *testing.T) {
	ended := podWithClaim("ended", "pod-1", "over")
	ended.Status.Phase = corev1.PodSucceeded
	c := startNodeTest(t, nil, ended, podWithClaim("live", "pod-2", "gpu"), claim("gpu", "claim-2", "node-a", "gpu-3", "pod-2"))
	facts := c.until("the live pod's claim is known", hasClaim("claim-2"))
	if n := c.requestCount("get resourceclaims over"); n != 0 || podNames(facts) != "live" {
		t.Errorf("claim of a pod that has ended read %d times; pods %+v", n, facts.Pods)
	}
	over := podWithClaim("live", "pod-2", "gpu")
	over.Status.Phase = corev1.PodFailed
	c.put(over)
	c.until("the claim is let go with its last pod", func(f NodeFacts) bool { return len(f.Claims) == 0 && len(f.Pods) == 0 })
}

func TestMissingClaimIsRetriedSlowly(t *testing.T) {
	c := startNodeTest(t, nil, podWithClaim("train", "pod-1", "gpu"))
	c.until("the pod is known", pods("train"))
	began := time.Now()
	time.Sleep(1500 * time.Millisecond)
	// 250, 500, 1000 ms apart, a tenth less at most
	limit := 1
	for next, step := 225*time.Millisecond, 225*time.Millisecond; next < time.Since(began)+100*time.Millisecond; next += step {
		limit, step = limit+1, 2*step
	}
	if n := c.requestCount("get resourceclaims gpu"); n < 2 || n > limit {
		t.Errorf("a missing claim was asked for %d times, want at least 2 and at most %d", n, limit)
	}
	if status := c.status("resourceclaims"); !status.Up || status.Errors != 0 {
		t.Errorf("that a claim is missing is held against the source: %+v", status)
	}
	c.put(claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1"))
	c.until("the claim is found once it is there", hasClaim("claim-1"))
}

func TestKeepsLastCompleteGeneration(t *testing.T) {
	c := startNodeTest(t, nil, publish("s1", "node-a", "p", 1, 1, "a"), publish("t", "node-b", "q", 1, 1, "other"))
	c.until("the pool is known", published("a"))
	c.put(publish("s2", "node-a", "p", 2, 2, "b"), publish("u", "node-a", "r", 1, 1, "z"))
	c.until("the old generation stays while the new one is incomplete", published("az"))
	c.put(publish("s3", "node-a", "p", 2, 2, "c"))
	c.until("the new generation is complete", published("bcz"))
	c.delete(publish("s1", "", "", 0, 0), publish("s2", "", "", 0, 0))
	c.delete(publish("u", "", "", 0, 0))
	c.until("a deletion under way changes nothing of the pool", published("bc"))
	c.delete(publish("s3", "", "", 0, 0))
	c.until("a pool without slices is gone", published(""))
}

func TestListsPoolsOfOtherNodesOnDemand(t *testing.T) {
	c := startNodeTest(t, nil, publish("near", "node-a", "node-a", 1, 1, "gpu-3"), publish("far", "", "fabric", 1, 1, "nic-1", "nic-2"))
	c.until("what is near is known", published("gpu-3"))
	c.put(claim("nic", "claim-1", "fabric", "nic-2", "pod-1"), podWithClaim("one", "pod-1", "nic"))
	facts := c.until("the device that is far is known", published("nic-2gpu-3"))
	if facts.Published[0].Node != "" || facts.Published[1].Node != "node-a" {
		t.Errorf("devices %+v", facts.Published)
	}
	if n := c.requestCount("list resourceslices"); n != 1 {
		t.Errorf("listed %d times", n)
	}
	c.delete(podWithClaim("one", "", ""))
	c.until("it is forgotten with its pod", published("gpu-3"))
}

func TestReportsPodsThatMayHoldDevices(t *testing.T) {
	c := startNodeTest(t, nil, podWithClaim("one", "pod-1", "gpu"))
	c.until("the pod is known", pods("one"))
	if !c.podChanged() {
		t.Error("the first list is not reported")
	}
	bystander := podWithClaim("bystander", "pod-9", "")
	bystander.Spec.ResourceClaims, bystander.Spec.Containers[0].Resources.Claims = nil, nil
	noise := podWithClaim("one", "pod-1", "gpu")
	noise.Status.PodIP, noise.Labels = "192.0.2.7", map[string]string{"a": "b"}
	before := c.until("its claim is known not to exist", func(f NodeFacts) bool { return f.SlicesFresh && len(f.Unread) == 0 })
	same := func() bool { return &c.node.Latest().Pods[0] == &before.Pods[0] }
	c.put(bystander, noise)
	if !c.noPodChange() || !same() {
		t.Error("a pod without devices, or an irrelevant change of a status, is reported")
	}
	started := noise.DeepCopy()
	started.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	c.put(started)
	if !c.podChanged() {
		t.Error("the start of a container is not reported")
	}
	plugin := bystander.DeepCopy()
	plugin.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": {}}
	c.put(plugin)
	if !c.podChanged() || podNames(c.node.Latest()) != "one" {
		t.Error("a pod of a device plugin is not reported, or counts as one that uses claims")
	}
	c.delete(plugin)
	if !c.podChanged() || !same() {
		t.Error("its deletion is not reported, or changes the facts")
	}
}
