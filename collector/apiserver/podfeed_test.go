package apiserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestFedPodsOfSnapshot(t *testing.T) {
	for _, name := range snapshots() {
		t.Run(name, func(t *testing.T) {
			captured, w := readSnapshot(t, name), startNodePair(t)
			for i := range captured.slices {
				w.put(&captured.slices[i])
			}
			for i := range captured.claims {
				w.createClaims(&captured.claims[i])
			}
			for i := range captured.pods {
				if captured.pods[i].Spec.NodeName == "node-a" {
					w.run(&captured.pods[i])
				}
			}
			w.untilEqual("both know the same")
		})
	}
}

func TestResolvesClaimsOfTemplates(t *testing.T) {
	w := startNodePair(t)
	pod := ofTemplate(podWithClaim("train", "pod-1", ""), "gpu", "train-gpu-x7xvp")
	w.createClaims(ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(pod)
	facts := w.untilEqual("the claim is known")
	if len(facts.Claims) != 1 || facts.Pods[0].Claims[0] != (dra.PodClaim{Name: "gpu", Template: "of-gpu", Claim: "train-gpu-x7xvp"}) {
		t.Errorf("facts %+v", facts)
	}
	if n := w.requestCount("list resourceclaims"); n != 0 {
		t.Errorf("claims were listed %d times", n)
	}
	w.fed.PodFeed().Listed(nil)
	w.kubelet.Put(pod)
	if w.untilEqual("a kubelet that has just started lists nothing"); len(w.fed.Latest().Claims) != 1 {
		t.Error("the claim is forgotten")
	}
	w.end(pod)
	if facts := w.untilEqual("all is gone"); len(facts.Claims)+len(facts.Pods) != 0 {
		t.Errorf("facts %+v", facts)
	}
}

// TestDistinguishesClaimsOfSameContainers: the listing does not distinguish
// them, and the names of both claims are truncated.
func TestDistinguishesClaimsOfSameContainers(t *testing.T) {
	w := startNodePair(t)
	pod := podWithClaim("train", "pod-1", "")
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "nic"}, corev1.PodResourceClaim{Name: "disk"})
	pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: "nic"})
	pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	pod.Spec.InitContainers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "disk"}}
	ofTemplate(ofTemplate(ofTemplate(pod, "gpu", "b"), "nic", "a"), "disk", "c")
	w.createClaims(
		ownedBy(claim("b", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"),
		ownedBy(claim("a", "claim-2", "node-a", "nic-1", "pod-1"), "Pod", "train", "pod-1", "nic"),
		ownedBy(claim("c", "claim-3", "node-a", "disk-1", "pod-1"), "Pod", "train", "pod-1", "disk"),
	)
	w.run(pod)
	if facts := w.untilEqual("each is known"); len(facts.Claims) != 3 {
		t.Errorf("facts %+v", facts)
	}
}

// TestFindsClaimsOfInitContainers: no API of the node lists them.
func TestFindsClaimsOfInitContainers(t *testing.T) {
	w := startNodePair(t)
	pod := podWithInitClaim("train", "pod-1", "train-gpu-x7xvp")
	w.createClaims(claim("another", "claim-2", "", ""))
	w.createClaims(ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(pod)
	if facts := w.untilEqual("the claim is known"); len(facts.Claims) != 1 {
		t.Errorf("facts %+v", facts)
	}
	w.fed.mu.Lock()
	defer w.fed.mu.Unlock()
	if open := len(w.fed.feed.unlisted.pods); open != 0 {
		t.Errorf("the claim is known, and %d namespaces are still asked for", open)
	}
}

func TestReportsForbiddenListOfClaims(t *testing.T) {
	w := startNodePair(t)
	w.refuse("resourceclaims ", 403)
	pod := podWithInitClaim("train", "pod-1", "train-gpu-x7xvp")
	w.run(pod)
	deadline := time.Now().Add(time.Minute)
	for {
		status := w.fed.Statuses()[0]
		if status.Up && status.Reason == "permission_denied" && strings.Contains(status.Message, "only init containers use") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("status %+v", status)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestResolvesClaimForExtendedResources(t *testing.T) {
	w := startNodePair(t)
	pod := podWithPlugin("infer", "pod-1")
	pod.Spec.InitContainers = []corev1.Container{{Name: "none"}}
	special := ownedBy(claim("infer-extended-resources-2bq5d", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "infer", "pod-1", "")
	special.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "container-1-request-0", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	special.Status.Allocation.Devices.Results[0].Request = "container-1-request-0"
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: special.Name,
		RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "nvidia.com/gpu", RequestName: "container-1-request-0"}},
	}
	w.createClaims(special)
	w.run(pod)
	if facts := w.untilEqual("the claim is known"); len(facts.Claims) != 1 || len(facts.Pods[0].Containers[1].Uses) != 1 {
		t.Errorf("facts %+v", facts)
	}
}

func TestResolvesClaimOfPodGroup(t *testing.T) {
	w := startNodePair(t)
	group := "gang"
	shared := claim("gang-gpu-5xkzj", "claim-1", "node-a", "gpu-3", "pod-1", "pod-2")
	w.createClaims(ownedBy(shared, "PodGroup", group, "group-1", "gpu"))
	for i, name := range []string{"a", "b"} {
		pod := podWithInitClaim(name, fmt.Sprintf("pod-%d", i+1), shared.Name)
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		w.run(pod)
	}
	w.untilEqual("both have the claim")
}
