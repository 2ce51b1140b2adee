package apiserver

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// podRecord is what is kept of a pod that may hold devices.
type podRecord struct {
	pod      dra.Pod
	static   string // the UID of the static pod that this one mirrors; empty: it mirrors none
	activity podActivity
}

// claims is the pod as one that uses claims, or nothing. One that has ended uses
// none any more.
func (r *podRecord) claims() *dra.Pod {
	if r == nil || len(r.pod.Claims) == 0 || r.pod.Terminal {
		return nil
	}
	return &r.pod
}

// plugins is the pod as one that may hold devices through device plugins
// alone, or nothing. Its UID is the one that its processes are known by. That
// of a static pod is the kubelet's own (pkg/kubelet/config, applyDefaults);
// what the API server has is a mirror, with another UID, and an annotation
// that tells the first. Mirrors use no claims: no kubelet may create one that
// does (plugin/pkg/admission/noderestriction).
func (r *podRecord) plugins() *dra.Pod {
	if r == nil || len(r.pod.Claims) > 0 || r.pod.Terminal {
		return nil
	}
	return &dra.Pod{Ref: r.pod.Ref, UID: cmp.Or(r.static, r.pod.UID), Node: r.pod.Node, Labels: r.pod.Labels}
}

// sameToKubelet reports whether nothing is different that the kubelet may list
// otherwise now: not what it has itself said, of devices and of the ids of
// containers, and no labels.
func sameToKubelet(before, after *podRecord) bool {
	return before != nil && after != nil && reflect.DeepEqual(before.listed(), after.listed())
}

// listed is the record without what makes no difference to the kubelet's List.
func (r *podRecord) listed() podRecord {
	listed := *r
	listed.pod.Health, listed.pod.Labels = nil, nil
	listed.pod.Containers = slices.Clone(r.pod.Containers)
	for i := range listed.pod.Containers {
		listed.pod.Containers[i].ID = ""
	}
	return listed
}

// podActivity is what changes in a pod's status when the kubelet may have
// given it devices or taken them back. The rest of a status is noise.
type podActivity struct {
	phase          corev1.PodPhase
	deleting       bool
	started, ended int // containers of any kind
}

// recordPod keeps nothing of a pod that uses neither claims nor resources of
// device plugins.
func recordPod(pod *corev1.Pod, labels ...string) (podRecord, bool) {
	record := podRecord{pod: decodePod(pod, labels...), static: clean(pod.Annotations[corev1.MirrorPodAnnotationKey])}
	if len(record.pod.Claims) == 0 && !usesPlugins(pod) {
		return podRecord{}, false
	}
	record.activity = podActivity{phase: pod.Status.Phase, deleting: pod.DeletionTimestamp != nil}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range first(statuses, maxContainers) {
			if statuses[i].State.Running != nil {
				record.activity.started++
			}
			if statuses[i].State.Terminated != nil {
				record.activity.ended++
			}
		}
	}
	return record, true
}

// usesPlugins reports whether a container asks for an extended resource,
// which a device plugin or, in its place, a claim provides.
func usesPlugins(pod *corev1.Pod) bool {
	for _, group := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range first(group, maxContainers) {
			for name := range group[i].Resources.Limits {
				if isExtended(string(name)) {
					return true
				}
			}
		}
	}
	return false
}

// isExtended follows Kubernetes' naming: a resource with a domain that is
// not Kubernetes' own, or a device class by name.
func isExtended(resource string) bool {
	if strings.HasPrefix(resource, resourcev1.ResourceDeviceClassPrefix) {
		return true
	}
	return strings.Contains(resource, "/") && !strings.Contains(resource, "kubernetes.io/")
}

// stripPod makes a pod that recordPod finds the same in, without environment,
// volumes, other annotations, other labels, managed fields and all else that
// makes pods heavy.
func stripPod(pod *corev1.Pod, labels ...string) any {
	light := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:         pod.Namespace,
		Name:              pod.Name,
		UID:               pod.UID,
		ResourceVersion:   pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp,
		OwnerReferences:   stripOwners(pod.OwnerReferences),
	}}
	for _, key := range labels {
		if value, has := pod.Labels[key]; has {
			metav1.SetMetaDataLabel(&light.ObjectMeta, key, value)
		}
	}
	if static, mirrors := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrors {
		metav1.SetMetaDataAnnotation(&light.ObjectMeta, corev1.MirrorPodAnnotationKey, static)
	}
	light.Spec.NodeName = pod.Spec.NodeName
	light.Spec.ResourceClaims = atMost(pod.Spec.ResourceClaims, maxNodeReferences)
	light.Spec.InitContainers = stripContainers(pod.Spec.InitContainers)
	light.Spec.Containers = stripContainers(pod.Spec.Containers)
	light.Status.Phase = pod.Status.Phase
	light.Status.ResourceClaimStatuses = pod.Status.ResourceClaimStatuses
	light.Status.ExtendedResourceClaimStatus = pod.Status.ExtendedResourceClaimStatus
	light.Status.InitContainerStatuses = stripStatuses(pod.Status.InitContainerStatuses)
	light.Status.ContainerStatuses = stripStatuses(pod.Status.ContainerStatuses)
	light.Status.EphemeralContainerStatuses = stripStatuses(pod.Status.EphemeralContainerStatuses)
	return light
}

// stripOwners leaves the controller, of which the kind and the name are read.
func stripOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	var light []metav1.OwnerReference
	for _, owner := range owners {
		if owner.Controller != nil && *owner.Controller {
			owner.APIVersion, owner.Kind = cut(owner.APIVersion, maxName), cut(owner.Kind, maxName)
			owner.Name, owner.UID = cut(owner.Name, maxName), types.UID(cut(string(owner.UID), maxUID))
			light = append(light[:0], owner)
		}
	}
	return light
}

func stripContainers(containers []corev1.Container) []corev1.Container {
	light := make([]corev1.Container, min(len(containers), maxContainers))
	for i := range light {
		light[i].Name = containers[i].Name
		light[i].Resources.Limits = containers[i].Resources.Limits
		light[i].Resources.Claims = containers[i].Resources.Claims
	}
	return light
}

func stripStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	light := make([]corev1.ContainerStatus, min(len(statuses), maxContainers))
	for i := range light {
		light[i].Name, light[i].ContainerID = statuses[i].Name, statuses[i].ContainerID
		light[i].State = stripState(statuses[i].State)
		light[i].AllocatedResourcesStatus = statuses[i].AllocatedResourcesStatus
	}
	return light
}

// stripState leaves out why a container waits or has ended: it may have written
// anything into its message.
func stripState(state corev1.ContainerState) corev1.ContainerState {
	light := corev1.ContainerState{Running: state.Running}
	if state.Terminated != nil {
		light.Terminated = &corev1.ContainerStateTerminated{}
	}
	return light
}

// stripSlice leaves out the shared counters and who owns and manages the
// slice; its devices are decoded as soon as all slices have come.
func stripSlice(slice *resourcev1.ResourceSlice) any {
	light := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Name:              slice.Name,
		ResourceVersion:   slice.ResourceVersion,
		CreationTimestamp: slice.CreationTimestamp,
	}}
	light.Spec = slice.Spec
	light.Spec.SharedCounters = nil
	light.Spec.NodeSelector = nil
	return light
}
