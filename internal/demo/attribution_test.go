package demo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// processOwners returns the owners of the processes on the device at an
// address: namespace and container, or none.
func (a *agent) processOwners(pciBusID string) []string {
	a.cgroup.Refresh()
	owners := a.cgroup.Latest()
	var users []string
	for _, s := range a.sampler.Latest() {
		if s.Device.PCIBusID != pciBusID || s.Device.IsPartition() {
			continue
		}
		for _, p := range s.Processes {
			owner, known := owners[p.PID]
			switch {
			case !known || owner.Gone:
				users = append(users, "unknown")
			case owner.PodUID == "":
				users = append(users, "unattributed")
			default:
				users = append(users, a.container(owner))
			}
		}
	}
	slices.Sort(users)
	return users
}

// container is the one with a process, among all that the API server returns.
func (a *agent) container(of dra.Owner) string {
	known := a.cluster.Latest()
	for _, pod := range slices.Concat(known.Pods, known.PluginPods) {
		if pod.UID != of.PodUID {
			continue
		}
		for _, c := range pod.Containers {
			if c.ID == of.ContainerID {
				return pod.Ref.Namespace + " " + c.Name
			}
		}
		return pod.Ref.Namespace
	}
	return "unknown pod"
}

// Real readers determine the owner of a process as on a node: by the driver's
// list, procfs, and the statuses of pods.
func TestOwnersOfProcesses(t *testing.T) {
	a := observe(t, playing(t, 1))
	for address, want := range map[string]string{
		"0000:1b:00.0": "ml-training rank-0",
		"0000:43:00.0": "ml-training rank-1",
		"0000:61:00.0": "ranking server, search server, unattributed",
		"0000:9d:00.0": "unattributed",
		"0000:df:00.0": "legacy, legacy",
	} {
		eventually(t, func() string {
			if got := strings.Join(a.processOwners(address), ", "); got != want {
				return address + " is used by " + want + ", not by " + got
			}
			return ""
		})
	}
}

// A job's process ends with it, and the next job has another.
func TestProcessesEndWithJobs(t *testing.T) {
	a := observe(t, playing(t, 15))
	for _, want := range []string{"ml-training train", "", "ml-training evaluate", "", "ml-training train"} {
		eventually(t, func() string {
			if got := strings.Join(a.processOwners("0000:52:00.0"), ", "); got != want {
				return "gpu-2 used by " + want
			}
			return ""
		})
	}
}

// A socket's peer is the kubelet, which this process can see: it is the same.
func TestKubeletIsVisible(t *testing.T) {
	a := observe(t, playing(t, 1))
	eventually(t, func() string {
		if visible, known := a.kubelet.Visible(); !visible || !known {
			return "a kubelet that can be seen"
		}
		return ""
	})
}
