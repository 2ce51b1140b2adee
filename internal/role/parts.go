package role

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// endTimeout is how long a role waits for its parts at the end. With the second of the
// server it is less than terminationGracePeriodSeconds of the manifests.
const endTimeout = 2500 * time.Millisecond

// Parts are the goroutines of a role, which end with its context. Its zero value is
// ready, and it is safe for concurrent use.
type Parts struct {
	mu      sync.Mutex
	running map[string]int // by name
	changed chan struct{}  // closed when a part ends; nil: nothing waits
}

// Go runs a part in a goroutine of its own.
func (p *Parts) Go(name string, run func()) {
	p.count(name, 1)
	go func() {
		defer p.count(name, -1)
		run()
	}()
}

func (p *Parts) count(name string, change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		p.running = make(map[string]int)
	}
	if p.running[name] += change; p.running[name] == 0 {
		delete(p.running, name)
	}
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// left returns the names of parts that run, sorted, and a channel that is closed at the
// next change.
func (p *Parts) left() ([]string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for name := range p.running {
		names = append(names, name)
	}
	slices.Sort(names)
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return names, p.changed
}

// Wait waits until all parts have ended, for endTimeout at most, and logs the names of
// those that have not: a part hangs in a call that cannot be cancelled, and ends with
// the process.
func (p *Parts) Wait(log *slog.Logger) {
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	for {
		names, changed := p.left()
		if len(names) == 0 {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			log.Warn("parts of the exporter have not ended and are abandoned", "parts", strings.Join(names, ", "), "after", endTimeout)
			return
		}
	}
}
