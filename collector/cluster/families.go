package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

func newDefinitions() definitions {
	return slices.Concat(
		durationFamilies(), pendingFamilies(), phaseFamilies(), failureFamilies(), claimFamilies(),
		workloadFamilies(), topologyFamilies(), domainFamilies(), domainUserFamilies(),
		deviceFamilies(), poolFamilies(), capacityFamilies(), taintFamilies(), classFamilies(),
		headroomFamilies(), strandedFamilies(), healthFamilies(), diagnosisFamilies(),
	)
}

// Families returns every family that the cluster role can export, for the
// documentation and for checks.
func Families() []*metric.Family {
	families := newDefinitions().Families()
	documentOrder(families)
	return slices.Concat(families, []*metric.Family{self.ReadDuration()}, self.NewFamilies().All())
}

// documentOrder moves the families that documents have beside others than the rows.
func documentOrder(all []*metric.Family) {
	for _, move := range [...]struct{ name, predecessor string }{
		{metric.AllocationFailures, metric.ClaimReadyDurationSeconds},
		{metric.ClaimPhaseSinceTimestampSeconds, metric.Claims},
		{metric.ClassDevices, metric.PartitionDevices},
		{metric.ClassDevicesDown, metric.ClassDevices},
		{metric.DeviceClassInfo, metric.ClassDevicesDown},
		{metric.NodeReleaseInfo, metric.DeviceTaints},
		{metric.NodeTopologyInfo, metric.NodeReleaseInfo},
		{metric.ClassHeadroomPods, metric.ClassHeadroomClaims},
		{metric.ExporterOversizedSpecs, metric.PodTaintEvictions},
	} {
		at := familyIndex(all, move.name)
		moved := all[at]
		copy(all[at:], all[at+1:])
		target := familyIndex(all[:len(all)-1], move.predecessor) + 1
		copy(all[target+1:], all[target:])
		all[target] = moved
	}
}

func familyIndex(all []*metric.Family, name string) int {
	return slices.IndexFunc(all, func(f *metric.Family) bool { return f.Name == name })
}
