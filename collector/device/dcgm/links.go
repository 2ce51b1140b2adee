//go:build cgo

package dcgm

import (
	"errors"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// linkInterval is how long the states of the NVLinks are used: to return them,
// an engine queries the driver for each link.
const linkInterval = 5 * time.Second

// readLinks reads the states of the NVLinks if the interval has passed. If
// fewer links are up than before, the states are used for this read only, so
// that links that are being retrained are not reported as down for the whole
// interval. States that are used again keep the time at which they were read.
func (s *Source) readLinks(now time.Duration) error {
	if s.session.linksUnsupported || s.links != nil && now-s.linksAt < linkInterval {
		return nil
	}
	began := s.elapsed()
	current, err := s.session.links()
	if err == nil {
		current, err = s.session.excludeMIG(current, s.converter.plan.gpus)
	}
	s.linksMeasured = device.Window{From: began, To: s.elapsed()}
	previous := s.links
	s.links, s.linksAt = current, now
	if fewerUp(current, previous) {
		s.linksAt = now - linkInterval
	}
	if errors.Is(err, statusVersionMismatch) || errors.Is(err, statusFunctionNotFound) || errors.Is(err, errFunctionMissing) {
		s.session.linksUnsupported = true
		s.log.report("the states of NVLinks", err)
		return nil
	}
	return err
}

// fewerUp reports whether a GPU has links now and before, and fewer of them are
// up.
func fewerUp(now, previous map[entity]links) bool {
	for gpu, l := range now {
		if l.up < previous[gpu].up {
			return true
		}
	}
	return false
}

// excludeMIG returns the links of the GPUs that are known not to be in MIG
// mode. In MIG mode the driver reports all links of a GPU as down, although
// they have no fault. The mode is read from the driver, and after the links,
// because a sample of it could be older than they are.
func (e *engine) excludeMIG(current map[entity]links, gpus []entity) (map[entity]links, error) {
	outside := make(map[entity]links, len(current))
	q := newFieldQuery(gpus, []uint16{migMode})
	err := e.queryValues(&q, liveData, func(v *value, _ *callTime) {
		l, ok := current[v.entity]
		mode, o := v.number()
		if ok && (o == unsupported || o == present && mode == 0) {
			outside[v.entity] = l
		}
	})
	if err != nil {
		return nil, err
	}
	return outside, nil
}
