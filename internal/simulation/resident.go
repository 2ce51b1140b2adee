package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/internal/simulation/apiserver"
)

// resident is a row of the scenario: a workload that has been running on the
// far node since long before the scenario begins, and what is odd about it.
type resident struct {
	workload
	age     time.Duration
	deleted time.Duration // how long ago its claim was deleted; 0: not at all
	gone    bool          // its pod is not there any more
	sick    bool          // the kubelet says so of its devices
}

// residents hold the far node's GPUs but two.
func residents() []resident {
	holds := func(namespace, name string, from owner, class string, template string, gpus ...string) workload {
		return workload{
			namespace: namespace, name: name, owner: from, node: farNode,
			containers: []container{{name: "server", image: imageInference}},
			claim:      claim{name: "gpu", template: template, requests: []request{{name: "gpu", class: class, devices: gpus}}},
		}
	}
	deletedClaim := holds("speech", "archive", ownedByStatefulSet, classGPU, "", "gpu-2")
	deletedClaim.claim.name = "archive-gpu"
	leftover := holds("biology", "leftover", ownedByStatefulSet, classGPU, "", "gpu-3")
	leftover.claim.name = "leftover-gpu"
	return []resident{
		{workload: holds("speech", "transcriber", ownedByReplicaSet, classGPU, "two-gpus", "gpu-0", "gpu-1"), age: 50 * time.Hour},
		{workload: deletedClaim, age: 90 * time.Hour, deleted: 90 * time.Minute},
		{workload: leftover, age: 30 * time.Hour, gone: true},
		{workload: holds("biology", "folding", ownedByReplicaSet, classGPU, "one-gpu", "gpu-7"), age: 20 * time.Hour, sick: true},
	}
}

// objects are the resident's. All names follow from the seed.
func (r resident) objects(seed uint64, now time.Time) []apiserver.Object {
	created := now.Add(-r.age).Truncate(time.Second)
	i := newInstance(r.workload, 0, seed, created)
	pod := i.pods[0]
	allocate(i.claim, r.workload, i.pods, created, i.random)
	if r.deleted > 0 {
		i.claim.DeletionTimestamp = new(metav1.NewTime(now.Add(-r.deleted).Truncate(time.Second)))
	}
	objects := []apiserver.Object{i.claim}
	if r.claim.template != "" {
		objects = append(objects, newTemplate(r.workload))
		nameClaim(pod, r.workload, i.claim.Name)
	}
	if r.gone {
		return objects
	}
	bind(pod, r.on(), created)
	ready(pod, created)
	startMain(pod, created)
	i.identify(pod)
	if r.sick {
		pod.Status.ContainerStatuses[0].AllocatedResourcesStatus = unwell(i.claim)
	}
	return append(objects, pod)
}

// unwell is what the kubelet says of a claim's devices in a pod's status, if
// they have no CDI devices.
func unwell(made *resourcev1.ResourceClaim) []corev1.ResourceStatus {
	var told []corev1.ResourceStatus
	for _, of := range made.Status.Allocation.Devices.Results {
		told = append(told, corev1.ResourceStatus{
			Name: corev1.ResourceName("claim:" + podClaimOf(made) + "/" + of.Request),
			Resources: []corev1.ResourceHealth{{
				ResourceID: corev1.ResourceID(of.Driver + "/" + of.Pool + "/" + of.Device), Health: corev1.ResourceHealthStatusUnhealthy,
			}},
		})
	}
	return told
}

// podClaimOf is what the pod calls the claim.
func podClaimOf(made *resourcev1.ResourceClaim) string {
	if name, templated := made.Annotations[podClaimAnnotation]; templated {
		return name
	}
	return made.Name
}

// spare is a claim that nobody uses.
func spare(seed uint64, now time.Time) *resourcev1.ResourceClaim {
	row := workload{namespace: "lab", claim: claim{name: "spare-gpu", requests: []request{{name: "gpu", class: classGPU, count: 1}}}}
	return newClaim(row, nil, now.Add(-72*time.Hour).Truncate(time.Second), newRandom(seed, "lab", "spare-gpu"))
}

// population are all objects of the cluster role's part of the scenario that
// are there when it begins, and stay.
func population(seed uint64, now time.Time) []apiserver.Object {
	objects := farStanding(newRandom(seed, farNode))
	for _, r := range residents() {
		objects = append(objects, r.objects(seed, now)...)
	}
	for _, w := range waiters() {
		objects = append(objects, w.objects(seed, now)...)
	}
	// The GPU that a device plugin has on the agent's node is kept from claims.
	plugged := taintRule("device-plugin", nodeName, gpuName(minorByPlugin), resourcev1.DeviceTaintEffectNoSchedule)
	return append(objects, plugged, spare(seed, now))
}
