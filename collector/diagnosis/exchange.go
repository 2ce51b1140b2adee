package diagnosis

import (
	"sync"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// exchange passes questions to the goroutine of Run, and diagnoses back. It is
// safe for concurrent use.
type exchange struct {
	changed chan struct{} // after diagnoses have changed, or classes have been counted
	asked   chan struct{} // after ask

	mu        sync.Mutex
	questions []dra.Question
	sent      uint64 // calls of ask
	diagnoses []dra.Diagnosis
	work      dra.DiagnosisWork
}

func newExchange() *exchange {
	return &exchange{changed: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
}

func (e *exchange) ask(questions []dra.Question) {
	e.mu.Lock()
	e.questions = questions
	e.sent++
	e.mu.Unlock()
	notify(e.asked)
}

// open returns the questions, and how often they have been replaced.
func (e *exchange) open() ([]dra.Question, uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.questions, e.sent
}

func (e *exchange) publish(diagnoses []dra.Diagnosis) {
	e.mu.Lock()
	e.diagnoses = diagnoses
	e.mu.Unlock()
	notify(e.changed)
}

func (e *exchange) publishWork(work dra.DiagnosisWork) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.work = work
}

func (e *exchange) published() ([]dra.Diagnosis, dra.DiagnosisWork) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.diagnoses, e.work
}

// notify sends a value unless there is one already.
func notify(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
