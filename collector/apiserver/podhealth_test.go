package apiserver

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// healthStatus returns the kubelet's health status of devices of one claim, or
// of one request.
func healthStatus(name string, health corev1.ResourceHealthStatus, ids ...corev1.ResourceID) corev1.ResourceStatus {
	status := corev1.ResourceStatus{Name: corev1.ResourceName(name)}
	for _, id := range ids {
		status.Resources = append(status.Resources, corev1.ResourceHealth{ResourceID: id, Health: health})
	}
	return status
}

func written(health []dra.ResourceHealth) string {
	var words []string
	for _, word := range health {
		words = append(words, fmt.Sprintf("%s/%s/%s=%t", word.PodClaim, word.Request, word.ResourceID, word.Healthy))
	}
	return strings.Join(words, " ")
}

// A device that becomes unhealthy is reported at once, without a new listing of
// the kubelet. The order in the status does not matter.
func TestReportsHealth(t *testing.T) {
	of := func(one, two corev1.ResourceHealthStatus) *corev1.Pod {
		pod := podWithClaim("one", "pod-1", "gpu")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{
			healthStatus("claim:gpu", one, "d/p/gpu-0"), healthStatus("claim:gpu", two, "d/p/gpu-1"),
		}}}
		return pod
	}
	const healthy, unhealthy = corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy
	c := startNodeTest(t, nil, of(healthy, healthy))
	c.until("the pod is healthy", func(f NodeFacts) bool {
		return f.PodsFresh && f.SlicesFresh && len(f.Unread) == 0 && len(f.Pods) == 1 && written(f.Pods[0].Health) == "gpu//d/p/gpu-0=true gpu//d/p/gpu-1=true"
	})
	<-c.node.PodChanged()

	c.put(of(unhealthy, healthy))
	before := c.until("a device is unhealthy", func(f NodeFacts) bool { return written(f.Pods[0].Health) == "gpu//d/p/gpu-0=false gpu//d/p/gpu-1=true" })
	turned := of(unhealthy, healthy)
	statuses := turned.Status.ContainerStatuses[0].AllocatedResourcesStatus
	statuses[0], statuses[1] = statuses[1], statuses[0]
	c.put(turned)
	if !c.noPodChange() {
		t.Error("a change of a device's health makes the agent list the pods of the kubelet")
	}
	if &c.node.Latest().Pods[0] != &before.Pods[0] {
		t.Error("another order of the same statuses changes the facts")
	}
	c.put(of(healthy, healthy))
	c.until("it is healthy again", func(f NodeFacts) bool { return !strings.Contains(written(f.Pods[0].Health), "false") })
}
