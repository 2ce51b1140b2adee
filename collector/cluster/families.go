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
	return slices.Concat(newDefinitions().Families(), []*metric.Family{self.ReadDuration()}, self.NewFamilies().All())
}
