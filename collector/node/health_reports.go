package node

import (
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// driverReport is the health by the driver's taints, while a slice has the device
// and the watch of slices is fresh. A device that its driver marks as unmonitored
// has no report.
func driverReport(d *deviceState, slicesFresh bool) report {
	if !d.inSlice || !slicesFresh {
		return unreported
	}
	reported := healthy
	for _, taint := range d.published.Taints {
		switch {
		case taint.Effect == "NoSchedule" || taint.Effect == "NoExecute":
			return unhealthy
		case strings.HasSuffix(taint.Key, "/unmonitored"):
			reported = unreported
		}
	}
	return reported
}

// kubeletHealth is what the kubelet reports, by uuid.
type kubeletHealth struct {
	reports  map[string]report
	messages map[string]string // why devices are unhealthy; immutable
}

// add adds a report about a device. Unhealthy wins over healthy, and the first
// message in the order of the alphabet over others.
func (k *kubeletHealth) add(uuid string, status dra.ResourceHealth) {
	switch {
	case !status.Healthy:
		k.reports[uuid] = unhealthy
	case k.reports[uuid] == unreported:
		k.reports[uuid] = healthy
	}
	if known, ok := k.messages[uuid]; status.Message != "" && (!ok || status.Message < known) {
		k.messages[uuid] = status.Message
	}
}

// kubeletReports returns the health that the kubelet reports in the statuses of
// the pods that hold devices. Where containers contradict each other, unhealthy
// wins. While the pod watch is not fresh there are no reports.
func kubeletReports(node string, facts Facts, views []claimView) kubeletHealth {
	if !facts.Cluster.Enabled || !facts.Cluster.Fresh {
		return kubeletHealth{}
	}
	byClaim := make(map[dra.ClaimRef]*claimView, len(views))
	for i := range views {
		byClaim[views[i].ref] = &views[i]
	}
	reported := kubeletHealth{reports: make(map[string]report), messages: make(map[string]string)}
	var cdi firstCDI
	for _, pod := range facts.Cluster.Pods {
		if len(pod.Health) == 0 || pod.Terminal || pod.Node != node {
			continue
		}
		if cdi == nil {
			cdi = newFirstCDI(facts.Listing)
		}
		for _, status := range pod.Health {
			view, ok := byClaim[podClaimRef(pod, status.PodClaim)]
			if !ok {
				continue
			}
			if uuid := reportedDevice(view, status, cdi); uuid != "" {
				reported.add(uuid, status)
			}
		}
	}
	return reported
}

// podClaimRef returns the claim that a pod references by a name.
func podClaimRef(pod dra.Pod, name string) dra.ClaimRef {
	for _, claim := range pod.Claims {
		if claim.Name == name {
			return dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: claim.Claim}
		}
	}
	return dra.ClaimRef{}
}

// firstCDI is the first CDI id of each device of a claim, by which the kubelet
// names it; empty for a device that has none.
type firstCDI map[claimedDevice]string

type claimedDevice struct {
	claim  dra.ClaimRef
	device dra.DeviceID
}

func newFirstCDI(listing dra.PodResources) firstCDI {
	ids := make(firstCDI, len(listing.Assignments))
	for _, a := range listing.Assignments {
		first := ""
		if len(a.CDIDevices) > 0 {
			first = a.CDIDevices[0]
		}
		ids[claimedDevice{a.Claim, a.Device}] = first
	}
	return ids
}

// reportedDevice returns the uuid of the one device that a status can be about;
// empty if there are several, or none.
func reportedDevice(v *claimView, status dra.ResourceHealth, cdi firstCDI) string {
	found, several := "", false
	for _, d := range v.devices {
		if !(dra.Use{Request: status.Request}).Covers(d.request) {
			continue
		}
		if d.id.String() == status.ResourceID {
			return d.uuid
		}
		first, ok := cdi[claimedDevice{v.ref, d.id}]
		if ok && first != status.ResourceID {
			continue
		}
		// A device that the kubelet does not list now may have any id.
		several = several || found != "" && found != d.uuid
		found = d.uuid
	}
	if several {
		return ""
	}
	return found
}
