package node

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// users are the pods that may use a device because they hold it.
type users struct {
	pods    []user    // sorted by name
	parts   []portion // one for each claim that holds the device
	unnamed bool      // pods that are not known may hold it

	byUID       map[string]int // positions in pods
	byContainer map[string]int
}

// user is a pod that holds a device.
type user struct {
	pod        dra.PodRef
	uid        string         // empty: not known
	holds      []int          // through which claims, as positions in parts; throughPlugin for device plugins
	containers []containerUse // which of them each of its containers uses
	amounts    amounts
	labels     *metric.Labels
}

// throughPlugin is the hold of a pod that has no claim.
const throughPlugin = -1

// containerUse is the holds that a container may use.
type containerUse struct {
	name, id string
	holds    []int
}

// portion is the use of a device by a claim's processes.
type portion struct {
	claim     dra.ClaimRef
	ambiguous bool // its pods do not tell which processes are the claim's
	uncertain bool // nor do the processes of the last list
	amounts   amounts
}

// userOf returns the pod of a process; nil if the pod does not hold the device.
// It is found by the container if not by the UID: the UID of a static pod is the
// kubelet's own, and there is none where both are in this program's own pod
// (cgroup_namespaces(7)).
func (u *users) userOf(owner *dra.Owner) *user {
	at, holds := u.byUID[owner.PodUID]
	if !holds {
		at, holds = u.byContainer[owner.ContainerID]
	}
	if !holds {
		return nil
	}
	return &u.pods[at]
}

// through returns the holds by which a container of the pod uses the device:
// none if it has the device otherwise (with admin access, for example), and
// several if they cannot be distinguished. It is certain if it is one, and every
// container that is not known would have the same.
func (u *user) through(container string) (holds []int, certain bool) {
	alike := true
	for i := range u.containers {
		c := &u.containers[i]
		if c.id == container && c.id != "" {
			return c.holds, len(c.holds) == 1
		}
		alike = alike && len(c.holds) == len(u.holds)
	}
	return u.holds, alike && len(u.holds) == 1
}

// reset sets all amounts to zero.
func (u *users) reset() {
	for i := range u.pods {
		u.pods[i].amounts = amounts{}
	}
	for i := range u.parts {
		u.parts[i].amounts, u.parts[i].uncertain = amounts{}, false
	}
}

// pod returns a pod of the users, which it adds if it is not there.
func (u *users) pod(ref dra.PodRef, pods map[dra.PodRef]*dra.Pod) *user {
	if at := slices.IndexFunc(u.pods, func(known user) bool { return known.pod == ref }); at >= 0 {
		return &u.pods[at]
	}
	added := user{pod: ref}
	if pod, known := pods[ref]; known {
		added.uid = pod.UID
		for _, c := range pod.Containers {
			added.containers = append(added.containers, containerUse{name: c.Name, id: c.ID})
		}
	}
	u.pods = append(u.pods, added)
	return &u.pods[len(u.pods)-1]
}

// add adds a hold of the pod, or one that a container of it may use.
func (u *user) add(hold int, container string) {
	if !slices.Contains(u.holds, hold) {
		u.holds = append(u.holds, hold)
	}
	for i := range u.containers {
		if c := &u.containers[i]; c.name == container && !slices.Contains(c.holds, hold) {
			c.holds = append(c.holds, hold)
		}
	}
}

// index sorts the pods and indexes them. It keeps the labels of before.
func (u *users) index(before users) {
	slices.SortFunc(u.pods, func(a, b user) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	for i := range u.pods {
		pod := &u.pods[i]
		if at := slices.IndexFunc(before.pods, func(old user) bool { return old.pod == pod.pod }); at >= 0 {
			pod.labels = before.pods[at].labels
		}
		if pod.uid == "" {
			u.unnamed = true
			u.markAmbiguous(pod.holds)
		} else {
			u.byUID[pod.uid] = i
		}
		for _, c := range pod.containers {
			if c.id != "" {
				u.byContainer[c.id] = i
			}
			if len(c.holds) > 1 {
				u.markAmbiguous(c.holds)
			}
		}
	}
}

// markAmbiguous marks claims whose processes cannot be distinguished from those
// of others.
func (u *users) markAmbiguous(holds []int) {
	for _, hold := range holds {
		if hold != throughPlugin {
			u.parts[hold].ambiguous = true
		}
	}
}
