package node

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// A history is a random life of one node: claims come and go, share, and are
// recreated under their names; devices cannot be read, pause and lose their
// counters, fall ill and recover; slices vanish and the API server goes away,
// or was never used. It knows what each claim really drew and how
// many errors there were, and holds every page against it.
type history struct {
	*scene
	random *rand.Rand

	total     map[string]float64  // joules that each device really drew
	drawn     map[holdKey]float64 // joules that it drew while the claim held it
	holding   map[holdKey]bool
	admin     map[string]bool // claims with admin access
	offset    map[string]float64
	began     time.Duration
	ticks     int
	before    map[string]float64 // every counter of the page before
	staleFor  int
	slices    []dra.PublishedDevice // what takes turns with the published ones: none, then all
	silentFor map[string]int
	health    *healthHistory
	processes *processHistory
}

const joulesPerSecond = 100

func newHistory(t testing.TB, seed uint64) *history {
	first, second := gpu(2), gpu(2)
	first.UUID, first.ParentUUID, first.Profile, first.Placement = "MIG-a", "GPU-2", "3g.40gb", 0
	second.UUID, second.ParentUUID, second.Profile, second.Placement = "MIG-b", "GPU-2", "3g.40gb", 4
	h := &history{
		scene:  newScene(t, gpu(0), gpu(1), gpu(2), first, second),
		random: rand.New(rand.NewPCG(seed, 0)),
		total:  map[string]float64{}, drawn: map[holdKey]float64{}, holding: map[holdKey]bool{}, admin: map[string]bool{},
		offset: map[string]float64{}, before: map[string]float64{}, silentFor: map[string]int{},
	}
	h.health = newHealthHistory(h.scene, h.random)
	h.processes = newProcessHistory(h.scene, rand.New(rand.NewPCG(seed, 1)))
	h.began = h.now.Elapsed
	h.immutable = true
	h.facts.Cluster.Enabled = seed%3 > 0
	if !h.facts.Cluster.Enabled {
		h.facts.Processes.State = ProcessesNoPods
	}
	for _, partition := range []device.Device{first, second} {
		h.facts.Cluster.Published = append(h.facts.Cluster.Published, dra.PublishedDevice{
			ID: sceneID(h.published(partition.UUID)), UUID: partition.UUID, ParentUUID: partition.ParentUUID, Profile: partition.Profile, Placement: partition.Placement,
			Capacity: map[string]float64{"memory": 40e9},
		})
		h.set(partition.UUID, device.MemoryUsed, 10e9)
	}
	for _, uuid := range []string{"GPU-0", "GPU-1", "GPU-2"} {
		h.set(uuid, device.MemoryUsed, 20e9)
		h.set(uuid, device.Utilization, 0.5)
		h.set(uuid, device.Power, joulesPerSecond)
	}
	return h
}

// published names the device of each uuid.
func (h *history) published(uuid string) string {
	return map[string]string{"GPU-0": "gpu-0", "GPU-1": "gpu-1", "GPU-2": "gpu-2",
		"MIG-a": "gpu-2-mig-3g40gb-9-0", "MIG-b": "gpu-2-mig-3g40gb-9-4"}[uuid]
}

// tick is advance, and checks the page.
func (h *history) tick() {
	h.advance()
	h.check()
}

// advance lets time pass, draws energy, changes something, and steps.
func (h *history) advance() {
	pause := time.Second
	if h.random.IntN(20) == 0 {
		pause = time.Duration(1+h.random.IntN(40)) * time.Second
	}
	for _, uuid := range []string{"GPU-0", "GPU-1", "GPU-2"} {
		joules := joulesPerSecond * pause.Seconds()
		h.total[uuid] += joules
		for key := range h.holding {
			if key.uuid == uuid {
				h.drawn[key] += joules
			}
		}
	}
	h.change()
	h.processes.change(processUUIDs())
	for uuid, joules := range h.total {
		h.set(uuid, device.Energy, joules-h.offset[uuid])
	}
	h.facts.ListedAt = h.now.Add(pause)
	h.facts.Listing = h.processes.list(h.list())
	h.processes.apply(func() { h.step(pause) })
}

func (h *history) change() {
	for uuid, left := range h.silentFor {
		h.silentFor[uuid] = left - 1
		h.unreadable[uuid] = left > 0
	}
	h.staleFor--
	h.facts.Cluster.Fresh = h.staleFor < 0
	uuids := []string{"GPU-0", "GPU-1", "GPU-2", "MIG-a", "MIG-b"}
	uuid := uuids[h.random.IntN(len(uuids))]
	name := fmt.Sprintf("ml/claim-%d", h.random.IntN(6))
	switch choice := h.random.IntN(30); {
	case choice < 6 && h.staleFor < 0:
		h.take(name, uuid)
	case choice < 11 && h.staleFor < 0:
		h.drop(name)
	case choice == 11:
		h.silentFor[uuid] = h.random.IntN(60)
	case choice == 12 && h.total[uuid] > 0:
		h.offset[uuid] = h.total[uuid] - 10
	case choice == 13:
		h.slices, h.facts.Cluster.Published = h.facts.Cluster.Published, h.slices
	case choice == 15:
		h.staleFor = h.random.IntN(20)
		h.facts.Cluster.Fresh = h.staleFor < 0
	case choice == 14 && h.staleFor < 0:
		h.drop(name)
		h.take(name, uuid)
	case choice > 15:
		h.health.change(uuid)
	}
}

func (h *history) take(claim, uuid string) {
	for key := range h.holding {
		if key.claim.String() == claim {
			return
		}
	}
	if h.admin[claim] {
		return
	}
	devices := []string{h.published(uuid)}
	if h.random.IntN(4) == 0 {
		devices = append(devices, devices[0])
	}
	c := h.allocate(claim, devices...)
	admin := h.random.IntN(4) == 0 && h.facts.Cluster.Enabled // the kubelet does not report it
	for i := range c.Results {
		c.Results[i].AdminAccess = admin
		c.Results[i].ShareID = fmt.Sprint(i)
		if h.random.IntN(3) == 0 {
			c.Results[i].Consumed = map[string]float64{"memory": 8e9}
		}
	}
	if admin {
		h.admin[claim] = true
		return
	}
	ref := c.Ref
	h.holding[holdKey{ref, uuid}] = true
	if twin := h.processes.share(c, devices[0]); twin != "" {
		h.holding[holdKey{dra.ClaimRef{Namespace: ref.Namespace, Name: ref.Name + "-twin"}, uuid}] = true
	}
}

func (h *history) drop(claim string) {
	h.release(claim)
	h.processes.remove(claim)
	delete(h.admin, claim)
	for key := range h.holding {
		if key.claim.String() == claim || key.claim.String() == claim+"-twin" {
			delete(h.holding, key)
		}
	}
}

// list is what the kubelet lists: every entry twice, as after a retried
// preparation.
func (h *history) list() dra.PodResources {
	always := dra.PodRef{Namespace: "kube-system", Name: "always-there"}
	listing := dra.PodResources{Pods: []dra.PodRef{always}, Assignments: []dra.Assignment{
		{Pod: always, Container: "main", Claim: dra.ClaimRef{Namespace: "kube-system", Name: "always-there"}, Device: dra.DeviceID{Driver: "nic.example.com", Pool: sceneNode, Name: "nic-0"}},
	}}
	for _, pod := range h.facts.Cluster.Pods {
		listing.Pods = append(listing.Pods, pod.Ref)
	}
	for _, claim := range h.facts.Cluster.Claims {
		for _, result := range append(claim.Results, claim.Results...) {
			listing.Assignments = append(listing.Assignments, dra.Assignment{
				Pod: dra.PodRef{Namespace: claim.Ref.Namespace, Name: strings.TrimSuffix(claim.Ref.Name, "-twin")}, Container: "main", Claim: claim.Ref, Device: result.Device, ShareID: result.ShareID,
			})
		}
	}
	return listing
}

func (h *history) check() {
	h.t.Helper()
	if h.ticks++; h.ticks%10 == 0 { // it takes longer than the step
		if _, err := (prometheus.Gatherers{metric.NewPage(h.last.Rows())}).Gather(); err != nil {
			h.t.Fatalf("a page that Prometheus refuses: %v", err)
		}
	}
	counters := map[string]float64{}
	for _, row := range h.last.Rows() {
		if row.Family.Type == metric.Counter {
			counters[seriesName(row)] = row.Value
		}
	}
	h.checkMonotonic(counters)
	h.checkSums()
	h.health.check()
	h.processes.check()
	h.before = counters
}

func seriesName(row metric.Row) string {
	name := row.Family.Name
	for label, value := range row.Labels.Each {
		name += " " + label + "=" + value
	}
	return name
}

// checkMonotonic lets a counter fall only where the hardware's own did.
func (h *history) checkMonotonic(counters map[string]float64) {
	h.t.Helper()
	for name, before := range h.before {
		value, there := counters[name]
		hardware := len(name) > 30 && name[:30] == "dra_device_energy_joules_total"
		if there && value < before && !hardware {
			h.t.Fatalf("%s fell from %v to %v", name, before, value)
		}
	}
}

// checkSums holds the claims' values against the devices' own and against
// the truth.
func (h *history) checkSums() {
	h.t.Helper()
	gauges, devices := map[string]float64{}, map[string]float64{}
	weighted := map[string]float64{}
	drawn := map[holdKey]float64{}
	for _, row := range h.last.Rows() {
		uuid, unshared := row.Labels.Get("uuid"), row.Labels.Get("attribution") != "shared"
		whole := map[string]string{"MIG-a": "GPU-2", "MIG-b": "GPU-2"}[uuid]
		if whole == "" {
			whole = uuid
		}
		key := holdKey{dra.ClaimRef{Namespace: row.Labels.Get("namespace"), Name: row.Labels.Get("resourceclaim")}, uuid}
		switch name := row.Family.Name; {
		case name == "dra_claim_memory_used_bytes" && unshared, name == "dra_claim_power_watts" && unshared:
			gauges[name[len("dra_claim_"):]+" of "+whole] += row.Value
		case name == "dra_device_memory_used_bytes", name == "dra_device_power_watts":
			devices[name[len("dra_device_"):]+" of "+uuid] = row.Value
		case name == "dra_claim_energy_joules_total" && unshared:
			drawn[key] += row.Value
		case name == "dra_claim_device_seconds_total":
			weighted[uuid] += row.Value
		case name == "dra_claim_energy_joules_total" && row.Labels.Get("attribution") == "partition":
			h.t.Fatalf("the partition %s has energy of its own", uuid)
		}
	}
	for what, sum := range gauges {
		if own, known := devices[what]; known && sum > own*(1+1e-9) {
			h.t.Fatalf("%s: the claims' sum is %v, the device's own is %v", what, sum, own)
		}
	}
	for uuid, sum := range weighted {
		if passed := (h.now.Elapsed - h.began).Seconds(); sum > passed+1e-6 {
			h.t.Fatalf("%v device-seconds of %s in %v s", sum, uuid, passed)
		}
	}
	h.checkEnergy(drawn)
}

func (h *history) checkEnergy(drawn map[holdKey]float64) {
	h.t.Helper()
	sums := map[string]float64{}
	for key, joules := range drawn {
		sums[key.uuid] += joules
		if joules > h.drawn[key]+1e-6 {
			h.t.Fatalf("%s has %v J of %s, but only %v J were drawn while it held", key.claim, joules, key.uuid, h.drawn[key])
		}
	}
	for uuid, sum := range sums {
		if sum > h.total[uuid]+1e-6 {
			h.t.Fatalf("the claims have %v J of %s, which drew %v J", sum, uuid, h.total[uuid])
		}
	}
}

// TestHistories is the property test of the ledger: over random histories no page
// breaks an invariant, counters are monotonic, nothing is counted twice, and a
// device is unhealthy exactly while it has a critical signal. TestMutants shows
// that it can fail. The quick tests run a few histories, which need not cover all
// rules.
func TestHistories(t *testing.T) {
	credited, violated, seen, seeds := 0.0, 0.0, map[string]int{}, uint64(40)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newHistory(t, seed)
			for range 250 {
				h.tick()
			}
			for _, totals := range h.state.ledger.totals {
				credited += totals.energy.total
			}
			for rule, times := range h.processes.seen {
				seen[rule] += times
			}
			for _, v := range h.state.health.violations.byClass {
				violated += v[constraintMemory].total
			}
		})
	}
	if testing.Short() {
		return
	}
	if credited < 1e5 || math.IsNaN(credited) || violated < 100 {
		t.Errorf("only %v J were credited to anybody, and %v memory errors: the histories prove nothing", credited, violated)
	}
	checkCoverage(t, seen)
}
