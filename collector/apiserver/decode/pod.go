package decode

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// PodFields is what is read of a pod besides what concerns claims.
type PodFields struct {
	Labels    []string   // keys of labels
	Workloads *Workloads // nil: its workload is not read
}

// Pod returns the claims that a pod uses, its workload, and the values of the given
// labels, empty for those that it does not have. A pod without claims has no
// Claims, Containers and Health. It neither keeps nor changes anything of the pod.
func Pod(pod *corev1.Pod, fields PodFields) dra.Pod {
	decoded := dra.Pod{
		Ref:      dra.PodRef{Namespace: Text(pod.Namespace), Name: Text(pod.Name)},
		UID:      Text(string(pod.UID)),
		Node:     Text(pod.Spec.NodeName),
		Terminal: isTerminal(pod),
		Claims:   podClaims(pod),
	}
	owner := controller(pod)
	decoded.OwnerKind, decoded.OwnerName = shortText(owner.Kind, maxName), shortText(owner.Name, maxName)
	if fields.Workloads != nil {
		decoded.Member = fields.Workloads.member(pod)
	}
	for _, key := range fields.Labels {
		decoded.Labels = append(decoded.Labels, Text(pod.Labels[key]))
	}
	if len(decoded.Claims) > 0 {
		decoded.Containers = containers(pod, decoded.Claims)
		decoded.Health = deviceHealth(pod, decoded.Claims, maxHealth)
	}
	return decoded
}

// podClaims resolves the names within the pod to names of ResourceClaims: the
// one given, or the one that the status says was created from the template. The
// claim of extended resources is named by the status alone.
func podClaims(pod *corev1.Pod) []dra.PodClaim {
	var claims []dra.PodClaim
	for _, reference := range first(pod.Spec.ResourceClaims, maxNodeReferences) {
		claim := dra.PodClaim{
			Name:     Text(reference.Name),
			Template: OptionalText(reference.ResourceClaimTemplateName),
			Claim:    OptionalText(reference.ResourceClaimName),
		}
		for _, status := range pod.Status.ResourceClaimStatuses {
			if status.Name == reference.Name && status.ResourceClaimName != nil {
				claim.Claim = Text(*status.ResourceClaimName)
			}
		}
		claims = append(claims, claim)
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		claims = append(claims, dra.PodClaim{Claim: Text(extended.ResourceClaimName)})
	}
	return claims
}

// containers returns the containers that can use claims: init containers,
// sidecars and main ones, but never ephemeral ones.
func containers(pod *corev1.Pod, claims []dra.PodClaim) []dra.Container {
	decoded := make([]dra.Container, 0, min(len(pod.Spec.InitContainers), maxContainers)+min(len(pod.Spec.Containers), maxContainers))
	for _, group := range []struct {
		containers []corev1.Container
		statuses   []corev1.ContainerStatus
	}{
		{pod.Spec.InitContainers, pod.Status.InitContainerStatuses},
		{pod.Spec.Containers, pod.Status.ContainerStatuses},
	} {
		for i := range first(group.containers, maxContainers) {
			container := &group.containers[i]
			decoded = append(decoded, dra.Container{
				Name: Text(container.Name), ID: containerID(container.Name, group.statuses),
				Uses: append(containerUses(container, claims), extendedUses(pod, container.Name)...),
			})
		}
	}
	return decoded
}

// containerID returns the id of the container that runs under the name, or ran
// last. The kubelet writes <type>://<id> (core/v1, ContainerStatus.ContainerID),
// where the type is the runtime: containerd, cri-o, docker. The id is empty until
// the container is created, and changes with each restart.
func containerID(name string, statuses []corev1.ContainerStatus) string {
	for i := range statuses {
		if statuses[i].Name == name {
			_, id, _ := strings.Cut(statuses[i].ContainerID, "://")
			return Text(id)
		}
	}
	return ""
}

// containerUses leaves out claims that are not created yet: they have no name.
func containerUses(container *corev1.Container, claims []dra.PodClaim) []dra.Use {
	var uses []dra.Use
	for _, reference := range container.Resources.Claims {
		for _, claim := range claims {
			if claim.Name == Text(reference.Name) && claim.Name != "" && claim.Claim != "" {
				uses = append(uses, dra.Use{Claim: claim.Claim, Request: Text(reference.Request)})
			}
		}
	}
	return uses
}

func extendedUses(pod *corev1.Pod, container string) []dra.Use {
	extended := pod.Status.ExtendedResourceClaimStatus
	if extended == nil {
		return nil
	}
	var uses []dra.Use
	for _, mapping := range extended.RequestMappings {
		if mapping.ContainerName == container {
			uses = append(uses, dra.Use{Claim: Text(extended.ResourceClaimName), Request: Text(mapping.RequestName)})
		}
	}
	return uses
}

// allStatuses returns the statuses of containers of every kind.
func allStatuses(pod *corev1.Pod) [3][]corev1.ContainerStatus {
	return [...][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses}
}

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// deviceHealth returns what the kubelet reports of the devices that containers
// of any kind got through claims: sorted, each entry once, because the kubelet
// writes them in any order. Entries about devices of device plugins are left
// out, and those that report neither healthy nor unhealthy. Messages are of at
// most so many bytes; 0 leaves them out.
func deviceHealth(pod *corev1.Pod, claims []dra.PodClaim, message int) []dra.ResourceHealth {
	var entries []dra.ResourceHealth
	for _, statuses := range allStatuses(pod) {
		for i := range first(statuses, maxContainers) {
			for _, status := range statuses[i].AllocatedResourcesStatus {
				entries = appendHealth(entries, status, claims, message)
			}
		}
	}
	slices.SortFunc(entries, compareHealth)
	return slices.Compact(entries)
}

// appendHealth appends the entries of one claim, or of one request of it.
func appendHealth(entries []dra.ResourceHealth, status corev1.ResourceStatus, claims []dra.PodClaim, message int) []dra.ResourceHealth {
	name, ofClaim := strings.CutPrefix(Text(string(status.Name)), "claim:")
	if !ofClaim {
		return entries
	}
	name, request, _ := strings.Cut(name, "/")
	claim, ok := claimNamed(name, claims)
	if !ok {
		return entries
	}
	for _, resource := range status.Resources {
		if resource.Health != corev1.ResourceHealthStatusHealthy && resource.Health != corev1.ResourceHealthStatusUnhealthy {
			continue
		}
		entry := dra.ResourceHealth{
			PodClaim: claim, Request: request, ResourceID: Text(string(resource.ResourceID)),
			Healthy: resource.Health == corev1.ResourceHealthStatusHealthy,
		}
		if !entry.Healthy && resource.Message != nil {
			entry.Message = shortText(*resource.Message, message)
		}
		entries = append(entries, entry)
	}
	return entries
}

// claimNamed resolves the kubelet's name of a claim: its name within the pod, or,
// for the claim of extended resources, which has none, its own.
func claimNamed(name string, claims []dra.PodClaim) (podClaim string, known bool) {
	for _, claim := range claims {
		if name != "" && (claim.Name == name || claim.Name == "" && claim.Claim == name) {
			return claim.Name, true
		}
	}
	return "", false
}

func compareHealth(a, b dra.ResourceHealth) int {
	order := cmp.Or(cmp.Compare(a.PodClaim, b.PodClaim), cmp.Compare(a.Request, b.Request), cmp.Compare(a.ResourceID, b.ResourceID))
	switch {
	case order != 0:
		return order
	case a.Healthy == b.Healthy:
		return cmp.Compare(a.Message, b.Message)
	case b.Healthy:
		return -1
	default:
		return 1
	}
}

// PodRecord is what the node role keeps of a pod that may hold devices.
type PodRecord struct {
	Pod dra.Pod

	staticUID string // of the static pod that this one mirrors; empty: it mirrors none
	activity  podActivity
}

// podActivity is what changes in a pod's status when the kubelet may have given
// it devices or taken them back.
type podActivity struct {
	phase          corev1.PodPhase
	deleting       bool
	started, ended int // containers of any kind
}

// UsingClaims returns the pod if it uses claims and has not ended, else nil.
func (r *PodRecord) UsingClaims() *dra.Pod {
	if r == nil || len(r.Pod.Claims) == 0 || r.Pod.Terminal {
		return nil
	}
	return &r.Pod
}

// UsingPlugins returns the pod if it may hold devices through device plugins
// alone and has not ended, else nil. Its UID is the one under which its processes
// are found. That of a static pod is the kubelet's own (pkg/kubelet/config,
// applyDefaults); the API server has a mirror pod with another UID, and an
// annotation with the first. Mirror pods use no claims: no kubelet may create one
// that does (plugin/pkg/admission/noderestriction).
func (r *PodRecord) UsingPlugins() *dra.Pod {
	if r == nil || len(r.Pod.Claims) > 0 || r.Pod.Terminal {
		return nil
	}
	return &dra.Pod{Ref: r.Pod.Ref, UID: cmp.Or(r.staticUID, r.Pod.UID), Node: r.Pod.Node, Labels: r.Pod.Labels, Member: r.Pod.Member}
}

// SameToKubelet reports whether the kubelet lists the same devices for both
// records, either of which may be nil. Health, ids of containers, which the
// kubelet has itself reported, labels and workloads make no difference.
func SameToKubelet(previous, updated *PodRecord) bool {
	return previous != nil && updated != nil && reflect.DeepEqual(previous.withoutReports(), updated.withoutReports())
}

func (r *PodRecord) withoutReports() PodRecord {
	reduced := *r
	reduced.Pod.Health, reduced.Pod.Labels, reduced.Pod.Member = nil, nil, dra.Member{}
	reduced.Pod.Containers = slices.Clone(r.Pod.Containers)
	for i := range reduced.Pod.Containers {
		reduced.Pod.Containers[i].ID = ""
	}
	return reduced
}

// NewPodRecord returns what is kept of the pod, and false for a pod that uses
// neither claims nor resources of device plugins. Fields are those of Pod.
func NewPodRecord(pod *corev1.Pod, fields PodFields) (PodRecord, bool) {
	record := PodRecord{Pod: Pod(pod, fields), staticUID: Text(pod.Annotations[corev1.MirrorPodAnnotationKey])}
	if len(record.Pod.Claims) == 0 && !UsesExtendedResources(pod) {
		return PodRecord{}, false
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

// UsesExtendedResources reports whether a container has a limit of an extended
// resource, which a device plugin or a claim provides.
func UsesExtendedResources(pod *corev1.Pod) bool {
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

// isExtended follows Kubernetes' naming: a resource with a domain that is not
// Kubernetes' own, or a device class by name.
func isExtended(resource string) bool {
	if strings.HasPrefix(resource, resourcev1.ResourceDeviceClassPrefix) {
		return true
	}
	return strings.Contains(resource, "/") && !strings.Contains(resource, "kubernetes.io/")
}
