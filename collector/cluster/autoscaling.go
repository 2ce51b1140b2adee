package cluster

import (
	"iter"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// maxAutoscaling bounds the events of autoscalers that are kept.
const maxAutoscaling = 1 << 14

// autoscaling keeps the newest event of autoscalers about each pod. The zero value has
// none.
type autoscaling struct {
	byPod map[string]*dra.Autoscaling // by UID
	seen  map[autoscalingKey]struct{}
	list  stableList[model.AutoscalerPods]
}

// autoscalingKey is what pods are counted by.
type autoscalingKey struct {
	autoscaler dra.Autoscaler
	state      dra.AutoscalingState
}

// apply takes an event, unless a newer one is known. The one that is gone may be an
// older one, too.
func (a *autoscaling) apply(event *dra.Autoscaling, gone bool) {
	known := a.byPod[event.PodUID]
	switch {
	case gone:
		if known != nil && known.Name == event.Name {
			delete(a.byPod, event.PodUID)
		}
	case known != nil && known.Name != event.Name && known.Last.After(event.Last):
	case known == nil && len(a.byPod) >= maxAutoscaling:
	default:
		if a.byPod == nil {
			a.byPod = make(map[string]*dra.Autoscaling)
		}
		a.byPod[event.PodUID] = event
	}
}

// count counts the pods with pending claims, given by their UIDs, by what an autoscaler
// has reported of them last. A state that was reported once stays, with no pods.
func (a *autoscaling) count(pods iter.Seq[string]) []model.AutoscalerPods {
	counts := make(map[autoscalingKey]int)
	if len(a.byPod) > 0 {
		for uid := range pods {
			if event := a.byPod[uid]; event != nil {
				counts[autoscalingKey{event.Autoscaler, event.State}]++
			}
		}
	}
	for key := range counts {
		if a.seen == nil {
			a.seen = make(map[autoscalingKey]struct{})
		}
		a.seen[key] = struct{}{}
	}
	for _, autoscaler := range []dra.Autoscaler{dra.ClusterAutoscaler, dra.Karpenter} {
		for _, state := range []dra.AutoscalingState{dra.AutoscalingDeclined, dra.AutoscalingScaleUp} {
			key := autoscalingKey{autoscaler, state}
			if _, ok := a.seen[key]; ok {
				a.list.add(model.AutoscalerPods{Autoscaler: autoscaler, State: state, Pods: counts[key]})
			}
		}
	}
	return a.list.take()
}
