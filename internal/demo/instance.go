package demo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	procfs "github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// instance is one run of a workload, from the creation of its pods to their
// end: with the present state of its objects. Only one goroutine uses it.
type instance struct {
	row    workload
	seed   uint64
	random *rand.Rand
	pods   []*corev1.Pod
	claim  *resourcev1.ResourceClaim // nil: the workload has none
	events []apiserver.Object        // about its pods
}

// newInstance makes the objects of the run-th run, none of which is created
// yet. All names and UIDs follow from the seed.
func newInstance(row workload, run int, seed uint64, created time.Time) *instance {
	name := []string{row.namespace, row.name, strconv.Itoa(run)}
	if row.index > 0 {
		name = append(name, strconv.Itoa(row.index))
	}
	i := &instance{row: row, seed: seed, random: newRandom(seed, name...)}
	owner := controller(row, run, seed)
	for n := range max(row.pods, 1) {
		i.pods = append(i.pods, newPod(row, metav1.ObjectMeta{
			Namespace: row.namespace, Name: i.podName(owner.Name, n), UID: newUID(i.random),
			CreationTimestamp: metav1.NewTime(created),
			Labels:            podLabels(row, owner.Name, row.index+n),
			OwnerReferences:   []metav1.OwnerReference{owner},
		}))
	}
	if len(row.claim.requests) > 0 {
		i.claim = newClaim(row, i.pods[0], created, i.random)
	}
	return i
}

// podLabels are the labels of the workload's n-th pod: its own, and those that its
// controller gives it. What belongs to the cluster itself is no team's.
func podLabels(row workload, controller string, n int) map[string]string {
	labels := map[string]string{"app.kubernetes.io/name": row.name}
	maps.Copy(labels, row.labels)
	switch row.owner {
	case ownedByJob:
		labels["batch.kubernetes.io/job-name"], labels["batch.kubernetes.io/job-completion-index"] = controller, strconv.Itoa(n)
	case ownedByStatefulSet:
		labels["apps.kubernetes.io/pod-index"] = strconv.Itoa(n)
	case ownedByReplicaSet:
		labels["pod-template-hash"] = strings.TrimPrefix(controller, row.name+"-")
	case ownedByDaemonSet:
	}
	if team, ok := teams()[row.namespace]; ok {
		labels["team"] = team
	}
	return labels
}

// controller is the owner of the workload's pods. Each run of a recurring job
// is a separate job, numbered by minutes as those of a CronJob.
func controller(row workload, run int, seed uint64) metav1.OwnerReference {
	const firstMinute = 29_387_520
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: string(row.owner), Name: row.name, Controller: new(true)}
	origin := "controller"
	switch {
	case row.owner == ownedByJob && row.every > 0:
		origin = strconv.Itoa(firstMinute + run)
		owner.Name += "-" + origin
	case row.owner == ownedByReplicaSet:
		owner.Name += "-" + letters(newRandom(seed, row.namespace, row.name, "pod template"), 10)
	}
	if row.owner == ownedByJob {
		owner.APIVersion = "batch/v1"
	}
	owner.UID = newUID(newRandom(seed, row.namespace, row.name, origin))
	return owner
}

func (i *instance) podName(owner string, n int) string {
	if i.row.owner == ownedByStatefulSet {
		return owner + "-" + strconv.Itoa(n)
	}
	if i.row.ranks > 0 {
		owner += "-" + strconv.Itoa(i.row.index)
	}
	return owner + "-" + suffix(i.random)
}

// listed returns the kubelet's view of a pod of the instance while it is at a
// stage with the claim.
func (i *instance) listed(pod *corev1.Pod, stage kubelet.Stage) kubelet.Pod {
	known := kubelet.Pod{Namespace: pod.Namespace, Name: pod.Name}
	if i.claim != nil {
		known.Claims = []kubelet.Claim{{Name: i.claim.Name, Stage: stage, Devices: i.listedDevices()}}
	}
	for at, c := range i.row.containers {
		container := kubelet.Container{Name: c.name, Init: c.init > 0}
		if i.claim != nil && (i.row.claim.extended == "" || at == 0) {
			container.Uses = []kubelet.Use{{Claim: i.claim.Name, Request: c.request}}
		}
		known.Containers = append(known.Containers, container)
	}
	return known
}

func (i *instance) listedDevices() []kubelet.Device {
	var devices []kubelet.Device
	for _, allocated := range i.claim.Status.Allocation.Devices.Results {
		device := kubelet.Device{
			Request: allocated.Request, Driver: allocated.Driver, Pool: allocated.Pool, Name: allocated.Device,
		}
		if allocated.Driver == driver {
			device.CDI = []string{cdiKind + "=" + cdiName(i.claim.UID, allocated.Device)}
		}
		if allocated.ShareID != nil {
			device.ShareID = string(*allocated.ShareID)
		}
		devices = append(devices, device)
	}
	return devices
}

// runtimeScheme stands before a container's id in the statuses of pods.
const runtimeScheme = "containerd://"

// containerID returns the runtime's id of a container of one of the instance's
// pods. Each run has other ids.
func (i *instance) containerID(pod *corev1.Pod, container string) string {
	random := newRandom(i.seed, string(pod.UID), container)
	return fmt.Sprintf("%016x%016x%016x%016x", random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64())
}

// identify writes the ids of a pod's containers into its status: of those that
// have been created.
func (i *instance) identify(pod *corev1.Pod) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for at := range statuses {
			if status := &statuses[at]; status.State.Waiting == nil {
				status.ContainerID = runtimeScheme + i.containerID(pod, status.Name)
			}
		}
	}
}

// process is a process of the node and what it does on devices.
type process struct {
	command string
	cgroup  string
	uses    []use
}

// use is the load of a process on a device. The device's memory is divided in
// proportion to the processes' memory.
type use struct {
	device string  // as its driver names it
	load   float64 // 0 to 1
	memory float64
}

// processes returns the processes of the instance's containers, of the init
// containers or of the main ones: one in each, at a load of each device.
func (i *instance) processes(initial bool, load float64) []process {
	var made []process
	users := make(map[string]float64) // of each device
	for _, pod := range i.pods {
		for at, c := range i.row.containers {
			if (c.init > 0) != initial {
				continue
			}
			p := process{command: c.name, cgroup: procfs.InContainer(string(pod.UID), i.containerID(pod, c.name))}
			for _, name := range i.row.usedBy(at) {
				p.uses = append(p.uses, use{device: name})
				users[name]++
			}
			made = append(made, p)
		}
	}
	for _, p := range made {
		for at := range p.uses {
			p.uses[at].load = load / users[p.uses[at].device]
			p.uses[at].memory = p.uses[at].load
		}
	}
	return made
}

// rule returns a rule that taints the instance's first device, and evicts its
// pods.
func (i *instance) rule() *resourcev1.DeviceTaintRule {
	return taintRule(i.row.delayed.rule, i.row.on(), i.row.claim.requests[0].devices[0], resourcev1.DeviceTaintEffectNoExecute)
}

// exclusive are the devices that no other instance can use at the same time.
func (i *instance) exclusive() []string {
	names := slices.Clone(i.row.plugin)
	for _, r := range i.row.claim.requests {
		if !r.admin && r.memory == "" {
			names = append(names, r.devices...)
		}
	}
	for at, name := range names {
		names[at] = devicePool(i.row.on(), name) + "/" + name
	}
	return names
}
