package cluster

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// class is the one device class of the pod's claims; empty if none is known.
func (p *podEntry) class() string {
	var classes []string
	for i := range p.refs {
		if c := p.refs[i].claim; c != nil && c.life != nil {
			classes = append(classes, c.life.Class())
		}
	}
	return dra.OneClass(classes)
}

// observe takes down how long a phase took, whose end was told live, unless
// nobody can tell when it began, or the clocks that tell contradict each
// other. That is counted, also where our own clock alone tells the duration
// and it is observed.
func (s *State) observe(phase, class string, begin, end moment) {
	from, known := s.instant(begin, end.told)
	if !known || class == "" {
		return
	}
	took := end.told.Elapsed - from
	if begin.live && took < 0 && took > -disorder {
		took = 0
	}
	contradicted := s.contradicted(begin, end, took)
	if took < 0 || contradicted {
		s.phases.contradict(phase)
	}
	if took < 0 || (contradicted && !begin.live) {
		return
	}
	o := Observation{Family: s.families.duration, DeviceClass: class, Phase: phase, Took: took}
	if phase == phaseReady {
		o.Family, o.Phase = s.families.ready, ""
	}
	s.phases.observed = append(s.phases.observed, o)
}

// contradicted reports whether the stamps of begin and end say otherwise. While
// nothing is known of the clock that stamped the beginning, our own is taken
// for it, and the stamps must agree with what follows.
func (s *State) contradicted(begin, end moment, took time.Duration) bool {
	if begin.stamp.IsZero() || end.stamp.IsZero() {
		return false
	}
	between := end.stamp.Sub(begin.stamp)
	if between < 0 || (begin.doubt && !begin.live) {
		return true
	}
	if begin.live || s.clocks.of(begin.by, begin.node, false).known {
		return false
	}
	return (between - took).Abs() > time.Second+clockSlack
}
