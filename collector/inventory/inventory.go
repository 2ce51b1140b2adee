package inventory

import (
	"hash/maphash"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Inventory keeps what the package comment says. Its methods may be called
// from any goroutine.
type Inventory struct {
	mu sync.Mutex // guards all below; never held while CEL runs

	version  uint64 // moves with every change that an answer can depend on
	reshaped uint64 // version at which devices, classes or nodes last changed, not only what is allocated or tainted

	slices    map[string]*slice
	pools     map[poolKey]*pool
	order     []*pool // sorted by driver and pool
	poolSlots []int   // free ones
	claims    map[dra.ClaimRef]*claim
	templates map[dra.ClaimRef]*book[specification]
	classes   map[string]*class
	rules     map[string]*resourcev1.DeviceTaintRule
	nodes     map[string]*corev1.Node

	texts        *table
	sweeps       int // of texts: numbers from before one are not to be trusted after it
	reaches      *library[*reach]
	widely       map[*reach]struct{} // those that are not one node's
	consumptions *library[consumption]
	capacities   *library[capacities]
	counters     *library[[]counterSet]
	specs        *library[specification]
	budget       specBudget

	blocks    []*block // by stamp; some are gone
	gone      int      // how many of them
	stamp     uint64
	slots     int
	vacant    []int // slots
	selectors map[string]*selector
	asked     uint64 // evaluations whose outcome was kept
	uses      uint64 // of selectors, so that the least recently used can go

	seeds   [2]maphash.Seed // of memo keys
	scratch []byte          // for one of them

	dirty     map[*pool]struct{} // to be counted anew
	recounted map[*pool]struct{} // since the supply before
	supply    *dra.Supply        // the last
	unpacked  map[*slice]*resourcev1.ResourceSlice
	unpacking int // devices in them
}

// New makes an empty inventory.
func New() *Inventory {
	return &Inventory{
		slices:       map[string]*slice{},
		pools:        map[poolKey]*pool{},
		claims:       map[dra.ClaimRef]*claim{},
		templates:    map[dra.ClaimRef]*book[specification]{},
		classes:      map[string]*class{},
		rules:        map[string]*resourcev1.DeviceTaintRule{},
		nodes:        map[string]*corev1.Node{},
		texts:        newTable(),
		reaches:      newLibrary[*reach](),
		widely:       map[*reach]struct{}{},
		consumptions: newLibrary[consumption](),
		capacities:   newLibrary[capacities](),
		counters:     newLibrary[[]counterSet](),
		specs:        newLibrary[specification](),
		budget:       newSpecBudget(),
		selectors:    map[string]*selector{},
		seeds:        [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		dirty:        map[*pool]struct{}{},
		recounted:    map[*pool]struct{}{},
		unpacked:     map[*slice]*resourcev1.ResourceSlice{},
	}
}

// Version tells one state from another: it moves with every change that an
// answer can depend on.
func (inv *Inventory) Version() uint64 {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.version
}
