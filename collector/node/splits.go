package node

import (
	"maps"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// splits splits the use of each whole device between its holders, by their
// processes.
type splits struct {
	node      string
	staleness time.Duration
	devices   *devices
	byDevice  map[*deviceState]*deviceSplit // of devices whose processes have been listed
	added     int                           // splits so far
	causes    userCauses
	states    [processStates]*metric.Labels // of dra_exporter_process_attribution
}

// userCauses is everything that users depend on besides the views.
type userCauses struct {
	pods, pluginPods span[dra.Pod]
	plugins          span[pluginConsumer]
	splits           int // added so far
}

// use is a claim's use of a device, of one quantity that processes may split.
type use struct {
	attribution attribution
	since       time.Duration // elapsed time since which the attribution has been this one
	value       float64
	known       bool
}

func newSplits(config Config, devices *devices, f *families) *splits {
	s := &splits{node: config.Node, staleness: config.Staleness(), devices: devices, byDevice: make(map[*deviceState]*deviceSplit)}
	for state := range processStates {
		s.states[state] = metric.NewLabels(f.processes.Labels, state.String())
	}
	return s
}

// update splits the use of all devices again.
func (s *splits) update(facts Facts, joined *joined, holders *holders, now clock.Instant) {
	if facts.Processes.State != ProcessesOK {
		clear(s.byDevice) // processes cannot be attributed to pods
		return
	}
	if !s.devices.listed {
		return
	}
	for _, d := range s.devices.all() {
		if d.present && !d.listedAt.IsZero() && !d.device.IsPartition() {
			s.add(d).list.apply(d.processes, d.listedAt, facts.Processes.Owners)
		}
	}
	s.updateUsers(facts.Cluster, joined)
	for d, split := range s.byDevice {
		s.divide(split, holders.of(d), now)
	}
}

func (s *splits) add(d *deviceState) *deviceSplit {
	split := s.byDevice[d]
	if split == nil {
		split = &deviceSplit{}
		s.byDevice[d] = split
		s.added++
	}
	return split
}

// get returns the split of the device of a uuid; nil if it has none.
func (s *splits) get(uuid string) *deviceSplit { return s.byDevice[s.devices.get(uuid)] }

func (s *splits) remove(d *deviceState) { delete(s.byDevice, d) }

// updateUsers determines the users of each device that has a split again, if
// anything has changed that they depend on.
func (s *splits) updateUsers(cluster Cluster, joined *joined) {
	causes := userCauses{spanOf(cluster.Pods), spanOf(cluster.PluginPods), spanOf(joined.plugins), s.added}
	if !joined.again && causes == s.causes {
		return
	}
	s.causes = causes
	before := make(map[*deviceSplit]users, len(s.byDevice))
	for _, split := range s.byDevice {
		before[split], split.users = split.users, users{byUID: map[string]int{}, byContainer: map[string]int{}}
	}
	pods := podsByRef(cluster)
	maps.DeleteFunc(pods, func(pod dra.PodRef, _ *dra.Pod) bool { return joined.recreated[pod] })
	for i := range joined.views {
		s.addUsers(&joined.views[i], pods)
	}
	for _, c := range joined.plugins {
		if split := s.get(c.uuid); split != nil {
			split.pod(c.pod, pods).add(throughPlugin, c.name)
		}
	}
	for _, u := range joined.uncertain {
		if split := s.get(u.uuid); split != nil {
			split.unnamed = true
		}
	}
	for split, old := range before {
		split.index(old)
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
func (s *splits) addUsers(view *claimView, pods map[dra.PodRef]*dra.Pod) {
	for i, d := range view.devices {
		split := s.get(d.uuid)
		if d.admin || split == nil || view.holdsBefore(i) {
			continue
		}
		hold := len(split.parts)
		split.parts = append(split.parts, portion{claim: view.ref, ambiguous: len(view.pods) == 0})
		for _, pod := range view.pods {
			split.pod(pod, pods).add(hold, "")
		}
		for _, c := range view.consumers {
			if c.uuid == d.uuid {
				split.pod(dra.PodRef{Namespace: view.ref.Namespace, Name: c.pod}, pods).add(hold, c.container)
			}
		}
	}
}

// divide splits the use of a device as long as its processes are known, and it
// is not divided into partitions: processes do not report which partition they
// use.
func (s *splits) divide(split *deviceSplit, h *deviceHolders, now clock.Instant) {
	listed := split.list.at
	if !h.device.fresh || h.cut || listed.IsZero() || now.Since(listed) > s.staleness {
		split.invalidate()
		return
	}
	var own amounts
	var has [usages]bool
	for q := range usages {
		own[q], has[q] = h.device.reading(q.quantity())
	}
	split.divide(own, has)
}

// use returns the use of a device by a claim that holds it: the device's own
// value, or, if it is shared, the use by the claim's processes. An exclusive
// holder has all of it, whatever procfs reports.
func (s *splits) use(h *deviceHolders, claim dra.ClaimRef, q usage, held attribution) use {
	own, known := h.device.reading(q.quantity())
	now := use{attribution: held, value: own, known: known}
	if q == usedMemory && h.siblings > 0 {
		now.attribution = shared
	}
	split := s.byDevice[h.device]
	if held != shared || split == nil {
		return now
	}
	if part, certain := split.by(claim, q); certain {
		now.attribution, now.value, now.known = process, part, split.known[q]
	}
	return now
}

// deviceRows adds the use by processes that belong to no holder.
func (s *splits) deviceRows(b *rowBuilder) {
	for q := range usages {
		b.In(b.families.unattributed[q])
		for _, d := range s.devices.all() {
			if split := s.byDevice[d]; split != nil && split.known[q] {
				b.Add(d.labels.plain, split.unattributed[q])
			}
		}
	}
}

// podRows adds the use by each pod, of devices that several pods use.
func (s *splits) podRows(b *rowBuilder) {
	for q := range usages {
		family := b.families.podUse[q]
		b.In(family)
		for _, d := range s.devices.all() {
			split := s.byDevice[d]
			if split == nil || !split.known[q] || len(split.pods) < 2 {
				continue
			}
			for i := range split.pods {
				pod := &split.pods[i]
				if pod.uid == "" {
					continue
				}
				if pod.labels == nil {
					pod.labels = metric.NewLabels(family.Labels, s.node, pod.pod.Namespace, pod.pod.Name, d.uuid)
				}
				b.Add(pod.labels, pod.amounts[q])
			}
		}
	}
}

// stateRows adds whether processes are attributed to pods, and if not, why.
func (s *splits) stateRows(b *rowBuilder, present ProcessState) {
	if present == ProcessesOK && !s.devices.listed {
		present = ProcessesUnsupported
	}
	b.In(b.families.processes)
	for state, labels := range s.states {
		b.Add(labels, one(ProcessState(state) == present))
	}
}

// update applies the use of this step. began reports that the claim did not
// hold the device before.
func (u *use) update(present use, began bool, now time.Duration) {
	present.since = u.since
	if began || u.attribution != present.attribution {
		present.since = now
	}
	*u = present
}

// busy is how long the claim kept the device busy between the last two
// measurements of its utilization, seconds: the later one is that of the time
// since the use began.
func (u *use) busy(g *growth) float64 {
	over := g.at.To - max(g.from.To, u.since)
	if !u.known || !g.grew || over <= 0 {
		return 0
	}
	return u.value * over.Seconds()
}
