package cluster

import (
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// watches remembers when the watch of pods or of claims was last seen not to be
// alive. One that has fallen behind the other tells of half of what happened:
// that a claim which a pod names does not exist, or that the pod for which a
// claim is reserved does not. What has been listed once counts as known all the
// while, so the collections do not tell.
type watches struct {
	lagged bool
	at     clock.Instant
	agree  bool // both have been alive long enough for what one told to have come by the other, too
}

// look takes in how the sources are. One that nobody speaks of is taken to be
// well.
func (w *watches) look(sources []source.Status, now clock.Instant) {
	for i := range sources {
		if s := &sources[i]; !s.Up && (s.Name == "pods" || s.Name == "resourceclaims") {
			w.lagged, w.at = true, now
		}
	}
	w.agree = !w.lagged || now.Since(w.at) >= onsetDelay
}
