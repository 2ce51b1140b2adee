package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// workload is a row of the scenario: the pods of one controller, and the
// claim that they use.
type workload struct {
	namespace, name string
	owner           owner
	pods            int // 0: one; several need a claim that has no template
	containers      []container
	claim           claim
	plugin          []string // replicas of devices that a device plugin gives to the first container
	load            float64  // of each device while the main containers run, 0 to 1

	node     string        // that it runs on; empty: the agent's
	hindered hindrance     // before it gets its devices
	binds    time.Duration // how long its device needs until the pod can be bound; 0: no time
	prepares time.Duration // how much longer than usual preparation takes
	evicted  bool          // in the end, by a taint of its device

	starts time.Duration // after the scenario began
	lasts  time.Duration // from the start of its main containers; 0: for good
	every  time.Duration // from one start to the next
}

// owner is the kind of controller that pods belong to. Jobs end, and their
// pods stay for a while; pods of the others are deleted while they run.
type owner string

const (
	ownedByJob         owner = "Job"
	ownedByStatefulSet owner = "StatefulSet"
	ownedByReplicaSet  owner = "ReplicaSet"
	ownedByDaemonSet   owner = "DaemonSet"
)

// container is a container of each pod.
type container struct {
	name, image string
	init        time.Duration // an init container that takes so long; 0: a main one
	request     string        // the only request of the claim that it uses; empty: all
}

// claim is what the workload asks for; without requests, for nothing. It is
// made from a template for its pod, or for an extended resource, or else by
// hand: then name is the ResourceClaim's own, and each run of the workload
// makes it again under that name.
type claim struct {
	name     string // within the pod
	template string
	extended string // the extended resource
	requests []request
	align    string // attribute that all its devices must have in common
	sharing  string // strategy that the driver is asked for
}

// request is a request and, in place of a scheduler, what is allocated to it.
type request struct {
	name           string
	class          string
	selector       string
	firstAvailable []alternative // a prioritized list, instead of class and selector: the last is taken
	admin          bool          // admin access to all devices of the class
	devices        []string      // as the driver names them
	count          int           // how many it asks for, where it gets none
	memory         string        // that is consumed of a device that several claims share
}

// alternative is an entry of a prioritized list.
type alternative struct {
	name, class, selector string
}

// chosen is the name by which an allocation refers to the request.
func (r request) chosen() string {
	if last := len(r.firstAvailable) - 1; last >= 0 {
		return r.name + "/" + r.firstAvailable[last].name
	}
	return r.name
}

// devices are all that the workload gets.
func (w workload) devices() []string {
	devices := w.plugged()
	for _, r := range w.claim.requests {
		devices = append(devices, r.devices...)
	}
	return devices
}

// hindrance is what keeps a workload's pod from being scheduled, for a while.
type hindrance struct {
	lasts  time.Duration // from the pod's creation
	gate   string        // a scheduling gate of the pod
	unmade bool          // nobody has made the claim that the pod names
	rule   string        // name of a DeviceTaintRule for its first device
}

// on is the node that the workload runs on.
func (w workload) on() string { return cmp.Or(w.node, nodeName) }

// published reports whether a node has a device of that name.
func published(h hardware, node, name string) bool {
	if node != "" {
		return slices.Contains(farDevices(), name)
	}
	_, there := h.named(name)
	return there
}

// check says what in a scenario does not fit the hardware, or itself.
func check(rows []workload, befalls []ailment, strange []stray, h hardware) error {
	var wrong []error
	for _, s := range strange {
		if err := s.check(h); err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, a := range befalls {
		if err := a.check(h); err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, w := range rows {
		for _, name := range w.devices() {
			if !published(h, w.node, name) {
				wrong = append(wrong, fmt.Errorf("%s/%s: there is no device %s", w.namespace, w.name, name))
			}
		}
		if w.pods > 1 && (w.claim.template != "" || w.claim.extended != "") {
			wrong = append(wrong, fmt.Errorf("%s/%s: several pods cannot have one claim of a template", w.namespace, w.name))
		}
		for _, c := range w.containers {
			known := func(r request) bool { return r.name == c.request }
			if c.request != "" && !slices.ContainsFunc(w.claim.requests, known) {
				wrong = append(wrong, fmt.Errorf("%s/%s: container %s: there is no request %s", w.namespace, w.name, c.name, c.request))
			}
		}
	}
	return errors.Join(wrong...)
}
