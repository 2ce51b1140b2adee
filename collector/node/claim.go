package node

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// claimView is a claim that is held on this node: what was allocated to it, and
// which containers may use it.
type claimView struct {
	ref       dra.ClaimRef
	info      claimInfo
	devices   []claimDevice       // admin access included
	facts     []model.ClaimDevice // of the devices
	consumers []claimConsumer     // sorted, no container twice for one device
	pods      []dra.PodRef        // that hold the claim, with containers that use it or not

	earlier    bool     // it is the view of an earlier step
	podUIDs    []string // of the pods that the API server has
	listedOnly bool     // only the kubelet's List reports it: admin access is not known
	missing    bool     // the newest List has none of its pods, and may not be complete
	charge     charging // whether its device-seconds are counted on this node

	bundles map[string]int // number of devices in each bundle, by its uuid; without those with admin access
}

// charging is whether device-seconds of a claim are counted on this node.
type charging uint8

const (
	chargedHere      charging = iota
	chargedElsewhere          // another node counts them: the claim's devices are on several nodes
	chargedNowhere            // which node counts them is not known: the claim is reserved for a pod group
)

// claimInfo is the labels of dra_claim_info.
type claimInfo struct {
	uid, class, template, sharing string
	admin, extended               bool
}

// claimDevice is one device of an allocation.
type claimDevice struct {
	id       dra.DeviceID
	uuid     string
	request  string
	class    string
	shareID  string
	admin    bool
	consumed map[string]float64
	bundled  bool // the uuid is that of a bundle
}

// claimConsumer is a container that may use a device of a claim. Its pod is in the
// claim's namespace.
type claimConsumer struct {
	device                       dra.DeviceID
	uuid, pod, podUID, container string
	ownerKind, ownerName         string
	labels                       podLabelValues
}

// The values of the sharing label.
const (
	sharingNone     = "none"
	sharingCapacity = "capacity"
)

// classMultiple is the deviceclass label of a claim whose requests differ in class.
const classMultiple = "multiple"

// resolve returns the uuid of a device that a driver named: that of its hardware,
// or one of its name if the hardware is not known. Bundles may have a device that no
// source reads.
type resolve func(dra.DeviceID) (uuid string, unread bool)

// newClaimView returns the view of an allocated claim, without pods.
func newClaimView(claim *dra.Claim, template string) claimView {
	view := claimView{ref: claim.Ref, devices: make([]claimDevice, 0, len(claim.Results))}
	info := claimInfo{uid: claim.UID, template: template, sharing: claim.Sharing, extended: claim.ExtendedResource}
	for i, result := range claim.Results {
		class := claim.ClassOf(result.Request)
		view.devices = append(view.devices, claimDevice{
			id: result.Device, request: result.Request, class: class, shareID: result.ShareID,
			admin: result.AdminAccess, consumed: result.Consumed,
		})
		if i == 0 {
			info.class = class
		} else if info.class != class {
			info.class = classMultiple
		}
		info.admin = info.admin || result.AdminAccess
		if info.sharing == "" && result.ShareID != "" {
			info.sharing = sharingCapacity
		}
	}
	info.sharing = cmp.Or(info.sharing, sharingNone)
	view.info = info
	return view
}

// decideCharging returns whether this node counts the device-seconds of a claim. A
// claim on devices of one node is counted there. Pods on several nodes may share a
// claim on network-attached devices, and every agent must get the same result
// without the others: the node counts them on which the first pod runs that the
// claim is reserved for. That pod stays the first for as long as the claim is
// reserved for it, so an older version of the claim gives the same result. The
// members of a pod group are not in the claim.
func decideCharging(claim *dra.Claim, here []string) charging {
	if claim.Node != "" || len(claim.ReservedFor) == 0 {
		return chargedHere
	}
	switch {
	case claim.ReservedFor[0].Resource != "pods":
		return chargedNowhere
	case claim.HasFirstPodElsewhere(here):
		return chargedElsewhere
	default:
		return chargedHere
	}
}

// addPod adds a pod that the claim is reserved for, and those of its containers
// that use devices of the claim.
func (v *claimView) addPod(pod dra.Pod) {
	v.pods, v.podUIDs = append(v.pods, pod.Ref), append(v.podUIDs, pod.UID)
	labels := joinPodLabels(pod)
	for _, container := range pod.Containers {
		for _, use := range container.Uses {
			if use.Claim == v.ref.Name {
				v.addConsumers(pod, container.Name, use, labels)
			}
		}
	}
}

// addConsumers adds a container for each of the claim's devices that the use
// covers.
func (v *claimView) addConsumers(pod dra.Pod, container string, use dra.Use, labels podLabelValues) {
	for _, d := range v.devices {
		if use.Covers(d.request) {
			v.consumers = append(v.consumers, claimConsumer{
				device: d.id, pod: pod.Ref.Name, podUID: pod.UID, container: container,
				ownerKind: pod.OwnerKind, ownerName: pod.OwnerName, labels: labels,
			})
		}
	}
}

// without returns the view without the pods that are gone, and their containers.
func (v claimView) without(gone map[dra.PodRef]bool) claimView {
	if len(gone) == 0 {
		return v
	}
	pods, consumers := v.pods, v.consumers
	v.pods, v.consumers = nil, nil
	for _, pod := range pods {
		if !gone[pod] {
			v.pods = append(v.pods, pod)
		}
	}
	for _, c := range consumers {
		if !gone[dra.PodRef{Namespace: v.ref.Namespace, Name: c.pod}] {
			v.consumers = append(v.consumers, c)
		}
	}
	return v
}

// belongsTo reports whether the view is of the claim that pods reference now, and that
// the kubelet lists as listed, if it does. The claim's UID decides; else a pod
// held it before: a pod's claims never change, but a claim that is made again
// under its name is another one, and so is its pod. Of pods that only the kubelet
// has listed, no more than the name is known.
func (v *claimView) belongsTo(pods []*dra.Pod, listed claimView, isListed bool) bool {
	switch {
	case isListed && !v.covers(listed):
		return false
	case isListed && listed.info.uid != "" && v.info.uid != "":
		return true
	default:
		return slices.ContainsFunc(pods, func(pod *dra.Pod) bool {
			return slices.Contains(v.podUIDs, pod.UID) || len(v.podUIDs) == 0 && slices.Contains(v.pods, pod.Ref)
		})
	}
}

// of returns the view with the pods that reference its claim now, and no others.
func (v claimView) of(pods []*dra.Pod) claimView {
	fromList := len(v.podUIDs) == 0 // which requests its devices are of is not known
	consumers := v.consumers
	v.pods, v.podUIDs, v.consumers = nil, nil, nil
	for _, pod := range pods {
		if !fromList {
			v.addPod(*pod)
			continue
		}
		v.pods = append(v.pods, pod.Ref)
		for _, c := range consumers {
			if c.pod == pod.Ref.Name {
				v.consumers = append(v.consumers, c)
			}
		}
	}
	return v
}

// covers reports whether the claim has every device that is listed for it. If
// not, or if the UIDs differ, the listed one is another claim of the same name.
func (v claimView) covers(listed claimView) bool {
	if v.info.uid != "" && listed.info.uid != "" && v.info.uid != listed.info.uid {
		return false
	}
	for _, d := range listed.devices {
		if !slices.ContainsFunc(v.devices, func(known claimDevice) bool { return known.id == d.id }) {
			return false
		}
	}
	return len(v.pods) > 0
}

// with returns the view with the pods and containers that are newly listed for
// the claim. Containers of pods that it has already stay as the API server has
// them: the List names each device for each container.
func (v claimView) with(listed claimView) claimView {
	known := make(map[dra.PodRef]bool, len(v.pods))
	for _, pod := range v.pods {
		known[pod] = true
	}
	v.missing = false
	v.pods, v.consumers = slices.Clone(v.pods), slices.Clone(v.consumers)
	for _, pod := range listed.pods {
		if !known[pod] {
			v.pods = append(v.pods, pod)
		}
	}
	for _, c := range listed.consumers {
		if !known[dra.PodRef{Namespace: v.ref.Namespace, Name: c.pod}] {
			v.consumers = append(v.consumers, c)
		}
	}
	return v
}

// resolve gives each device its uuid, which may have changed, and sorts. It does
// not change the slices of a view of an earlier step.
func (v *claimView) resolve(node string, identify resolve) {
	if v.earlier {
		v.devices, v.consumers, v.pods = slices.Clone(v.devices), slices.Clone(v.consumers), slices.Clone(v.pods)
	}
	v.earlier = true
	var unread bundles
	for i := range v.devices {
		d := &v.devices[i]
		uuid, isUnread := identify(d.id)
		d.uuid, d.bundled = uuid, false
		if isUnread && d.shareID == "" {
			unread.add(d)
		}
	}
	v.bundles = unread.apply(node, v)
	for i := range v.consumers {
		c := &v.consumers[i]
		if at := slices.IndexFunc(v.devices, func(d claimDevice) bool { return d.id == c.device }); at >= 0 {
			c.uuid = v.devices[at].uuid
		} else {
			c.uuid, _ = identify(c.device)
		}
	}
	v.sort()
}

// sort sorts the lists and removes duplicates: a claim can hold one device twice,
// and several pods can share one claim.
func (v *claimView) sort() {
	slices.SortFunc(v.consumers, func(a, b claimConsumer) int {
		return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.pod, b.pod), cmp.Compare(a.container, b.container), cmp.Compare(a.podUID, b.podUID))
	})
	v.consumers = slices.CompactFunc(v.consumers, func(a, b claimConsumer) bool {
		return a.uuid == b.uuid && a.pod == b.pod && a.container == b.container
	})
	slices.SortFunc(v.devices, func(a, b claimDevice) int {
		return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.request, b.request), cmp.Compare(a.shareID, b.shareID), compareDevices(a.id, b.id))
	})
	v.devices = slices.CompactFunc(v.devices, func(a, b claimDevice) bool {
		return a.id == b.id && a.request == b.request && a.shareID == b.shareID
	})
	v.facts = make([]model.ClaimDevice, 0, len(v.devices))
	for _, d := range v.devices {
		fact := model.ClaimDevice{ID: d.id, UUID: d.uuid, Request: d.request, Class: d.class, Share: d.shareID}
		if d.bundled {
			fact.ID = dra.DeviceID{Driver: d.id.Driver}
			if last := len(v.facts) - 1; last >= 0 && v.facts[last] == fact {
				continue
			}
		}
		v.facts = append(v.facts, fact)
	}
	slices.SortFunc(v.pods, func(a, b dra.PodRef) int { return cmp.Compare(a.Name, b.Name) })
	v.pods = slices.Compact(v.pods)
}

// classOn returns the device class through which the claim holds the device.
func (v *claimView) classOn(uuid string) string {
	class, found := "", false
	for _, d := range v.devices {
		switch {
		case d.uuid != uuid || d.admin:
		case !found:
			class, found = d.class, true
		case class != d.class:
			return classMultiple
		}
	}
	return class
}

// holdsBefore reports whether the claim holds the device by an earlier result
// as well.
func (v *claimView) holdsBefore(i int) bool {
	return slices.ContainsFunc(v.devices[:i], func(d claimDevice) bool { return d.uuid == v.devices[i].uuid && !d.admin })
}
