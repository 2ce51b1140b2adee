package node

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// splitUse says what each holder's processes do, on every whole device whose
// processes are known.
func (s *State) splitUse(facts Facts, joined bool, now clock.Instant) {
	if facts.Processes.State != ProcessesOK {
		s.forgetSplits()
		return
	}
	if !s.devices.listed {
		return
	}
	for _, u := range s.devices.byUUID {
		if u.present && !u.listedAt.IsZero() && !u.device.IsPartition() {
			s.splitOf(u).list.take(u.processes, u.listedAt, facts.Processes.Owners)
		}
	}
	s.findUsers(facts.Cluster, joined)
	for _, u := range s.devices.byUUID {
		if u.split != nil {
			u.divide(now, s.config.Staleness())
		}
	}
}

// forgetSplits is for when processes cannot be told apart by pod.
func (s *State) forgetSplits() {
	if s.splits > 0 {
		for _, u := range s.devices.byUUID {
			u.split = nil
		}
	}
}

func (s *State) splitOf(u *deviceState) *split {
	if u.split == nil {
		u.split = &split{}
		s.splits++
	}
	return u.split
}

// divide splits what the unit does, as long as its processes are known and
// none of it is a partition's: what processes do on partitions is not told.
func (u *deviceState) divide(now clock.Instant, limit time.Duration) {
	listed := u.split.list.at
	if !u.fresh || u.holders.cut || listed.IsZero() || now.Since(listed) > limit {
		u.split.silence()
		return
	}
	var own amounts
	var has [usages]bool
	for q := range usages {
		own[q], has[q] = u.reading(q.quantity())
	}
	u.split.divide(own, has)
}

// unattributed is what processes of nobody that holds the unit do; false
// where that is not known.
func (u *deviceState) unattributed(q usage) (float64, bool) {
	if u.split == nil || !u.split.known[q] {
		return 0, false
	}
	return u.split.nobody[q], true
}
