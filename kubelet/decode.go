package kubelet

import (
	"cmp"
	"slices"
	"strings"

	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Decode decodes the kubelet's response. It accepts any message, and corrects known
// faults of kubelets:
//
//   - A device that is listed twice, as kubelets before 1.37.1 do after a
//     retried prepare and after their own restart, is kept once. The same
//     device under two share ids is two shares; both are kept.
//   - cdi_devices of an entry also holds those of the entries of the same
//     driver before it (GetDynamicResources in the kubelet appends to one
//     slice); each Assignment keeps what the entry adds.
//   - Strings are made valid UTF-8. Pods, claims and devices that lack what
//     names them are omitted: nothing can be joined to them.
//
// CPUs and memory are left out, of containers and of pods: they are not devices
// of claims.
//
// The result is sorted, since the kubelet lists pods and drivers in the order
// of its maps, which changes from List to List.
func Decode(answer *podresourcesv1.ListPodResourcesResponse) dra.PodResources {
	var decoded dra.PodResources
	for _, listed := range answer.GetPodResources() {
		pod := dra.PodRef{Namespace: valid(listed.GetNamespace()), Name: valid(listed.GetName())}
		if pod.Namespace == "" || pod.Name == "" {
			continue
		}
		decoded.Pods = append(decoded.Pods, pod)
		for _, container := range listed.GetContainers() {
			decodeContainer(&decoded, pod, container)
		}
	}
	decoded.Pods = sortedOnce(decoded.Pods, comparePods)
	decoded.Assignments = sortedOnce(decoded.Assignments, compareAssignments)
	decoded.Plugins = mergePlugins(decoded.Plugins)
	decoded.WithoutDevices = sortedOnce(decoded.WithoutDevices, compareClaims)
	return decoded
}

func decodeContainer(resources *dra.PodResources, pod dra.PodRef, listed *podresourcesv1.ContainerResources) {
	container := valid(listed.GetName())
	if container == "" {
		return
	}
	for _, resource := range listed.GetDynamicResources() {
		claim := dra.ClaimRef{Namespace: valid(resource.GetClaimNamespace()), Name: valid(resource.GetClaimName())}
		if claim.Namespace == "" || claim.Name == "" {
			continue
		}
		if len(resource.GetClaimResources()) == 0 {
			resources.WithoutDevices = append(resources.WithoutDevices, claim)
		}
		template := dra.Assignment{Pod: pod, Container: container, Claim: claim}
		resources.Assignments = appendDevices(resources.Assignments, template, resource.GetClaimResources())
	}
	for _, devices := range listed.GetDevices() {
		resource, ids := valid(devices.GetResourceName()), validAll(devices.GetDeviceIds())
		if resource == "" || len(ids) == 0 {
			continue
		}
		plugin := dra.PluginAssignment{Pod: pod, Container: container, Resource: resource, DeviceIDs: ids}
		resources.Plugins = append(resources.Plugins, plugin)
	}
}

// appendDevices appends one assignment for each named device of a claim.
func appendDevices(list []dra.Assignment, template dra.Assignment, listed []*podresourcesv1.ClaimResource) []dra.Assignment {
	var previous *podresourcesv1.ClaimResource
	for _, entry := range listed {
		devices := ownCDIDevices(previous, entry)
		previous = entry
		assignment := template
		assignment.Device = dra.DeviceID{
			Driver: valid(entry.GetDriverName()),
			Pool:   valid(entry.GetPoolName()),
			Name:   valid(entry.GetDeviceName()),
		}
		if assignment.Device.Driver == "" || assignment.Device.Name == "" {
			continue
		}
		assignment.ShareID = valid(entry.GetShareId())
		assignment.CDIDevices = cdiNames(devices)
		list = append(list, assignment)
	}
	return list
}

// ownCDIDevices returns what the entry adds to the CDI devices of the entry
// before it. Where its list does not go on from there, as in an answer of a
// kubelet that does not accumulate, the whole list is the entry's own.
func ownCDIDevices(previous, entry *podresourcesv1.ClaimResource) []*podresourcesv1.CDIDevice {
	all, earlier := entry.GetCdiDevices(), previous.GetCdiDevices()
	if previous.GetDriverName() != entry.GetDriverName() || len(earlier) > len(all) {
		return all
	}
	for i, device := range earlier {
		if device.GetName() != all[i].GetName() {
			return all
		}
	}
	return all[len(earlier):]
}

func cdiNames(devices []*podresourcesv1.CDIDevice) []string {
	var names []string
	for _, device := range devices {
		if name := valid(device.GetName()); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// mergePlugins makes one assignment of the entries of a container and
// resource: the kubelet lists one for each NUMA node, and a device that
// belongs to two of them in both.
func mergePlugins(listed []dra.PluginAssignment) []dra.PluginAssignment {
	slices.SortStableFunc(listed, comparePlugins)
	var merged []dra.PluginAssignment
	for _, plugin := range listed {
		if last := len(merged) - 1; last >= 0 && comparePlugins(merged[last], plugin) == 0 {
			merged[last].DeviceIDs = append(merged[last].DeviceIDs, plugin.DeviceIDs...)
			continue
		}
		merged = append(merged, plugin)
	}
	for i := range merged {
		merged[i].DeviceIDs = sortedOnce(merged[i].DeviceIDs, strings.Compare)
	}
	return merged
}

// sortedOnce sorts in place and keeps the first of those that compare equal.
func sortedOnce[T any](values []T, compare func(a, b T) int) []T {
	slices.SortStableFunc(values, compare)
	return slices.CompactFunc(values, func(a, b T) bool { return compare(a, b) == 0 })
}

func comparePods(a, b dra.PodRef) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func compareClaims(a, b dra.ClaimRef) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func comparePlugins(a, b dra.PluginAssignment) int {
	return cmp.Or(
		comparePods(a.Pod, b.Pod),
		strings.Compare(a.Container, b.Container),
		strings.Compare(a.Resource, b.Resource))
}

func compareAssignments(a, b dra.Assignment) int {
	return cmp.Or(
		comparePods(a.Pod, b.Pod),
		strings.Compare(a.Container, b.Container),
		strings.Compare(a.Claim.Namespace, b.Claim.Namespace),
		strings.Compare(a.Claim.Name, b.Claim.Name),
		strings.Compare(a.Device.Driver, b.Device.Driver),
		strings.Compare(a.Device.Pool, b.Device.Pool),
		strings.Compare(a.Device.Name, b.Device.Name),
		strings.Compare(a.ShareID, b.ShareID))
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func validAll(listed []string) []string {
	var all []string
	for _, s := range listed {
		if s = valid(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}
