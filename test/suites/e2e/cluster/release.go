package cluster

import (
	"cmp"
	"strings"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// release has the settings of a minor release of Kubernetes that enable every
// feature that the tests use.
type release struct {
	gates []string // feature gates that are off by default
	serve []string // API versions that are off by default
	rules string   // version of resource.k8s.io that has DeviceTaintRule, if it is not v1
}

// PodGroupVersion serves PodGroups, from 1.37 on.
const PodGroupVersion = "scheduling.k8s.io/v1beta1"

func settings() map[int]release {
	alpha := []string{
		"DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceTaints",
		"DRAExtendedResource", "DRAPartitionableDevices",
	}
	return map[int]release{
		34: {gates: alpha, serve: []string{"resource.k8s.io/v1alpha3"}, rules: "v1alpha3"},
		35: {gates: append(alpha, "DRADeviceTaintRules"), serve: []string{"resource.k8s.io/v1alpha3"}, rules: "v1alpha3"},
		36: {gates: []string{"DRADeviceTaintRules", "PodsAPI"}, serve: []string{"resource.k8s.io/v1beta2"}, rules: "v1beta2"},
		37: {
			gates: []string{
				"GenericWorkload", "DRAWorkloadResourceClaims",
				"DRAOptionalNodeOperations", "DRAPartitionableDevicesType", "DRAResourcePoolStatus",
			},
			serve: []string{PodGroupVersion, "resource.k8s.io/v1alpha3"}, // v1alpha3: ResourcePoolStatusRequest
		},
	}
}

// Version returns the version of Kubernetes, such as v1.37.2.
func (c *Cluster) Version() string { return c.options.KubernetesVersion }

// Minor returns the minor version of Kubernetes: 37 for v1.37.2.
func (c *Cluster) Minor() int { return releases.Minor(c.Version()) }

// Has reports whether this release of Kubernetes has a feature.
func (c *Cluster) Has(id releases.ID) bool { return releases.Has(c.Minor(), id) }

// TaintRuleVersion returns the version of resource.k8s.io that serves
// DeviceTaintRule.
func (c *Cluster) TaintRuleVersion() string {
	return cmp.Or(settings()[c.Minor()].rules, "v1")
}

// runtimeConfig returns the API server's flags for API versions that are off
// by default.
func (c *Cluster) runtimeConfig() []string {
	var on []string
	for _, version := range settings()[c.Minor()].serve {
		on = append(on, version+"=true")
	}
	if len(on) == 0 {
		return nil
	}
	return []string{"--runtime-config", strings.Join(on, ",")}
}

// featureGates returns the flags for every component.
func (c *Cluster) featureGates() []string {
	var on []string
	for _, gate := range settings()[c.Minor()].gates {
		on = append(on, gate+"=true")
	}
	if len(on) == 0 {
		return nil
	}
	return []string{"--feature-gates", strings.Join(on, ",")}
}
