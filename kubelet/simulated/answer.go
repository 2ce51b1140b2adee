package simulated

import (
	"slices"
	"strings"

	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// answer returns the response for the pods with these faults. turn counts the Lists,
// for faults that change from one to the next.
func answer(pods []Pod, set faults, turn uint64) *podresourcesv1.ListPodResourcesResponse {
	reversed := set.has(ChangingOrder) && turn%2 == 0
	listed := &podresourcesv1.ListPodResourcesResponse{}
	for _, pod := range pods {
		listed.PodResources = append(listed.PodResources, describe(pod, set, reversed))
	}
	if reversed {
		slices.Reverse(listed.PodResources)
	}
	if set.has(Nameless) {
		listed.PodResources = append(listed.PodResources, nameless()...)
	}
	if set.has(Oversized) {
		padding := &podresourcesv1.ContainerResources{Name: strings.Repeat("x", 17<<20)}
		listed.PodResources = append(listed.PodResources, &podresourcesv1.PodResources{
			Namespace: "default", Name: "oversized", Containers: []*podresourcesv1.ContainerResources{padding}})
	}
	return listed
}

func describe(pod Pod, set faults, reversed bool) *podresourcesv1.PodResources {
	listed := &podresourcesv1.PodResources{Namespace: pod.Namespace, Name: pod.Name}
	for _, container := range pod.Containers {
		if container.Init && set.has(InitContainersHidden) {
			continue
		}
		entry := &podresourcesv1.ContainerResources{Name: container.Name}
		entry.DynamicResources = describeClaims(pod, container, set, reversed)
		for _, plugin := range container.Plugins {
			entry.Devices = append(entry.Devices, &podresourcesv1.ContainerDevices{
				ResourceName: plugin.Resource, DeviceIds: plugin.DeviceIDs})
		}
		listed.Containers = append(listed.Containers, entry)
	}
	return listed
}

func describeClaims(pod Pod, container Container, set faults, reversed bool) []*podresourcesv1.DynamicResource {
	var listed []*podresourcesv1.DynamicResource
	for _, claim := range pod.Claims {
		uses := slices.DeleteFunc(slices.Clone(container.Uses), func(use Use) bool { return use.Claim != claim.Name })
		if len(uses) == 0 {
			continue
		}
		if claim.Stage == Unknown && set.has(EmptyWhileUnknown) {
			return nil
		}
		if claim.Stage == Unknown || claim.Stage == Named && !set.has(ClaimBeforeDevices) {
			continue
		}
		entry := &podresourcesv1.DynamicResource{ClaimNamespace: pod.Namespace, ClaimName: claim.Name}
		if claim.Stage == Prepared {
			entry.ClaimResources = describeDevices(visible(claim.Devices, uses, set), set, reversed)
		}
		listed = append(listed, entry)
	}
	return listed
}

// visible returns the devices that are listed for a container with these
// uses, in the order in which they were prepared.
func visible(devices []Device, uses []Use, set faults) []Device {
	var shown []Device
	for _, device := range devices {
		if !set.has(EveryDevice) && !slices.ContainsFunc(uses, func(use Use) bool { return covers(use, device) }) {
			continue
		}
		shown = append(shown, device)
		if set.has(TwoShares) && device.ShareID != "" {
			shown = append(shown, secondShare(device))
		}
	}
	if set.has(DuplicateDevices) {
		shown = append(shown, shown...)
	}
	return shown
}

// covers reports whether the use of a request, or of the main request of a
// prioritized list, gives access to the device.
func covers(use Use, device Device) bool {
	return use.Request == "" || use.Request == device.Request || strings.HasPrefix(device.Request, use.Request+"/")
}

// secondShare returns another share of the device. CDI names that contain the share's
// id differ.
func secondShare(device Device) Device {
	first, second := device.ShareID, device.ShareID+"-second"
	device.ShareID = second
	device.CDI = slices.Clone(device.CDI)
	for i := range device.CDI {
		device.CDI[i] = strings.ReplaceAll(device.CDI[i], first, second)
	}
	return device
}

// describeDevices lists the devices driver by driver, as the kubelet does.
func describeDevices(devices []Device, set faults, reversed bool) []*podresourcesv1.ClaimResource {
	var drivers []string
	for _, device := range devices {
		if !slices.Contains(drivers, device.Driver) {
			drivers = append(drivers, device.Driver)
		}
	}
	if reversed {
		slices.Reverse(drivers)
	}
	var listed []*podresourcesv1.ClaimResource
	for _, driver := range drivers {
		var cdi []*podresourcesv1.CDIDevice
		for _, device := range devices {
			if device.Driver != driver {
				continue
			}
			if !set.has(CumulativeCDI) {
				cdi = nil
			}
			for _, name := range device.CDI {
				cdi = append(cdi, &podresourcesv1.CDIDevice{Name: name})
			}
			listed = append(listed, describeDevice(device, slices.Clone(cdi)))
		}
	}
	return listed
}

func describeDevice(device Device, cdi []*podresourcesv1.CDIDevice) *podresourcesv1.ClaimResource {
	listed := &podresourcesv1.ClaimResource{
		CdiDevices: cdi, DriverName: device.Driver, PoolName: device.Pool, DeviceName: device.Name}
	if device.ShareID != "" {
		listed.ShareId = &device.ShareID
	}
	return listed
}

// nameless returns pods in each of which another name is missing: the pod's,
// its namespace's, the container's, the claim's, the device's, the driver's.
func nameless() []*podresourcesv1.PodResources {
	pod := func(namespace, name, container, claim, driver, device string) *podresourcesv1.PodResources {
		return &podresourcesv1.PodResources{Namespace: namespace, Name: name,
			Containers: []*podresourcesv1.ContainerResources{{Name: container,
				Devices: []*podresourcesv1.ContainerDevices{{}, {ResourceName: "nameless.example.com/device"}},
				DynamicResources: []*podresourcesv1.DynamicResource{{ClaimNamespace: "default", ClaimName: claim,
					ClaimResources: []*podresourcesv1.ClaimResource{{}, {DriverName: driver, DeviceName: device,
						CdiDevices: []*podresourcesv1.CDIDevice{{}}}}}}}}}
	}
	return []*podresourcesv1.PodResources{
		{},
		pod("default", "", "c", "claim", "driver", "device"),
		pod("", "nameless", "c", "claim", "driver", "device"),
		pod("default", "nameless", "", "claim", "driver", "device"),
		pod("default", "nameless", "c", "", "driver", "device"),
		pod("default", "nameless", "c", "claim", "", "device"),
		pod("default", "nameless", "c", "claim", "driver", ""),
	}
}
