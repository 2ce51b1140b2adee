package cluster

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// owedTime is for how long a failure waits for its class: the judge must have
// looked at a claim that is not there.
const owedTime = 10 * time.Second

// owed is a failure to make a claim that is not counted yet. Its event may be
// told of before the pod that it speaks of, and long before the claim.
type owed struct {
	trouble *dra.Trouble
	count   int64
	told    clock.Instant
}

// settleOwed counts what is owed of which the class is known by now, or will
// not be. It runs after the waits have been settled.
func (s *State) settleOwed(now clock.Instant) {
	f := &s.failures
	f.owed = slices.DeleteFunc(f.owed, func(o owed) bool {
		class := s.classOwed(o.trouble)
		if class == "" && now.Since(o.told) < owedTime {
			return false
		}
		f.add(class, failureCreation, o.count, now.Wall)
		return true
	})
}

// classOwed is the class of what could not be made for a pod, or for a group
// of pods; empty while it is not known.
func (s *State) classOwed(trouble *dra.Trouble) string {
	var classes []string
	if p, known := s.books.pods[trouble.Pod]; known && p.life.UID == trouble.PodUID {
		classes = p.classesOwed(trouble)
	}
	for _, p := range s.books.members[trouble.Pod] {
		if group := s.books.group(p); group == nil || group.UID == trouble.PodUID {
			classes = append(classes, p.classesOwed(trouble)...)
		}
	}
	if slices.Contains(classes, "") {
		return ""
	}
	return dra.OneClass(classes)
}

// classesOwed are the classes of the references that the event may speak of:
// of the one that it names, else of all whose claims are to be made. The class
// of one that is not known is empty.
func (p *podEntry) classesOwed(trouble *dra.Trouble) []string {
	name, named := namedIn(trouble.Message)
	var classes []string
	for i := range p.refs {
		r := &p.refs[i]
		if r.template == "" || (named && r.name != name) || (!named && r.present()) {
			continue
		}
		class := ""
		if r.present() { // it could be made in the end
			class = r.claim.life.Class()
		} else if at := slices.IndexFunc(p.waiting.waiters, r.is); at >= 0 {
			class = p.waiting.waiters[at].class
		}
		classes = append(classes, class)
	}
	return classes
}
