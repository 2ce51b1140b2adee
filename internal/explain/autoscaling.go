package explain

import (
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Autoscaling is what a node autoscaler has reported of a pod.
type Autoscaling struct {
	Name    string    `json:"name"`  // cluster_autoscaler or karpenter
	State   string    `json:"state"` // scale_up: it adds a node, or has one for the pod; declined: it does not
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// text says what the autoscaler has reported, as of a time.
func (a *Autoscaling) text(at time.Time) string {
	effect := "adds no node for the pod"
	if a.State == string(dra.AutoscalingScaleUp) {
		effect = "has a node for the pod"
	}
	return fmt.Sprintf("%s %s, %s ago: %s", dra.Autoscaler(a.Name).Title(), effect, words.Age(at.Sub(a.At)), a.Message)
}

// podAutoscaling returns what an autoscaler has reported of a pod; nil: nothing.
func podAutoscaling(objects *clusterread.Objects, uid string) *Autoscaling {
	event := objects.Scaling[uid]
	if event == nil {
		return nil
	}
	return &Autoscaling{Name: string(event.Autoscaler), State: string(event.State), Message: event.Message, At: event.Last.UTC()}
}
