package cluster

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// troubles remembers the events that tell of claims: how often each was told
// of so far, and what the last one about each pod said.
type troubles struct {
	counted  map[string]int64                  // by the event's name
	creation map[string]map[string]dra.Trouble // by the UID of the pod, or of the group, and the event's name
}

func newTroubles() troubles {
	return troubles{counted: make(map[string]int64), creation: make(map[string]map[string]dra.Trouble)}
}

// applyTrouble counts what an event tells of anew. What a list holds was
// there before. An event that comes anew has happened once, whatever it says:
// after it has expired, it is written again with what had been counted before.
func (s *State) applyTrouble(change *Change) {
	t, trouble := &s.books.trouble, change.Trouble
	if p, known := s.books.pods[trouble.Pod]; known {
		s.touched.pods[p] = struct{}{}
	}
	for _, p := range s.books.members[trouble.Pod] { // it may be a group's
		s.touched.pods[p] = struct{}{}
	}
	t.keep(trouble, change.Gone)
	if change.Gone {
		delete(t.counted, trouble.Name)
		return
	}
	counted, known := t.counted[trouble.Name]
	more := trouble.Count - counted
	if !known {
		more = 1
	}
	t.counted[trouble.Name] = trouble.Count
	if more > 0 {
		s.noteTroubles(trouble, change)
	}
	if !change.Live || more <= 0 {
		return
	}
	if trouble.Kind == dra.TroubleCreation {
		s.failures.owed = append(s.failures.owed, owed{trouble, more, change.At})
		return
	}
	s.failures.add(s.classOfTrouble(trouble), failurePreparation, more, change.At.Wall)
}

// keep remembers events about claims that cannot be made, for as long as the
// API server does.
func (t *troubles) keep(trouble *dra.Trouble, gone bool) {
	if trouble.Kind != dra.TroubleCreation {
		return
	}
	of := t.creation[trouble.PodUID]
	switch {
	case !gone && of == nil:
		t.creation[trouble.PodUID] = map[string]dra.Trouble{trouble.Name: *trouble}
	case !gone:
		of[trouble.Name] = *trouble
	default:
		if delete(of, trouble.Name); len(of) == 0 {
			delete(t.creation, trouble.PodUID)
		}
	}
}

// classOfTrouble is the class of the pod's claims; empty if it has none yet.
func (s *State) classOfTrouble(trouble *dra.Trouble) string {
	if p, known := s.books.pods[trouble.Pod]; known && p.life.UID == trouble.PodUID {
		return p.class()
	}
	return ""
}
