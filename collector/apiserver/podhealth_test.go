package apiserver

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// says is the kubelet's word on devices of one claim, or of one request.
func says(name string, health corev1.ResourceHealthStatus, ids ...corev1.ResourceID) corev1.ResourceStatus {
	status := corev1.ResourceStatus{Name: corev1.ResourceName(name)}
	for _, id := range ids {
		status.Resources = append(status.Resources, corev1.ResourceHealth{ResourceID: id, Health: health})
	}
	return status
}

func TestDecodesWhatTheKubeletSaysOfDevices(t *testing.T) {
	const healthy, unhealthy, unknown = corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown
	for name, test := range map[string]struct {
		says []corev1.ResourceStatus
		want string
	}{
		"nothing":                     {nil, ""},
		"of a claim":                  {[]corev1.ResourceStatus{says("claim:gpu", healthy, "d/p/gpu-0")}, "gpu//d/p/gpu-0=true"},
		"of a request":                {[]corev1.ResourceStatus{says("claim:gpu/one", unhealthy, "nvidia.com/gpu=0")}, "gpu/one/nvidia.com/gpu=0=false"},
		"of a subrequest":             {[]corev1.ResourceStatus{says("claim:gpu/one/big", healthy, "x")}, "gpu/one/big/x=true"},
		"of an extended resource":     {[]corev1.ResourceStatus{says("claim:p-ext/r0", unhealthy, "x")}, "/r0/x=false"},
		"neither":                     {[]corev1.ResourceStatus{says("claim:gpu", unknown, "x"), says("claim:gpu", "", "y"), says("claim:gpu", "PermanentlyUnhealthy", "z")}, ""},
		"of a device plugin's device": {[]corev1.ResourceStatus{says("nvidia.com/gpu", unhealthy, "GPU-1"), says("gpu", unhealthy, "x")}, ""},
		"of a claim that is not its":  {[]corev1.ResourceStatus{says("claim:other", unhealthy, "x"), says("claim:", unhealthy, "x"), says("claim:named", unhealthy, "x")}, ""},
		"in any order, twice": {[]corev1.ResourceStatus{
			says("claim:gpu/two", healthy, "b", "a"), says("claim:gpu/one", healthy, "b"), says("claim:gpu/one", unhealthy, "b"),
			says("claim:gpu/two", healthy, "a"), says("claim:gpu", healthy, "z"),
		}, "gpu//z=true gpu/one/b=false gpu/one/b=true gpu/two/a=true gpu/two/b=true"},
		"no text": {[]corev1.ResourceStatus{says("claim:gpu/\xff", healthy, "\xfe")}, "gpu/\uFFFD/\uFFFD=true"},
	} {
		pod := user("p", "pod-1", "named")
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "p-ext"}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: test.says}}
		if got := written(decodePod(pod).Health); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func written(health []dra.ResourceHealth) string {
	var words []string
	for _, word := range health {
		words = append(words, fmt.Sprintf("%s/%s/%s=%t", word.PodClaim, word.Request, word.ResourceID, word.Healthy))
	}
	return strings.Join(words, " ")
}

func TestDecodesHealthOfContainersOfEveryKind(t *testing.T) {
	pod := user("p", "pod-1", "named")
	status := func(id corev1.ResourceID) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{AllocatedResourcesStatus: []corev1.ResourceStatus{says("claim:gpu", corev1.ResourceHealthStatusHealthy, id)}}}
	}
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses = status("a"), status("b"), status("c")
	const want = "gpu//a=true gpu//b=true gpu//c=true"
	if got := written(decodePod(pod).Health); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := written(decodePod(stripPod(pod).(*corev1.Pod)).Health); got != want {
		t.Errorf("stripped: %q, want %q", got, want)
	}
	pod.Spec.ResourceClaims = nil
	if got := decodePod(pod); got.Health != nil {
		t.Errorf("a pod without claims has the health of %+v", got.Health)
	}
}

// A captured pod's devices, of which the kubelet knew nothing, fall sick: in
// the names and ids that the kubelet itself wrote.
func TestDecodesHealthOfARealPod(t *testing.T) {
	captured := readMoment(t, "01-round1")
	found := false
	for i := range captured.pods {
		pod := &captured.pods[i]
		if got := decodePod(pod); got.Health != nil {
			t.Errorf("%s: nothing was known, but it says %+v", pod.Name, got.Health)
		}
		for j := range pod.Status.ContainerStatuses {
			for _, status := range pod.Status.ContainerStatuses[j].AllocatedResourcesStatus {
				for k := range status.Resources {
					status.Resources[k].Health = corev1.ResourceHealthStatusUnhealthy
				}
			}
		}
		light := stripPod(pod).(*corev1.Pod)
		if got, want := decodePod(light), decodePod(pod); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: stripped it says %+v, want %+v", pod.Name, got, want)
		}
		for _, word := range decodePod(pod).Health {
			found = true
			if word.PodClaim == "" || word.ResourceID == "" || word.Healthy {
				t.Errorf("%s: %+v", pod.Name, word)
			}
		}
	}
	if !found {
		t.Error("no pod says anything")
	}
}

// A device that falls sick is told at once, but is no reason to ask the
// kubelet; the order in which the kubelet writes is nothing at all.
func TestTellsOfHealth(t *testing.T) {
	of := func(one, two corev1.ResourceHealthStatus) *corev1.Pod {
		pod := user("one", "pod-1", "gpu")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{
			says("claim:gpu", one, "d/p/gpu-0"), says("claim:gpu", two, "d/p/gpu-1"),
		}}}
		return pod
	}
	const healthy, unhealthy = corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy
	c := startCluster(t, nil, of(healthy, healthy))
	c.until("the pod is well", func(f Facts) bool {
		return f.PodsFresh && len(f.Unread) == 0 && len(f.Pods) == 1 && written(f.Pods[0].Health) == "gpu//d/p/gpu-0=true gpu//d/p/gpu-1=true"
	})
	<-c.node.PodChanged()

	c.put(of(unhealthy, healthy))
	before := c.until("a device is sick", func(f Facts) bool { return written(f.Pods[0].Health) == "gpu//d/p/gpu-0=false gpu//d/p/gpu-1=true" })
	turned := of(unhealthy, healthy)
	statuses := turned.Status.ContainerStatuses[0].AllocatedResourcesStatus
	statuses[0], statuses[1] = statuses[1], statuses[0]
	c.put(turned)
	select {
	case <-c.node.PodChanged():
		t.Error("the health of a device is a reason to ask the kubelet")
	case <-time.After(300 * time.Millisecond):
	}
	if &c.node.Latest().Pods[0] != &before.Pods[0] {
		t.Error("another order of the same words changes the facts")
	}
	c.put(of(healthy, healthy))
	c.until("it is well again", func(f Facts) bool { return !strings.Contains(written(f.Pods[0].Health), "false") })
}
