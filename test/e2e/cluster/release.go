package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// release is what a minor release of Kubernetes must be asked for so that every
// DRA feature that the tests use is there. Version 1.37 needs nothing.
type release struct {
	gates []string // feature gates that are off by default
	api   string   // version of resource.k8s.io that has DeviceTaintRule, off by default
}

func releases() map[int]release {
	alpha := []string{
		"DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceTaints",
		"DRAExtendedResource", "DRAPartitionableDevices", "ResourceHealthStatus",
	}
	return map[int]release{
		34: {gates: alpha, api: "v1alpha3"},
		35: {gates: append(alpha, "DRADeviceTaintRules"), api: "v1alpha3"},
		36: {gates: []string{"DRADeviceTaintRules"}, api: "v1beta2"},
	}
}

// Minor is the minor version of Kubernetes: 37 for v1.37.1.
func (c *Cluster) Minor() int {
	words := strings.Split(c.options.KubernetesVersion, ".")
	if len(words) < 2 {
		return 0
	}
	minor, err := strconv.Atoi(words[1])
	if err != nil {
		return 0
	}
	return minor
}

// TaintRuleVersion is the version of resource.k8s.io that serves
// DeviceTaintRule.
func (c *Cluster) TaintRuleVersion() string {
	if old, needs := releases()[c.Minor()]; needs {
		return old.api
	}
	return "v1"
}

// runtimeConfig are the API server's flags for what it does not serve by
// default.
func (c *Cluster) runtimeConfig() []string {
	if old, needs := releases()[c.Minor()]; needs {
		return []string{"--runtime-config", fmt.Sprintf("resource.k8s.io/%s=true", old.api)}
	}
	return nil
}

// featureGates are flags for every component.
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
