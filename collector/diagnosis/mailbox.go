package diagnosis

import (
	"sync"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// mailbox passes questions to the goroutine of Run, and diagnoses back. It is
// safe for concurrent use.
type mailbox struct {
	changed chan struct{} // after diagnoses have changed, or classes have been counted
	asked   chan struct{} // after ask

	mu        sync.Mutex
	questions []dra.Question
	sent      uint64 // calls of ask
	diagnoses []dra.Diagnosis
	work      dra.DiagnosisWork
}

func newMailbox() *mailbox {
	return &mailbox{changed: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
}

func (m *mailbox) ask(questions []dra.Question) {
	m.mu.Lock()
	m.questions = questions
	m.sent++
	m.mu.Unlock()
	notify(m.asked)
}

// open returns the questions, and how often they have been replaced.
func (m *mailbox) open() ([]dra.Question, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.questions, m.sent
}

func (m *mailbox) publish(diagnoses []dra.Diagnosis) {
	m.mu.Lock()
	m.diagnoses = diagnoses
	m.mu.Unlock()
	notify(m.changed)
}

func (m *mailbox) publishWork(work dra.DiagnosisWork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.work = work
}

func (m *mailbox) published() ([]dra.Diagnosis, dra.DiagnosisWork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.diagnoses, m.work
}

// notify sends a value unless there is one already.
func notify(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
