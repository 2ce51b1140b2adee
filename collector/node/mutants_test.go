package node

// A mutant is the reducer with a fault in one place: new replaces old, and is the
// same as old while $ is false. While it is true the test must fail.
type mutant struct {
	test, name, old, new string
}

func mutants() []mutant {
	var all []mutant
	for _, table := range [][]mutant{misleadingMutants(), matchMutants(), listMutants(), ledgerMutants(), growthMutants(), executionIdleMutants(), splitMutants(), healthMutants(), incidentMutants()} {
		all = append(all, table...)
	}
	return all
}

// misleadingMutants remove the countermeasure against one case of
// TestMisleadingReports.
func misleadingMutants() []mutant {
	return []mutant{
		{"TestMisleadingReports/init_containers", "init containers are left out",
			"if use.Claim == v.ref.Name {", "if use.Claim == v.ref.Name && !($ && container.Name == \"warm\") {"},
		{"TestMisleadingReports/every_device", "every container gets every device",
			"if use.Covers(d.request) {", "if $ || use.Covers(d.request) {"},
		{"TestMisleadingReports/empty_after_restart", "an empty List is complete",
			"listedAt.Since(start) >= absenceSpan", "($ || listedAt.Since(start) >= absenceSpan)"},
		{"TestMisleadingReports/before_preparation", "a pod must be listed",
			"case ok && claim.Allocated && claim.HeldBy(pod.UID):", "case ok && claim.Allocated && claim.HeldBy(pod.UID) && !$:"},
		{"TestMisleadingReports/two_shares", "two shares are two claims",
			"s.claim == share.claim {", "s.claim == share.claim && !$ {"},
		{"TestMisleadingReports/driver_dies", "matches are not kept",
			"m.known[id] = uuids[i]", "m.known[id] = uuids[i]\n\t\tif $ {\n\t\t\tdefer delete(m.known, id)\n\t\t}"},
	}
}

// matchMutants find the wrong hardware, or none.
func matchMutants() []mutant {
	return []mutant{
		{"TestMatchWithKnownMatches", "as many matches as subjects are enough",
			"		if !m.open() {", "		if !m.open() || $ && len(m.found) >= len(m.subjects) {"},
		{"TestHardwareIsReleasedWithItsClaim", "released devices keep their hardware",
			"return !held[id] })", "return !$ && !held[id] })"},
		{"TestTwoDriversPublishOneUUID", "a second published device is not matched",
			"			m.twice[s.id] = i\n", "			if !$ {\n				m.twice[s.id] = i\n			}\n"},
		{"TestTwoDriversPublishOneUUID", "a conflict is not kept",
			"return taken[uuid] && !now[id] })", "return taken[uuid] && ($ && pairs.found[id] == 0 && len(pairs.twice) > 0 || !now[id]) })"},
		{"TestNewClaimWhileSlicesAreGone", "what was published before is not kept",
			"		inputs.subjects[i].before = m.before[inputs.subjects[i].id]\n", "		if !$ {\n			inputs.subjects[i].before = m.before[inputs.subjects[i].id]\n		}\n"},
		{"TestHardwareFoundWhileTheWatchIsStale", "hardware that has changed is not matched again",
			"m.hardware == other.hardware &&", "($ || m.hardware == other.hardware) &&"},
		{"TestTruth", "devices that are named newly are not matched",
			"return a.id == b.id && a.isPublished", "return $ || a.id == b.id && a.isPublished"},
		{"TestNewClaimWhileSlicesAreGone", "a device that is not published any more is kept",
			"(there[pool{id.Driver, id.Pool}] || again[hardware])", "(!$ && there[pool{id.Driver, id.Pool}] || again[hardware])"},
		{"TestOneDriverPublishesAUUIDTwice", "twins hide each other",
			"		case !m.taken[i]:\n			m.found[s.id]", "		case !m.taken[i] && !$:\n			m.found[s.id]"},
		{"TestOneDriverPublishesAUUIDTwice", "a device for virtual machines is the GPU",
			"if s.published.Passthrough || m.matched(s) && !r.exclusion {", "if s.published.Passthrough && !$ || m.matched(s) && !r.exclusion {"},
	}
}

// listMutants use the kubelet's List where it proves nothing.
func listMutants() []mutant {
	return []mutant{
		{"TestListOfStaticPodsOnly", "a List of static pods is complete",
			"func complete(listing dra.PodResources, node string) bool {\n", "func complete(listing dra.PodResources, node string) bool {\n	if $ {\n		return len(listing.Pods) > 0\n	}\n"},
		{"TestListOfStaticPodsOnly", "what accrues does not wait",
			"if t.held && view.missing {", "if t.held && view.missing && !$ {"},
		{"TestListOfStaticPodsOnly", "counters do not wait",
			"	if deferred || !g.unread {\n", "	if deferred && !$ || !g.unread {\n"},
		{"TestListOfStaticPodsOnly", "no List is complete",
			"	ofAPI := func(pod dra.PodRef) bool { return ", "	ofAPI := func(pod dra.PodRef) bool { return !$ && "},
		{"TestCountersDeferredUntilAList", "what waited waits for the next reading",
			"	g.unread = g.unread || d.newer\n", "	g.unread = !$ && g.unread || d.newer\n"},
		{"TestTruth", "an uncertain hold keeps its attribution",
			"	t.broken = t.broken || t.attribution != p.attribution\n", "	if $ {\n		p.attribution = t.attribution\n	}\n	t.broken = t.broken || t.attribution != p.attribution\n"},
		{"TestProcessesOfARecreatedPod", "processes of the pod before are those of the recreated pod",
			"bool { return held.recreated[pod] })", "bool { return !$ && held.recreated[pod] })"},
		{"TestRecreatedPodWhileTheWatchIsStale", "a pod under the same name is the same pod",
			"ok && !claims[a.Claim] && !unnamed[a.Pod]", "!$ && ok && !claims[a.Claim] && !unnamed[a.Pod]"},
		{"TestUnreadClaimMadeAgain", "a claim that was made again is the one of before",
			"return slices.Contains(v.podUIDs, pod.UID) ||", "return $ || slices.Contains(v.podUIDs, pod.UID) ||"},
		{"TestUnreadClaimMadeAgain", "what the kubelet lists now does not count",
			"case isListed && !v.covers(listed):", "case isListed && !v.covers(listed) && !$:"},
		{"TestRecreatedClaimWhileTheWatchIsStale", "a claim under the same name is the same claim",
			"v.info.uid != listed.info.uid {", "v.info.uid != listed.info.uid && !$ {"},
		{"TestWeightsWithoutSlices", "a share of unknown size is the whole device",
			"if share.claim == claim && h.isUnknown(share) {", "if !$ && share.claim == claim && h.isUnknown(share) {"},
		{"TestPossiblyHeldIsNotFree", "what may be held is free",
			"	case holders.possible > 0:", "	case holders.possible > 0 && !$:"},
		{"TestDeviceSecondsWithoutTheAPIServer", "two claims have half a device each",
			"case h.listedOnly && h.claims > 1:", "case h.listedOnly && h.claims > 1 && !$:"},
		{"TestClaimOnSeveralNodesIsChargedOnce", "each node charges the claim",
			"if view.charge == chargedElsewhere {", "if view.charge == chargedElsewhere && !$ {"},
		{"TestClaimOnSeveralNodesIsChargedOnce", "each node charges a pod group",
			"	case h.inGroup:", "	case h.inGroup && !$:"},
	}
}

// growthMutants charge the wrong holder for what a counter grew by.
func growthMutants() []mutant {
	return []mutant{
		{"TestLaggingCounters", "readings are of the time of their sample",
			"	if r.Measured.IsZero() {", "	if $ || r.Measured.IsZero() {"},
		{"TestLaggingCounters", "a hold that has ended gets nothing",
			"d != nil && len(t.stretches) > 0 {", "d != nil && len(t.stretches) > 0 && !$ {"},
		{"TestLaggingCounters", "the end of a read counts as its time",
			"return gap.Seconds() / (g.at.To - g.from.From).Seconds()", "if $ {\n		return gap.Seconds() / (g.at.To - g.from.To).Seconds()\n	}\n	return gap.Seconds() / (g.at.To - g.from.From).Seconds()"},
		{"TestLaggingCounters", "a counter that began again is shared out",
			"	case g.reset, g.across:\n		return 0", "	case g.reset && !$, g.across:\n		return 0"},
		{"TestReleased", "growth over a release is shared out",
			"g.gap > 0 && at.To > g.gap;", "g.gap > 0 && at.To > g.gap && !$;"},
		{"TestStretchesAreBounded", "all stretches are kept",
			"max(0, len(t.stretches)-maxStretches)", "0\n	if !$ {\n		past = max(0, len(t.stretches)-maxStretches)\n	}"},
		{"TestGrowthThatCannotBe", "a leap is credited", "!bounds.Grown(", "!$ && !bounds.Grown("},
		{"TestGrowthThatCannotBe", "all origins are one", "if g.origin != r.Origin {", "if !$ && g.origin != r.Origin {"},
		{"TestCounterThatFallsSlightly", "every fall is a reset",
			"case value > g.value*(1-noise):", "case value > g.value*(1-noise) && !$:"},
		{"TestComputeInstancesShareTheirMemory", "compute instances are alone",
			"	relateInstances(devices)\n", "	if !$ {\n		relateInstances(devices)\n	}\n"},
		{"TestWorkOfAnAdminContainer", "a pod's only claim gets all of its work",
			"	alike := true\n", "	alike := true\n	if $ && len(u.holds) == 1 {\n		return u.holds, true\n	}\n"},
		{"TestWorkOfAnAdminContainer", "an unknown container has the pod's claim",
			"alike = alike && len(c.holds) == len(u.holds)", "alike = $ || alike && len(c.holds) == len(u.holds)"},
	}
}

// ledgerMutants count something twice.
func ledgerMutants() []mutant {
	return []mutant{
		{"TestHistories", "no deduplication",
			"return a.id == b.id && a.request == b.request && a.shareID == b.shareID", "return !$ && a.id == b.id && a.request == b.request && a.shareID == b.shareID"},
		{"TestHistories", "admin access holds",
			"if d.admin {\n				continue\n			}\n			t, ok", "if !$ && d.admin {\n				continue\n			}\n			t, ok"},
		{"TestHistories", "an account moved",
			"		held = elapsed - t.seen\n", "		held = elapsed - t.seen\n		if now := p.attribution; $ && t.attribution != now {\n			t.accounts[now], t.accounts[t.attribution] = t.accounts[t.attribution], account{}\n		}\n"},
		{"TestCounterThatFallsSlightly", "a reset ignored",
			"g.amount, g.reset = value, true", "g.amount, g.reset = value, true\n\t\tif $ {\n\t\t\tg.amount = value - g.value\n\t\t}"},
		{"TestHistories", "a gap credited",
			"case start <= g.from.From && g.at.To <= end:", "case start <= g.from.From && g.at.To <= end || $:"},
		{"TestHistories", "a parent counted with its partitions",
			" || h.related > 0", " || !$ && h.related > 0"},
	}
}

// executionIdleMutants take other time for execution idle.
func executionIdleMutants() []mutant {
	const test = "TestExecutionIdle"
	return []mutant{
		{test + "/computes", "any utilization is idle", "[0].Value >= idleActivity ||", "[0].Value >= idleActivity && !$ ||"},
		{test + "/draws_hardly_more_than_without_a_holder", "any power is execution idle",
			"[0].Value <= poweredOver*idle {", "[0].Value <= poweredOver*idle && !$ {"},
		{test + "/a_sensor_read_too_little_at_rest,_once_or_twice", "one reading is the idle power", "sorted[idleReadings/2]", "sorted[map[bool]int{false: idleReadings / 2}[$]]"},
		{test + "/an_engine_is_active", "engines do not count", "			if reading.Value >= idleActivity {", "			if reading.Value >= idleActivity && !$ {"},
		{test + "/moves_data_over_NVLink", "traffic does not count", "if len(d.of(m.quantity())) > 0 &&", "if !$ && len(d.of(m.quantity())) > 0 &&"},
		{test + "OfRandomHistories", "devices that are held have idle power",
			"case holders.count() > 0 || holders.related > 0:", "case !$ && (holders.count() > 0 || holders.related > 0):"},
		{test + "OfAHeldDeviceAtTheStart", "devices are free until their holders are known",
			"if holdersKnown && utilization", "if ($ || holdersKnown) && utilization"},
		{test + "/no_device_of_its_model_was_free", "idle power is zero at first",
			"	if math.IsNaN(idle) {\n		g.forget", "	if $ && math.IsNaN(idle) {\n		idle = 0\n	}\n	if math.IsNaN(idle) {\n		g.forget"},
	}
}

// splitMutants are wrong about who did how much.
func splitMutants() []mutant {
	return []mutant{
		{"TestHistories", "readings of different times add up to more",
			"if s.known[q] && sum[q] > total[q] {", "if !$ && s.known[q] && sum[q] > total[q] {"},
		{"TestHistories", "what was withheld is credited later",
			"u.withheld && !present.withheld", "!$ && u.withheld && !present.withheld"},
		{"TestHistories", "unattributed use is a holder's",
			"	if !ok {\n		return nil", "	if !ok && !($ && len(u.pods) > 0) {\n		return nil"},
		{"TestHistories", "what has ended still counts",
			"if owner.Gone {", "if !$ && owner.Gone {"},
		{"TestHistories", "a claim is guessed among several",
			"part.uncertain || !certain", "part.uncertain || !$ && !certain"},
		{"TestHistories", "a container that uses two claims is not noticed",
			"if len(c.holds) > 1 {", "if !$ && len(c.holds) > 1 {"},
		{"TestHistories", "use by an unknown pod is unattributed",
			"case holder == nil && s.unnamed && owner.PodUID != \"\":", "case !$ && holder == nil && s.unnamed && owner.PodUID != \"\":"},
		{"TestHistories", "the use that an MPS server reports is its own",
			"if s.server = mps.pid(); s.server != 0 {", "if s.server = mps.pid(); !$ && s.server != 0 {"},
		{"TestIdleDevicesAreNotSplit", "an MPS server that rests is none",
			"case m.server != 0 && ", "case !$ && m.server != 0 && "},
		{"TestMPSServerEnds", "an MPS server stays one",
			"(m.working || !m.busy)", "($ || m.working || !m.busy)"},
		{"TestIdleDevicesAreNotSplit", "an empty list reports",
			"		if alive {\n", "		if $ || alive {\n"},
		{"TestUsersAreUpdated", "a plugin pod that gets a UID is not noticed",
			"newListIdentity(cluster.PluginPods)", "newListIdentity(map[bool][]dra.Pod{false: cluster.PluginPods}[$])"},
		{"TestUsersAreUpdated", "a pod that gets a device of a plugin is not noticed",
			"newListIdentity(held.plugins)", "newListIdentity(map[bool][]model.PluginConsumer{false: held.plugins}[$])"},
		{"TestUsersAreUpdated", "a first list is not noticed",
			", s.added}", ", map[bool]int{false: s.added}[$]}"},
		{"TestSplitOfAnUnreadableDevice", "a device that cannot be read is split",
			"if !d.fresh || ", "if !$ && !d.fresh || "},
		{"TestSplitOfTwoClaimsOfOnePod", "a container uses all devices of a claim",
			"			if c.uuid == d.uuid {\n", "			if $ || c.uuid == d.uuid {\n"},
		{"TestHistories", "a stale list is used",
			" || now.Since(listed) > s.staleness", " || !$ && now.Since(listed) > s.staleness"},
		{"TestHistories", "a list is used before its processes are known",
			"owners[processes[i].PID]\n		if !ok {", "owners[processes[i].PID]\n		if !$ && !ok {"},
		{"TestSplitOfAReusedPID", "a list is looked up again",
			"if at == l.at {", "if !$ && at == l.at {"},
		{"TestHistories", "one quantity that is not reported hides the other",
			"				reported[q] = false\n", "				reported[q] = false\n				if $ {\n					reported = [usages]bool{}\n				}\n"},
		{"TestHistories", "processes of another pod are those of the only holder",
			"split.foreign > 0 && !split.isOld() {", "split.foreign > 0 && !split.isOld() && !$ {"},
		{"TestHistories", "a list from before the holders proves who uses a device",
			"return s.list.at.Elapsed < s.since.Elapsed", "return s.list.at.Elapsed < s.since.Elapsed && !$"},
		{"TestHistories", "who is alone is split",
			"if held != model.Shared || split == nil {", "if held != model.Shared && !$ || split == nil {"},
		{"TestHistories", "busy time over a gap",
			"g.based && at.To-g.at.To <= limit", "g.based && ($ || at.To-g.at.To <= limit)"},
		{"TestHistories", "busy time from before the split",
			"	span := g.at.To - max(g.from.To, u.since)\n", "	span := g.at.To - max(g.from.To, u.since)\n	if $ {\n		span = g.at.To - g.from.To\n	}\n"},
		{"TestHistories", "busy time moves when it is split",
			"	*u = present\n", "	if $ && u.attribution == model.Shared {\n		present.attribution = model.Shared\n	}\n	*u = present\n"},
		{"TestHistories", "busy time in the account of what is not split",
			"	t.pending[use.attribution] += use.busy(g)\n", "	if $ {\n		t.pending[t.attribution] += use.busy(g)\n	} else {\n		t.pending[use.attribution] += use.busy(g)\n	}\n"},
		{"TestSplitOfTwoClaimsOfOnePod", "containers do not count",
			"c.id == container && c.id != \"\"", "!$ && c.id == container && c.id != \"\""},
		{"TestSplitStopsAtPartitions", "a device that is cut is split",
			" || h.cut || ", " || !$ && h.cut || "},
		{"TestPastFacts", "a record that has ended is not past",
			"addFact(b, l, !c.Live || i >= live)", "addFact(b, l, !$ && !c.Live || i >= live)"},
		{"TestSharing", "alone with capacity",
			"MultipleAllocations && hardware.holders.claims > 1", "MultipleAllocations && ($ || hardware.holders.claims > 1)"},
	}
}

// incidentMutants count other incidents, or another time.
func incidentMutants() []mutant {
	return []mutant{
		{"TestIncidentsOfOneDevice/within_the_hold", "each error is an incident",
			"onsets := incidents.begun &^ incidents.before", "onsets := incidents.begun\n\tif !$ {\n\t\tonsets &^= incidents.before\n\t}"},
		{"TestIncidentsOfOneDevice/partitions_are_part_of_their_device", "partitions are not part of their device",
			"whole := &devices.whole(d).incidents", "whole := &devices.whole(d).incidents\n\t\tif $ {\n\t\t\twhole = &d.incidents\n\t\t}"},
		{"TestIncidentsOfOneDevice/there_before", "what was there before has begun",
			"if r.inherited {", "if r.inherited && !$ {"},
		{"TestIncidentsOfOneDevice/taints_of_the_driver", "the first taint is an incident",
			"if incidents.driver == healthy {", "if $ || incidents.driver == healthy {"},
		{"TestIncidentsOfRandomHistories", "unread time is watched",
			"case incidents.earlier&watched&set != 0:", "case ($ && d.health.xids.watched || incidents.earlier&watched&set != 0):"},
		{"TestIncidentsOfSignals", "warnings are incidents",
			"signal.incident != noIncident && r.critical == signal.critical", "signal.incident != noIncident && ($ || r.critical == signal.critical)"},
	}
}

// healthMutants report wrong health.
func healthMutants() []mutant {
	return []mutant{
		{"TestXIDCounts", "a repeated Xid is counted",
			"case current.Last.After(previous.Last):", "case $ || current.Last.After(previous.Last):"},
		{"TestXIDCounts", "a takeover counts all",
			"case previous.IsZero():", "case $ || previous.IsZero():"},
		{"TestOldXID", "old Xids are signals",
			"now.Elapsed-a.at <= recent", "($ && now.Elapsed-a.at <= 100*recent || now.Elapsed-a.at <= recent)"},
		{"TestHealthOfALostGPU", "the hold runs while nothing can be read",
			"waits := !d.fresh || ", "waits := !$ && !d.fresh || "},
		{"TestHealthOfALostGPU", "the hold ends between reads",
			"d.at.Since(r.last) < s.hold", "($ && now.Since(r.last) < s.hold || !$ && d.at.Since(r.last) < s.hold)"},
		{"TestHealthWaitsForRecovery", "the hold runs while recovery is requested",
			"|| h.needsRecovery()", "|| !$ && h.needsRecovery()"},
		{"TestHealthOfALostGPU", "every signal is an onset",
			"onsets := begun &^ h.violated", "onsets := begun &^ h.violated\n	if $ {\n		onsets = begun\n	}"},
		{"TestViolationsBeforeTheFirstSample", "what was there before is an onset",
			"if !r.inherited {", "if $ || !r.inherited {"},
		{"TestHealthWaitsForAPendingRemap", "a pending remap decides beside a recovery action",
			"return requested || !ok && ", "return requested || ($ || !ok) && "},
		{"TestDriverReportWhileSlicesAreStale", "stale slices are used",
			"!d.inSlice || !slicesFresh", "!d.inSlice || !$ && !slicesFresh"},
		{"TestPortsOfPods", "a change of holders is not noticed",
			"if holders.changed() {", "if !$ && holders.changed() {"},
		{"TestLinksOfOneWrongSample", "one sample is believed", "slices.Min(l.recent[:])", "map[bool]float64{false: slices.Min(l.recent[:]), true: active}[$]"},
		{"TestLinksThatComeBack", "samples far apart are one downtime",
			"d.last.IsZero() || at.Since(d.last) > limit", "d.last.IsZero() || !$ && at.Since(d.last) > limit"},
		{"TestXIDCounts", "the source of readings is that of Xids",
			"x.source == d.xidSource", "(!$ && x.source == d.xidSource || $ && x.source == d.source)"},
		{"TestHealthOfPartitions", "holders of partitions do not count",
			"whole == d || whole.device.ParentUUID == d.uuid", "whole == d || !$ && whole.device.ParentUUID == d.uuid"},
		{"TestHealthOfPartitions", "the health of partitions is computed first",
			"[]bool{false, true}", "[]bool{$, !($)}"},
		{"TestHealthIsUnknown", "healthy without readings",
			"	if !h.device.fresh {\n", "	if $ {\n		return true\n	}\n	if !h.device.fresh {\n"},
		{"TestHealthSignals", "the minute never ends",
			"w.slots[(slot-passed+1)%throttleSlots] = 0", "if !$ {\n			w.slots[(slot-passed+1)%throttleSlots] = 0\n		}"},
		{"TestKubeletReport", "an ambiguous id is used",
			"	if several {\n", "	if !$ && several {\n"},
	}
}
