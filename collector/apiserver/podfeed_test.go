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

func TestFedPodsAreThoseOfARealCluster(t *testing.T) {
	for _, name := range moments() {
		t.Run(name, func(t *testing.T) {
			captured, w := readMoment(t, name), startTwins(t)
			for i := range captured.slices {
				w.put(&captured.slices[i])
			}
			for i := range captured.claims {
				w.made(&captured.claims[i])
			}
			for i := range captured.pods {
				if captured.pods[i].Spec.NodeName == "node-a" {
					w.run(&captured.pods[i])
				}
			}
			w.alike("both know the same")
		})
	}
}

func TestLearnsTheNamesOfTemplatesClaims(t *testing.T) {
	w := startTwins(t)
	pod := ofTemplate(user("train", "pod-1", ""), "gpu", "train-gpu-x7xvp")
	w.made(ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(pod)
	facts := w.alike("the claim is known")
	if len(facts.Claims) != 1 || facts.Pods[0].Claims[0] != (dra.PodClaim{Name: "gpu", Template: "of-gpu", Claim: "train-gpu-x7xvp"}) {
		t.Errorf("facts %+v", facts)
	}
	if n := w.asked("list resourceclaims"); n != 0 {
		t.Errorf("claims were listed %d times", n)
	}
	w.fed.PodFeed().Listed(nil)
	w.kubelet.Put(pod)
	if w.alike("a kubelet that has just started lists nothing"); len(w.fed.Latest().Claims) != 1 {
		t.Error("the claim is forgotten")
	}
	w.end(pod)
	if facts := w.alike("all is gone"); len(facts.Claims)+len(facts.Pods) != 0 {
		t.Errorf("facts %+v", facts)
	}
}

// TestTellsClaimsOfTheSameContainersApart: what is listed does not, and the
// names of both claims were cut short.
func TestTellsClaimsOfTheSameContainersApart(t *testing.T) {
	w := startTwins(t)
	pod := user("train", "pod-1", "")
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "nic"}, corev1.PodResourceClaim{Name: "disk"})
	pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: "nic"})
	pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	pod.Spec.InitContainers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "disk"}}
	ofTemplate(ofTemplate(ofTemplate(pod, "gpu", "b"), "nic", "a"), "disk", "c")
	w.made(
		ownedBy(claim("b", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"),
		ownedBy(claim("a", "claim-2", "node-a", "nic-1", "pod-1"), "Pod", "train", "pod-1", "nic"),
		ownedBy(claim("c", "claim-3", "node-a", "disk-1", "pod-1"), "Pod", "train", "pod-1", "disk"),
	)
	w.run(pod)
	if facts := w.alike("each is known"); len(facts.Claims) != 3 {
		t.Errorf("facts %+v", facts)
	}
}

// TestFindsClaimsThatOnlyInitContainersUse: they are listed nowhere on the node.
func TestFindsClaimsThatOnlyInitContainersUse(t *testing.T) {
	w := startTwins(t)
	pod := hiding("train", "pod-1", "train-gpu-x7xvp")
	w.made(claim("another", "claim-2", "", ""))
	w.made(ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(pod)
	if facts := w.alike("the claim is known"); len(facts.Claims) != 1 {
		t.Errorf("facts %+v", facts)
	}
	w.fed.mu.Lock()
	defer w.fed.mu.Unlock()
	if open := len(w.fed.feed.unlisted.pods); open != 0 {
		t.Errorf("the claim is known, and %d namespaces are still asked for", open)
	}
}

func TestSaysThatClaimsMayNotBeListed(t *testing.T) {
	w := startTwins(t)
	w.refuse("resourceclaims ", 403)
	pod := hiding("train", "pod-1", "train-gpu-x7xvp")
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

func TestLearnsTheClaimForExtendedResources(t *testing.T) {
	w := startTwins(t)
	pod := plugin("infer", "pod-1")
	pod.Spec.InitContainers = []corev1.Container{{Name: "none"}}
	special := ownedBy(claim("infer-extended-resources-2bq5d", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "infer", "pod-1", "")
	special.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "container-1-request-0", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	special.Status.Allocation.Devices.Results[0].Request = "container-1-request-0"
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: special.Name,
		RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "nvidia.com/gpu", RequestName: "container-1-request-0"}},
	}
	w.made(special)
	w.run(pod)
	if facts := w.alike("the claim is known"); len(facts.Claims) != 1 || len(facts.Pods[0].Containers[1].Uses) != 1 {
		t.Errorf("facts %+v", facts)
	}
}

func TestLearnsTheClaimOfAGroupOfPods(t *testing.T) {
	w := startTwins(t)
	group := "gang"
	shared := claim("gang-gpu-5xkzj", "claim-1", "node-a", "gpu-3", "pod-1", "pod-2")
	w.made(ownedBy(shared, "PodGroup", group, "group-1", "gpu"))
	for i, name := range []string{"a", "b"} {
		pod := hiding(name, fmt.Sprintf("pod-%d", i+1), shared.Name)
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		w.run(pod)
	}
	w.alike("both have the claim")
}
