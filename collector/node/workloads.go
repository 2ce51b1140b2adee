package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// workloads keeps the workloads of pods that may use devices of
// this node. They are kept for the grace after the pod, as the counters of its
// claims are.
type workloads struct {
	facts  factList[model.PodWorkload]
	past   []model.PodWorkload // of the facts
	causes [2]listIdentity[dra.Pod]
}

// update applies the pods that the API server has.
func (w *workloads) update(cluster APIFacts, now clock.Instant) {
	lists := [][]dra.Pod{cluster.Pods, cluster.PluginPods}
	var causes [2]listIdentity[dra.Pod]
	for i, pods := range lists {
		causes[i] = newListIdentity(pods)
	}
	if causes == w.causes {
		return
	}
	w.causes = causes
	var current []model.PodWorkload
	for _, pods := range lists {
		for i := range pods {
			if m := pods[i].Member; m.Workload != nil {
				current = append(current, model.PodWorkload{Pod: pods[i].Ref, Workload: *m.Workload, Role: m.Role, Replica: m.Replica, Rank: m.Rank})
			}
		}
	}
	slices.SortFunc(current, func(a, b model.PodWorkload) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	current = slices.CompactFunc(current, func(a, b model.PodWorkload) bool { return a.Pod == b.Pod })
	if w.facts.update(current, now, func(a, b model.PodWorkload) bool { return a.Pod == b.Pod }) {
		w.past = w.facts.past()
	}
}

// evict removes the facts whose grace has ended.
func (w *workloads) evict(now clock.Instant, grace time.Duration) {
	if w.facts.evict(now, grace) {
		w.past = w.facts.past()
	}
}
