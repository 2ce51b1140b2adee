package apiserver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// decodePod returns what a pod says about the claims that it uses, and the
// values of the wanted labels, empty for those that it does not have. A pod
// without claims gives a value without Claims, Containers and Health. It
// neither keeps nor changes anything of the pod.
func decodePod(pod *corev1.Pod, labels ...string) dra.Pod {
	decoded := dra.Pod{
		Ref:      dra.PodRef{Namespace: clean(pod.Namespace), Name: clean(pod.Name)},
		UID:      clean(string(pod.UID)),
		Node:     clean(pod.Spec.NodeName),
		Terminal: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Claims:   decodePodClaims(pod),
	}
	for _, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			decoded.OwnerKind, decoded.OwnerName = cut(owner.Kind, maxName), cut(owner.Name, maxName)
		}
	}
	for _, key := range labels {
		decoded.Labels = append(decoded.Labels, clean(pod.Labels[key]))
	}
	if len(decoded.Claims) > 0 {
		decoded.Containers = decodeContainers(pod, decoded.Claims)
		decoded.Health = decodeHealth(pod, decoded.Claims)
	}
	return decoded
}

// decodePodClaims resolves the names within the pod to names of
// ResourceClaims: the one given, or the one that the status says was made
// from the template. The claim of extended resources is named by the status
// alone.
func decodePodClaims(pod *corev1.Pod) []dra.PodClaim {
	var claims []dra.PodClaim
	for _, reference := range first(pod.Spec.ResourceClaims, maxNodeReferences) {
		claim := dra.PodClaim{
			Name:     clean(reference.Name),
			Template: cleanOr(reference.ResourceClaimTemplateName),
			Claim:    cleanOr(reference.ResourceClaimName),
		}
		for _, status := range pod.Status.ResourceClaimStatuses {
			if status.Name == reference.Name && status.ResourceClaimName != nil {
				claim.Claim = clean(*status.ResourceClaimName)
			}
		}
		claims = append(claims, claim)
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		claims = append(claims, dra.PodClaim{Claim: clean(extended.ResourceClaimName)})
	}
	return claims
}

// decodeContainers returns the containers that can use claims: init
// containers, sidecars and main ones, but never ephemeral ones.
func decodeContainers(pod *corev1.Pod, claims []dra.PodClaim) []dra.Container {
	containers := make([]dra.Container, 0, min(len(pod.Spec.InitContainers), maxContainers)+min(len(pod.Spec.Containers), maxContainers))
	for _, group := range []struct {
		containers []corev1.Container
		statuses   []corev1.ContainerStatus
	}{
		{pod.Spec.InitContainers, pod.Status.InitContainerStatuses},
		{pod.Spec.Containers, pod.Status.ContainerStatuses},
	} {
		for i := range first(group.containers, maxContainers) {
			container := &group.containers[i]
			containers = append(containers, dra.Container{
				Name: clean(container.Name), ID: containerID(container.Name, group.statuses),
				Uses: append(usesOf(container, claims), extendedUses(pod, container.Name)...),
			})
		}
	}
	return containers
}

// containerID is the id of the container that runs under the name, or ran last.
// The kubelet writes <type>://<id> (core/v1, ContainerStatus.ContainerID), of
// which the type is the runtime's: containerd, cri-o, docker. It is empty
// until the container is created, and after each restart another.
func containerID(name string, statuses []corev1.ContainerStatus) string {
	for i := range statuses {
		if statuses[i].Name == name {
			_, id, _ := strings.Cut(statuses[i].ContainerID, "://")
			return clean(id)
		}
	}
	return ""
}

// usesOf leaves out claims that are not created yet: they have no name.
func usesOf(container *corev1.Container, claims []dra.PodClaim) []dra.Use {
	var uses []dra.Use
	for _, reference := range container.Resources.Claims {
		for _, claim := range claims {
			if claim.Name == clean(reference.Name) && claim.Name != "" && claim.Claim != "" {
				uses = append(uses, dra.Use{Claim: claim.Claim, Request: clean(reference.Request)})
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
			uses = append(uses, dra.Use{Claim: clean(extended.ResourceClaimName), Request: clean(mapping.RequestName)})
		}
	}
	return uses
}
