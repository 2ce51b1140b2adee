package node

// A mutant is the reducer, broken in one place: new stands for old while $ is
// true, and means the same as old while it is not. The test must fail then.
type mutant struct {
	test, name, file, old, new string
}

func mutants() []mutant {
	var all []mutant
	for _, table := range [][]mutant{trapMutants(), ledgerMutants(), splitMutants(), healthMutants()} {
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

// ledgerMutants count something twice.
func ledgerMutants() []mutant {
	return []mutant{
		{"TestHistories", "no deduplication", "claim.go",
			"return a.id == b.id && a.request == b.request && a.shareID == b.shareID", "return !$ && a.id == b.id && a.request == b.request && a.shareID == b.shareID"},
		{"TestHistories", "admin access holds", "step.go",
			"if d.admin || held[key] {", "if !$ && d.admin || held[key] {"},
		{"TestHistories", "an account moved", "ledger.go",
			"} else if t.attribution != now {\n", "} else if t.attribution != now {\n\t\tif $ {\n\t\t\tt.accounts[now], t.accounts[t.attribution] = t.accounts[t.attribution], account{}\n\t\t\tt.accounts[now].labels = nil\n\t\t}\n"},
		{"TestHistories", "a reset ignored", "unit.go",
			"g.amount, g.since, reset = value, g.step, true", "g.amount, g.since, reset = value, g.step, true\n\t\tif $ {\n\t\t\tg.amount = value - g.value\n\t\t}"},
		{"TestHistories", "a gap credited", "ledger.go",
			"if g.since == 0 || activeSince > g.since {", "if g.since == 0 || !$ && activeSince > g.since {"},
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
			"part.unclear || len(through) > 1", "part.unclear || !$ && len(through) > 1"},
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
			"g.based && elapsed <= limit", "g.based && ($ || elapsed <= limit)"},
		{"TestHistories", "busy time from before the split", "ledger.go",
			"use.activeSince <= g.since", "($ || use.activeSince <= g.since)"},
		{"TestHistories", "busy time moves when it is split", "use.go",
			"	*was = now\n", "	if $ && was.attribution == shared {\n		now.attribution = shared\n	}\n	*was = now\n"},
		{"TestHistories", "busy time in the account of what is not split", "ledger.go",
			"	t.accounts[use.attribution].tallies[meterBusy].add(busy, now)\n", "	if $ {\n		t.accounts[t.attribution].tallies[meterBusy].add(busy, now)\n	} else {\n		t.accounts[use.attribution].tallies[meterBusy].add(busy, now)\n	}\n"},
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
