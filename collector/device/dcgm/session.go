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
	for _, w := range s.watches {
		_ = dcgm.UnwatchFields(w.fields, w.group)
	}
	for _, group := range slices.Concat(s.gpuGroups, s.partitionGroups, s.instanceGroups) {
		_ = dcgm.DestroyGroup(group)
	}
	s.watches, s.gpuGroups, s.partitionGroups, s.instanceGroups = nil, nil, nil, nil
	s.profiles = false
}

// makeGroups makes groups of entities, as few as there can be.
func (s *session) makeGroups(entities []entity) (groups []dcgm.GroupHandle, err error) {
	for part := range slices.Chunk(entities, mostEntities) {
		group, err := dcgm.CreateGroup(s.unique())
		if err != nil {
			return groups, coded("make a group", err)
		}
		groups = append(groups, group)
		for _, e := range part {
			pair := theirs(e)
			if err := dcgm.AddEntityToGroup(group, pair.EntityGroupId, pair.EntityId); err != nil {
				return groups, coded("add an entity to a group", err)
			}
		}
	}
	return groups, nil
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

// watchProfiling watches the fields of profiling, if they are asked for and
// nobody else holds the GPU's counters.
func (s *session) watchProfiling() {
	if !s.options.Profiling || s.profiles {
		return
	}
	before := len(s.watches)
	err := errors.Join(
		s.watch(s.gpuGroups, s.wholeProfiling, s.options.Interval, 0),
		s.watch(s.partitionGroups, s.partProfiling, s.options.Interval, 0),
	)
	if err != nil {
		for _, w := range s.watches[before:] {
			_ = dcgm.UnwatchFields(w.fields, w.group)
		}
		s.watches = s.watches[:before]
	}
	s.profiles = s.try("profiling", err)
}

// formulate makes the questions of the reads.
func (s *session) formulate() {
	fast, part := slices.Clone(s.whole[0].fields), slices.Clone(s.partition.fields)
	if s.listens {
		fast = append(fast, s.xid.fields...)
	}
	if s.profiles {
		fast = append(fast, s.wholeProfiling.fields...)
		part = append(part, s.partProfiling.fields...)
	}
	s.wholeFast = newQuestion(s.plan.gpus, fast)
	s.wholeAll = newQuestion(s.plan.gpus, append(slices.Clone(fast), s.whole[1].fields...))
	s.partitionFast = newQuestion(s.plan.partitions, part)
	s.instanceXIDs = question{}
	if s.listens {
		s.instanceXIDs = newQuestion(s.plan.instances, s.xid.fields)
	}
}
