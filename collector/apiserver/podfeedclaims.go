package apiserver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
)

// learned are the names of claims that a pod's spec does not tell.
//
// The kubelet tells the status that it writes, and that has no names of claims
// made from templates or for extended resources: others write those
// (pkg/kubelet/status, mergePodStatus). A kubelet that has just started tells
// the API server's status, names included, until it has one of its own. Else
// the claim itself says whose it is, once it is found, see podfeedlisted.go.
type learned struct {
	names    map[string]string                      // by the names within the pod
	extended *corev1.PodExtendedResourceClaimStatus // as the API server had it
	special  *resourcev1.ResourceClaim              // else the claim itself, stripped to its requests
}

// fromStatus learns what the status tells, if it does.
func (l *learned) fromStatus(pod *corev1.Pod) {
	for _, status := range pod.Status.ResourceClaimStatuses {
		if decode.OptionalText(status.ResourceClaimName) != "" {
			l.name(status.Name, *status.ResourceClaimName)
		}
	}
	if pod.Status.ExtendedResourceClaimStatus != nil {
		l.extended, l.special = pod.Status.ExtendedResourceClaimStatus.DeepCopy(), nil
	}
}

func (l *learned) name(within, claim string) (news bool) {
	if l.names[within] == claim {
		return false
	}
	if l.names == nil {
		l.names = make(map[string]string)
	}
	l.names[within] = claim
	return true
}

// fromClaim learns from a claim that was made for the pod.
func (l *learned) fromClaim(claim *resourcev1.ResourceClaim) (news bool) {
	if within := claim.Annotations[resourcev1.PodResourceClaimAnnotation]; within != "" {
		return l.name(within, claim.Name)
	}
	if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return false
	}
	if l.extended != nil && l.extended.ResourceClaimName == claim.Name || l.special != nil && l.special.UID == claim.UID {
		return false
	}
	l.extended, l.special = nil, &resourcev1.ResourceClaim{}
	l.special.Name, l.special.UID = claim.Name, claim.UID
	l.special.Spec.Devices.Requests = claim.DeepCopy().Spec.Devices.Requests
	return true
}

// complete is the pod as the API server has it, so far as that is known. What
// the list tells is learned until the claim tells better: a kubelet that has
// just started lists nothing.
func (p *fedPod) complete(listed listedClaims) *corev1.Pod {
	whole := *p.light
	whole.Status.ResourceClaimStatuses = nil
	rest, unnamed := listed.without(p), false
	for _, reference := range whole.Spec.ResourceClaims {
		name, known := p.learned.names[reference.Name]
		if !known && reference.ResourceClaimName == nil {
			name, known = rest.of(&whole, reference.Name)
		}
		if known {
			p.learned.name(reference.Name, name)
			whole.Status.ResourceClaimStatuses = append(whole.Status.ResourceClaimStatuses,
				corev1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &name})
		}
		unnamed = unnamed || !known && reference.ResourceClaimName == nil
	}
	whole.Status.ExtendedResourceClaimStatus = p.learned.extended
	if p.learned.special == nil && p.learned.extended == nil && !unnamed {
		p.learned.special = rest.special(&whole)
	}
	if special := p.learned.special; special != nil {
		whole.Status.ExtendedResourceClaimStatus = mappingsOf(&whole, special, listed[special.Name])
	}
	return &whole
}

// mappingsOf says which container uses which request of the claim for extended
// resources. The scheduler numbers containers, init containers first, and names
// requests after them (createResourceRequestAndMappings in its plugin
// dynamicresources). A container that the kubelet lists the claim for, and after
// which no request is named, uses the claim, whatever of it.
func mappingsOf(pod *corev1.Pod, claim *resourcev1.ResourceClaim, containers []string) *corev1.PodExtendedResourceClaimStatus {
	status := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: claim.Name}
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for i := range all {
		own := false
		for _, request := range claim.Spec.Devices.Requests {
			if strings.HasPrefix(request.Name, fmt.Sprintf("container-%d-", i)) {
				own = true
				status.RequestMappings = append(status.RequestMappings,
					corev1.ContainerExtendedResourceRequest{ContainerName: all[i].Name, RequestName: request.Name})
			}
		}
		if !own && slices.Contains(containers, all[i].Name) {
			status.RequestMappings = append(status.RequestMappings, corev1.ContainerExtendedResourceRequest{ContainerName: all[i].Name})
		}
	}
	return status
}
