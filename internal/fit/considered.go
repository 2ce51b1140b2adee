package fit

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// notConsidered lists what may keep the pod from a node and is not looked at: with any
// of it there may be fewer pods than are counted.
func (p *pod) notConsidered(inv *inventory.Inventory) []string {
	spec := &p.object.Spec
	var all []string
	for _, rule := range []struct {
		applies bool
		what    string
	}{
		{requiresPods(spec.Affinity), "affinity to pods"},
		{inv.Overview().Repels(p.namespace, p.object.Labels), "anti-affinity of pods that run"},
		{slices.ContainsFunc(spec.TopologySpreadConstraints, isHard), "topologySpreadConstraints"},
		{slices.ContainsFunc(spec.Volumes, needsNode), "volumes"},
		{hasHostPorts(spec), "host ports"},
		{len(spec.SchedulingGates) > 0, "scheduling gates"},
		{spec.SchedulingGroup != nil, "scheduling group"},
		{spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName, "scheduler " + spec.SchedulerName},
	} {
		if rule.applies {
			all = append(all, rule.what)
		}
	}
	if spec.RuntimeClassName != nil && *spec.RuntimeClassName != "" { // it may have nodes, tolerations and an overhead
		all = append(all, "runtime class "+*spec.RuntimeClassName)
	}
	return append(append(all, requiredFeatures(spec)...), placementAnnotations(p.object.Annotations)...)
}

// requiresPods reports whether other pods decide on which nodes the pod may run.
func requiresPods(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	near, far := affinity.PodAffinity, affinity.PodAntiAffinity
	return near != nil && len(near.RequiredDuringSchedulingIgnoredDuringExecution) > 0 || far != nil && len(far.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// isHard reports whether a constraint keeps pods from nodes.
func isHard(c corev1.TopologySpreadConstraint) bool {
	return c.WhenUnsatisfiable != corev1.ScheduleAnyway
}

// needsNode reports whether a volume may be usable on some nodes alone. The scheduler
// takes those that are listed here for usable everywhere.
func needsNode(volume corev1.Volume) bool {
	source := volume.VolumeSource
	source.EmptyDir, source.ConfigMap, source.Secret, source.Projected, source.DownwardAPI = nil, nil, nil, nil, nil
	source.HostPath, source.NFS, source.Image, source.GitRepo = nil, nil, nil, nil
	return source != corev1.VolumeSource{}
}

func hasHostPorts(spec *corev1.PodSpec) bool {
	for container := range containers(spec) {
		if slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 }) {
			return true
		}
	}
	return false
}

// requiredFeatures lists the features that a node must declare for the pod.
func requiredFeatures(spec *corev1.PodSpec) []string {
	framework := nodedeclaredfeatures.DefaultFramework
	features, err := framework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: spec}, version.MajorMinor(1, 0))
	if err != nil {
		return []string{fmt.Sprintf("features of nodes: %v", err)}
	}
	names, err := framework.Unmap(features)
	if err != nil {
		return []string{fmt.Sprintf("features of nodes: %v", err)}
	}
	for i := range names {
		names[i] = "feature " + names[i] + " of nodes"
	}
	return names
}

// placementAnnotations lists the annotations by which controllers keep pods together.
func placementAnnotations(annotations map[string]string) []string {
	var all []string
	for _, key := range []string{
		"alpha.jobset.sigs.k8s.io/exclusive-topology", "leaderworkerset.sigs.k8s.io/exclusive-topology",
		"kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-slice-required-topology",
	} {
		if _, ok := annotations[key]; ok {
			all = append(all, "annotation "+key)
		}
	}
	return all
}
