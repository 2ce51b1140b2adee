package node

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A truth is a random life of one node with three GPUs, and what the reducer
// is reported of it: late, now and then, in part, by sources that disagree, and of a
// library that returns nonsense at times.
// It steps once a second. What changes, changes between two steps. See
// truth_oracle_test.go for what it holds the pages against.
type truth struct {
	*scene
	random *rand.Rand
	mode   truthMode
	anchor bool // a claim on another driver's device is always there
	sparse bool // there are few claims
	twin   string
	alias  bool

	claims  []*truthClaim // that are there now
	made    int
	ended   []string // names that may be used again
	plugin  [3]string
	listed  map[string]bool // device-plugin pods that a List has named
	gpus    [3]*truthGPU
	slices  []dra.PublishedDevice
	gone    int // steps until the slices come back
	stale   int // steps until the watch is fresh
	restart int // steps until the kubelet lists all again
	away    int // steps until the GPUs, which are released, are opened again
	calm    bool

	quietFor int // steps since a List named a pod of the API server's
	began    time.Duration
	steps    int
	evidence truthEvidence
	oracle   oracle
	seen     map[string]int
}

type truthMode int

const (
	truthAPI truthMode = iota
	truthKubelet
	truthStale
)

func (m truthMode) String() string { return [...]string{"API", "kubelet", "stale watch"}[m] }

// truthClaim is a claim that a pod has now.
type truthClaim struct {
	name, pod, uid string // uid: the pod's
	gpu            int
	device         dra.DeviceID
	kind           truthKind
	admin          bool
	beside         *truthClaim // of an admin claim: the claim of the same pod
	unready        int         // steps until the API server knows the containers' ids
	unread         int         // steps until the claim has been read
	mark           claimMark
}

type truthKind int

const (
	kindVendor truthKind = iota
	kindTwin
	kindAlias
	kindPassthrough
)

// truthGPU is what a GPU counts, and what was read of it.
type truthGPU struct {
	counters []*truthCounter
	every    int // steps between two measurements of energy
	lag      int // steps until a measurement of NVLink is reported
	quiet    int // steps until the read that hangs comes back
	since    time.Duration

	filters [2]*device.PlausibilityFilter // of the library, and of the source of PCIe bytes
	wrong   int                           // steps until the library returns no nonsense any more
	late    int                           // steps until the source of PCIe bytes answers again
	second  device.Sample                 // its last answer
}

type truthCounter struct {
	quantity device.Quantity
	family   string
	rate     float64 // a second
	base     float64
	resets   []time.Duration
	reported device.Reading
	spoiled  int           // readings in a row that were wrong
	misled   bool          // a wrong one was let through
	across   time.Duration // when the GPU was released, if nothing measured later has been reported; 0: something has
	pending  []truthMeasure
	offered  []truthMeasure // that were returned, and may have been refused
	measures []truthMeasure // that were reported
}

// truthMeasure is one measurement: it was true at a point that only the
// oracle knows.
type truthMeasure struct {
	window device.Window
	point  time.Duration
	value  float64
	due    int  // step in which it is reported
	doubt  bool // it was reported while the holder of the GPU was not known
	begins bool // what was reported before was wrong
	across bool // the GPU was released since the one before
}

func newTruth(t testing.TB, seed uint64) *truth {
	w := &truth{scene: newScene(t, gpu(0), gpu(1), gpu(2)), random: rand.New(rand.NewPCG(seed, 7)),
		mode: truthMode(seed % 3), listed: map[string]bool{}, seen: map[string]int{}}
	w.immutable, w.began = true, w.now.Elapsed
	w.anchor = w.random.IntN(2) == 0
	w.sparse = w.random.IntN(3) == 0
	w.alias = w.random.IntN(2) == 0
	w.twin = []string{"", "plain", "passthrough"}[w.random.IntN(3)]
	w.slices = w.facts.Cluster.Published
	w.publishTwice()
	for i := range w.gpus {
		rate := []float64{100, 70, 130}[i]
		if i == 2 && w.random.IntN(3) == 0 {
			rate = 0.3 // at rest: what it counts is less than the jitter
		}
		base := float64(w.random.IntN(3)) * 2000
		w.gpus[i] = &truthGPU{every: 1 + w.random.IntN(10), lag: w.random.IntN(6), filters: [2]*device.PlausibilityFilter{device.NewPlausibilityFilter(), device.NewPlausibilityFilter()}, counters: []*truthCounter{
			{quantity: device.Energy, family: "dra_claim_energy_joules_total", rate: rate, base: base},
			{quantity: device.NVLinkTransmit, family: "dra_claim_nvlink_transmit_bytes_total", rate: 1000 * float64(i+1)},
			{quantity: device.PCIeTransmit, family: "dra_claim_pcie_transmit_bytes_total", rate: 500 * float64(i+1)},
		}}
	}
	w.oracle.accounts, w.oracle.before = map[accountKey]*truthAccount{}, map[string]float64{}
	w.beginWithoutSlices()
	return w
}

// publishTwice lets another driver, or NVIDIA's own, publish a GPU once more.
func (w *truth) publishTwice() {
	if w.alias {
		other := w.slices[0]
		other.ID = dra.DeviceID{Driver: "gpu.acme.com", Pool: sceneNode, Name: "card0"}
		w.slices = append(slices.Clip(w.slices), other)
	}
	if w.twin != "" {
		other := w.slices[1]
		other.ID.Name, other.Passthrough = "gpu-1-twin", w.twin == "passthrough"
		w.slices = append(slices.Clip(w.slices), other)
	}
}

// tick lets a second pass: something changes, the sources report it, the
// reducer steps, and the oracle looks at the page.
func (w *truth) tick() {
	w.now, w.steps = w.now.Add(time.Second), w.steps+1
	if w.steps > 2 && !w.calm {
		w.change()
	}
	w.reportCluster()
	w.reportListing()
	if w.quietFor++; len(w.facts.Listing.Assignments)+len(w.facts.Listing.Plugins) > 0 {
		w.quietFor = 0
	}
	w.reportSamples()
	w.reduce()
	w.observe()
}

func (w *truth) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *truth) saw(what string) { w.seen[what]++ }

func (w *truth) change() {
	if w.restart--; w.restart < 0 && w.chance(4) {
		w.restart = 1 + w.random.IntN(3)
		w.saw("restart")
	}
	if w.gone--; w.gone < 0 && w.mode != truthKubelet && w.chance(5) {
		w.gone = 1 + w.random.IntN(20)
		w.saw("slices gone")
	}
	if w.stale--; w.stale < 0 && w.mode == truthStale && w.chance(6) {
		w.stale = 1 + w.random.IntN(20)
		w.saw("stale")
		if w.chance(50) {
			w.gone = w.stale
		}
	}
	most := 7
	if w.sparse {
		most = 2
	}
	if len(w.claims) < most && w.chance(16) {
		w.take("", w.random.IntN(3))
	}
	for _, c := range slices.Clone(w.claims) {
		if !c.admin && w.chance(6) {
			w.end(c)
			if w.chance(40) {
				w.saw("pod recreated")
				if w.stale > 0 {
					w.saw("pod recreated while stale")
				}
				w.take(c.pod, w.random.IntN(3))
			} else if w.chance(40) {
				w.saw("another pod follows")
				w.take("", w.random.IntN(3))
			}
		}
	}
	if i := w.random.IntN(3); w.chance(4) && w.plugin[i] == "" {
		w.made++
		w.plugin[i] = fmt.Sprint("legacy-", w.made)
		w.saw("plugin")
	} else if w.chance(25) {
		w.plugin[i] = ""
	}
	if w.away--; w.away < 0 && w.chance(1) {
		w.letGo(1 + w.random.IntN(30))
	}
	for _, g := range w.gpus {
		if g.quiet--; g.quiet < 0 && w.away <= 0 && w.chance(2) {
			g.quiet, g.since = 1+w.random.IntN(7), w.now.Elapsed-time.Duration(w.random.IntN(900))*time.Millisecond
			w.saw("hang")
		}
		if w.chance(1) {
			g.counters[0].resets = append(g.counters[0].resets, w.now.Elapsed-w.fraction(time.Second))
			w.saw("reset")
		}
	}
}

// fraction is a random part of a time.
func (w *truth) fraction(of time.Duration) time.Duration {
	return time.Duration(w.random.Float64() * float64(of))
}

// take lets a claim of a pod, a new one unless it is named, have a GPU.
func (w *truth) take(pod string, i int) {
	shared := 0
	for _, c := range w.claims {
		if c.gpu == i {
			shared++
		}
	}
	if shared > 3 {
		return
	}
	if shared > 0 {
		w.saw("shared")
	}
	c := &truthClaim{gpu: i, device: sceneID(fmt.Sprintf("gpu-%d", i)), name: w.newName(), unready: w.random.IntN(4)}
	w.made++
	if c.pod = pod; pod == "" {
		c.pod = fmt.Sprint("pod-", w.made)
	}
	c.uid = fmt.Sprint("pod-uid-", w.made)
	switch {
	case i == 0 && w.alias && w.chance(40):
		c.kind, c.device = kindAlias, dra.DeviceID{Driver: "gpu.acme.com", Pool: sceneNode, Name: "card0"}
		w.saw("alias")
	case i == 1 && w.twin == "plain" && w.gone <= 0 && w.chance(40) && w.mode != truthKubelet:
		c.kind, c.device.Name = kindTwin, "gpu-1-twin"
		w.saw("twin")
	case i == 1 && w.twin == "passthrough" && w.chance(20):
		c.kind, c.device.Name = kindPassthrough, "gpu-1-twin"
		w.saw("passthrough")
	}
	w.claims = append(w.claims, c)
	w.delayRead(c)
	w.markChanged(i)
	w.saw("claim")
	if w.gone > 0 {
		w.saw("claim while slices are gone")
	}
	if w.stale > 0 {
		w.saw("claim while stale")
	}
	if c.kind == kindVendor && w.chance(25) {
		w.claims = append(w.claims, &truthClaim{gpu: i, device: c.device, name: c.name + "-watch", pod: c.pod, uid: c.uid, admin: true, beside: c})
		w.saw("admin")
	}
}

// newName is that of a claim that has ended, now and then, where the API
// server reports every step.
func (w *truth) newName() string {
	if len(w.ended) > 0 && w.mode == truthAPI && w.chance(50) {
		i := w.random.IntN(len(w.ended))
		name := w.ended[i]
		w.ended = slices.Delete(w.ended, i, i+1)
		w.saw("claim recreated")
		return name
	}
	w.made++
	return fmt.Sprint("claim-", w.made)
}

func (w *truth) end(c *truthClaim) {
	w.claims = slices.DeleteFunc(w.claims, func(other *truthClaim) bool { return other == c || other.beside == c })
	w.ended = append(w.ended, c.name)
	w.leaveOrphan(c)
	w.markChanged(c.gpu)
	w.saw("end")
	if len(w.claims) == 0 && !w.anchor {
		w.saw("last pod ends")
	}
}

// reportCluster is what the API server's watches have reported.
func (w *truth) reportCluster() {
	cluster := &w.facts.Cluster
	if w.mode == truthKubelet {
		*cluster = APIFacts{}
		return
	}
	cluster.Published = w.slices
	if w.gone > 0 {
		cluster.Published = nil
	}
	if cluster.Fresh = w.stale <= 0; !cluster.Fresh {
		return
	}
	cluster.Pods, cluster.Claims, cluster.PluginPods, cluster.Unread = nil, nil, nil, nil
	for _, c := range w.claims {
		claim := dra.Claim{Ref: dra.ClaimRef{Namespace: "ml", Name: c.name}, UID: "uid-of-" + c.name + c.uid, Allocated: true, Node: sceneNode,
			Requests:    []dra.Request{{Name: "gpu", DeviceClass: "gpu.nvidia.com"}},
			ReservedFor: []dra.Consumer{{Resource: "pods", Name: c.pod, UID: c.uid}},
			Results:     []dra.Result{{Request: "gpu", Device: c.device, AdminAccess: c.admin}}}
		if c.unread--; c.isUnread() {
			cluster.Unread = append(cluster.Unread, claim.Ref)
		} else {
			cluster.Claims = append(cluster.Claims, claim)
		}
		if c.admin {
			pod := &cluster.Pods[len(cluster.Pods)-1] // it stands behind the claim of its pod
			pod.Claims = append(pod.Claims, dra.PodClaim{Name: "watch", Claim: c.name})
			pod.Containers = append(pod.Containers, dra.Container{Name: "watch", ID: c.container(), Uses: []dra.Use{{Claim: c.name}}})
			continue
		}
		pod := dra.Pod{Ref: dra.PodRef{Namespace: "ml", Name: c.pod}, UID: c.uid, Node: sceneNode,
			Claims:     []dra.PodClaim{{Name: "gpu", Claim: c.name}},
			Containers: []dra.Container{{Name: "main", Uses: []dra.Use{{Claim: c.name}}}}}
		if c.unready--; c.unready < 0 {
			pod.Containers[0].ID = c.container()
		}
		cluster.Pods = append(cluster.Pods, pod)
	}
	for _, name := range w.plugin {
		if name != "" {
			cluster.PluginPods = append(cluster.PluginPods, dra.Pod{Ref: dra.PodRef{Namespace: "ml", Name: name}, UID: "uid-of-" + name, Node: sceneNode})
		}
	}
}

func (c *truthClaim) container() string { return "container-of-" + c.name + c.uid }

// partial reports whether the List does not name all pods.
func (w *truth) partial() bool { return w.restart > 0 }

func (w *truth) reportListing() {
	w.facts.ListedAt, w.facts.Listing = w.now, dra.PodResources{}
	list := &w.facts.Listing
	if w.restart > 1 && w.chance(50) {
		w.saw("empty list")
		return
	}
	list.Pods = append(list.Pods, dra.PodRef{Namespace: "kube-system", Name: "etcd-" + sceneNode})
	if w.partial() {
		return
	}
	add := func(pod, container, claim string, id dra.DeviceID) {
		ref := dra.PodRef{Namespace: "ml", Name: pod}
		list.Pods = append(list.Pods, ref)
		list.Assignments = append(list.Assignments, dra.Assignment{Pod: ref, Container: container, Claim: dra.ClaimRef{Namespace: "ml", Name: claim}, Device: id})
	}
	if w.anchor {
		add("anchor", "main", "anchor", dra.DeviceID{Driver: "nic.example.com", Pool: sceneNode, Name: "nic-0"})
	}
	for _, c := range w.claims {
		container := "main"
		if c.admin {
			container = "watch"
		}
		add(c.pod, container, c.name, c.device)
		w.nameNode(c, &list.Assignments[len(list.Assignments)-1])
	}
	for i, name := range w.plugin {
		if name != "" {
			ref := dra.PodRef{Namespace: "ml", Name: name}
			list.Pods = append(list.Pods, ref)
			list.Plugins = append(list.Plugins, dra.PluginAssignment{Pod: ref, Container: "main", Resource: "nvidia.com/gpu", DeviceIDs: []string{w.pluginID(name, i)}})
			w.listed[name] = true
		}
	}
}

// at is what the counter shows at a time.
func (c *truthCounter) at(point, began time.Duration) float64 {
	value, since := c.base, began-time.Hour/2
	for _, reset := range c.resets {
		if reset <= point {
			value, since = 0, reset
		}
	}
	return value + c.rate*(point-since).Seconds()
}

// resetWithin reports whether the counter was reset within a time.
func (c *truthCounter) resetWithin(from, to time.Duration) bool {
	return slices.ContainsFunc(c.resets, func(reset time.Duration) bool { return from <= reset && reset <= to })
}

func (w *truth) measure(c *truthCounter, from, to, point time.Duration, due int) {
	m := truthMeasure{window: device.Window{From: from, To: to}, point: point, value: c.at(point, w.began), due: due}
	if c.quantity == device.Energy && m.value > 1000 {
		m.value += 0.8*w.random.Float64() - 0.4
	}
	c.pending = append(c.pending, m)
}

// reportSamples reads the GPUs: each counter has a time of its own.
func (w *truth) reportSamples() {
	samples := slices.Clone(w.facts.Samples)
	owners := map[int]dra.Owner{}
	for i, g := range w.gpus {
		if w.away <= 0 {
			w.measureGPU(g, i)
		}
		processes, busy := w.processes(i, owners)
		samples[i].Released = w.away > 0
		if g.quiet > 0 || w.away > 0 {
			continue
		}
		w.evidence.list(i, w.steps, processes, owners)
		first := device.Sample{Device: samples[i].Device, Source: samples[i].Source, At: w.now, ProcessesAt: w.now, Processes: processes,
			XIDs: samples[i].XIDs, Readings: w.readLibrary(g, i, busy)}
		if g.late--; g.late < 0 && !w.calm && w.chance(2) {
			g.late = 1 + w.random.IntN(20)
			w.saw("second source is late")
		}
		third := w.readSecond(g, i, first)
		merged, _ := device.Merge([][]device.Sample{{first}, {g.second}, {third}}, sceneStale)
		samples[i] = merged[0]
	}
	w.facts.Samples = samples
	w.facts.Processes = Processes{Owners: owners}
	if w.mode == truthKubelet {
		w.facts.Processes.State = ProcessesNoPods
	}
}

// letGo releases the GPUs for some steps. What was not reported yet never is.
func (w *truth) letGo(steps int) {
	w.away = steps
	w.saw("release")
	for _, g := range w.gpus {
		g.quiet, g.since = 0, 0
		for _, c := range g.counters {
			c.pending, c.across = nil, w.now.Elapsed
		}
	}
}

// sceneStale is until when the samples of a source are merged.
const sceneStale = 10 * time.Second

// readLibrary is what the first source reads: all but the bytes over PCIe.
func (w *truth) readLibrary(g *truthGPU, i int, busy float64) []device.Reading {
	readings := []device.Reading{{Quantity: device.Utilization, Value: busy}, {Quantity: device.Power, Value: g.counters[0].rate}, {Quantity: device.PowerLimit, Value: 130}}
	if g.wrong--; g.wrong < 0 && !w.calm && w.chance(3) {
		g.wrong = 1 + w.random.IntN(2)
	}
	for _, c := range g.counters[:2] {
		readings = append(readings, w.spoil(g, c)...)
	}
	if g.wrong > 0 {
		readings[1] = device.Reading{Quantity: device.Power, Value: 4294967.295}
	}
	return g.filter(0, readings, w.inDoubt(i))
}

// readSecond reads the bytes over PCIe, unless the second source is late. The third
// source has them as well, but began to count them at another time.
func (w *truth) readSecond(g *truthGPU, i int, first device.Sample) (third device.Sample) {
	sample := device.Sample{Device: first.Device, Source: "second", At: w.now}
	if g.late <= 0 {
		g.second = sample.Having(device.PCIeTransmit)
		g.second.Readings = g.filter(1, w.spoil(g, g.counters[2]), w.inDoubt(i))
	}
	sample.Source = "third"
	other := g.counters[2].reported
	other.Value += 9e9
	sample.Readings = []device.Reading{other}
	return sample
}

// spoil returns what a library returns of a counter: nonsense or nothing at times.
func (w *truth) spoil(g *truthGPU, c *truthCounter) []device.Reading {
	r := c.newest(w.steps)
	resets := g.counters[0].resets
	known := len(c.measures) > 0 // before it is known what the counter has, 0 may be true
	switch kind := w.random.IntN(4); {
	case g.wrong <= 0, len(resets) > 0 && w.now.Elapsed-resets[len(resets)-1] < time.Minute:
		c.spoiled = 0 // nonsense beside a reset may be true
	case kind == 0:
		w.saw("blank")
		return nil
	case c.spoiled == 2: // what lasts is true
		c.spoiled = 0
	case kind == 1 && known:
		w.saw("dip")
		r.Value = 0
		c.spoiled++
	case kind == 2:
		w.saw("nonsense")
		r.Value = []float64{1 << 63, 1.8e19, -1, 2.2e18}[w.random.IntN(4)]
		c.spoiled++
	}
	return []device.Reading{r}
}

// filter refuses what cannot be true, and notes what is reported, in doubt or not: that
// of a reset is reported later than it was returned.
func (g *truthGPU) filter(of int, readings []device.Reading, doubt bool) []device.Reading {
	slices.SortFunc(readings, func(a, b device.Reading) int { return int(a.Quantity) - int(b.Quantity) })
	plausible, _ := g.filters[of].Apply(device.Fast, readings)
	for _, r := range plausible {
		for _, c := range g.counters {
			if c.quantity == r.Quantity {
				c.report(r, doubt)
			}
		}
	}
	return plausible
}

// report notes that a measurement was not refused.
func (c *truthCounter) report(r device.Reading, doubt bool) {
	i := slices.IndexFunc(c.offered, func(m truthMeasure) bool { return m.window == r.Measured })
	if i >= 0 {
		m := c.offered[i]
		m.doubt, m.begins = doubt, c.misled
		if c.misled = math.Abs(r.Value-m.value) > 1; !c.misled {
			if m.across = c.across > 0 && m.window.To > c.across; m.across {
				c.across = 0
			}
			c.measures = append(c.measures, m)
		}
		c.offered = c.offered[i+1:]
	}
}

// inDoubt reports whether what is counted has to wait until it is known who
// holds the GPU.
func (w *truth) inDoubt(i int) bool {
	return !w.facts.Cluster.Fresh && (w.quietFor > 0 && w.quietFor < 8 || w.now.Elapsed < w.oracle.unsure[i])
}

func (w *truth) measureGPU(g *truthGPU, i int) {
	now := w.now.Elapsed
	switch {
	case g.quiet > 0:
		return
	case g.since > 0: // the read that hung
		for _, c := range g.counters {
			c.pending = slices.DeleteFunc(c.pending, func(m truthMeasure) bool { return m.due >= w.steps })
			from := max(g.since, c.reported.Measured.To+1)
			w.measure(c, from, now, from+w.fraction(now-from), w.steps)
		}
		g.since = 0
		w.saw("late read")
		return
	}
	point := now - w.fraction(900*time.Millisecond)
	if w.steps == 1 || w.steps%g.every == i%g.every {
		w.measure(g.counters[0], point, point, point, w.steps)
	}
	if w.steps == 1 {
		w.measure(g.counters[1], point, point, point, w.steps)
	} else {
		w.measure(g.counters[1], point, point, point, w.steps+g.lag)
	}
	spread := w.fraction(450 * time.Millisecond)
	middle := now - 500*time.Millisecond
	w.measure(g.counters[2], middle-spread, middle+spread, middle-spread+w.fraction(2*spread), w.steps)
}

// newest is the measurement whose time has come.
func (c *truthCounter) newest(step int) device.Reading {
	newest := -1
	for i := range c.pending {
		if m := &c.pending[i]; m.due <= step && m.window.To > c.reported.Measured.To {
			newest = i
		}
	}
	if newest >= 0 {
		m := c.pending[newest]
		c.offered = append(c.offered, m)
		c.reported = device.Reading{Quantity: c.quantity, Value: m.value, Measured: m.window}
		c.pending = slices.Delete(c.pending, 0, newest+1)
	}
	return c.reported
}

// work is the share of the GPU that the claim's processes use.
func (c *truthClaim) work() float64 { return 0.05 + 0.04*float64(len(c.name)%2) }

// processes lists who works on the GPU and how much that is.
func (w *truth) processes(i int, owners map[int]dra.Owner) (list []device.Process, sum float64) {
	list = []device.Process{}
	for n, c := range w.claims {
		if c.gpu != i {
			continue
		}
		pid := 1000*w.steps + n + 1
		list = append(list, device.Process{PID: pid, Utilization: c.work(), Memory: 1e9})
		owners[pid] = dra.Owner{PodUID: c.uid, ContainerID: c.container()}
		sum += c.work()
	}
	return w.evidence.addOrphans(i, w.steps, list, owners, sum)
}

// histories is how many random histories a test runs.
func histories(t *testing.T) uint64 {
	if text := os.Getenv("DRA_EXPORTER_HISTORIES"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatalf("DRA_EXPORTER_HISTORIES: %v", err)
		}
		return n
	}
	if testing.Short() {
		return 30
	}
	return 300
}

// TestTruth holds what is shown of random histories against an oracle that
// knows them: no claim is ever credited with more than its part, in the end none
// has less than could be known, and every hold has its GPU's UUID.
func TestTruth(t *testing.T) {
	var mutex sync.Mutex
	seen, ran, all := map[string]int{}, uint64(0), histories(t)
	t.Cleanup(func() {
		for _, what := range truthEvents() {
			if least := int(all / 10); ran == all && !t.Failed() && seen[what] < least {
				t.Errorf("%s: seen %d times in %d histories: they prove nothing of it", what, seen[what], all)
			}
		}
	})
	for seed := range all {
		t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
			t.Parallel()
			w := newTruth(t, seed)
			for range 60 {
				w.tick()
			}
			w.settleDown()
			mutex.Lock()
			defer mutex.Unlock()
			ran++
			for what, times := range w.seen {
				seen[what] += times
			}
		})
	}
}

func truthEvents() []string {
	return []string{"claim", "end", "shared", "pod recreated", "pod recreated while stale", "another pod follows", "claim recreated", "claim while stale",
		"claim while slices are gone", "plugin", "restart", "empty list", "slices gone", "stale", "hang", "release", "late read", "reset", "blank", "dip", "nonsense", "second source is late", "alias", "twin",
		"passthrough", "admin", "last pod ends", "by process", "uncounted", "both drivers", "doubt", "energy is equal", "bytes are equal", "held is equal",
		"unread", "unread under the name of one before", "orphan", "foreign", "another form of id", "unresolved id", "begun without slices", "device node"}
}

// settleDown is the end of a history: for a while all is reported and nothing
// changes.
func (w *truth) settleDown() {
	w.calm, w.stale, w.gone, w.restart, w.away = true, 0, 0, 0, 0
	for _, g := range w.gpus {
		g.quiet = 0
	}
	for range 15 {
		w.tick()
	}
	w.conclude()
}
