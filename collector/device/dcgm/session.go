//go:build cgo

package dcgm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// engineSession is everything that this source has created in an engine: groups,
// field groups and watches. All of it ends with the connection. It is not safe
// for concurrent use.
type engineSession struct {
	*engine
	options   Options
	log       *availabilityLog
	name      string // prefix of group names, unique among clients
	nameCount int

	// Created once.
	whole              [2]*fieldSet // of GPUs, by tier
	partition          *fieldSet
	xid                *fieldSet
	wholeProfiling     *fieldSet
	partitionProfiling *fieldSet
	linksUnsupported   bool

	// Created for each plan.
	plan                                         watchPlan
	members                                      map[dcgm.GroupHandle][]entity // accepted by the engine
	refused                                      []entity                      // refused by the engine
	refusalErrs                                  []error                       // the reasons
	profiled                                     map[dcgm.GroupHandle][]uint16 // profiling fields that are watched
	partialFieldSets                             []dcgm.FieldHandle            // created by watchProfilingPart
	profilingSplit                               bool                          // the refused fields are known
	gpuGroups                                    []dcgm.GroupHandle
	partitionGroups                              []dcgm.GroupHandle
	instanceGroups                               []dcgm.GroupHandle
	watches                                      []watch
	xidsWatched, profilingWatched, healthWatched bool
	xidFailure                                   error // why XIDs are not watched
	wholeFast, wholeAll                          fieldQuery
	partitionFast, instanceXIDs                  fieldQuery
	xidEntities                                  []entity // queried for their last XID
}

// watch is a field group that the engine samples for a group of entities.
type watch struct {
	group  dcgm.GroupHandle
	fields dcgm.FieldHandle
}

// open connects to the engine and creates the field groups.
func open(o Options, b *converter, log *availabilityLog) (*engineSession, error) {
	e, err := connect(o)
	if err != nil {
		return nil, err
	}
	s := &engineSession{engine: e, options: o, log: log, name: "dra-exporter-" + rand.Text()[:8]}
	if err := s.makeFieldSets(b); err != nil {
		e.close()
		return nil, err
	}
	return s, nil
}

// uniqueName returns a name that no group has yet.
func (s *engineSession) uniqueName() string {
	s.nameCount++
	return fmt.Sprintf("%s-%d", s.name, s.nameCount)
}

// eventAge is how long an engine keeps XIDs for this source.
const eventAge = 10 * time.Minute

// sampleAges is the number of intervals for which an engine keeps samples for
// this source.
const sampleAges = 5

// applyPlan ends the watches of the previous plan and sets those of p.
func (s *engineSession) applyPlan(p watchPlan) error {
	s.clearPlan()
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
	s.watchXIDs()
	s.healthWatched = s.optional("DCGM's health checks", s.watchHealth())
	s.watchProfiling()
	s.buildQueries()
	return nil
}

// watchXIDs watches the field of the last XID, also if it is watched already. An
// engine that does not know it has no XIDs.
func (s *engineSession) watchXIDs() {
	s.xidFailure = s.watch(slices.Concat(s.gpuGroups, s.instanceGroups), s.xid, s.options.Interval, eventAge)
	s.xidsWatched = s.optional("XIDs", s.xidFailure) && len(s.xid.fields) > 0
}

// optional reports whether an optional step has succeeded, and logs when that
// changes.
func (s *engineSession) optional(subject string, err error) bool {
	s.log.report(subject, err)
	return err == nil
}

// clearPlan ends the watches and groups of the current plan. Errors are
// ignored: what remains ends with the connection.
func (s *engineSession) clearPlan() {
	s.endWatches(0)
	for _, group := range slices.Concat(s.gpuGroups, s.partitionGroups, s.instanceGroups) {
		_ = dcgm.DestroyGroup(group)
	}
	s.gpuGroups, s.partitionGroups, s.instanceGroups = nil, nil, nil
	s.members, s.profiled = make(map[dcgm.GroupHandle][]entity), make(map[dcgm.GroupHandle][]uint16)
	s.refusalErrs, s.refused = nil, nil
	s.profilingWatched, s.profilingSplit = false, false
}

// watch makes the engine sample fields of groups and keep the samples for age;
// if age is 0, for sampleAges intervals.
func (s *engineSession) watch(groups []dcgm.GroupHandle, set *fieldSet, interval, age time.Duration) error {
	if len(set.fields) == 0 {
		return nil
	}
	if age == 0 {
		age = max(sampleAges*interval, time.Second) // only whole seconds count
	}
	for _, group := range groups {
		if err := dcgm.WatchFieldsWithGroupEx(set.handle, group, interval.Microseconds(), age.Seconds(), 0); err != nil {
			return withStatus("watch fields", err)
		}
		if w := (watch{group, set.handle}); !slices.Contains(s.watches, w) {
			s.watches = append(s.watches, w)
		}
	}
	return nil
}

// buildQueries builds the queries of the reads. Each entity is queried only for
// the fields that are watched for it.
func (s *engineSession) buildQueries() {
	s.wholeFast, s.wholeAll, s.partitionFast, s.instanceXIDs = fieldQuery{}, fieldQuery{}, fieldQuery{}, fieldQuery{}
	var xids []uint16
	s.xidEntities = nil
	if s.xidsWatched {
		xids = s.xid.fields
		for _, group := range slices.Concat(s.gpuGroups, s.instanceGroups) {
			s.xidEntities = append(s.xidEntities, s.members[group]...)
		}
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

// fieldSet is a field group with the requested fields that the engine knows. A
// set without fields has no handle.
type fieldSet struct {
	handle dcgm.FieldHandle
	fields []uint16
}

// makeFieldSets creates a field group for each set of fields that are sampled
// together.
func (s *engineSession) makeFieldSets(b *converter) error {
	fieldsOfTier := func(tier uint8) func(row) bool {
		return func(r row) bool { return uint8(r.tier) == tier && !r.profiling() }
	}
	for _, set := range []struct {
		into   **fieldSet
		fields []uint16
	}{
		{&s.whole[0], b.whole.fields(fieldsOfTier(0))},
		{&s.whole[1], b.whole.fields(fieldsOfTier(1))},
		{&s.partition, b.partition.fields(fieldsOfTier(0))},
		{&s.xid, []uint16{xidError}},
		{&s.wholeProfiling, b.whole.fields(row.profiling)},
		{&s.partitionProfiling, b.partition.fields(row.profiling)},
	} {
		made, err := s.makeFieldSet(set.fields)
		if err != nil {
			return err
		}
		*set.into = made
	}
	return nil
}

// makeFieldSet creates a field group of those fields that library and engine
// know. An engine reports an unknown field only by refusing the group.
func (s *engineSession) makeFieldSet(fields []uint16) (*fieldSet, error) {
	known := slices.DeleteFunc(slices.Clone(fields), func(field uint16) bool {
		_, err := dcgm.FieldGetByID(dcgm.Short(field))
		return err != nil
	})
	set, err := s.createFieldSet(known)
	if err != nil {
		if known = s.findKnownFields(known); len(known) == 0 {
			return nil, err
		}
		if set, err = s.createFieldSet(known); err != nil {
			return nil, err
		}
	}
	for _, field := range fields {
		if !slices.Contains(known, field) {
			s.log.reportUnknownField(field, s.version)
		}
	}
	return set, nil
}

func (s *engineSession) createFieldSet(fields []uint16) (*fieldSet, error) {
	set := &fieldSet{fields: fields}
	if len(fields) == 0 {
		return set, nil
	}
	shorts := make([]dcgm.Short, len(fields))
	for i, field := range fields {
		shorts[i] = dcgm.Short(field)
	}
	var err error
	if set.handle, err = dcgm.FieldGroupCreate(s.uniqueName(), shorts); err != nil {
		return nil, withStatus("make a field group", err)
	}
	return set, nil
}

// findKnownFields returns the fields that the engine knows, by bisection.
func (s *engineSession) findKnownFields(fields []uint16) []uint16 {
	if len(fields) == 0 {
		return nil
	}
	if set, err := s.createFieldSet(fields); err == nil {
		_ = dcgm.FieldGroupDestroy(set.handle)
		return fields
	}
	if len(fields) == 1 {
		return nil
	}
	half := len(fields) / 2
	return append(slices.Clone(s.findKnownFields(fields[:half])), s.findKnownFields(fields[half:])...)
}

// byModel groups entities by the model of their GPU, in the order in which the
// models occur.
func (p *watchPlan) byModel(entities []entity) (parts [][]entity) {
	at := make(map[string]int)
	for _, e := range entities {
		model := p.models[e]
		if _, ok := at[model]; !ok {
			at[model] = len(parts)
			parts = append(parts, nil)
		}
		parts[at[model]] = append(parts[at[model]], e)
	}
	return parts
}

// makeGroups creates as few groups of entities as possible, each of one GPU
// model. An engine refuses to profile a group of several models, and a field
// that one model lacks must not be missing for the others.
func (s *engineSession) makeGroups(entities []entity) (groups []dcgm.GroupHandle, err error) {
	for _, alike := range s.plan.byModel(entities) {
		for part := range slices.Chunk(alike, maxEntities) {
			group, err := dcgm.CreateGroup(s.uniqueName())
			if err != nil {
				return groups, withStatus("make a group", err)
			}
			if s.addEntities(group, part) {
				groups = append(groups, group)
			} else {
				_ = dcgm.DestroyGroup(group)
			}
		}
	}
	return groups, nil
}

// addEntities adds entities to a group and reports whether the group has any.
// An engine refuses every unhealthy GPU (DcgmGroupInfo::AddEntityToGroup in
// DCGM's sources), which must not affect the other GPUs.
func (s *engineSession) addEntities(group dcgm.GroupHandle, entities []entity) bool {
	for _, e := range entities {
		if err := addEntity(group, e); err != nil {
			if !slices.Contains(s.refused, e) {
				s.refused, s.refusalErrs = append(s.refused, e), append(s.refusalErrs, err)
			}
			continue
		}
		s.members[group] = append(s.members[group], e)
	}
	return len(s.members[group]) > 0
}

func addEntity(group dcgm.GroupHandle, e entity) error {
	pair := groupPair(e)
	if err := dcgm.AddEntityToGroup(group, pair.EntityGroupId, pair.EntityId); err != nil {
		return withStatus("watch it", err)
	}
	return nil
}

// checkRefusals returns an error if the engine accepted no GPU and none is
// lost. A lost GPU must still be reported, so it is no reason to fail.
func (s *engineSession) checkRefusals() error {
	err := errors.Join(s.refusalErrs...)
	s.log.report("all GPUs and MIG devices", err)
	if len(s.gpuGroups) == 0 && !slices.ContainsFunc(s.plan.gpus, s.lost) {
		return err
	}
	return nil
}

// acceptsRefused reports whether the engine now accepts an entity that it has
// refused.
func (s *engineSession) acceptsRefused() bool {
	if len(s.refused) == 0 {
		return false
	}
	group, err := dcgm.CreateGroup(s.uniqueName())
	if err != nil {
		return false
	}
	defer func() { _ = dcgm.DestroyGroup(group) }()
	return slices.ContainsFunc(s.refused, func(e entity) bool { return addEntity(group, e) == nil })
}

// watchHealth enables the engine's health watches of the GPUs. That only adds
// watches of fields: an engine acts on policies alone, which other requests set
// (DcgmHealthWatch::SetWatches in DCGM's sources).
func (s *engineSession) watchHealth() error {
	for _, function := range []string{"dcgmHealthSet", "dcgmHealthCheck"} {
		if !s.library.has(function) {
			return errFunctionMissing
		}
	}
	for _, group := range s.gpuGroups {
		if err := dcgm.HealthSet(group, dcgm.DCGM_HEALTH_WATCH_ALL); err != nil {
			return withStatus("watch health", err)
		}
	}
	return nil
}

// checkHealth returns the incidents of the GPUs that the engine's health checks
// find. An engine reports most incidents as long as they last, and some once,
// to the first client that checks: a result is valid until the next check.
func (s *engineSession) checkHealth() (incidents []incident, err error) {
	for _, group := range s.gpuGroups {
		found, err := s.incidents(group)
		if err != nil {
			return nil, err
		}
		incidents = append(incidents, found...)
	}
	return incidents, nil
}

// watchProfiling watches the profiling fields, if they are enabled and no other
// process uses the GPUs' counters. An engine refuses a whole watch because of
// one field that a GPU lacks; an A10, for example, has no FP64 pipe. The fields
// that it accepts are found by bisection, once for each plan.
func (s *engineSession) watchProfiling() {
	if !s.options.Profiling || s.profilingWatched {
		return
	}
	previous := len(s.watches)
	var refusals []error
	for _, group := range s.gpuGroups {
		refusals = append(refusals, s.watchProfilingFields(group, s.wholeProfiling))
	}
	for _, group := range s.partitionGroups {
		refusals = append(refusals, s.watchProfilingFields(group, s.partitionProfiling))
	}
	err := errors.Join(refusals...)
	used := inUse(err)
	s.profilingSplit = s.profilingSplit || !used
	if err != nil && (used || len(s.watches) == previous) {
		s.endWatches(previous)
		s.profilingWatched = s.optional("profiling", err)
		return
	}
	s.profilingWatched = s.optional("profiling", nil)
	s.log.report("every field of profiling", err)
}

// inUse reports whether an engine refuses a watch because another process uses
// the counters (DCGM_ST_IN_USE). The binding returns only the text of that
// error.
func inUse(err error) bool {
	return err != nil && strings.Contains(err.Error(), "resource is in use")
}

// watchProfilingFields watches profiling fields of a group, or as many of them as
// the engine accepts. The error names the others.
func (s *engineSession) watchProfilingFields(group dcgm.GroupHandle, set *fieldSet) error {
	err := s.watch([]dcgm.GroupHandle{group}, set, s.options.Interval, 0)
	switch {
	case err == nil:
		s.profiled[group] = append(s.profiled[group], set.fields...)
		return nil
	case inUse(err) || s.profilingSplit:
		return err
	case len(set.fields) == 1:
		return fmt.Errorf("field %d of %s: %w", set.fields[0], s.plan.models[s.members[group][0]], err)
	}
	half := len(set.fields) / 2
	return errors.Join(s.watchProfilingPart(group, set.fields[:half]), s.watchProfilingPart(group, set.fields[half:]))
}

// watchProfilingPart is watchProfilingFields for a part of a set. The part needs a
// field group of its own, of which an engine allows only a few.
func (s *engineSession) watchProfilingPart(group dcgm.GroupHandle, fields []uint16) error {
	set, err := s.createFieldSet(fields)
	if err != nil {
		return err
	}
	err = s.watchProfilingFields(group, set)
	if slices.Contains(s.watches, watch{group, set.handle}) {
		s.partialFieldSets = append(s.partialFieldSets, set.handle)
	} else {
		_ = dcgm.FieldGroupDestroy(set.handle)
	}
	return err
}

// endWatches ends all watches from index before on. The watches of profiling
// fields are the last.
func (s *engineSession) endWatches(previous int) {
	for _, w := range s.watches[previous:] {
		_ = dcgm.UnwatchFields(w.fields, w.group)
	}
	for _, set := range s.partialFieldSets {
		_ = dcgm.FieldGroupDestroy(set)
	}
	s.watches, s.partialFieldSets = s.watches[:previous], nil
	clear(s.profiled)
}
