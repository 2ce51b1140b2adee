package explain

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/clusterread"
)

// workloadPods returns the pods of workloads with the subject's name, by role, replica,
// rank and name, and the kinds of the workloads.
func workloadPods(o *clusterread.Objects, subject clusterread.Subject) (members []*dra.PodLifecycle, kinds []string) {
	found := make(map[string]bool)
	for ref, pod := range o.Pods {
		workload := pod.Member.Workload
		if workload == nil || ref.Namespace != subject.Namespace || workload.Name != subject.Name ||
			subject.WorkloadKind != "" && !strings.EqualFold(workload.Kind, subject.WorkloadKind) {
			continue
		}
		members, found[workload.Kind] = append(members, pod), true
	}
	slices.SortFunc(members, func(a, b *dra.PodLifecycle) int {
		x, y := &a.Member, &b.Member
		return cmp.Or(cmp.Compare(x.Role, y.Role), compareIndices(x.Replica, y.Replica), compareIndices(x.Rank, y.Rank),
			cmp.Compare(a.Ref.Name, b.Ref.Name))
	})
	return members, slices.Sorted(maps.Keys(found))
}

// compareIndices compares numbers as numbers, and what is none as text.
func compareIndices(a, b string) int {
	x, notX := strconv.Atoi(a)
	y, notY := strconv.Atoi(b)
	if notX != nil || notY != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(x, y)
}
