package node

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// processHistory is the processes of a history's GPUs: processes of holders, of the
// host, of device plugins' pods, of administrators and of pods long gone; some
// end, pids are used again, lists and lookups fail for a while, numbers are
// not reported. It computes by brute force what each page must have.
type processHistory struct {
	*scene
	random *rand.Rand

	owners     map[int]dra.Owner // the truth; facts may lack some for a while
	unlisted   map[string]int    // for how many steps a GPU cannot list processes
	unknown    map[int]int       // for how many steps the owner of a pid is not known
	blindFor   int               // steps without procfs
	force      map[string]reported
	unreported map[string]bool   // by device and quantity: not reported by some process of the last list that had any
	server     map[string]int    // the MPS server of each device
	plugin     map[string]string // the pod with a device plugin on each GPU
	seen       map[string]int    // how often each rule was put to the test
	foreign    *foreignHistory

	read  map[string]time.Duration // when each device was read last
	began map[useKey]time.Duration // since when a use has gone on under its attribution
	busy  map[useKey]float64
	total float64 // busy time of all uses that are not shared
}

func newProcessHistory(s *scene, random *rand.Rand) *processHistory {
	w := &processHistory{scene: s, random: random, owners: map[int]dra.Owner{}, unlisted: map[string]int{}, unknown: map[int]int{},
		force: map[string]reported{}, unreported: map[string]bool{}, server: map[string]int{}, plugin: map[string]string{}, seen: map[string]int{},
		read: map[string]time.Duration{}, began: map[useKey]time.Duration{}, busy: map[useKey]float64{}, foreign: newForeignHistory()}
	return w
}

// share lets a claim that was just taken have company: a second claim of its
// pod on the same device, or a second pod. It returns the other claim.
func (w *processHistory) share(claim *dra.Claim, device string) (twin string) {
	ref := claim.Ref
	switch w.random.IntN(4) {
	case 0:
		pod := &w.facts.Cluster.Pods[len(w.facts.Cluster.Pods)-1]
		pod.Claims = append(pod.Claims, dra.PodClaim{Name: "twin", Claim: ref.Name + "-twin"})
		pod.Containers[0].ID = "main-of-" + ref.Name
		pod.Containers = append(pod.Containers, dra.Container{Name: "side", ID: "side-of-" + ref.Name, Uses: []dra.Use{{Claim: ref.Name + "-twin"}}})
		if w.random.IntN(3) == 0 {
			pod.Containers[0].Uses = append(pod.Containers[0].Uses, dra.Use{Claim: ref.Name + "-twin"})
		}
		uid, pods := pod.UID, w.facts.Cluster.Pods
		w.allocate(ref.String()+"-twin", device).ReservedFor[0].UID = uid
		w.facts.Cluster.Pods = pods
		return ref.String() + "-twin"
	case 1:
		w.scene.share(ref.String(), ref.Name+"-guest")
	}
	return ""
}

// leave undoes share.
func (w *processHistory) remove(claim string) {
	w.release(claim + "-twin")
	w.release(claim + "-guest")
}

func (w *processHistory) change(uuids []string) {
	for uuid, left := range w.unlisted {
		w.unlisted[uuid] = left - 1
	}
	for pid, left := range w.unknown {
		w.unknown[pid] = left - 1
	}
	if w.facts.Cluster.Enabled {
		w.facts.Processes.State = ProcessesOK
		if w.blindFor--; w.blindFor > 0 {
			w.facts.Processes.State = ProcessesNoProcfs
		} else if w.random.IntN(60) == 0 {
			w.blindFor = w.random.IntN(10)
		}
	}
	for range 3 {
		w.changeOne(uuids[w.random.IntN(len(uuids))])
	}
	w.facts.Processes.Owners = maps.Clone(w.owners)
	for pid, left := range w.unknown {
		if left > 0 {
			delete(w.facts.Processes.Owners, pid)
		}
	}
}

func (w *processHistory) changeOne(uuid string) {
	list := slices.Clone(w.processLists[uuid])
	at := -1
	if len(list) > 0 {
		at = w.random.IntN(len(list))
	}
	switch choice := w.random.IntN(24); {
	case choice < 6:
		list = w.addProcess(uuid, list)
	case choice == 6 && uuid != "GPU-2": // whose partitions use what they always do
		w.set(uuid, device.Utilization, float64(w.random.IntN(11))/10)
		w.set(uuid, device.MemoryUsed, float64(w.random.IntN(40))*1e9)
	case choice == 7:
		w.unlisted[uuid] = w.random.IntN(25)
	case choice == 8:
		w.togglePlugin(uuid)
	case at < 0:
	case choice < 13:
		delete(w.owners, list[at].PID)
		list = slices.Delete(list, at, at+1)
	case choice == 13:
		w.owners[list[at].PID] = dra.Owner{Gone: true}
	case choice == 14:
		w.unknown[list[at].PID] = w.random.IntN(20)
	case choice == 15:
		list[at].Proxied = true
	case choice == 16:
		list[at].Utilization = device.Unknown
	case choice == 17:
		list[at].Memory = device.Unknown
	case choice < 21:
		list[at].Utilization, list[at].Memory, list[at].Proxied = float64(w.random.IntN(5))/10, float64(w.random.IntN(8))*1e9, false
	default: // the host rests, or works; the others are its clients
		for i := range list {
			if list[i].Proxied = w.owners[list[i].PID] != (dra.Owner{}); list[i].Proxied {
				list[i].Utilization = 0
			} else {
				list[i].Utilization = 0.4 * float64(w.random.IntN(2))
			}
		}
	}
	w.processLists[uuid] = list
}

// hire adds a process; its pid may have been another's before.
func (w *processHistory) addProcess(uuid string, list []device.Process) []device.Process {
	pid := 1 + w.random.IntN(40)
	if _, taken := w.owners[pid]; taken || len(list) > 5 {
		return list
	}
	owner := dra.Owner{}
	switch pods := w.facts.Cluster.Pods; w.random.IntN(6) {
	case 0:
	case 1:
		owner = ofPod("other")
	case 2:
		owner = ofPod("notebook-" + uuid)
	default:
		if len(pods) > 0 {
			pod := pods[w.random.IntN(len(pods))]
			if at := slices.IndexFunc(pods, func(p dra.Pod) bool { return len(p.Claims) > 1 }); at >= 0 && w.random.IntN(2) == 0 {
				pod = pods[at]
			}
			owner = ofPod(pod.Ref.Name + "/" + []string{"main", "side", "side", "none"}[w.random.IntN(4)])
		}
	}
	w.owners[pid] = owner
	return append(list, device.Process{PID: pid, Utilization: float64(w.random.IntN(5)) / 10, Memory: float64(w.random.IntN(8)) * 1e9})
}

// togglePlugin lets a pod with a device plugin come or go. Its UID is known
// now and then.
func (w *processHistory) togglePlugin(uuid string) {
	ref := dra.PodRef{Namespace: "legacy", Name: "notebook-" + uuid}
	w.facts.Cluster.PluginPods = without(w.facts.Cluster.PluginPods, func(p dra.Pod) bool { return p.Ref == ref })
	if w.plugin[uuid] != "" {
		delete(w.plugin, uuid)
		return
	}
	w.plugin[uuid] = ref.Name
	if w.random.IntN(3) > 0 {
		w.facts.Cluster.PluginPods = append(w.facts.Cluster.PluginPods, dra.Pod{Ref: ref, UID: "pod-uid-of-" + ref.Name})
	}
}

// list adds the pods with device plugins to what the kubelet lists.
func (w *processHistory) list(listing dra.PodResources) dra.PodResources {
	for _, uuid := range slices.Sorted(maps.Keys(w.plugin)) {
		ref := dra.PodRef{Namespace: "legacy", Name: w.plugin[uuid]}
		listing.Pods = append(listing.Pods, ref)
		listing.Plugins = append(listing.Plugins, dra.PluginAssignment{Pod: ref, Container: "main", Resource: "nvidia.com/gpu", DeviceIDs: []string{uuid + "::1"}})
	}
	return listing
}

// offer lets only those GPUs list their processes that can.
func (w *processHistory) apply(step func()) {
	all := w.processLists
	w.processLists = maps.Clone(all)
	for uuid, left := range w.unlisted {
		if left > 0 {
			delete(w.processLists, uuid)
		}
	}
	step()
	w.processLists = all
}

// processUUIDs are the devices of a history whose processes are listed. The
// last is cut into partitions.
func processUUIDs() []string { return []string{"GPU-0", "GPU-0", "GPU-1", "GPU-1", "GPU-2"} }

// checkCoverage fails unless every rule was put to the test.
func checkCoverage(t interface{ Errorf(string, ...any) }, seen map[string]int) {
	for _, rule := range []string{"missed list", "stale list", "old list", "gone", "MPS", "MPS server at rest", "nothing to report", "aside", "unattributed", "by container", "ambiguous", "busy as process", "busy as exclusive", "busy as shared", "foreign", "foreign in an old list"} {
		if seen[rule] < 50 {
			t.Errorf("%s: put to the test %d times, the histories prove nothing", rule, seen[rule])
		}
	}
}

// reported is the list that is used, and the owners of its processes.
type reported struct {
	at     time.Duration
	list   []device.Process
	owners map[int]dra.Owner
}

// check holds the page against what brute force finds.
func (w *processHistory) check() {
	w.t.Helper()
	reported := map[string]map[string]float64{}
	for i := range w.facts.Samples {
		sample := &w.facts.Samples[i]
		uuid := sample.Device.UUID
		w.updateReported(sample)
		reported[uuid] = w.split(uuid)
		want, whole := w.expect(sample)
		if !whole {
			for who := range reported[uuid] {
				if strings.Contains(who, "process") || strings.Contains(who, "unattributed") || strings.Contains(who, "pod") {
					w.t.Fatalf("%s has %s", uuid, who)
				}
			}
			continue
		}
		w.expectSplit(uuid, want)
		w.checkSum(uuid, reported[uuid])
		if w.t.Failed() {
			w.t.Fatalf("at %v; in force: %+v", w.now.Elapsed, w.force[uuid])
		}
	}
	w.checkBusy(reported)
}

// checkSum adds up use, which must not be counted twice. What is unattributed is a
// part of what a claim has that is alone.
func (w *processHistory) checkSum(uuid string, reported map[string]float64) {
	w.t.Helper()
	for q, quantity := range map[string]device.Quantity{"time": device.Utilization, "memory": device.MemoryUsed} {
		claims, pods, alone := reported["unattributed "+q], reported["unattributed "+q], 0.0
		for who, value := range reported {
			switch {
			case !strings.HasSuffix(who, q) || strings.Contains(who, " shared "):
			case strings.HasPrefix(who, "pod "):
				pods += value
			case strings.Contains(who, " exclusive "):
				alone += value
			case !strings.HasPrefix(who, "unattributed"):
				claims += value
			}
		}
		if own := w.sampled[uuid][quantity]; w.force[uuid].at > 0 && !w.unreadable[uuid] && max(claims, pods, alone) > own*(1+1e-9) {
			w.t.Errorf("%s of %s: claims have %v, pods %v, of %v in all", q, uuid, claims, pods, own)
		}
	}
}

// updateReported takes a list whose processes are all known.
func (w *processHistory) updateReported(sample *device.Sample) {
	if w.facts.Processes.State != ProcessesOK {
		clear(w.force)
		clear(w.unreported)
		clear(w.server)
		w.foreign = newForeignHistory()
		return
	}
	if _, known := w.foreign.since[sample.Device.UUID]; !known && !sample.ProcessesAt.IsZero() {
		w.foreign.since[sample.Device.UUID] = w.now.Elapsed
	}
	if w.force[sample.Device.UUID].at == sample.ProcessesAt.Elapsed {
		return
	}
	for _, p := range sample.Processes {
		if _, known := w.facts.Processes.Owners[p.PID]; !known {
			w.seen["missed list"]++
			return
		}
	}
	if !sample.ProcessesAt.IsZero() {
		w.force[sample.Device.UUID] = reported{sample.ProcessesAt.Elapsed, sample.Processes, w.facts.Processes.Owners}
	}
}

// expect computes by brute force what the page must have of a device; false of one
// that processes do not split.
func (w *processHistory) expect(sample *device.Sample) (want map[string]float64, whole bool) {
	uuid := sample.Device.UUID
	if uuid != "GPU-0" && uuid != "GPU-1" {
		return nil, false
	}
	want = map[string]float64{}
	if w.now.Since(sample.At) > 10*time.Second {
		return want, true
	}
	holds := w.holdersOf(uuid)
	w.findForeign(uuid, holds)
	for q, name := range []string{"time", "memory"} {
		own := 0.0
		for _, reading := range sample.Readings {
			if reading.Quantity == []device.Quantity{device.Utilization, device.MemoryUsed}[q] {
				own = reading.Value
			}
		}
		if sum, known := w.sum(uuid, name, holds); known {
			sum.addTo(want, name, own, holds)
		} else {
			for _, claim := range holds.claims {
				if !holds.doubtful {
					want[claim+" "+holds.attribution()+" "+name] = own
				}
			}
		}
	}
	return want, true
}

// sums is what is reported of a quantity, before it is compared with the
// device's own.
type sums struct {
	all, unattributed float64
	claims            map[string]float64
	pods              map[string]float64
	unclear           map[string]bool
}

func (w *processHistory) sum(uuid, quantity string, h *holdersNow) (s sums, known bool) {
	s = sums{claims: map[string]float64{}, pods: map[string]float64{}, unclear: maps.Clone(h.blurred)}
	force, there := w.force[uuid]
	switch {
	case !there:
		return s, false
	case w.now.Elapsed-force.at > 10*time.Second:
		w.seen["stale list"]++
		return s, false
	case force.at < w.now.Elapsed:
		w.seen["old list"]++
	}
	known, alive := true, false
	for _, p := range force.list {
		owner := force.owners[p.PID]
		if owner.Gone {
			w.seen["gone"]++
			continue
		}
		alive = true
		amount := map[string]float64{"time": p.Utilization, "memory": p.Memory}[quantity]
		if amount < 0 {
			known = false
			continue
		}
		s.all += amount
		w.credit(&s, owner, amount, h)
	}
	if !alive && w.unreported[uuid+quantity] {
		w.seen["nothing to report"]++
	} else {
		w.unreported[uuid+quantity] = !known
	}
	served := quantity == "time" && w.served(uuid, force, h)
	return s, !w.unreported[uuid+quantity] && !served
}

// served reports whether another process is reported to do the work of MPS clients,
// now or, as long as it is there, before.
func (w *processHistory) served(uuid string, force reported, h *holdersNow) bool {
	clients, busy, server, knownServer := false, false, 0, false
	for _, p := range force.list {
		switch owner := force.owners[p.PID]; {
		case owner.Gone:
		case p.Proxied:
			clients, busy = true, busy || p.Utilization > 0
		case h.uses[owner.PodUID] != nil:
		case p.PID == w.server[uuid]:
			knownServer = true
			fallthrough
		default:
			if p.Utilization > 0 && server == 0 {
				server = p.PID
			}
		}
	}
	switch {
	case knownServer && (server > 0 || !busy):
		w.seen["MPS"]++
		if server == 0 {
			w.seen["MPS server at rest"]++
		}
		return true
	case clients && server > 0:
		w.seen["MPS"]++
		w.server[uuid] = server
		return true
	}
	w.server[uuid] = 0
	return false
}

func (w *processHistory) credit(s *sums, owner dra.Owner, amount float64, h *holdersNow) {
	holds := h.uses[owner.PodUID]
	switch {
	case holds == nil && h.unnamed && owner.PodUID != "":
		w.seen["aside"]++
		return
	case holds == nil:
		w.seen["unattributed"]++
		s.unattributed += amount
		return
	}
	claims, unclear := holds[""], false
	switch used := holds[owner.ContainerID]; {
	case len(used) > 0:
		if len(claims) > 1 {
			w.seen["by container"]++
		}
		claims = used
	case h.idle[owner.ContainerID]:
		w.seen["by a container that holds nothing"]++
		s.unattributed += amount
		return
	default:
		unclear = h.mixed[owner.PodUID]
	}
	s.pods[owner.PodUID] += amount
	for _, claim := range claims {
		s.claims[claim] += amount
		if len(claims) > 1 || unclear {
			w.seen["ambiguous"]++
			s.unclear[claim] = true
		}
	}
}

// addTo adds what the page must have.
func (s sums) addTo(want map[string]float64, quantity string, own float64, h *holdersNow) {
	factor := 1.0
	if s.all > own {
		factor = own / s.all
	}
	want["unattributed "+quantity] = s.unattributed * factor
	for _, claim := range h.claims {
		switch {
		case h.doubtful:
		case !h.several:
			want[claim+" exclusive "+quantity] = own
		case s.unclear[claim]:
			want[claim+" shared "+quantity] = own
		default:
			want[claim+" process "+quantity] = s.claims[claim] * factor
		}
	}
	several := len(h.pods)
	if h.unnamed {
		several++
	}
	for uid, pod := range h.pods {
		if several > 1 {
			want["pod "+pod+" "+quantity] = s.pods[uid] * factor
		}
	}
}

// holdersNow is who holds a device, by the page and the API's objects.
type holdersNow struct {
	claims  []string
	uses    map[string]map[string][]string // pod UID → container → claims; the empty container is the pod itself
	pods    map[string]string              // UID → name, of pods that hold it
	blurred map[string]bool
	idle    map[string]bool // containers of pods that hold it, which do not
	mixed   map[string]bool // UIDs of pods whose containers have different holds
	several bool            // holders, or a holder beside processes of another pod

	doubtful bool // the list may be of the holders before
	unnamed  bool
}

func (h *holdersNow) attribution() string {
	if h.several {
		return "shared"
	}
	return "exclusive"
}

func (w *processHistory) holdersOf(uuid string) *holdersNow {
	h := &holdersNow{uses: map[string]map[string][]string{}, pods: map[string]string{}, blurred: map[string]bool{}, idle: map[string]bool{}, mixed: map[string]bool{}}
	for _, row := range w.last.Rows() {
		if row.Family.Name == "dra_claim_held" && row.Labels.Get("uuid") == uuid {
			h.claims = append(h.claims, row.Labels.Get("resourceclaim"))
		}
	}
	for _, pod := range w.facts.Cluster.Pods {
		for _, claim := range h.claims {
			if !slices.ContainsFunc(pod.Claims, func(c dra.PodClaim) bool { return c.Claim == claim }) {
				continue
			}
			h.use(pod.UID, pod.Ref.Name, "", claim)
			for _, c := range pod.Containers {
				if slices.ContainsFunc(c.Uses, func(u dra.Use) bool { return u.Claim == claim }) {
					h.use(pod.UID, pod.Ref.Name, c.Name+"-of-"+pod.Ref.Name, claim)
				}
			}
		}
	}
	for _, pod := range w.facts.Cluster.Pods {
		if uses := h.uses[pod.UID]; uses != nil {
			for _, c := range pod.Containers {
				own := uses[c.Name+"-of-"+pod.Ref.Name]
				h.idle[c.Name+"-of-"+pod.Ref.Name] = c.ID != "" && len(own) == 0
				h.mixed[pod.UID] = h.mixed[pod.UID] || len(own) != len(uses[""])
			}
		}
	}
	for _, containers := range h.uses {
		for name, claims := range containers {
			for _, claim := range claims {
				h.blurred[claim] = h.blurred[claim] || name != "" && len(claims) > 1
			}
		}
	}
	if name := w.plugin[uuid]; name != "" {
		h.unnamed = !slices.ContainsFunc(w.facts.Cluster.PluginPods, func(p dra.Pod) bool { return p.Ref.Name == name })
		if !h.unnamed {
			h.use("pod-uid-of-"+name, name, "", "")
		}
	}
	h.several = len(h.claims) > 1 || len(h.claims) > 0 && w.plugin[uuid] != ""
	return h
}

func (h *holdersNow) use(uid, pod, container, claim string) {
	if h.uses[uid] == nil {
		h.uses[uid] = map[string][]string{}
	}
	h.pods[uid] = pod
	h.uses[uid][container] = append(h.uses[uid][container], claim)
}

type useKey struct {
	hold        holdKey
	attribution string
}

// checkBusy accrues, from what pages say, the busy time of every claim: from a
// read to the next one if they are near enough, as long as the use has gone on
// under the same attribution.
func (w *processHistory) checkBusy(reported map[string]map[string]float64) {
	w.t.Helper()
	began := map[useKey]time.Duration{}
	for _, row := range w.last.Rows() {
		if row.Family.Name != "dra_claim_utilization_ratio" {
			continue
		}
		key := w.keyOf(row.Labels.Get)
		since, going := w.began[key]
		if !going {
			since = w.now.Elapsed
		}
		began[key] = since
		last := w.read[key.hold.uuid]
		if over := w.now.Elapsed - max(last, since); !w.unreadable[key.hold.uuid] && w.now.Elapsed-last <= 10*time.Second && over > 0 {
			w.busy[key] += row.Value * over.Seconds()
			if key.attribution != "shared" {
				w.total += row.Value * over.Seconds()
			}
			w.seen["busy as "+key.attribution]++
		}
	}
	w.began = began
	for uuid := range reported {
		if !w.unreadable[uuid] {
			w.read[uuid] = w.now.Elapsed
		}
	}
	w.compareBusy()
}

func (w *processHistory) keyOf(label func(string) string) useKey {
	ref := dra.ClaimRef{Namespace: label("namespace"), Name: label("resourceclaim")}
	return useKey{holdKey{ref, label("uuid")}, label("attribution")}
}

func (w *processHistory) compareBusy() {
	w.t.Helper()
	total, shown := 0.0, map[useKey]bool{}
	for _, row := range w.last.Rows() {
		switch row.Family.Name {
		case "dra_claim_busy_seconds_total":
			key := w.keyOf(row.Labels.Get)
			shown[key] = true
			if math.Abs(row.Value-w.busy[key]) > 1e-6 {
				w.t.Fatalf("%v has been busy for %v s, want %v", key, row.Value, w.busy[key])
			}
		case "dra_namespace_busy_seconds_total":
			total += row.Value
		}
	}
	maps.DeleteFunc(w.busy, func(key useKey, _ float64) bool { return !shown[key] })
	if math.Abs(total-w.total) > 1e-6 {
		w.t.Fatalf("all namespaces together were busy for %v s, want %v", total, w.total)
	}
}

// foreignHistory is what is known of processes of pods that hold nothing.
type foreignHistory struct {
	since   map[string]time.Duration // when the holders of each device became these
	holders map[string]string
	servers map[string]map[int]bool // pids that were listed beside clients of MPS
}

func newForeignHistory() *foreignHistory {
	return &foreignHistory{map[string]time.Duration{}, map[string]string{}, map[string]map[int]bool{}}
}

// findForeign finds processes of pods that hold nothing of a device: its only
// holder is not alone then.
func (w *processHistory) findForeign(uuid string, h *holdersNow) {
	f := w.foreign
	if holders := fmt.Sprint(h.claims, h.pods, h.unnamed, w.plugin[uuid]); holders != f.holders[uuid] {
		if f.holders[uuid] != "" {
			f.since[uuid] = w.now.Elapsed
		}
		f.holders[uuid] = holders
	}
	force, there := w.force[uuid]
	if !there || w.now.Elapsed-force.at > 10*time.Second {
		return
	}
	clients := slices.ContainsFunc(force.list, func(p device.Process) bool { return p.Proxied && !force.owners[p.PID].Gone })
	foreign, servers := 0, map[int]bool{}
	for _, p := range force.list {
		switch owner := force.owners[p.PID]; {
		case owner.Gone || owner.PodUID == "" || h.unnamed || h.uses[owner.PodUID] != nil:
		case !p.Proxied && (clients || f.servers[uuid][p.PID]):
			servers[p.PID] = true
		default:
			foreign++
		}
	}
	f.servers[uuid] = servers
	switch {
	case foreign == 0 || len(h.claims) == 0 || h.several:
	case force.at >= f.since[uuid]:
		w.seen["foreign"]++
		h.several = true
	default:
		w.seen["foreign in an old list"]++
		h.doubtful = true
	}
}
