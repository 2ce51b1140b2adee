package simulation

import (
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
	plugin          []string // devices that a device plugin gives to the first container
	load            float64  // of each device while the main containers run, 0 to 1

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
	devices := slices.Clone(w.plugin)
	for _, r := range w.claim.requests {
		devices = append(devices, r.devices...)
	}
	return devices
}

// uses are the devices that the workload's containers work on: not those that
// it only watches.
func (w workload) uses() []string {
	devices := slices.Clone(w.plugin)
	for _, r := range w.claim.requests {
		if !r.admin {
			devices = append(devices, r.devices...)
		}
	}
	return devices
}

// check says what in a scenario does not fit the hardware, or itself.
func check(rows []workload, befalls []ailment, h hardware) error {
	var wrong []error
	for _, a := range befalls {
		if err := a.check(h); err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, w := range rows {
		for _, name := range w.devices() {
			if _, there := h.named(name); !there {
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
