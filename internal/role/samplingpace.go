package role

import (
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

const (
	// idleInterval is the longest time between two reads: half of the shortest
	// staleness limit, so that one failed read leaves no gap.
	idleInterval = 5 * time.Second
	// needFor is how long a need for reads at each interval lasts: longer than from the
	// allocation of a claim to the start of its pod, and than between two requests of a page.
	needFor = 30 * time.Second
	// scrapeMemory is how long the time between scrapes is remembered.
	scrapeMemory = 2 * time.Minute
	// readsPerScrape is how many reads there are from one scrape to the next at rest.
	readsPerScrape = 3
)

// samplingPace decides how often devices are read. While a claim or a pod holds one, what
// accrues needs each interval. At rest, gauges need a few readings between two scrapes.
type samplingPace struct {
	interval time.Duration
	always   bool // each interval is needed
	clock    clock.Clock

	mu      sync.Mutex
	end     time.Duration                     // of the last need, in elapsed time
	scrapes [readsPerScrape + 1]time.Duration // the last ones, in elapsed time, the newest first; 0: none
}

// noteNeed notes that each interval is needed for a while.
func (p *samplingPace) noteNeed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = p.clock().Elapsed + needFor
}

// noteScrape notes a scrape.
func (p *samplingPace) noteScrape() {
	p.mu.Lock()
	defer p.mu.Unlock()
	copy(p.scrapes[1:], p.scrapes[:])
	p.scrapes[0] = p.clock().Elapsed
}

// next returns the time between two reads, for the newest model.
func (p *samplingPace) next(n *model.Node) time.Duration {
	held := n == nil || isAnyHeld(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock().Elapsed
	if p.always || held || now < p.end {
		return p.interval
	}
	rest := idleInterval
	for i, at := range p.scrapes[1:] {
		if at > 0 && now-at <= scrapeMemory {
			rest = min(rest, (p.scrapes[i]-at)/readsPerScrape)
		}
	}
	return max(p.interval, rest)
}

// isAnyHeld reports whether a claim or a pod has a device of the node, or may have one.
func isAnyHeld(n *model.Node) bool {
	if len(n.Claims) > 0 && n.Claims[0].Live {
		return true
	}
	for i := range n.Devices {
		if n.Devices[i].Holders != (model.HolderCounts{}) {
			return true
		}
	}
	return false
}
