//go:build cgo

package dcgm

import (
	"errors"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// linkInterval is how long the state of the NVLinks is good for: to tell it, an
// engine asks the driver for each link.
const linkInterval = 5 * time.Second

// readLinks asks for the state of the NVLinks, if it is time to. An answer by
// which fewer links are up than before is good for this read alone, so that
// links that are merely trained anew are not told as down for the whole pause.
// An answer that is repeated keeps the time at which it was asked for.
func (s *Source) readLinks(now time.Duration) error {
	if s.session.linksUnsupported || s.links != nil && now-s.linksAt < linkInterval {
		return nil
	}
	began := s.elapsed()
	told, err := s.session.links()
	if err == nil {
		told, err = s.session.excludeMIG(told, s.converter.plan.gpus)
	}
	s.linksMeasured = device.Window{From: began, To: s.elapsed()}
	before := s.links
	s.links, s.linksAt = told, now
	if fewerUp(told, before) {
		s.linksAt = now - linkInterval
	}
	if errors.Is(err, statusVersionMismatch) || errors.Is(err, statusFunctionNotFound) || errors.Is(err, errFunctionMissing) {
		s.session.linksUnsupported = true
		s.log.report("the states of NVLinks", err)
		return nil
	}
	return err
}

// fewerUp reports whether of a GPU that has links now and had some before fewerUp
// are up.
func fewerUp(now, before map[entity]links) bool {
	for gpu, l := range now {
		if l.up < before[gpu].up {
			return true
		}
	}
	return false
}

// excludeMIG leaves of the links those of GPUs that are known not to be in MIG
// mode. In it the driver reports all of a GPU's links as down, though nothing
// is wrong with them. The mode is asked of the driver, and after the links,
// because a sample of it could be older than they are.
func (e *engine) excludeMIG(told map[entity]links, gpus []entity) (map[entity]links, error) {
	outside := make(map[entity]links, len(told))
	q := newQuery(gpus, []uint16{migMode})
	err := e.queryValues(&q, liveData, func(v *value, _ *callTime) {
		l, has := told[v.entity]
		mode, o := v.number()
		if has && (o == unsupported || o == present && mode == 0) {
			outside[v.entity] = l
		}
	})
	if err != nil {
		return nil, err
	}
	return outside, nil
}
