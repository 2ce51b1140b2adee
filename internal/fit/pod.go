package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// pod is a pod of the manifest with what its claims request.
type pod struct {
	namespace string
	object    corev1.Pod
	own       []explain.SupposedClaim // that each pod has for itself
	shared    []explain.SupposedClaim // that all pods share, and that are not allocated
	allocated []inventory.Allocation  // of the shared claims that are
	cpu       int64                   // millicores
	memory    int64                   // bytes
}

// resolve looks up what the pods' claims request: in the manifest, else in the cluster.
func (m *Manifest) resolve(of *inventory.Inventory, namespace string) (*pod, error) {
	p := &pod{namespace: namespace, object: corev1.Pod{ObjectMeta: m.Pod.ObjectMeta, Spec: m.Pod.Spec}}
	decode.LimitQuantities(&p.object)
	for i := range m.Pod.Spec.ResourceClaims {
		if err := p.add(m, of, &m.Pod.Spec.ResourceClaims[i]); err != nil {
			return nil, err
		}
	}
	extended := extendedOf(&m.Pod.Spec)
	for _, name := range slices.Sorted(maps.Keys(extended)) {
		class, backed := of.ClassFor(name)
		if !backed {
			continue // a device plugin provides it
		}
		p.own = append(p.own, explain.SupposedClaim{PodClaim: strings.NewReplacer("/", "-", ".", "-").Replace(name), Spec: &resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "devices",
				Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: class.Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: extended[name],
				},
			}}},
		}})
	}
	requests := resource.PodRequests(&p.object, resource.PodResourcesOptions{})
	p.cpu, p.memory = decode.Whole(requests.Cpu(), apiresource.Milli), decode.Whole(requests.Memory(), 0)
	return p, nil
}

func (p *pod) add(m *Manifest, of *inventory.Inventory, reference *corev1.PodResourceClaim) error {
	if reference.ResourceClaimTemplateName != nil {
		name := *reference.ResourceClaimTemplateName
		if template := m.Templates[name]; template != nil {
			p.own = append(p.own, explain.SupposedClaim{PodClaim: reference.Name, Template: name, Spec: defaulted(&template.Spec.Spec)})
			return nil
		}
		spec, refusal := of.Spec(p.namespace, "", name)
		switch {
		case refusal != "":
			return fmt.Errorf("ResourceClaimTemplate %s/%s: %s", p.namespace, name, refusal)
		case spec == nil:
			return missing("ResourceClaimTemplate", p.namespace, name, of.Templates(p.namespace))
		}
		p.own = append(p.own, explain.SupposedClaim{PodClaim: reference.Name, Template: name, Spec: spec})
		return nil
	}
	if reference.ResourceClaimName == nil {
		return fmt.Errorf("claim %s of the pod names neither a ResourceClaim nor a ResourceClaimTemplate", reference.Name)
	}
	name := *reference.ResourceClaimName
	if claim := m.Claims[name]; claim != nil {
		p.shared = append(p.shared, explain.SupposedClaim{PodClaim: reference.Name, Spec: defaulted(&claim.Spec)})
		return nil
	}
	if allocation, allocated := of.Allocation(p.namespace, name); allocated {
		p.allocated = append(p.allocated, allocation)
		return nil
	}
	spec, refusal := of.Spec(p.namespace, name, "")
	switch {
	case refusal != "":
		return fmt.Errorf("ResourceClaim %s/%s: %s", p.namespace, name, refusal)
	case spec == nil:
		return missing("ResourceClaim", p.namespace, name, nil)
	}
	p.shared = append(p.shared, explain.SupposedClaim{PodClaim: reference.Name, Spec: spec})
	return nil
}

// missing is the error of an object that is neither in the manifest nor in the cluster.
func missing(kind, namespace, name string, known []string) error {
	text := fmt.Sprintf("%s %s is neither in the manifest nor in namespace %s of the cluster", kind, name, namespace)
	if len(known) > 0 {
		text += ", which has " + strings.Join(known[:min(len(known), 8)], ", ")
	}
	return fmt.Errorf("%s", text)
}

// defaulted returns a specification as the API server would store it: with one device
// for each request that does not say how many.
func defaulted(spec *resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaimSpec {
	spec = spec.DeepCopy()
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			defaultCount(&exactly.AllocationMode, &exactly.Count)
		}
		for j := range request.FirstAvailable {
			defaultCount(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count)
		}
	}
	return spec
}

func defaultCount(mode *resourcev1.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourcev1.DeviceAllocationModeExactCount
	}
	if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

// extendedOf returns the extended resources that a pod requests, by name.
func extendedOf(spec *corev1.PodSpec) map[string]int64 {
	all := map[string]int64{}
	for i := range spec.Containers {
		resources := &spec.Containers[i].Resources
		amounts := maps.Clone(resources.Limits)
		if amounts == nil {
			amounts = corev1.ResourceList{}
		}
		maps.Copy(amounts, resources.Requests)
		for name, amount := range amounts {
			if text := string(name); strings.Contains(text, "/") && !strings.HasPrefix(text, corev1.ResourceDefaultNamespacePrefix) && amount.Value() > 0 {
				all[text] += amount.Value()
			}
		}
	}
	return all
}

// specs returns what claims request.
func specs(claims []explain.SupposedClaim) []*resourcev1.ResourceClaimSpec {
	var all []*resourcev1.ResourceClaimSpec
	for i := range claims {
		all = append(all, claims[i].Spec)
	}
	return all
}

// notConsidered lists what the pod requests and is not looked at.
func (p *pod) notConsidered(of *inventory.Inventory) []string {
	var all []string
	spec := &p.object.Spec
	if affinity := spec.Affinity; affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil) {
		all = append(all, "affinity to pods")
	}
	if len(spec.TopologySpreadConstraints) > 0 {
		all = append(all, "topologySpreadConstraints")
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].PersistentVolumeClaim != nil || spec.Volumes[i].Ephemeral != nil {
			all = append(all, "persistent volumes")
			break
		}
	}
	if slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 })
	}) {
		all = append(all, "host ports")
	}
	names := map[string]bool{}
	for name := range resource.PodRequests(&p.object, resource.PodResourcesOptions{}) {
		names[string(name)] = name != corev1.ResourceCPU && name != corev1.ResourceMemory
	}
	for name := range extendedOf(spec) {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, backed := of.ClassFor(name); names[name] && !backed {
			all = append(all, "resource "+name)
		}
	}
	if len(spec.SchedulingGates) > 0 {
		all = append(all, "scheduling gates")
	}
	return all
}
