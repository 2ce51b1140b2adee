//go:build cgo

package dcgm

import "github.com/NVIDIA/go-dcgm/pkg/dcgm"

// watchHealth has the engine watch over the health of the GPUs. That adds
// watches of fields and nothing else: an engine acts upon policies alone, which
// are set by other requests (DcgmHealthWatch::SetWatches in DCGM's sources).
func (s *session) watchHealth() error {
	for _, function := range []string{"dcgmHealthSet", "dcgmHealthCheck"} {
		if !s.library.has(function) {
			return errNotThere
		}
	}
	for _, group := range s.gpuGroups {
		if err := dcgm.HealthSet(group, dcgm.DCGM_HEALTH_WATCH_ALL); err != nil {
			return coded("watch health", err)
		}
	}
	return nil
}

// checkHealth is what is amiss with the GPUs by the engine's own judgement. An
// engine tells most things for as long as they last, and some once, to whoever
// asks first: what a check has told is taken to last until the next one.
func (s *session) checkHealth() (incidents []incident, err error) {
	for _, group := range s.gpuGroups {
		found, err := s.incidents(group)
		if err != nil {
			return nil, err
		}
		incidents = append(incidents, found...)
	}
	return incidents, nil
}
