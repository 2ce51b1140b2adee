package node

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// users is who may work on a unit because it holds it.
type users struct {
	pods    []user    // sorted by name
	parts   []portion // one for each claim that holds the unit
	unnamed bool      // somebody may hold it whose pods nobody can name

	byUID       map[string]int // positions in pods
	byContainer map[string]int
}

// A user is a pod that holds a unit.
type user struct {
	pod        dra.PodRef
	uid        string         // empty: nobody knows it
	holds      []int          // through which claims, as positions in parts; throughPlugin for device plugins
	containers []containerUse // which of them each of its containers uses
	amounts    amounts
	labels     *metric.Labels
}

// throughPlugin stands for a hold without a claim.
const throughPlugin = -1

// containerUse is the holds that a container may use.
type containerUse struct {
	name, id string
	holds    []int
}

// portion is what a claim's processes do on a unit.
type portion struct {
	claim   dra.ClaimRef
	blurred bool // by the claim's pods alone it is not known which processes are its
	unclear bool // nor is it at this moment
	amounts amounts
}

// userOf is the pod for which a process works; nil if that holds nothing of
// the unit. The container tells where the UID does not: that of a static pod
// is the kubelet's own, and none is told where both are in this program's own
// pod (cgroup_namespaces(7)).
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

// through is the holds by which a container of the pod works on the unit: none
// where it has the unit otherwise, with admin access for one, and more than one
// if they cannot be told apart. It is certain where it is one, and any
// container that is not known would have it as well.
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

// reset begins a count.
func (u *users) reset() {
	for i := range u.pods {
		u.pods[i].amounts = amounts{}
	}
	for i := range u.parts {
		u.parts[i].amounts, u.parts[i].unclear = amounts{}, false
	}
}

// userCauses is all that users depend on besides the views, known by where it
// lies.
type userCauses struct {
	pods, pluginPods span[dra.Pod]
	plugins          span[pluginConsumer]
	splits           int // made so far
}

// findUsers says anew who uses each unit that has a split, where anything has
// changed that it depends on.
func (s *State) findUsers(cluster Cluster, joined bool) {
	causes := userCauses{spanOf(cluster.Pods), spanOf(cluster.PluginPods), spanOf(s.plugins.consumers), s.splits}
	if !joined && causes == s.userCauses {
		return
	}
	s.userCauses = causes
	before := make(map[*split]users)
	for _, u := range s.devices.byUUID {
		if u.split != nil {
			before[u.split], u.split.users = u.split.users, users{byUID: map[string]int{}, byContainer: map[string]int{}}
		}
	}
	pods := podsByRef(cluster)
	maps.DeleteFunc(pods, func(pod dra.PodRef, _ *dra.Pod) bool { return s.join.recreated[pod] })
	for i := range s.join.views {
		s.addUsers(&s.join.views[i], pods)
	}
	for _, c := range s.plugins.consumers {
		if u := s.devices.byUUID[c.uuid]; u != nil && u.split != nil {
			u.split.user(c.pod, pods).use(throughPlugin, c.name)
		}
	}
	for _, d := range s.join.uncertain {
		if u := s.devices.byUUID[d.uuid]; u != nil && u.split != nil {
			u.split.unnamed = true
		}
	}
	for split, old := range before {
		split.settle(old)
	}
}

func podsByRef(cluster Cluster) map[dra.PodRef]*dra.Pod {
	pods := make(map[dra.PodRef]*dra.Pod, len(cluster.Pods)+len(cluster.PluginPods))
	for _, list := range [][]dra.Pod{cluster.PluginPods, cluster.Pods} {
		for i := range list {
			pods[list[i].Ref] = &list[i]
		}
	}
	return pods
}

// addUsers adds the pods of a claim to the users of each device that it holds.
func (s *State) addUsers(view *claimView, pods map[dra.PodRef]*dra.Pod) {
	for i, d := range view.devices {
		u := s.devices.byUUID[d.uuid]
		if d.admin || u == nil || u.split == nil || view.holdsBefore(i) {
			continue
		}
		hold := len(u.split.parts)
		u.split.parts = append(u.split.parts, portion{claim: view.ref, blurred: len(view.pods) == 0})
		for _, pod := range view.pods {
			u.split.user(pod, pods).use(hold, "")
		}
		for _, c := range view.consumers {
			if c.uuid == d.uuid {
				u.split.user(dra.PodRef{Namespace: view.ref.Namespace, Name: c.pod}, pods).use(hold, c.container)
			}
		}
	}
}

// user is the pod among the users, added if it is not there.
func (u *users) user(ref dra.PodRef, pods map[dra.PodRef]*dra.Pod) *user {
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

// use notes that the pod holds the unit in one more way, or that one of its
// containers may use it so.
func (u *user) use(hold int, container string) {
	if !slices.Contains(u.holds, hold) {
		u.holds = append(u.holds, hold)
	}
	for i := range u.containers {
		if c := &u.containers[i]; c.name == container && !slices.Contains(c.holds, hold) {
			c.holds = append(c.holds, hold)
		}
	}
}

// settle makes what was gathered ready to be asked. Labels are kept.
func (u *users) settle(before users) {
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
			u.blur(pod.holds)
		} else {
			u.byUID[pod.uid] = i
		}
		for _, c := range pod.containers {
			if c.id != "" {
				u.byContainer[c.id] = i
			}
			if len(c.holds) > 1 {
				u.blur(c.holds)
			}
		}
	}
}

// blur notes of claims that their processes cannot be told from others'.
func (u *users) blur(holds []int) {
	for _, hold := range holds {
		if hold != throughPlugin {
			u.parts[hold].blurred = true
		}
	}
}
