package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// workloads keeps the info rows of the workloads of pods that may use devices of
// this node. They are kept for the grace after the pod, as the counters of its
// claims are.
type workloads struct {
	node     string
	families *families
	infos    infoRows[podWorkload]
	causes   [2]span[dra.Pod]
}

// podWorkload is the labels of dra_pod_workload_info.
type podWorkload struct {
	pod                 dra.PodRef
	workload            dra.Workload
	role, replica, rank string
}

func newWorkloads(node string, f *families) *workloads { return &workloads{node: node, families: f} }

// update applies the pods that the API server has.
func (w *workloads) update(cluster Cluster, now clock.Instant) {
	lists := [][]dra.Pod{cluster.Pods, cluster.PluginPods}
	var causes [2]span[dra.Pod]
	for i, pods := range lists {
		causes[i] = spanOf(pods)
	}
	if causes == w.causes {
		return
	}
	w.causes = causes
	var current []podWorkload
	for _, pods := range lists {
		for i := range pods {
			if m := pods[i].Member; m.Workload != nil {
				current = append(current, podWorkload{pods[i].Ref, *m.Workload, m.Role, m.Replica, m.Rank})
			}
		}
	}
	slices.SortFunc(current, func(a, b podWorkload) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	current = slices.CompactFunc(current, func(a, b podWorkload) bool { return a.pod == b.pod })
	w.infos.update(current, now,
		func(a, b podWorkload) bool { return a.pod == b.pod },
		func(p podWorkload) *metric.Labels {
			return metric.NewLabels(w.families.podWorkload.Labels, w.node, p.pod.Namespace, p.pod.Name,
				p.workload.Kind, p.workload.Name, p.role, p.replica, p.rank, p.workload.Queue)
		})
}

// evict removes the rows whose grace has ended.
func (w *workloads) evict(now clock.Instant, grace time.Duration) { w.infos.evict(now, grace) }

func (w *workloads) rows(b *rowBuilder) {
	b.In(w.families.podWorkload)
	w.infos.addTo(b, true)
}
