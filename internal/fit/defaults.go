package fit

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/resource"
)

// setDefaults sets what the API server sets in a pod and the scheduler reads: requests
// that are those of limits, and the host ports of a pod in the network of its node
// (pkg/apis/core/v1/defaults.go). It refuses amounts that are less than nothing.
func setDefaults(pod *corev1.Pod) error {
	for container := range containers(&pod.Spec) {
		if err := setRequests(&container.Resources); err != nil {
			return fmt.Errorf("container %s: %w", container.Name, err)
		}
		for i := range container.Ports {
			if port := &container.Ports[i]; pod.Spec.HostNetwork && port.HostPort == 0 {
				port.HostPort = port.ContainerPort
			}
		}
	}
	if pod.Spec.Resources == nil {
		return nil
	}
	if err := setPodRequests(pod); err != nil {
		return fmt.Errorf("resources of the pod: %w", err)
	}
	return nil
}

// containers yields the init containers and then the others.
func containers(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, all := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range all {
				if !yield(&all[i]) {
					return
				}
			}
		}
	}
}

func setRequests(requirements *corev1.ResourceRequirements) error {
	requests := corev1.ResourceList{}
	maps.Copy(requests, requirements.Limits)
	maps.Copy(requests, requirements.Requests)
	requirements.Requests = requests
	return checkAmounts(requests)
}

func checkAmounts(amounts corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if amount := amounts[name]; amount.Sign() < 0 {
			return fmt.Errorf("it requests %s of %s", amount.String(), name)
		}
	}
	return nil
}

// setPodRequests sets the requests of the pod as a whole that it does not have: those of
// its containers, where nodes may be overcommitted, or else its limits.
func setPodRequests(pod *corev1.Pod) error {
	limits, requests := corev1.ResourceList{}, corev1.ResourceList{}
	maps.Copy(limits, pod.Spec.Resources.Limits)
	maps.Copy(requests, pod.Spec.Resources.Requests)
	if len(limits)+len(requests) > 0 {
		for name, amount := range resource.AggregateContainerLimits(pod, resource.PodResourcesOptions{}) {
			_, ok := requests[name]
			if _, limited := limits[name]; !limited && !ok && isHugePages(name) {
				limits[name] = amount
			}
		}
	}
	if len(limits) > 0 {
		for name, amount := range resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{}) {
			if _, ok := requests[name]; !ok && resource.IsSupportedPodLevelResource(name) && !isHugePages(name) {
				requests[name] = amount
			}
		}
		for name, amount := range limits {
			if _, ok := requests[name]; !ok && resource.IsSupportedPodLevelResource(name) {
				requests[name] = amount
			}
		}
	}
	pod.Spec.Resources.Limits, pod.Spec.Resources.Requests = limits, requests
	return checkAmounts(requests)
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isExtended reports whether a resource may be backed by a device class: it is not one of
// Kubernetes, or has the name of a class.
func isExtended(name corev1.ResourceName) bool {
	text := string(name)
	return strings.Contains(text, "/") && !strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) || strings.HasPrefix(text, resourcev1.ResourceDeviceClassPrefix)
}

// requestsExtended reports whether a container requests an extended resource.
func requestsExtended(spec *corev1.PodSpec) bool {
	for container := range containers(spec) {
		for _, amounts := range []corev1.ResourceList{container.Resources.Limits, container.Resources.Requests} {
			for name, amount := range amounts {
				if isExtended(name) && !amount.IsZero() {
					return true
				}
			}
		}
	}
	return false
}

// extendedDevices returns how many devices the scheduler requests for an extended
// resource: those of containers that run together, and what an init container that ends
// before needs beyond those of the containers after it
// (pkg/scheduler/framework/plugins/dynamicresources, createRequestsAndMappings).
func extendedDevices(spec *corev1.PodSpec, name corev1.ResourceName) int64 {
	need := func(c *corev1.Container) int64 { return units(c.Resources.Requests[name], 0) }
	var together, last int64
	for i := range spec.Containers {
		together = sum(together, need(&spec.Containers[i]))
	}
	for i := len(spec.InitContainers) - 1; i >= 0; i-- {
		c := &spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			together = sum(together, need(c))
		} else {
			last = max(last, need(c)-together)
		}
	}
	return sum(together, last)
}
