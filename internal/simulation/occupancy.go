package simulation

import (
	"slices"
	"sync"
)

// occupancy is what a scheduler knows of devices: which of them is taken, by
// whom. It is safe for concurrent use.
type occupancy struct {
	mu    sync.Mutex
	owner map[string]*instance // by pool and published name
}

func newOccupancy() *occupancy { return &occupancy{owner: make(map[string]*instance)} }

// take takes all devices that an instance needs for itself, unless another
// one has any of them.
func (o *occupancy) take(who *instance) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	needed := who.exclusive()
	for _, name := range needed {
		if owner := o.owner[name]; owner != nil && owner != who {
			return false
		}
	}
	for _, name := range needed {
		o.owner[name] = who
	}
	return true
}

func (o *occupancy) release(who *instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range who.exclusive() {
		if o.owner[name] == who {
			delete(o.owner, name)
		}
	}
}

// exclusive are the devices that nobody else can have meanwhile.
func (i *instance) exclusive() []string {
	names := slices.Clone(i.row.plugin)
	for _, r := range i.row.claim.requests {
		if !r.admin && r.memory == "" {
			names = append(names, r.devices...)
		}
	}
	for at, name := range names {
		names[at] = poolOf(i.row.on(), name) + "/" + name
	}
	return names
}
