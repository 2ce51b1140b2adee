package cluster

import (
	"cmp"
	"strconv"
	"strings"
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

func releases() map[int]release {
	alpha := []string{
		"DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceTaints",
		"DRAExtendedResource", "DRAPartitionableDevices", "ResourceHealthStatus",
	}
	return map[int]release{
		34: {gates: alpha, serve: []string{"resource.k8s.io/v1alpha3"}, rules: "v1alpha3"},
		35: {gates: append(alpha, "DRADeviceTaintRules"), serve: []string{"resource.k8s.io/v1alpha3"}, rules: "v1alpha3"},
		36: {gates: []string{"DRADeviceTaintRules"}, serve: []string{"resource.k8s.io/v1beta2"}, rules: "v1beta2"},
		37: {
			gates: []string{
				"GenericWorkload", "DRAWorkloadResourceClaims",
				"DRAOptionalNodeOperations", "DRAPartitionableDevicesType", "DRAResourcePoolStatus",
			},
			serve: []string{PodGroupVersion, "resource.k8s.io/v1alpha3"}, // v1alpha3: ResourcePoolStatusRequest
		},
	}
}

// Minor returns the minor version of Kubernetes: 37 for v1.37.1.
func (c *Cluster) Minor() int {
	parts := strings.Split(c.options.KubernetesVersion, ".")
	if len(parts) < 2 {
		return 0
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return minor
}

// TaintRuleVersion returns the version of resource.k8s.io that serves
// DeviceTaintRule.
func (c *Cluster) TaintRuleVersion() string {
	return cmp.Or(releases()[c.Minor()].rules, "v1")
}

// runtimeConfig returns the API server's flags for API versions that are off
// by default.
func (c *Cluster) runtimeConfig() []string {
	var on []string
	for _, version := range releases()[c.Minor()].serve {
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
	for _, gate := range releases()[c.Minor()].gates {
		on = append(on, gate+"=true")
	}
	if len(on) == 0 {
		return nil
	}
	return []string{"--feature-gates", strings.Join(on, ",")}
}
