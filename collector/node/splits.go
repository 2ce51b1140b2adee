package node

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// splits splits the use of each whole device between its holders, by their
// processes.
type splits struct {
	staleness time.Duration
	added     int // splits of devices so far
	causes    userCauses
}

// userCauses is everything that users depend on besides the views.
type userCauses struct {
	pods, pluginPods listIdentity[dra.Pod]
	plugins          listIdentity[model.PluginConsumer]
	unresolved       listIdentity[unresolvedPlugin]
	splits           int // added so far
}

// use is a claim's use of a device, of one quantity that processes may split.
type use struct {
	attribution model.Attribution
	since       time.Duration // elapsed time since which the attribution has been this one
	value       float64
	known       bool
	withheld    bool // whose use it is is not known
}

// update splits the use of all devices again.
func (s *splits) update(devices *devices, facts Facts, held *holding, now clock.Instant) {
	if facts.Processes.State != ProcessesOK {
		for _, d := range devices.all() {
			d.split = nil // processes cannot be attributed to pods
		}
		return
	}
	if !devices.listed {
		return
	}
	for _, d := range devices.all() {
		if d.present && !d.listedAt.IsZero() && !d.device.IsPartition() {
			s.add(d).list.apply(d.processes, d.listedAt, facts.Processes.Owners)
		}
	}
	s.updateUsers(devices, facts.Cluster, held, now)
	for _, d := range devices.all() {
		if d.split != nil {
			s.divide(d, now)
		}
	}
}

func (s *splits) add(d *deviceState) *deviceSplit {
	if d.split == nil {
		d.split = &deviceSplit{}
		s.added++
	}
	return d.split
}

// split returns the split of the device of a uuid; nil if it has none.
func (s *devices) split(uuid string) *deviceSplit {
	if d := s.get(uuid); d != nil {
		return d.split
	}
	return nil
}

// updateUsers determines the users of each device that has a split again, if
// anything has changed that they depend on.
func (s *splits) updateUsers(devices *devices, cluster APIFacts, held *holding, now clock.Instant) {
	causes := userCauses{newListIdentity(cluster.Pods), newListIdentity(cluster.PluginPods), newListIdentity(held.plugins), newListIdentity(held.unresolved), s.added}
	if !held.again && causes == s.causes {
		return
	}
	s.causes = causes
	previous := make(map[*deviceSplit]users)
	for _, d := range devices.all() {
		if split := d.split; split != nil {
			previous[split], split.users = split.users, users{byUID: map[string]int{}, byContainer: map[string]int{}}
		}
	}
	pods := podsByRef(cluster)
	maps.DeleteFunc(pods, func(pod dra.PodRef, _ *dra.Pod) bool { return held.recreated[pod] })
	for i := range held.views {
		addUsers(devices, &held.views[i], pods)
	}
	for _, c := range held.plugins {
		if split := devices.split(c.UUID); split != nil {
			split.pod(c.Pod, pods).add(throughPlugin, c.Container)
		}
	}
	for _, u := range held.uncertain {
		if split := devices.split(u.uuid); split != nil {
			split.unnamed = true
		}
	}
	for i := range held.unresolved {
		for _, uuid := range held.unresolved[i].devices {
			if split := devices.split(uuid); split != nil {
				split.unnamed = true
			}
		}
	}
	for split, old := range previous {
		split.index()
		if split.since = old.since; split.since.IsZero() || !split.sameHolders(old) {
			split.since = now
		}
	}
}

func podsByRef(cluster APIFacts) map[dra.PodRef]*dra.Pod {
	pods := make(map[dra.PodRef]*dra.Pod, len(cluster.Pods)+len(cluster.PluginPods))
	for _, list := range [][]dra.Pod{cluster.PluginPods, cluster.Pods} {
		for i := range list {
			pods[list[i].Ref] = &list[i]
		}
	}
	return pods
}

// addUsers adds the pods of a claim to the users of each device that it holds.
func addUsers(devices *devices, view *claimView, pods map[dra.PodRef]*dra.Pod) {
	for i, d := range view.devices {
		split := devices.split(d.uuid)
		if d.admin && split != nil {
			split.monitors = append(split.monitors, view.podUIDs...)
		}
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
func (s *splits) divide(d *deviceState, now clock.Instant) {
	split, h := d.split, &d.holders
	listed := split.list.at
	if !d.fresh || h.cut || listed.IsZero() || now.Since(listed) > s.staleness {
		split.invalidate()
		return
	}
	var total amounts
	var known [usages]bool
	for q := range usages {
		total[q], known[q] = d.reading(q.quantity())
	}
	split.divide(total, known)
}

// attribution is how a holder's numbers relate to the device's own. The only
// holder of a device is not alone with it while processes of another pod use it,
// such as those of a pod that was deleted by force and has not ended.
func (d *deviceState) attribution() model.Attribution {
	held := d.holders.attribution()
	if split := d.split; held == model.Exclusive && split != nil && split.foreign > 0 && !split.isOld() {
		return model.Shared
	}
	return held
}

// use returns the use of a device by a claim that holds it: the device's own
// value, or, if it is shared, the use by the claim's processes. An exclusive
// holder has all of it, processes of no pod included: procfs may not show to which
// pod a process belongs. While a list may be of the holder before, its use is not
// known.
func (d *deviceState) use(claim dra.ClaimRef, q usage, held model.Attribution) use {
	value, ok := d.reading(q.quantity())
	now := use{attribution: held, value: value, known: ok}
	if q == usedMemory && d.holders.siblings > 0 {
		now.attribution = model.Shared
	}
	split := d.split
	if held == model.Exclusive && split != nil && split.foreign > 0 {
		now.known, now.withheld = false, true
	}
	if held != model.Shared || split == nil {
		return now
	}
	if part, certain := split.by(claim, q); certain {
		now.attribution, now.value, now.known = model.Process, part, split.known[q]
	}
	return now
}

// podUses returns the use by each pod, of devices that several pods use.
func podUses(all []*deviceState) []model.PodUse {
	var uses []model.PodUse
	for _, d := range all {
		split := d.split
		if split == nil || len(split.pods) < 2 {
			continue
		}
		uses = slices.Grow(uses, len(split.pods))
		for i := range split.pods {
			pod := &split.pods[i]
			if pod.uid == "" {
				continue
			}
			use := func(q usage) model.Use {
				return model.Use{Value: pod.amounts[q], Known: split.known[q], Attribution: model.Process}
			}
			uses = append(uses, model.PodUse{Pod: pod.pod, UUID: d.uuid, Utilization: use(usedTime), Memory: use(usedMemory)})
		}
	}
	return uses
}

// setModel sets the use of a device by processes that belong to no holder. Without a
// split it is not known.
func (s *deviceSplit) setModel(m *model.Device) {
	if s == nil {
		return
	}
	m.UnattributedUtilization = model.Optional{Value: s.unattributed[usedTime], Known: s.known[usedTime]}
	m.UnattributedMemory = model.Optional{Value: s.unattributed[usedMemory], Known: s.known[usedMemory]}
	m.ForeignProcesses = model.Optional{Value: float64(s.orphans), Known: s.listed}
}

// attributes returns whether processes are attributed to pods, and if not, why: as they
// can be, if a source lists them.
func (s *devices) attributes(possible ProcessState) ProcessState {
	if possible == ProcessesOK && !s.listed {
		return ProcessesUnsupported
	}
	return possible
}

// update applies the use of this step. began reports that the claim did not
// hold the device before.
func (u *use) update(present use, began bool, now time.Duration) {
	present.since = u.since
	if began || u.attribution != present.attribution || u.withheld && !present.withheld {
		present.since = now
	}
	*u = present
}

// busy is how long the claim kept the device busy between the last two
// measurements of its utilization, seconds: the later one is that of the time
// since the use began.
func (u *use) busy(g *growth) float64 {
	span := g.at.To - max(g.from.To, u.since)
	if !u.known || !g.grew || span <= 0 {
		return 0
	}
	return u.value * span.Seconds()
}

// apply applies a list once all its processes have been looked up. Until then
// the one before is kept. A list that was applied is not looked up again: some
// of its pids may have been reused.
func (l *processList) apply(processes []device.Process, at clock.Instant, owners map[int]dra.Owner) {
	if at == l.at {
		return
	}
	l.next = l.next[:0]
	for i := range processes {
		owner, ok := owners[processes[i].PID]
		if !ok {
			return
		}
		l.next = append(l.next, owner)
	}
	l.at, l.processes = at, processes
	l.owners, l.next = l.next, l.owners
}

// divide computes the use by each holder. total is the device's own values, and known
// is which of them are known.
func (s *deviceSplit) divide(total amounts, known [usages]bool) {
	sum := s.count()
	for q := range usages {
		s.known[q] = s.reported[q] && known[q]
		if s.known[q] && sum[q] > total[q] {
			s.scale(q, total[q]/sum[q])
		}
	}
}

// invalidate is for a device whose processes are not known now.
func (s *deviceSplit) invalidate() {
	s.reported, s.known = [usages]bool{}, [usages]bool{}
	s.listed, s.foreign, s.orphans = false, 0, 0
}

// isOld reports whether the list may be of the time before the present holders.
func (s *deviceSplit) isOld() bool { return s.list.at.Elapsed < s.since.Elapsed }

// count adds up the use of processes by user, and returns the sum over all that
// have not ended.
func (s *deviceSplit) count() (sum amounts) {
	s.reset()
	s.unattributed = amounts{}
	reported, alive := [usages]bool{usedTime: true, usedMemory: true}, false
	mps := mpsServer{before: s.server}
	s.countForeign()
	for i := range s.list.processes {
		p, owner := &s.list.processes[i], &s.list.owners[i]
		if owner.Gone {
			continue
		}
		alive = true
		holder := s.findUser(owner)
		for q := range usages {
			amount, ok := q.of(p)
			if !ok {
				reported[q] = false
				continue
			}
			sum[q] += amount
			s.credit(holder, owner, q, amount)
		}
		mps.add(p, holder == nil)
	}
	for q := range usages {
		if alive {
			s.unreported[q] = !reported[q]
		}
		s.reported[q] = !s.unreported[q]
	}
	if s.server = mps.pid(); s.server != 0 {
		s.reported[usedTime] = false
	}
	return sum
}

// countForeign counts the processes of pods that hold nothing of the device. An MPS
// server may be in a pod of its own: it is not foreign, nor when its clients have
// ended.
func (s *deviceSplit) countForeign() {
	s.listed, s.foreign, s.orphans = true, 0, 0
	clients, previous := false, s.servers
	s.servers = nil
	for i := range s.list.processes {
		clients = clients || s.list.processes[i].Proxied && !s.list.owners[i].Gone
	}
	for i := range s.list.processes {
		p, owner := &s.list.processes[i], &s.list.owners[i]
		switch {
		case owner.Gone || owner.PodUID == "" || s.unnamed || s.findUser(owner) != nil:
		case !p.Proxied && (clients || previous[p.PID]):
			if s.servers == nil {
				s.servers = make(map[int]bool)
			}
			s.servers[p.PID] = true
		default:
			s.foreign++
			if !slices.Contains(s.monitors, owner.PodUID) {
				s.orphans++
			}
		}
	}
}

// credit adds an amount to the pod that uses the device, and to the claim
// through which it does. An amount that may be that of one of several pods is
// added to none of them, and is not unattributed either.
func (s *deviceSplit) credit(holder *user, owner *dra.Owner, q usage, amount float64) {
	switch {
	case holder == nil && s.unnamed && owner.PodUID != "":
	case holder == nil:
		s.unattributed[q] += amount
	default:
		through, certain := holder.through(owner.ContainerID)
		if len(through) == 0 {
			s.unattributed[q] += amount
			return
		}
		holder.amounts[q] += amount
		for _, hold := range through {
			if hold == throughPlugin {
				continue
			}
			part := &s.parts[hold]
			part.amounts[q] += amount
			part.uncertain = part.uncertain || !certain
		}
	}
}

// scale reduces every part: readings are of different times, and the sum of the
// parts must not be more than the device's own value.
func (s *deviceSplit) scale(q usage, factor float64) {
	s.unattributed[q] *= factor
	for i := range s.parts {
		s.parts[i].amounts[q] *= factor
	}
	for i := range s.pods {
		s.pods[i].amounts[q] *= factor
	}
}

// by returns the use by a claim's processes; false if they cannot be
// distinguished from others.
func (s *deviceSplit) by(claim dra.ClaimRef, q usage) (float64, bool) {
	if !s.reported[q] {
		return 0, false
	}
	for i := range s.parts {
		if part := &s.parts[i]; part.claim == claim {
			return part.amounts[q], !part.uncertain && !part.ambiguous
		}
	}
	return 0, false
}

// mpsServer finds, in a list of processes, the MPS server that is reported to do
// the work of its clients.
type mpsServer struct {
	before int // pid of the server by the lists before; 0: none

	clients bool // there are clients
	busy    bool // and some are reported to work themselves
	working bool // a process works that belongs to no holder, and is no client
	server  int  // its pid, or that of the server of before, which may be at rest
}

// add applies a process of the list. An unattributed one belongs to no holder.
func (m *mpsServer) add(p *device.Process, unattributed bool) {
	switch works := p.Utilization > 0; {
	case p.Proxied:
		m.clients = true
		m.busy = m.busy || works
	case unattributed:
		m.working = m.working || works
		if p.PID == m.before || works && m.server == 0 {
			m.server = p.PID
		}
	}
}

// pid is that of the server that is reported to do its clients' work, 0 if there
// is none. A server stays one for as long as it exists, unless it is at rest
// while its clients are reported to work.
func (m *mpsServer) pid() int {
	switch {
	case m.working && m.clients:
		return m.server
	case m.server != 0 && m.server == m.before && (m.working || !m.busy):
		return m.server
	default:
		return 0
	}
}

// throughPlugin is the hold of a pod that has no claim.
const throughPlugin = -1

// findUser returns the pod of a process; nil if the pod does not hold the device.
// It is found by the container if not by the UID: the UID of a static pod is the
// kubelet's own, and there is none where both are in this program's own pod
// (cgroup_namespaces(7)).
func (u *users) findUser(owner *dra.Owner) *user {
	at, ok := u.byUID[owner.PodUID]
	if !ok {
		at, ok = u.byContainer[owner.ContainerID]
	}
	if !ok {
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
	if pod, ok := pods[ref]; ok {
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

// index sorts the pods and indexes them.
func (u *users) index() {
	slices.SortFunc(u.pods, func(a, b user) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	for i := range u.pods {
		pod := &u.pods[i]
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

// sameHolders reports whether the pods are the previous ones, by their UIDs.
func (u *users) sameHolders(previous users) bool {
	return u.unnamed == previous.unnamed &&
		slices.EqualFunc(u.pods, previous.pods, func(a, b user) bool { return a.uid == b.uid && a.pod == b.pod }) &&
		slices.EqualFunc(u.parts, previous.parts, func(a, b portion) bool { return a.claim == b.claim })
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
