package generator

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is what a cluster is made of.
type Object interface {
	runtime.Object
	metav1.Object
}

// Size is how many objects a cluster has. Each node publishes one slice of
// DevicesPerNode devices. Running pods hold ClaimsPerPod devices each, from the
// first node on; what they leave is free, and lives are played on it.
type Size struct {
	Nodes          int
	Running        int // pods
	ClaimsPerPod   int // of running pods, one device each
	Waiting        int // pods whose claims cannot be allocated
	ClaimsWaiting  int // of each waiting pod; 0: one
	Specifications int // different ones among the waiting; 0: as many as pods wait
	Unused         int // claims that no pod names
}

// DevicesPerNode is how many devices a node has: those of one HGX board.
const DevicesPerNode = 8

// Of is a cluster with a number of claims in the proportions that the targets
// name: for 100,000 claims 10,000 slices with 80,000 devices and 20,000 pods,
// 1,000 of which wait.
func Of(claims int) Size {
	share := claims / 1000
	return Size{Nodes: 100 * share, Running: 190 * share, ClaimsPerPod: 4, Waiting: 10 * share, Specifications: 50, Unused: 230 * share}
}

// Claims is how many claims there are.
func (s Size) Claims() int { return s.Running*s.ClaimsPerPod + s.Waiting*s.claimsWaiting() + s.Unused }

// Held is how many devices running pods hold.
func (s Size) Held() int { return s.Running * s.ClaimsPerPod }

func (s Size) claimsWaiting() int { return max(s.ClaimsWaiting, 1) }

// Each gives all objects, those together that belong together, the pod before
// its claims. They are made for the call and may be kept. An error ends it.
func (s Size) Each(created time.Time, give func(...Object) error) error {
	for _, part := range []struct {
		count int
		make  func(int) []Object
	}{
		{1, func(int) []Object { return []Object{Class()} }},
		{s.Nodes, func(i int) []Object { return []Object{Node(i), Slice(i)} }},
		{s.Running, func(i int) []Object { return s.running(i, created) }},
		{s.Waiting, func(i int) []Object { return s.waiting(i, created) }},
		{s.Unused, func(i int) []Object { return []Object{NewClaim(meta("spare", i, created), 0)} }},
	} {
		for i := range part.count {
			if err := give(part.make(i)...); err != nil {
				return fmt.Errorf("make a cluster: %w", err)
			}
		}
	}
	return nil
}

// meta names an object as controllers do, in one of fifty namespaces: eight belong to
// one Job.
func meta(kind string, i int, created time.Time) metav1.ObjectMeta {
	job := i / 8
	return metav1.ObjectMeta{
		Namespace: fmt.Sprintf("team-%02d", job%50), Name: fmt.Sprintf("%s-%06d", kind, i),
		UID:               uid(kind, i),
		CreationTimestamp: metav1.NewTime(created.Truncate(time.Second)),
		Labels:            map[string]string{"app.kubernetes.io/name": kind, "batch.kubernetes.io/job-name": fmt.Sprintf("%s-%d", kind, job)},
	}
}

// uid is an object's own, and the same in every run.
func uid(kind string, i int) types.UID {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(kind)) // a hash takes everything
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", sum.Sum32(), i))
}

func (s Size) running(i int, created time.Time) []Object {
	pod := NewPod(meta("train", i, created))
	var made []Object
	var names []string
	for c := range s.ClaimsPerPod {
		claim := NewClaim(meta(fmt.Sprintf("train-gpu%d", c), i, created), 0)
		Allocate(claim, i*s.ClaimsPerPod+c, pod)
		names = append(names, claim.Name)
		made = append(made, claim)
	}
	Claiming(pod, names...)
	Bind(pod, i*s.ClaimsPerPod/DevicesPerNode, created.Add(time.Second))
	Prepare(pod, created.Add(2*time.Second))
	Run(pod, created.Add(3*time.Second))
	return append([]Object{pod}, made...)
}

func (s Size) waiting(i int, created time.Time) []Object {
	specifications := s.Specifications
	if specifications == 0 {
		specifications = s.Waiting
	}
	pod := NewPod(meta("wait", i, created))
	var made []Object
	var names []string
	for c := range s.claimsWaiting() {
		claim := NewClaim(meta(fmt.Sprintf("wait-gpu%d", c), i, created), 1+i%specifications)
		names = append(names, claim.Name)
		made = append(made, claim)
	}
	Claiming(pod, names...)
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: fmt.Sprintf("0/%d nodes are available: %d cannot allocate all claims.", s.Nodes, s.Nodes), LastTransitionTime: pod.CreationTimestamp,
	}}
	return append([]Object{pod}, made...)
}

const (
	driver    = "gpu.nvidia.com"
	className = "gpu.nvidia.com"
)

// Class is the class of all GPUs.
func Class() *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: className},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`},
		}}},
	}
}
