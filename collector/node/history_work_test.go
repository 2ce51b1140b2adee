package node

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// working is who works on a history's GPUs: processes of holders, of the
// host, of device plugins' pods, of administrators and of pods long gone; some
// end, pids are used again, lists and lookups fail for a while, numbers are
// not told. It says by brute force what each page must show.
type working struct {
	*scene
	random *rand.Rand

	owners   map[int]dra.Owner // the truth; facts may lack some for a while
	unlisted map[string]int    // for how many steps a GPU cannot list processes
	unknown  map[int]int       // for how many steps nobody knows whose a pid is
	blindFor int               // steps without procfs
	force    map[string]inForce
	untold   map[string]bool   // by device and quantity: some process of the last list that had any did not tell it
	server   map[string]int    // the MPS server of each device
	plugin   map[string]string // the pod with a device plugin on each GPU
	seen     map[string]int    // how often each rule was put to the test

	read  map[string]time.Duration // when each device was read last
	began map[useKey]time.Duration // since when a use has gone on under its attribution
	busy  map[useKey]float64
	total float64 // busy time of all uses that are not shared
}

func newWorking(s *scene, random *rand.Rand) *working {
	w := &working{scene: s, random: random, owners: map[int]dra.Owner{}, unlisted: map[string]int{}, unknown: map[int]int{},
		force: map[string]inForce{}, untold: map[string]bool{}, server: map[string]int{}, plugin: map[string]string{}, seen: map[string]int{},
		read: map[string]time.Duration{}, began: map[useKey]time.Duration{}, busy: map[useKey]float64{}}
	return w
}

// share lets a claim that was just taken have company: a second claim of its
// pod on the same device, or a second pod. It returns the other claim.
func (w *working) share(claim *dra.Claim, device string) (twin string) {
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
func (w *working) leave(claim string) {
	w.release(claim + "-twin")
	w.release(claim + "-guest")
}

func (w *working) change(uuids []string) {
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

func (w *working) changeOne(uuid string) {
	list := slices.Clone(w.works[uuid])
	at := -1
	if len(list) > 0 {
		at = w.random.IntN(len(list))
	}
	switch choice := w.random.IntN(24); {
	case choice < 6:
		list = w.hire(uuid, list)
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
	w.works[uuid] = list
}

// hire adds a process; its pid may have been another's before.
func (w *working) hire(uuid string, list []device.Process) []device.Process {
	pid := 1 + w.random.IntN(40)
	if _, taken := w.owners[pid]; taken || len(list) > 5 {
		return list
	}
	owner := dra.Owner{}
	switch pods := w.facts.Cluster.Pods; w.random.IntN(6) {
	case 0:
	case 1:
		owner = ofPod("nobody")
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
func (w *working) togglePlugin(uuid string) {
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
func (w *working) list(listing dra.PodResources) dra.PodResources {
	for _, uuid := range slices.Sorted(maps.Keys(w.plugin)) {
		ref := dra.PodRef{Namespace: "legacy", Name: w.plugin[uuid]}
		listing.Pods = append(listing.Pods, ref)
		listing.Plugins = append(listing.Plugins, dra.PluginAssignment{Pod: ref, Container: "main", Resource: "nvidia.com/gpu", DeviceIDs: []string{uuid + "::1"}})
	}
	return listing
}

// offer lets only those GPUs list their processes that can.
func (w *working) offer(step func()) {
	all := w.works
	w.works = maps.Clone(all)
	for uuid, left := range w.unlisted {
		if left > 0 {
			delete(w.works, uuid)
		}
	}
	step()
	w.works = all
}

// uuidsAtWork are the devices of a history whose processes are listed. The
// last is cut into partitions.
func uuidsAtWork() []string { return []string{"GPU-0", "GPU-0", "GPU-1", "GPU-1", "GPU-2"} }

// mustHaveSeen fails unless every rule was put to the test.
func mustHaveSeen(t interface{ Errorf(string, ...any) }, seen map[string]int) {
	for _, rule := range []string{"missed list", "stale list", "old list", "gone", "MPS", "MPS server at rest", "nobody to tell", "aside", "nobody", "by container", "ambiguous", "busy as process", "busy as exclusive", "busy as shared"} {
		if seen[rule] < 100 {
			t.Errorf("%s: put to the test %d times, the histories prove nothing", rule, seen[rule])
		}
	}
}
