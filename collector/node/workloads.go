package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// workloads keeps the info rows of the workloads of pods that may use devices of
// this node. They are kept for the grace after the pod, as the counters of its
// claims are.
type workloads struct {
	node     string
	families *families
	infos    infoRows[model.PodWorkload]
	shown    []model.PodWorkload // of the infos; nil: outdated
	causes   [2]listIdentity[dra.Pod]
}

func newWorkloads(node string, f *families) *workloads { return &workloads{node: node, families: f} }

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
	changed := w.infos.update(current, now,
		func(a, b model.PodWorkload) bool { return a.Pod == b.Pod },
		func(p model.PodWorkload) *metric.Labels {
			return metric.NewLabels(w.families.podWorkload.Labels, w.node, p.Pod.Namespace, p.Pod.Name,
				p.Workload.Kind, p.Workload.Name, p.Role, p.Replica, p.Rank, p.Workload.Queue)
		})
	if changed {
		w.shown = nil
	}
}

// evict removes the rows whose grace has ended.
func (w *workloads) evict(now clock.Instant, grace time.Duration) {
	if w.infos.evict(now, grace) {
		w.shown = nil
	}
}

// models returns the workloads of pods, and of those that are kept for the grace.
func (w *workloads) models() []model.PodWorkload {
	if w.shown == nil {
		w.shown = append(append([]model.PodWorkload{}, w.infos.current...), w.infos.past()...)
	}
	return w.shown
}

func (w *workloads) rows(b *rowBuilder) {
	b.In(w.families.podWorkload)
	w.infos.addTo(b, true)
}
