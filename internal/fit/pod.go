package fit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// pod is a pod of the manifest with what its claims request.
type pod struct {
	namespace string
	object    corev1.Pod                  // as the API server would store it
	claims    []clusterread.SupposedClaim // that each pod has for itself
	shared    []clusterread.SupposedClaim // that all pods share, and that are not allocated
	allocated []inventory.AllocatedClaim  // of the shared claims that are
	backed    []backedResource            // extended resources that nodes may have as devices
	cpu       int64                       // millicores
	memory    int64                       // bytes
	others    []dra.Amount                // of other resources, sorted, also those in backed
}

// backedResource is an extended resource with a device class. A node has it as devices,
// unless a device plugin offers it there.
type backedResource struct {
	name, class string
	devices     int64
}

// resolve looks up what the pods' claims request: in the manifest, else in the cluster.
func (m *Manifest) resolve(inv *inventory.Inventory, namespace string) (*pod, error) {
	p := &pod{namespace: namespace, object: corev1.Pod{ObjectMeta: *m.Pod.ObjectMeta.DeepCopy(), Spec: *m.Pod.Spec.DeepCopy()}}
	decode.LimitQuantities(&p.object)
	if err := setDefaults(&p.object); err != nil {
		return nil, err
	}
	for i := range m.Pod.Spec.ResourceClaims {
		if err := p.add(m, inv, &m.Pod.Spec.ResourceClaims[i]); err != nil {
			return nil, err
		}
	}
	requests := resource.PodRequests(&p.object, resource.PodResourcesOptions{})
	p.cpu, p.memory = units(*requests.Cpu(), apiresource.Milli), units(*requests.Memory(), 0)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		number := units(requests[name], 0)
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || number == 0 {
			continue
		}
		p.others = append(p.others, dra.Amount{Resource: string(name), Units: number})
		if class, ok := inv.ClassFor(string(name)); ok && isExtended(name) {
			p.backed = append(p.backed, backedResource{string(name), class.Name, extendedDevices(&p.object.Spec, name)})
		}
	}
	return p, nil
}

// units returns an amount, and the largest number for one that no node is known to have.
func units(amount apiresource.Quantity, scale apiresource.Scale) int64 {
	number := inventory.Units(&amount, scale)
	if number == inventory.MostUnits {
		return math.MaxInt64
	}
	return number
}

// claimsOn returns the claims that each pod has for itself on a node where device plugins
// offer some of its resources: those of the pod, and the one that the scheduler makes for
// the other extended resources with a device class.
func (p *pod) claimsOn(plugins map[string]bool) []clusterread.SupposedClaim {
	spec := &resourcev1.ResourceClaimSpec{}
	for _, backed := range p.backed {
		if plugins[backed.name] {
			continue
		}
		spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: strings.NewReplacer("/", "-", ".", "-").Replace(backed.name),
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: backed.class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: backed.devices,
			},
		})
	}
	if len(spec.Devices.Requests) == 0 {
		return p.claims
	}
	return append(slices.Clone(p.claims), clusterread.SupposedClaim{PodClaim: "extended-resources", Spec: spec})
}

func (p *pod) add(m *Manifest, inv *inventory.Inventory, reference *corev1.PodResourceClaim) error {
	switch {
	case reference.ResourceClaimTemplateName != nil:
		name := *reference.ResourceClaimTemplateName
		var manifest *resourcev1.ResourceClaimSpec
		if template := m.Templates[name]; template != nil && isIn(template.Namespace, p.namespace) {
			manifest = &template.Spec.Spec
		}
		spec, err := p.spec(inv, "ResourceClaimTemplate", name, manifest)
		p.claims = append(p.claims, clusterread.SupposedClaim{PodClaim: reference.Name, Template: name, Spec: spec})
		return err
	case reference.ResourceClaimName == nil:
		return fmt.Errorf("claim %s of the pod names neither a ResourceClaim nor a ResourceClaimTemplate", reference.Name)
	}
	name := *reference.ResourceClaimName
	if allocation, allocated := inv.Allocation(p.namespace, name); allocated { // also if the manifest has it
		p.allocated = append(p.allocated, allocation)
		return nil
	}
	var manifest *resourcev1.ResourceClaimSpec
	if claim := m.Claims[name]; claim != nil && isIn(claim.Namespace, p.namespace) {
		manifest = &claim.Spec
	}
	spec, err := p.spec(inv, "ResourceClaim", name, manifest)
	p.shared = append(p.shared, clusterread.SupposedClaim{PodClaim: reference.Name, Spec: spec})
	return err
}

// spec returns what a claim or a template requests: that of the manifest, nil if it has
// none, or else that of the cluster.
func (p *pod) spec(inv *inventory.Inventory, kind, name string, manifest *resourcev1.ResourceClaimSpec) (*resourcev1.ResourceClaimSpec, error) {
	if manifest != nil {
		spec, err := defaulted(manifest)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, name, err)
		}
		return spec, nil
	}
	claim, template := name, ""
	var known []string
	if kind == "ResourceClaimTemplate" {
		claim, template, known = "", name, inv.Templates(p.namespace)
	}
	switch spec, refusal := inv.Spec(p.namespace, claim, template); {
	case refusal != "":
		return nil, fmt.Errorf("%s %s/%s: %s", kind, p.namespace, name, refusal)
	case spec == nil:
		return nil, missing(kind, p.namespace, name, known)
	default:
		return spec, nil
	}
}

// isIn reports whether an object of the manifest is in the namespace of the pods: one
// that does not say where it is, is.
func isIn(namespace, pods string) bool { return namespace == "" || namespace == pods }

// missing is the error of an object that is neither in the manifest nor in the cluster.
func missing(kind, namespace, name string, known []string) error {
	hint := ""
	if len(known) > 0 {
		hint = ", which has " + strings.Join(known[:min(len(known), 8)], ", ")
	}
	return fmt.Errorf("%s %s is neither in the manifest nor in namespace %s of the cluster%s", kind, name, namespace, hint)
}

// defaulted returns a specification as the API server would store it: with one device
// for each request that does not say how many.
// It refuses a number that is less than nothing.
func defaulted(spec *resourcev1.ResourceClaimSpec) (*resourcev1.ResourceClaimSpec, error) {
	spec = spec.DeepCopy()
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			if err := defaultCount(&exactly.AllocationMode, &exactly.Count); err != nil {
				return nil, fmt.Errorf("request %s: %w", request.Name, err)
			}
		}
		for j := range request.FirstAvailable {
			if err := defaultCount(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count); err != nil {
				return nil, fmt.Errorf("request %s/%s: %w", request.Name, request.FirstAvailable[j].Name, err)
			}
		}
	}
	return spec, nil
}

func defaultCount(mode *resourcev1.DeviceAllocationMode, count *int64) error {
	if *mode == "" {
		*mode = resourcev1.DeviceAllocationModeExactCount
	}
	if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
	if *count < 0 {
		return fmt.Errorf("it requests %d devices", *count)
	}
	return nil
}

// specs returns what claims request.
func specs(claims []clusterread.SupposedClaim) []*resourcev1.ResourceClaimSpec {
	var all []*resourcev1.ResourceClaimSpec
	for i := range claims {
		all = append(all, claims[i].Spec)
	}
	return all
}
