package demo

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// pendingWorkloads stay pending: one for each reason, except for reasons that
// are only temporary (remoteWorkloads).
func pendingWorkloads() []pendingWorkload {
	gpus := func(namespace, name string, group owner, count int, selector string) workload {
		return workload{
			namespace: namespace, name: name, owner: group,
			containers: []container{{name: "main", image: imagePyTorch}},
			claim: claim{name: "gpus", template: name, requests: []request{
				{name: "gpu", class: classGPU, selector: selector, count: count},
			}},
		}
	}
	nothingFits := onEachNode(cannotAllocate)
	return []pendingWorkload{
		{ // more than there are
			workload: gpus("llm", "pretrain-70b", ownedByJob, 16, ""), age: 26 * time.Hour, schedulerMessage: nothingFits,
		},
		{ // a model that no node has
			workload: gpus("llm", "blackwell", ownedByReplicaSet, 1, "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA B200'"),
			age:      3*time.Hour + 12*time.Minute, schedulerMessage: nothingFits,
		},
		{ // so many are free, but not on one node
			workload: gpus("robotics", "train", ownedByJob, 3, ""), age: 42 * time.Minute, schedulerMessage: nothingFits,
		},
		{workload: alignedPair(), age: 20 * time.Minute, schedulerMessage: nothingFits},
		{workload: missingClass(), age: 17 * time.Minute, schedulerMessage: forAllNodes("request gpu: device class gpu.acme.com does not exist")},
		{workload: missingClaim(), age: 11 * time.Minute, claimMissing: true},
		{ // its namespace has reached its quota of claims
			workload: gpus("students", "homework", ownedByStatefulSet, 1, ""), age: 9 * time.Minute, quotaMessage: exceeded("students", 4),
		},
		{workload: extendedResourceExceeded(), age: 8 * time.Minute, schedulerMessage: nothingFits},
		{workload: prioritizedList(), age: 6 * time.Minute, schedulerMessage: nothingFits},
		{workload: incompletePool(), age: 4 * time.Minute, schedulerMessage: nothingFits},
		{ // devices are free, but no CPU is
			workload: gpus("finance", "etl", ownedByJob, 1, ""), age: 2 * time.Minute, schedulerMessage: withoutVictims("Insufficient cpu"),
		},
		{ // one of the two pods that the gang needs: its device is free, and it alone is not placed
			workload: inGroup(gpus("llm", "post-train", ownedByJob, 1, "")), age: 5 * time.Minute,
			schedulerMessage: "waiting for minCount pods from a gang to appear in scheduling queue",
		},
		{workload: domainUser(), age: 3 * time.Minute, templateMissing: true},
		{workload: gatedForever(gpus("batch", "nightly", ownedByJob, 8, "")), age: 2 * time.Hour},
	}
}

// alignedPair requests a GPU and an adapter with the same PCIe root: both
// exist, but not with the same one.
func alignedPair() workload {
	return workload{
		namespace: "hpc", name: "mpi", owner: ownedByStatefulSet,
		containers: []container{{name: "rank", image: imagePyTorch}},
		claim: claim{name: "pair", template: "gpu-with-nic", align: pcieRoot, requests: []request{
			{name: "gpu", class: classGPU, count: 1}, {name: "nic", class: classNIC, count: 1},
		}},
	}
}

// missingClass names a class that does not exist.
func missingClass() workload {
	return workload{
		namespace: "onboarding", name: "hello-gpu", owner: ownedByReplicaSet,
		containers: []container{{name: "hello", image: imageTool}},
		claim:      claim{name: "gpu", template: "hello", requests: []request{{name: "gpu", class: "gpu.acme.com", count: 1}}},
	}
}

// missingClaim names a claim that does not exist.
func missingClaim() workload {
	return workload{
		namespace: "onboarding", name: "typo", owner: ownedByStatefulSet,
		containers: []container{{name: "jupyter", image: imageNotebook}},
		claim:      claim{name: "shraed-gpu", requests: []request{{name: "gpu", class: classGPU, count: 1}}},
	}
}

// extendedResourceExceeded requests more of an extended resource than exists.
func extendedResourceExceeded() workload {
	return workload{
		namespace: "web", name: "burst", owner: ownedByReplicaSet,
		containers: []container{{name: "worker", image: imageInference}},
		claim:      claim{extended: sliceByClass, requests: []request{{name: "container-0-request-0", class: classSlice, count: 20}}},
	}
}

// prioritizedList requests a B200 or else a partition; the first does not exist and the second is allocated.
func prioritizedList() workload {
	return workload{
		namespace: "lab", name: "protein", owner: ownedByStatefulSet,
		containers: []container{{name: "jupyter", image: imageNotebook}},
		claim: claim{name: "gpu", template: "big-gpu", requests: []request{
			{name: "gpu", firstAvailable: []alternative{
				{name: "b200", class: classGPU, selector: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA B200'"},
				{name: "partition", class: classMIG, selector: profileIs("3g.40gb")},
			}},
		}},
	}
}

// incompletePool requests an FPGA of an incomplete pool.
func incompletePool() workload {
	return workload{
		namespace: "genomics", name: "sorter", owner: ownedByJob,
		containers: []container{{name: "sort", image: imageTool}},
		claim: claim{name: "fpga", template: "sorter-fpga", requests: []request{
			{name: "fpga", class: classFPGA, selector: "device.attributes['fpga.example.com'].model == 'V80'", count: 1},
		}},
	}
}

// inGroup gives the pods of a workload a PodGroup of its name (gangObjects).
func inGroup(w workload) workload {
	w.group = w.name
	return w
}

// domainUser uses a ComputeDomain (gangObjects) whose controller has not made its
// template of claims.
func domainUser() workload {
	return workload{
		namespace: "llm", name: "moe", owner: ownedByJob,
		containers: []container{{name: "rank", image: imagePyTorch}},
		claim:      claim{name: "channel", template: "moe-channel", requests: []request{{name: "channel", class: "compute-domain-default-channel.nvidia.com", count: 1}}},
	}
}

func gatedForever(w workload) workload {
	w.delayed.gate = "kueue.x-k8s.io/admission"
	return w
}

// pendingWorkload is a row of the scenario: a workload whose pod stays pending, and
// was created some time before the scenario begins.
type pendingWorkload struct {
	workload
	age              time.Duration
	schedulerMessage string // the scheduler's condition on the pod; empty: not written yet
	claimMissing     bool   // the claim that the pod names does not exist
	templateMissing  bool   // nor does the template, so that the claim is not made
	quotaMessage     string // why the claim controller cannot make the claim of the template
}

// objects returns the workload's objects, as they have been since its pod was
// created. All names follow from the seed.
func (w pendingWorkload) objects(seed uint64, now time.Time) []apiserver.Object {
	created := now.Add(-w.age).Truncate(time.Second)
	i := newInstance(w.workload, 0, seed, created)
	pod := i.pods[0]
	objects := []apiserver.Object{pod}
	if w.claim.template != "" && !w.templateMissing {
		objects = append(objects, newTemplate(w.workload))
	}
	switch {
	case w.templateMissing:
	case w.quotaMessage != "":
		objects = append(objects, newEvent(pod, "FailedResourceClaimCreation", "resource_claim",
			fmt.Sprintf("PodResourceClaim %s: create ResourceClaim : %s %q is forbidden: %s", w.claim.name, claimCollection, i.claim.GenerateName, w.quotaMessage), created))
	case !w.claimMissing && w.claim.extended == "":
		objects = append(objects, i.claim)
		if i.claim.GenerateName != "" {
			nameClaim(pod, w.workload, i.claim.Name)
		}
	}
	if w.schedulerMessage != "" {
		setUnscheduled(pod, corev1.PodReasonUnschedulable, w.schedulerMessage, created)
	}
	return objects
}

// claimCollection is the name of ResourceClaims in the API server's refusals.
const claimCollection = "resourceclaims." + resourcev1.GroupName

// exceeded is why a claim is refused under a quota of so many.
func exceeded(quota string, limit int) string {
	const counted = "count/" + claimCollection
	return fmt.Sprintf("exceeded quota: %s, requested: %s=1, used: %s=%d, limited: %s=%d", quota, counted, counted, limit, counted, limit)
}

// existingWorkload is a row of the scenario: a workload that has been running
// on the remote node since long before the scenario begins, and its
// peculiarities.
type existingWorkload struct {
	workload
	age        time.Duration
	deleted    time.Duration // how long ago its claim was deleted; 0: not at all
	podDeleted bool          // its pod is not there any more
	unhealthy  bool          // the kubelet reports its devices as unhealthy
}

// existingWorkloads returns workloads that hold all but two of the remote
// node's GPUs.
func existingWorkloads() []existingWorkload {
	holds := func(namespace, name string, group owner, class string, template string, gpus ...string) workload {
		return workload{
			namespace: namespace, name: name, owner: group, node: remoteNode,
			containers: []container{{name: "server", image: imageInference}},
			claim:      claim{name: "gpu", template: template, requests: []request{{name: "gpu", class: class, devices: gpus}}},
		}
	}
	deletedClaim := holds("speech", "archive", ownedByStatefulSet, classGPU, "", "gpu-2")
	deletedClaim.claim.name = "archive-gpu"
	leftover := holds("biology", "leftover", ownedByStatefulSet, classGPU, "", "gpu-3")
	leftover.claim.name = "leftover-gpu"
	return []existingWorkload{
		{workload: holds("speech", "transcriber", ownedByReplicaSet, classGPU, "two-gpus", "gpu-0", "gpu-1"), age: 50 * time.Hour},
		{workload: deletedClaim, age: 90 * time.Hour, deleted: 90 * time.Minute},
		{workload: leftover, age: 30 * time.Hour, podDeleted: true},
		{workload: holds("biology", "folding", ownedByReplicaSet, classGPU, "one-gpu", "gpu-7"), age: 20 * time.Hour, unhealthy: true},
	}
}

// objects returns the workload's objects. All names follow from the seed.
func (r existingWorkload) objects(seed uint64, now time.Time) []apiserver.Object {
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
	if r.podDeleted {
		return objects
	}
	bind(pod, r.on(), created)
	ready(pod, created)
	startMain(pod, created)
	i.identify(pod)
	if r.unhealthy {
		pod.Status.ContainerStatuses[0].AllocatedResourcesStatus = unhealthyStatus(i.claim)
	}
	return append(objects, pod)
}

// unhealthyStatus returns the kubelet's status of a claim's unhealthy devices
// in a pod's status, if they have no CDI devices.
func unhealthyStatus(made *resourcev1.ResourceClaim) []corev1.ResourceStatus {
	var statuses []corev1.ResourceStatus
	for _, result := range made.Status.Allocation.Devices.Results {
		statuses = append(statuses, corev1.ResourceStatus{
			Name: corev1.ResourceName("claim:" + podClaimName(made) + "/" + result.Request),
			Resources: []corev1.ResourceHealth{{
				ResourceID: corev1.ResourceID(result.Driver + "/" + result.Pool + "/" + result.Device), Health: corev1.ResourceHealthStatusUnhealthy,
			}},
		})
	}
	return statuses
}

// podClaimName returns the pod's name of the claim.
func podClaimName(made *resourcev1.ResourceClaim) string {
	if name, ok := made.Annotations[podClaimAnnotation]; ok {
		return name
	}
	return made.Name
}

// unusedClaim is a claim that no pod uses.
func unusedClaim(seed uint64, now time.Time) *resourcev1.ResourceClaim {
	row := workload{namespace: "lab", claim: claim{name: "spare-gpu", requests: []request{{name: "gpu", class: classGPU, count: 1}}}}
	return newClaim(row, nil, now.Add(-72*time.Hour).Truncate(time.Second), newRandom(seed, "lab", "spare-gpu"))
}

// existingObjects returns the objects of the cluster role's part of the
// scenario that exist from the start to the end.
func existingObjects(seed uint64, now time.Time) []apiserver.Object {
	objects := remoteNodeObjects(newRandom(seed, remoteNode))
	for _, r := range existingWorkloads() {
		objects = append(objects, r.objects(seed, now)...)
	}
	for _, w := range pendingWorkloads() {
		objects = append(objects, w.objects(seed, now)...)
	}
	objects = append(objects, gangObjects(seed, now)...)
	// The GPU that a device plugin has on the agent's node is kept from claims.
	plugged := taintRule("device-plugin", nodeName, gpuName(minorByPlugin), resourcev1.DeviceTaintEffectNoSchedule)
	return append(objects, plugged, unusedClaim(seed, now))
}
