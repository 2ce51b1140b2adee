package demo

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// podList is the pods of the kubelet.
type podList struct {
	kubelet  *kubelet.Kubelet
	hardware hardware

	mu   sync.Mutex
	pods map[types.UID]kubelet.Pod
}

func newPodList(k *kubelet.Kubelet, h hardware) *podList {
	return &podList{kubelet: k, hardware: h, pods: make(map[types.UID]kubelet.Pod)}
}

// put lists all pods of an instance, at a stage with their claim.
func (l *podList) put(i *instance, stage kubelet.Stage) {
	l.change(func() {
		for _, pod := range i.pods {
			known := i.listed(pod, stage)
			known.Containers[0].Plugins = l.plugins(i.row)
			l.pods[pod.UID] = known
		}
	})
}

// plugins returns the devices that a device plugin allocates to the workload's
// first container. It names the replicas of devices by their UUIDs and numbers.
func (l *podList) plugins(row workload) []kubelet.Plugin {
	var uuids []string
	for _, id := range row.plugin {
		name, replica, _ := strings.Cut(id, replicaMark)
		if device, ok := l.hardware.byName(name); ok {
			uuids = append(uuids, device.UUID+replicaMark+replica)
		}
	}
	if len(uuids) == 0 {
		return nil
	}
	return []kubelet.Plugin{{Resource: gpuByPlugin, DeviceIDs: uuids}}
}

// remove lists the pods of an instance no more.
func (l *podList) remove(i *instance) {
	l.change(func() {
		for _, pod := range i.pods {
			delete(l.pods, pod.UID)
		}
	})
}

func (l *podList) change(how func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	how()
	l.kubelet.Set(slices.SortedFunc(maps.Values(l.pods), func(a, b kubelet.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}))
}
