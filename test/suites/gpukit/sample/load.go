package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
)

// Load is what a `gpukit load` has printed. Its methods are safe for concurrent
// use.
type Load struct {
	mu       sync.Mutex
	ready    *load.Ready
	progress []load.Progress
	err      error
	started  chan struct{} // closed with the event "ready"
}

// NewLoad returns a load that has printed nothing.
func NewLoad() *Load { return &Load{started: make(chan struct{})} }

// Add takes a line.
func (l *Load) Add(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.add(line); err != nil {
		l.err = errors.Join(l.err, err)
	}
}

func (l *Load) add(line []byte) error {
	var kind struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return fmt.Errorf("decode %.200q: %w", line, err)
	}
	switch kind.Event {
	case "ready":
		if l.ready != nil {
			return nil
		}
		l.ready = &load.Ready{}
		defer close(l.started)
		return json.Unmarshal(line, l.ready)
	case "error":
		var f load.Failure
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		return errors.New(f.Error)
	default:
		var p load.Progress
		if err := json.Unmarshal(line, &p); err != nil {
			return err
		}
		l.progress = append(l.progress, p)
		return nil
	}
}

// Started is closed once the load is ready.
func (l *Load) Started() <-chan struct{} { return l.started }

// Events are the event "ready", the zero value if there was none, and the other
// ones so far.
func (l *Load) Events() (load.Ready, []load.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready == nil {
		return load.Ready{}, nil
	}
	return *l.ready, append([]load.Progress(nil), l.progress...)
}

// Err is what the load has reported as an error.
func (l *Load) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
