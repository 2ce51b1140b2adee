//go:build cgo

package dcgm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// session is what this source has made in an engine: groups, field groups and
// watches. All of it ends with the connection.
type session struct {
	*engine
	options Options
	log     *journal
	name    string // of groups, with a part that no other client has
	names   int

	// Made once.
	whole            [2]*fieldSet // of GPUs, by tier
	partition        *fieldSet
	xid              *fieldSet
	wholeProfiling   *fieldSet
	partProfiling    *fieldSet
	linksUnsupported bool

	// Made for each plan.
	plan                        plan
	members                     map[dcgm.GroupHandle][]entity // that the engine took
	refused                     []entity                      // that it did not
	refusals                    []error                       // why
	profiled                    map[dcgm.GroupHandle][]uint16 // fields of profiling
	halves                      []dcgm.FieldHandle            // parts of the sets of profiling
	halved                      bool                          // it is known which fields are refused
	gpuGroups                   []dcgm.GroupHandle
	partitionGroups             []dcgm.GroupHandle
	instanceGroups              []dcgm.GroupHandle
	watches                     []watch
	listens, profiles, checks   bool
	wholeFast, wholeAll         question
	partitionFast, instanceXIDs question
}

// watch is a field group that is sampled of a group of entities.
type watch struct {
	group  dcgm.GroupHandle
	fields dcgm.FieldHandle
}

// open connects and makes the field groups.
func open(o Options, b *board, log *journal) (*session, error) {
	e, err := connect(o)
	if err != nil {
		return nil, err
	}
	s := &session{engine: e, options: o, log: log, name: "dra-exporter-" + rand.Text()[:8]}
	if err := s.makeFieldSets(b); err != nil {
		e.close()
		return nil, err
	}
	return s, nil
}

// unique is a name that no group has yet.
func (s *session) unique() string {
	s.names++
	return fmt.Sprintf("%s-%d", s.name, s.names)
}

// eventAge is for how long an engine keeps XIDs for us.
const eventAge = 10 * time.Minute

// sampleAges is for how many intervals an engine keeps samples for us.
const sampleAges = 5

// arrange watches what a plan is about, in place of what was watched before.
func (s *session) arrange(p plan) error {
	s.dismantle()
	s.plan = p
	var errs [3]error
	s.gpuGroups, errs[0] = s.makeGroups(p.gpus)
	s.partitionGroups, errs[1] = s.makeGroups(p.partitions)
	s.instanceGroups, errs[2] = s.makeGroups(p.instances)
	err := errors.Join(errs[:]...)
	if err == nil {
		err = errors.Join(
			s.checkRefusals(),
			s.watch(s.gpuGroups, s.whole[0], s.options.Interval, 0),
			s.watch(s.gpuGroups, s.whole[1], s.options.SlowInterval, 0),
			s.watch(s.partitionGroups, s.partition, s.options.Interval, 0),
		)
	}
	if err != nil {
		return err
	}
	s.listens = s.try("XIDs", s.watch(slices.Concat(s.gpuGroups, s.instanceGroups), s.xid, s.options.Interval, eventAge))
	s.checks = s.try("DCGM's health checks", s.watchHealth())
	s.watchProfiling()
	s.formulate()
	return nil
}

// try reports whether what the source can do without has succeeded, and logs
// when that changes.
func (s *session) try(what string, err error) bool {
	s.log.report(what, err)
	return err == nil
}

// dismantle ends the watches and groups of the present plan. What fails is
// left to the end of the connection.
func (s *session) dismantle() {
	s.endWatches(0)
	for _, group := range slices.Concat(s.gpuGroups, s.partitionGroups, s.instanceGroups) {
		_ = dcgm.DestroyGroup(group)
	}
	s.gpuGroups, s.partitionGroups, s.instanceGroups = nil, nil, nil
	s.members, s.profiled = make(map[dcgm.GroupHandle][]entity), make(map[dcgm.GroupHandle][]uint16)
	s.refusals, s.refused = nil, nil
	s.profiles, s.halved = false, false
}

// watch has the engine sample fields of groups, and keep the samples for an
// age, or else for a few intervals.
func (s *session) watch(groups []dcgm.GroupHandle, set *fieldSet, interval, age time.Duration) error {
	if len(set.fields) == 0 {
		return nil
	}
	if age == 0 {
		age = max(sampleAges*interval, time.Second) // whole seconds count
	}
	for _, group := range groups {
		if err := dcgm.WatchFieldsWithGroupEx(set.handle, group, interval.Microseconds(), age.Seconds(), 0); err != nil {
			return coded("watch fields", err)
		}
		s.watches = append(s.watches, watch{group, set.handle})
	}
	return nil
}

// formulate makes the questions of the reads: of each entity those fields that
// are watched of it.
func (s *session) formulate() {
	s.wholeFast, s.wholeAll, s.partitionFast, s.instanceXIDs = question{}, question{}, question{}, question{}
	var xids []uint16
	if s.listens {
		xids = s.xid.fields
	}
	for _, group := range s.gpuGroups {
		fast := slices.Concat(s.whole[0].fields, xids, s.profiled[group])
		s.wholeFast.add(s.members[group], fast)
		s.wholeAll.add(s.members[group], slices.Concat(fast, s.whole[1].fields))
	}
	for _, group := range s.partitionGroups {
		s.partitionFast.add(s.members[group], slices.Concat(s.partition.fields, s.profiled[group]))
	}
	for _, group := range s.instanceGroups {
		s.instanceXIDs.add(s.members[group], xids)
	}
}
