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
func (s *State) observe(phase, class string, of whose, begin, end moment) {
	from, known := s.instant(begin, end.told)
	if !known || class == "" {
		return
	}
	took := s.inOrder(begin, end, end.told.Elapsed-from)
	contradicted := s.contradicted(begin, end, took)
	if took < 0 || contradicted {
		s.phases.contradict(phase)
	}
	if took < 0 || (contradicted && !begin.live) {
		return
	}
	o := Observation{Family: s.families.duration, DeviceClass: class, Phase: phase, Took: took, Trace: s.point(of, phase)}
	if phase == phaseReady {
		o.Family, o.Phase = s.families.ready, ""
	}
	s.phases.classes[class] = struct{}{}
	s.phases.observed = append(s.phases.observed, o)
}

// inOrder is the duration where the end was told before the beginning. Watches
// tell in any order; one that lags far behind another is known by the stamps,
// which are in order. Then they say how long it took, as far as is known how
// their clocks stand; of a driver's nothing is.
func (s *State) inOrder(begin, end moment, took time.Duration) time.Duration {
	stamped := !begin.stamp.IsZero() && !end.stamp.IsZero() && !contradicts(begin.stamp, end.stamp)
	switch {
	case took >= 0:
		return took
	case took > -disorder:
		return 0
	case !begin.live || !stamped:
		return took
	case begin.by == clockDriver || end.by == clockDriver:
		return 0
	default:
		return max(0, s.between(begin, end))
	}
}

// contradicted reports whether the stamps of begin and end say otherwise. While
// nothing is known of the clock that stamped the beginning, our own is taken
// for it, and the stamps must agree with what follows.
func (s *State) contradicted(begin, end moment, took time.Duration) bool {
	if begin.stamp.IsZero() || end.stamp.IsZero() {
		return false
	}
	tolerated := clockGrain
	if begin.by == clockNode && begin.sameClock(end) {
		tolerated = 0
	}
	between := end.stamp.Sub(begin.stamp)
	if between < -tolerated || (begin.doubt && !begin.live) {
		return true
	}
	if begin.live || s.clocks.known(begin, end.told) {
		return false
	}
	return (between - took).Abs() > time.Second+clockSlack
}
