package node

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// truthEvidence is what the sources say of who uses GPUs besides allocations: the
// processes of pods, of which some outlive their pod. It is also what the oracle
// follows from it.
type truthEvidence struct {
	orphans []truthOrphan

	users   [3]map[string]bool // UIDs of pods with processes, by the last list
	listAt  [3]int             // step of that list
	holders [3]string          // who holds each GPU
	since   [3]int             // step in which they came to
	shared  [3]bool            // the only holder of the GPU is not alone with it
}

// truthOrphan is a process of a pod that was deleted by force.
type truthOrphan struct {
	gpu, until int
	owner      dra.Owner
}

// beginWithoutSlices lets the agent start while a driver is down.
func (w *truth) beginWithoutSlices() {
	if w.mode != truthKubelet && w.chance(25) {
		w.gone = 1 + w.random.IntN(15)
		w.saw("begun without slices")
	}
}

// delayRead lets a claim be read late: it may have the name of one before. What is
// known of it meanwhile is certain only where no other name leads to its GPU.
func (w *truth) delayRead(c *truthClaim) {
	again := false
	for key := range w.oracle.accounts {
		again = again || key.claim == c.name
	}
	if w.mode != truthAPI || c.gpu != 2 || !again && !w.chance(40) {
		return
	}
	c.unread = 2 + w.random.IntN(8)
	w.saw("unread")
	if again {
		w.saw("unread under the name of one before")
	}
}

// isUnread reports whether the claim has not been read in this step.
func (c *truthClaim) isUnread() bool { return c.unread > 0 }

// leaveOrphan lets the process of a claim that ends live on for a while.
func (w *truth) leaveOrphan(c *truthClaim) {
	if w.mode != truthAPI || c.gpu != 2 || w.calm || !w.chance(40) {
		return
	}
	w.evidence.orphans = append(w.evidence.orphans, truthOrphan{c.gpu, w.steps + 1 + w.random.IntN(15), dra.Owner{PodUID: c.uid, ContainerID: c.container()}})
	w.saw("orphan")
}

// addOrphans adds the processes of orphans to those of claims.
func (e *truthEvidence) addOrphans(gpu, step int, list []device.Process, owners map[int]dra.Owner, sum float64) ([]device.Process, float64) {
	for n, orphan := range e.orphans {
		if orphan.gpu == gpu && step <= orphan.until {
			pid := 1000*step + 500 + n
			list = append(list, device.Process{PID: pid, Utilization: 0.1, Memory: 1e9})
			owners[pid] = orphan.owner
			sum += 0.1
		}
	}
	return list, sum
}

// list notes a list of processes that is reported.
func (e *truthEvidence) list(gpu, step int, processes []device.Process, owners map[int]dra.Owner) {
	e.listAt[gpu], e.users[gpu] = step, map[string]bool{}
	for _, p := range processes {
		e.users[gpu][owners[p.PID].PodUID] = true
	}
}

// number is that of the name of a plugin's pod.
func number(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "legacy-")) // names are made here
	return n
}

// pluginID is the id by which the device plugin of a pod names a GPU.
func (w *truth) pluginID(name string, gpu int) string {
	form := number(name) % 7
	if form > 0 {
		w.saw("another form of id")
	}
	switch form {
	case 1:
		return fmt.Sprintf("GPU-%d::3", gpu)
	case 2:
		return fmt.Sprintf("GPU-%d-12", gpu)
	case 3:
		return fmt.Sprintf("nvidia%d", gpu)
	case 4:
		return fmt.Sprintf("nvidia%d/vgpu1", gpu)
	case 5:
		return fmt.Sprintf("0000:%02X:00.0", gpu+16)
	case 6:
		w.saw("unresolved id")
		return fmt.Sprintf("board-of-%d", gpu)
	default:
		return fmt.Sprintf("GPU-%d", gpu)
	}
}

// resolves reports whether the ids of a plugin's pod lead to its GPU.
func (w *truth) resolves(name string) bool { return number(name)%7 != 6 }

// findForeign determines which GPUs are used by others than their holders: by pods
// whose processes are listed and who hold nothing of it, or perhaps by claims that
// have not been read. Nobody knows of a pod whose id leads to no GPU which one it
// uses, so a process of no known holder may be its own.
func (w *truth) findForeign() {
	e, unresolved := &w.evidence, ""
	for _, name := range w.plugin {
		if w.listed[name] && !w.resolves(name) {
			unresolved += " " + name
		}
	}
	for i := range e.shared {
		holders, holds, uncertain := unresolved, map[string]bool{}, false
		for _, c := range w.claims {
			switch {
			case c.gpu != i:
			case c.mark.holds:
				holds[c.uid] = true
				holders += " " + c.name + c.uid
			case c.isUnread() && w.isListed(c):
				uncertain = true
			}
		}
		if name := w.plugin[i]; w.listed[name] && w.resolves(name) {
			holders += " " + name
		}
		if holders += fmt.Sprint(uncertain); holders != e.holders[i] {
			e.holders[i], e.since[i] = holders, w.steps
		}
		foreign := false
		for uid := range e.users[i] {
			foreign = foreign || !holds[uid]
		}
		foreign = foreign && w.mode != truthKubelet && unresolved == "" && !uncertain && e.listAt[i] >= e.since[i]
		if foreign && len(holds) == 1 {
			w.saw("foreign")
		}
		e.shared[i] = foreign || uncertain
	}
}

// isListed reports whether the kubelet lists the claim.
func (w *truth) isListed(c *truthClaim) bool {
	for _, a := range w.facts.Listing.Assignments {
		if a.Claim.Name == c.name {
			return true
		}
	}
	return false
}

// checkPossible: every GPU that a pod may have by an id that leads to none is shown
// as such, and no other.
func (w *truth) checkPossible() {
	w.t.Helper()
	unresolved, shown := 0, 0
	for _, name := range w.plugin {
		if w.listed[name] && !w.resolves(name) {
			unresolved++
		}
	}
	for _, row := range w.last.Rows() {
		if row.Family.Name == "dra_device_holders" && row.Labels.Get("kind") == "possible" {
			shown++
		}
	}
	if unresolved > 0 && shown != 3 || unresolved == 0 && shown > 0 && w.mode == truthAPI && !w.partial() {
		w.fail("%d GPUs may be held, though %d pods have an id that leads to none", shown, unresolved)
	}
}

// nameNode lists the claim of another driver with its CDI entry, in which the device
// node of the GPU is, where no slice has its UUID.
func (w *truth) nameNode(c *truthClaim, listed *dra.Assignment) {
	if w.mode == truthKubelet && c.kind == kindAlias {
		w.facts.CDI = []dra.CDIDevice{{Name: "acme.com/gpu=card0", Nodes: []string{"/dev/nvidiactl", "/dev/nvidia0"}}}
		listed.CDIDevices = []string{"acme.com/gpu=card0"}
		w.saw("device node")
	}
}
