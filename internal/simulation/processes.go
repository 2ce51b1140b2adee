package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	procfs "github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
)

// runtimeScheme stands before a container's id in the statuses of pods.
const runtimeScheme = "containerd://"

// containerID is what the runtime calls a container of one of the instance's
// pods: another id in each run.
func (i *instance) containerID(pod *corev1.Pod, container string) string {
	random := newRandom(i.seed, string(pod.UID), container)
	return fmt.Sprintf("%016x%016x%016x%016x", random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64())
}

// identify writes the ids of a pod's containers into its status: of those that
// have been created.
func (i *instance) identify(pod *corev1.Pod) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for at := range statuses {
			if of := &statuses[at]; of.State.Waiting == nil {
				of.ContainerID = runtimeScheme + i.containerID(pod, of.Name)
			}
		}
	}
}

// processes are those of the instance's containers, of the init containers or
// of the main ones: one in each, at a load of each device.
func (i *instance) processes(initial bool, load float64) []process {
	if i.row.node != "" {
		return nil
	}
	var made []process
	users := make(map[string]float64) // of each device
	for _, pod := range i.pods {
		for at, c := range i.row.containers {
			if (c.init > 0) != initial {
				continue
			}
			p := process{command: c.name, cgroup: procfs.InContainer(string(pod.UID), i.containerID(pod, c.name))}
			for _, name := range i.row.usedBy(at) {
				p.uses = append(p.uses, use{device: name})
				users[name]++
			}
			made = append(made, p)
		}
	}
	for _, p := range made {
		for at := range p.uses {
			p.uses[at].load = load / users[p.uses[at].device]
			p.uses[at].memory = p.uses[at].load
		}
	}
	return made
}

// usedBy are the devices of the agent's node that one of the workload's
// containers works on: not those that it only watches.
func (w workload) usedBy(container int) []string {
	var names []string
	if container == 0 {
		names = w.plugged()
	}
	if w.claim.extended != "" && container > 0 {
		return names
	}
	for _, r := range w.claim.requests {
		if only := w.containers[container].request; !r.admin && (only == "" || only == r.name) {
			names = append(names, r.devices...)
		}
	}
	return names
}

// replicaMark stands between a device and the number of its replica, where a
// device plugin gives one to several pods.
const replicaMark = "::"

// plugged are the devices that a device plugin gives to the workload.
func (w workload) plugged() []string {
	var names []string
	for _, id := range w.plugin {
		name, _, _ := strings.Cut(id, replicaMark)
		names = append(names, name)
	}
	return names
}

// stray is a process that runs in no pod: somebody has started it on the node.
type stray struct {
	command string
	unit    string // of systemd
	use
}

// processesOf are those of the strays, which run from the beginning.
func processesOf(strays []stray) []process {
	var made []process
	for _, s := range strays {
		made = append(made, process{command: s.command, cgroup: s.unit, uses: []use{s.use}})
	}
	return made
}

// check says what is wrong with a stray on this hardware.
func (s stray) check(h hardware) error {
	if !slices.Contains(h.listing(), s.device) {
		return fmt.Errorf("%s: the processes of %s are not listed", s.command, s.device)
	}
	return nil
}

// replicas is how many pods a device plugin gives its device to.
const replicas = 4

// replica is the id of one of them.
func replica(device string, n int) string { return device + replicaMark + strconv.Itoa(n) }
