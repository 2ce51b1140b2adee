package apiserver

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestStartedKubeletReportsNames: no name has to be resolved, and later events
// without names do not remove them.
func TestStartedKubeletReportsNames(t *testing.T) {
	w := startNodePair(t)
	pod := podWithInitClaim("train", "pod-1", "train-gpu-x7xvp")
	w.refuse("resourceclaims ", 403)
	w.kubelet.SetFullStatus(true)
	w.createClaims(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"))
	w.run(pod)
	w.untilEqual("the claim is known")
	w.kubelet.SetFullStatus(false)
	labelled := pod.DeepCopy()
	labelled.Labels = map[string]string{"team": "vision"}
	w.run(labelled)
	w.untilEqual("it still is")
}

// TestFedPodsWithoutAPIServer: an agent that starts without the API server
// knows from the kubelet alone which pods have which claims.
func TestFedPodsWithoutAPIServer(t *testing.T) {
	w := startNodePair(t)
	w.refuse("resourceclaims", 503)
	w.createClaims(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"))
	w.run(ofTemplate(podWithClaim("train", "pod-1", ""), "gpu", "train-gpu-x7xvp"))
	w.until("the claim is named", func(NodeFacts) bool {
		w.list()
		facts := w.fed.Latest()
		return facts.PodsFresh && len(facts.Pods) == 1 && facts.Pods[0].Claims[0].Claim == "train-gpu-x7xvp" &&
			slices.Equal(facts.Unread, []dra.ClaimRef{{Namespace: "lab", Name: "train-gpu-x7xvp"}})
	})
	w.fed.PodFeed().Listed(nil)
	w.fed.PodFeed().Pod(ofTemplate(podWithClaim("train", "pod-1", ""), "gpu", "")) // some other change
	if facts := w.fed.Latest(); len(facts.Pods) != 1 || facts.Pods[0].Claims[0].Claim != "train-gpu-x7xvp" {
		t.Errorf("a kubelet that has just started lists nothing, and the name is lost: %+v", facts.Pods)
	}
}

// TestRecreatedPod: the old pod, deleted by force, runs on for a while, and its
// listing does not apply to the new one.
func TestRecreatedPod(t *testing.T) {
	w := startNodePair(t)
	before := ofTemplate(podWithClaim("train", "pod-1", ""), "gpu", "train-gpu-11111")
	before.CreationTimestamp = metav1.Unix(1_800_000_000, 0)
	w.createClaims(ownedBy(claim("train-gpu-11111", "claim-1", "node-a", "gpu-1", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(before)
	w.untilEqual("the first is known")

	after := ofTemplate(podWithClaim("train", "pod-2", ""), "gpu", "train-gpu-22222")
	after.CreationTimestamp = metav1.Unix(1_800_000_060, 0)
	w.put(after)
	w.kubelet.Put(after)
	w.kubelet.Put(before)
	w.until("the second counts", func(NodeFacts) bool {
		facts := w.fed.Latest()
		return len(facts.Pods) == 1 && facts.Pods[0].UID == "pod-2" && facts.Pods[0].Claims[0].Claim == ""
	})
	delete(w.pods, "pod-1")
	w.kubelet.EndContainers(before)
	w.createClaims(ownedBy(claim("train-gpu-22222", "claim-2", "node-a", "gpu-2", "pod-2"), "Pod", "train", "pod-2", "gpu"))
	w.run(after)
	if facts := w.untilEqual("the second's claim is known"); len(facts.Claims) != 1 || facts.Claims[0].UID != "claim-2" {
		t.Errorf("facts %+v", facts)
	}
}

func TestFedStaticPodsAndPluginPods(t *testing.T) {
	w := startNodePair(t)
	const static = "cfe2a1b09d8c7e6f5a4b3c2d1e0f9a8b"
	mirror := podWithPlugin("monitor-node-a", "pod-1")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: static, "kubernetes.io/config.source": "file"}
	own := mirror.DeepCopy()
	own.UID, own.Annotations = static, map[string]string{"kubernetes.io/config.source": "file"}
	labelled := podWithPlugin("a", "pod-2")
	labelled.Labels = map[string]string{"team": "vision"}
	w.put(mirror)
	w.pods[mirror.UID] = mirror
	w.kubelet.Put(own)
	w.run(labelled)
	if facts := w.untilEqual("both are known"); len(facts.PluginPods) != 2 || facts.PluginPods[1].UID != static {
		t.Errorf("pods %+v", facts.PluginPods)
	}
}

// TestFedPodsOverRestart: pods deleted meanwhile are removed. Until the kubelet
// is back the facts stay, with a stale status.
func TestFedPodsOverRestart(t *testing.T) {
	w := startNodePair(t)
	one, two := podWithClaim("one", "pod-1", "gpu"), podWithClaim("two", "pod-2", "gpu")
	w.createClaims(claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1", "pod-2"))
	w.run(one, two)
	w.untilEqual("both are known")
	w.kubelet.Stop()
	w.until("the pods are old", func(NodeFacts) bool { facts := w.fed.Latest(); return !facts.PodsFresh && len(facts.Pods) == 2 })
	w.kubelet.RemoveWithoutEvent(two)
	w.delete(two)
	delete(w.pods, two.UID)
	if err := w.kubelet.Resume(); err != nil {
		t.Fatal(err)
	}
	if facts := w.untilEqual("one is gone"); len(facts.Pods) != 1 {
		t.Errorf("pods %+v", facts.Pods)
	}
	if _, is := slices.BinarySearch([]string{"resourceclaims", "resourceslices"}, w.fed.Statuses()[0].Name); !is || len(w.fed.Statuses()) != 2 {
		t.Errorf("statuses %+v", w.fed.Statuses())
	}
}

// TestResolvesClaimsByListing: an ambiguous claim is not guessed.
func TestResolvesClaimsByListing(t *testing.T) {
	pod := func(more ...string) *corev1.Pod { // of one claim, and of others of the same container
		pod := ofTemplate(podWithClaim("train", "pod-1", ""), "gpu", "")
		for _, name := range more {
			pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name})
			pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: name})
		}
		return pod
	}
	main, sidecar := []string{"main"}, pod()
	sidecar.Spec.InitContainers = []corev1.Container{{Name: "a-sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: sidecar.Spec.Containers[0].Resources}}
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		listed listedClaims
		want   string
	}{
		"one":                             {pod(), listedClaims{"cut-short": main}, "cut-short"},
		"of other containers":             {pod(), listedClaims{"a": {"side"}, "b": {"main", "side"}}, ""},
		"of a sidecar too":                {sidecar, listedClaims{"a": main, "b": {"a-sidecar", "main"}}, "b"},
		"none":                            {pod(), nil, ""},
		"one of two, the other unlisted":  {pod("nic"), listedClaims{"cut-short": main}, ""},
		"two, by their names":             {pod("nic"), listedClaims{"train-gpu-1": main, "train-nic-1": main}, "train-gpu-1"},
		"two, both cut short":             {pod("nic"), listedClaims{"a": main, "b": main}, ""},
		"the other's name begins with it": {pod("gpu-more"), listedClaims{"train-gpu-more-1": main, "train-gpu-1": main}, ""},
		"one that is not the pod's":       {pod(), listedClaims{"a": main, "train-gpu-1": main}, "train-gpu-1"},
	} {
		if got, known := test.listed.takeClaim(test.pod, "gpu"); got != test.want || known != (test.want != "") {
			t.Errorf("%s: %q, %v", name, got, known)
		}
	}
}
