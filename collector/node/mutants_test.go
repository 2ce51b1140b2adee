package node

// A mutant is the reducer, broken in one place: new stands for old while $ is
// true, and means the same as old while it is not. The test must fail then.
type mutant struct {
	test, name, file, old, new string
}

func mutants() []mutant {
	var all []mutant
	for _, table := range [][]mutant{trapMutants(), matchMutants(), listMutants(), ledgerMutants(), growthMutants(), splitMutants(), healthMutants()} {
		all = append(all, table...)
	}
	return all
}

// trapMutants take the countermeasure against one trap of TestTraps away.
func trapMutants() []mutant {
	return []mutant{
		{"TestTraps/init_containers", "init containers are left out", "join.go",
			"if use.Claim == v.ref.Name {", "if use.Claim == v.ref.Name && !($ && container.Name == \"warm\") {"},
		{"TestTraps/every_device", "every container gets every device", "claim.go",
			"if use.Covers(d.request) {", "if $ || use.Covers(d.request) {"},
		{"TestTraps/empty_after_restart", "an empty List is believed", "listing.go",
			"listedAt.Since(since) >= absenceSpan", "($ || listedAt.Since(since) >= absenceSpan)"},
		{"TestTraps/before_preparation", "a pod must be listed", "join.go",
			"case known && claim.Allocated && claim.HeldBy(pod.UID):", "case known && claim.Allocated && claim.HeldBy(pod.UID) && !$:"},
		{"TestTraps/two_shares", "two shares are two claims", "holders.go",
			"if u.holders.shares[i].claim == claim {", "if !$ && u.holders.shares[i].claim == claim {"},
		{"TestTraps/driver_dies", "matches are forgotten", "devices.go",
			"s.known[id] = uuids[i]", "s.known[id] = uuids[i]\n\t\tif $ {\n\t\t\tdefer delete(s.known, id)\n\t\t}"},
	}
}

// matchMutants find the wrong hardware, or none.
func matchMutants() []mutant {
	return []mutant{
		{"TestMatchBesideWhatIsRemembered", "as many matches as subjects are enough", "match.go",
			"		if !m.open() {", "		if !m.open() || $ && len(m.found) >= len(m.subjects) {"},
		{"TestHardwareIsGivenUpWithItsClaim", "released devices keep their hardware", "devices.go",
			"return !held[id] })", "return !$ && !held[id] })"},
		{"TestTwoDriversPublishOneUUID", "a second published device is nobody", "match.go",
			"			m.twice[s.id] = i\n", "			if !$ {\n				m.twice[s.id] = i\n			}\n"},
		{"TestTwoDriversPublishOneUUID", "a contradiction is not remembered", "devices.go",
			"return taken[uuid] && !now[id] })", "return taken[uuid] && ($ && m.found[id] == 0 && len(m.twice) > 0 || !now[id]) })"},
		{"TestClaimThatComesWhileSlicesAreGone", "what was published before is forgotten", "devices.go",
			"		named[i].before = s.before[named[i].id]\n", "		if !$ {\n			named[i].before = s.before[named[i].id]\n		}\n"},
		{"TestClaimThatComesWhileSlicesAreGone", "a device that is published no more is remembered", "devices.go",
			"(there[pool{id.Driver, id.Pool}] || again[hardware])", "(!$ && there[pool{id.Driver, id.Pool}] || again[hardware])"},
		{"TestOneDriverPublishesAUUIDTwice", "twins hide each other", "match.go",
			"		case !m.taken[i]:\n			m.found[s.id]", "		case !m.taken[i] && !$:\n			m.found[s.id]"},
		{"TestOneDriverPublishesAUUIDTwice", "a device for virtual machines is the GPU", "match.go",
			"if s.published.Passthrough || m.matched(s) && !r.exclusion {", "if s.published.Passthrough && !$ || m.matched(s) && !r.exclusion {"},
	}
}

// listMutants believe the kubelet's List where it proves nothing.
func listMutants() []mutant {
	return []mutant{
		{"TestListOfStaticPodsAlone", "a List of static pods is complete", "listing.go",
			"func complete(listing dra.PodResources, node string) bool {\n", "func complete(listing dra.PodResources, node string) bool {\n	if $ {\n		return len(listing.Pods) > 0\n	}\n"},
		{"TestListOfStaticPodsAlone", "what accrues does not wait", "step.go",
			"if t.held && view.missing {", "if t.held && view.missing && !$ {"},
		{"TestListOfStaticPodsAlone", "counters do not wait", "unit.go",
			"	if u.holders.missing || !u.unread {\n", "	if u.holders.missing && !$ || !u.unread {\n"},
		{"TestListOfStaticPodsAlone", "no List is complete", "listing.go",
			"	ofAPI := func(pod dra.PodRef) bool { return ", "	ofAPI := func(pod dra.PodRef) bool { return !$ && "},
		{"TestCountersThatWaitedForAList", "what waited waits for the next reading", "unit.go",
			"	u.unread = u.unread || u.newer\n", "	u.unread = !$ && u.unread || u.newer\n"},
		{"TestTruth", "a hold in doubt keeps its attribution", "ledger.go",
			"	t.broken = t.broken || t.attribution != present\n	t.attribution = present\n", "	if $ {\n		present = t.attribution\n	}\n	t.broken = t.broken || t.attribution != present\n	t.attribution = present\n"},
		{"TestProcessesOfAPodMadeAgain", "processes of the pod before are those of the pod made again", "users.go",
			"bool { return s.remade[pod] })", "bool { return !$ && s.remade[pod] })"},
		{"TestPodMadeAgainWhileTheWatchIsStale", "a pod under the same name is the same pod", "listing.go",
			"known && !claims[a.Claim] && !unnamed[a.Pod]", "!$ && known && !claims[a.Claim] && !unnamed[a.Pod]"},
		{"TestClaimMadeAgainWhileTheWatchIsStale", "a claim under the same name is the same claim", "listing.go",
			"v.info.uid != listed.info.uid {", "v.info.uid != listed.info.uid && !$ {"},
		{"TestDeviceSecondsWithoutTheAPIServer", "two claims have half a device each", "holders.go",
			"case h.listedOnly && h.claims > 1:", "case h.listedOnly && h.claims > 1 && !$:"},
		{"TestClaimOnSeveralNodesIsChargedOnce", "each node charges the claim", "step.go",
			"if view.charge == chargedElsewhere {", "if view.charge == chargedElsewhere && !$ {"},
		{"TestClaimOnSeveralNodesIsChargedOnce", "each node charges a pod group", "holders.go",
			"	case h.inGroup:", "	case h.inGroup && !$:"},
	}
}

// growthMutants charge the wrong holder for what a counter grew by.
func growthMutants() []mutant {
	return []mutant{
		{"TestLaggingCounters", "readings are of the time of their sample", "unit.go",
			"	if r.Measured.IsZero() {", "	if $ || r.Measured.IsZero() {"},
		{"TestLaggingCounters", "a hold that has ended gets nothing", "step.go",
			"if known && len(t.stretches) > 0 {", "if known && len(t.stretches) > 0 && !$ {"},
		{"TestLaggingCounters", "the end of a read counts as its time", "unit.go",
			"return between.Seconds() / (g.at.To - g.from.From).Seconds()", "if $ {\n		return between.Seconds() / (g.at.To - g.from.To).Seconds()\n	}\n	return between.Seconds() / (g.at.To - g.from.From).Seconds()"},
		{"TestLaggingCounters", "a counter that began again is shared out", "unit.go",
			"	case g.reset:\n		return 0", "	case g.reset && !$:\n		return 0"},
		{"TestStretchesAreBounded", "all stretches are remembered", "ledger.go",
			"max(0, len(t.stretches)-mostStretches)", "0\n	if !$ {\n		past = max(0, len(t.stretches)-mostStretches)\n	}"},
		{"TestCounterThatFallsByALittle", "every fall is a reset", "unit.go",
			"case value > g.value*(1-noise):", "case value > g.value*(1-noise) && !$:"},
		{"TestComputeInstancesShareTheirMemory", "compute instances are alone", "holders.go",
			"	s.relateInstances()\n", "	if !$ {\n		s.relateInstances()\n	}\n"},
		{"TestWorkOfAnAdminContainer", "a pod's only claim gets all of its work", "users.go",
			"	alike := true\n", "	alike := true\n	if $ && len(u.holds) == 1 {\n		return u.holds, true\n	}\n"},
		{"TestWorkOfAnAdminContainer", "an unknown container has the pod's claim", "users.go",
			"alike = alike && len(c.holds) == len(u.holds)", "alike = $ || alike && len(c.holds) == len(u.holds)"},
	}
}

// ledgerMutants count something twice.
func ledgerMutants() []mutant {
	return []mutant{
		{"TestHistories", "no deduplication", "claim.go",
			"return a.id == b.id && a.request == b.request && a.shareID == b.shareID", "return !$ && a.id == b.id && a.request == b.request && a.shareID == b.shareID"},
		{"TestHistories", "admin access holds", "step.go",
			"if d.admin || held[key] {", "if !$ && d.admin || held[key] {"},
		{"TestHistories", "an account moved", "ledger.go",
			"		held = now - t.seen\n", "		held = now - t.seen\n		if $ && t.attribution != present {\n			t.accounts[present], t.accounts[t.attribution] = t.accounts[t.attribution], account{}\n			t.accounts[present].labels = nil\n		}\n"},
		{"TestCounterThatFallsByALittle", "a reset ignored", "unit.go",
			"g.amount, g.reset = value, true", "g.amount, g.reset = value, true\n\t\tif $ {\n\t\t\tg.amount = value - g.value\n\t\t}"},
		{"TestHistories", "a gap credited", "unit.go",
			"case from <= g.from.From && g.at.To <= to:", "case from <= g.from.From && g.at.To <= to || $:"},
		{"TestHistories", "a parent counted with its partitions", "unit.go",
			" || u.holders.related > 0", " || !$ && u.holders.related > 0"},
	}
}

// splitMutants are wrong about who did how much.
func splitMutants() []mutant {
	return []mutant{
		{"TestHistories", "readings of different moments add up to more", "split.go",
			"if s.known[q] && sum[q] > own[q] {", "if !$ && s.known[q] && sum[q] > own[q] {"},
		{"TestHistories", "nobody's work is somebody's", "users.go",
			"	if !holds {\n		return nil", "	if !holds && !($ && len(u.pods) > 0) {\n		return nil"},
		{"TestHistories", "what has ended still counts", "split.go",
			"if owner.Gone {", "if !$ && owner.Gone {"},
		{"TestHistories", "a claim is guessed among several", "split.go",
			"part.unclear || !certain", "part.unclear || !$ && !certain"},
		{"TestHistories", "a container that uses two claims is not noticed", "users.go",
			"if len(c.holds) > 1 {", "if !$ && len(c.holds) > 1 {"},
		{"TestHistories", "a pod that nobody can name is nobody", "split.go",
			"case by == nil && s.unnamed && owner.PodUID != \"\":", "case !$ && by == nil && s.unnamed && owner.PodUID != \"\":"},
		{"TestHistories", "an MPS server's word is believed", "split.go",
			"if s.server = mps.serving(); s.server != 0 {", "if s.server = mps.serving(); !$ && s.server != 0 {"},
		{"TestRestIsNotSplit", "an MPS server that rests is none", "proxying.go",
			"case m.server != 0 && ", "case !$ && m.server != 0 && "},
		{"TestMPSServerIsForgotten", "an MPS server stays one", "proxying.go",
			"(m.working || !m.busy)", "($ || m.working || !m.busy)"},
		{"TestRestIsNotSplit", "a list of nobody tells", "split.go",
			"		if alive {\n", "		if $ || alive {\n"},
		{"TestUsersAreFoundAnew", "a plugin pod that gets a UID is not noticed", "users.go",
			"spanOf(cluster.PluginPods)", "spanOf(map[bool][]dra.Pod{false: cluster.PluginPods}[$])"},
		{"TestUsersAreFoundAnew", "a pod that gets a device of a plugin is not noticed", "users.go",
			"spanOf(s.plugins.consumers)", "spanOf(map[bool][]pluginConsumer{false: s.plugins.consumers}[$])"},
		{"TestUsersAreFoundAnew", "a first list is not noticed", "users.go",
			", s.splits}", ", map[bool]int{false: s.splits}[$]}"},
		{"TestSplitOfASilentDevice", "a device that cannot be read is split", "splits.go",
			"if !u.fresh || ", "if !$ && !u.fresh || "},
		{"TestSplitOfTwoClaimsOfOnePod", "a container uses all devices of a claim", "users.go",
			"			if c.uuid == d.uuid {\n", "			if $ || c.uuid == d.uuid {\n"},
		{"TestHistories", "a stale list is used", "splits.go",
			" || now.Since(listed) > limit", " || !$ && now.Since(listed) > limit"},
		{"TestHistories", "a list is used before its processes are known", "split.go",
			"		if !known {\n			return", "		if !$ && !known {\n			return"},
		{"TestSplitOfAReusedPID", "a list is looked up again", "split.go",
			"if at == l.at {", "if !$ && at == l.at {"},
		{"TestHistories", "one quantity that is not told hides the other", "split.go",
			"				told[q] = false\n", "				told[q] = false\n				if $ {\n					told = [usages]bool{}\n				}\n"},
		{"TestHistories", "who is alone is split", "use.go",
			"if held != shared || u.split == nil {", "if held != shared && !$ || u.split == nil {"},
		{"TestHistories", "busy time over a gap", "unit.go",
			"g.based && at.To-g.at.To <= limit", "g.based && ($ || at.To-g.at.To <= limit)"},
		{"TestHistories", "busy time from before the split", "use.go",
			"	over := g.at.To - max(g.from.To, u.since)\n", "	over := g.at.To - max(g.from.To, u.since)\n	if $ {\n		over = g.at.To - g.from.To\n	}\n"},
		{"TestHistories", "busy time moves when it is split", "use.go",
			"	*u = present\n", "	if $ && u.attribution == shared {\n		present.attribution = shared\n	}\n	*u = present\n"},
		{"TestHistories", "busy time in the account of what is not split", "ledger.go",
			"	t.pending[use.attribution] += use.busy(g)\n", "	if $ {\n		t.pending[t.attribution] += use.busy(g)\n	} else {\n		t.pending[use.attribution] += use.busy(g)\n	}\n"},
		{"TestSplitOfTwoClaimsOfOnePod", "containers are not asked", "users.go",
			"c.id == container && c.id != \"\"", "!$ && c.id == container && c.id != \"\""},
		{"TestSplitStopsAtPartitions", "a device that is cut is split", "splits.go",
			"u.holders.cut || ", "!$ && u.holders.cut || "},
		{"TestPastFacts", "a record that has ended is not past", "rows_facts.go",
			"b.addFact(r.labels, r.live)", "b.addFact(r.labels, $ || r.live)"},
		{"TestSharing", "alone with capacity", "record.go",
			"u.holders.claims > 1", "($ || u.holders.claims > 1)"},
	}
}

// healthMutants misjudge health.
func healthMutants() []mutant {
	return []mutant{
		{"TestXIDCounts", "an Xid retold is counted", "xid_log.go",
			"case is.Last.After(was.Last):", "case $ || is.Last.After(was.Last):"},
		{"TestXIDCounts", "a takeover counts all", "xid_log.go",
			"case before.IsZero():", "case $ || before.IsZero():"},
		{"TestXIDOfLongAgo", "old Xids make sick", "health.go",
			"now.Wall.Sub(a.last) <= recent", "($ && now.Wall.Sub(a.last) <= 100*recent || now.Wall.Sub(a.last) <= recent)"},
		{"TestHealthOfALostGPU", "the hold runs while nothing can be read", "health.go",
			"waits := !u.fresh || ", "waits := !$ && !u.fresh || "},
		{"TestHealthOfALostGPU", "the hold ends between reads", "health.go",
			"u.at.Since(r.last) < hold", "($ && now.Since(r.last) < hold || !$ && u.at.Since(r.last) < hold)"},
		{"TestHealthWaitsForRecovery", "the hold runs while recovery is asked for", "health.go",
			"u.waitsForRecovery()", "!$ && u.waitsForRecovery()"},
		{"TestHealthOfALostGPU", "every signal is an onset", "violations.go",
			"onsets := begun &^ u.health.violated", "onsets := begun &^ u.health.violated\n	if $ {\n		onsets = begun\n	}"},
		{"TestViolationsBeforeTheFirstLook", "what was there before is an onset", "violations.go",
			"if !r.inherited {", "if $ || !r.inherited {"},
		{"TestHealthWaitsForAPendingRemap", "a pending remap decides beside a recovery action", "health_signals.go",
			"return asks || !told && ", "return asks || ($ || !told) && "},
		{"TestWordOfTheDriverWhileSlicesAreStale", "stale slices are believed", "health.go",
			"!u.inSlice || !cluster.SlicesFresh", "!u.inSlice || !$ && !cluster.SlicesFresh"},
		{"TestPortsOfPods", "a change of holders is not noticed", "health.go",
			"if u.holders.haveChanged() {", "if !$ && u.holders.haveChanged() {"},
		{"TestLinksThatComeBack", "samples far apart are one downtime", "health_watch.go",
			"d.last.IsZero() || at.Since(d.last) > limit", "d.last.IsZero() || !$ && at.Since(d.last) > limit"},
		{"TestXIDCounts", "who sees is taken for who hears", "xid_log.go",
			"x.source == sample.XIDSource", "(!$ && x.source == sample.XIDSource || $ && x.source == sample.Source)"},
		{"TestHealthOfPartitions", "holders of partitions do not count", "violations.go",
			"on == u || on.device.ParentUUID == u.uuid", "on == u || !$ && on.device.ParentUUID == u.uuid"},
		{"TestHealthOfPartitions", "partitions are judged first", "health.go",
			"[]bool{false, true}", "[]bool{$, !($)}"},
		{"TestHealthIsUnknown", "well without testimony", "health.go",
			"	if !u.fresh {\n		return false\n	}\n	return u.xids", "	if $ {\n		return true\n	}\n	if !u.fresh {\n		return false\n	}\n	return u.xids"},
		{"TestAilments", "the minute never ends", "health_watch.go",
			"w.slots[(slot-passed+1)%throttleSlots] = 0", "if !$ {\n			w.slots[(slot-passed+1)%throttleSlots] = 0\n		}"},
		{"TestWordOfTheKubelet", "an ambiguous id is believed", "health_kubelet.go",
			"	if several {\n", "	if !$ && several {\n"},
	}
}
