//go:build cgo

package dcgm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// watchProfiling watches the fields of profiling, if they are asked for and
// nobody else holds the GPUs' counters. An engine refuses all of a watch for
// one field that a GPU does not have, as an A10 has no FP64 pipe to measure:
// what it takes is found by halving, once for each plan.
func (s *session) watchProfiling() {
	if !s.options.Profiling || s.profiles {
		return
	}
	before := len(s.watches)
	var refusals []error
	for _, group := range s.gpuGroups {
		refusals = append(refusals, s.profile(group, s.wholeProfiling))
	}
	for _, group := range s.partitionGroups {
		refusals = append(refusals, s.profile(group, s.partProfiling))
	}
	err := errors.Join(refusals...)
	taken := inUse(err)
	s.halved = s.halved || !taken
	if err != nil && (taken || len(s.watches) == before) {
		s.endWatches(before)
		s.profiles = s.try("profiling", err)
		return
	}
	s.profiles = s.try("profiling", nil)
	s.log.report("every field of profiling", err)
}

// inUse reports whether an engine refuses a watch because somebody else holds
// the counters (DCGM_ST_IN_USE). The binding tells its words alone.
func inUse(err error) bool {
	return err != nil && strings.Contains(err.Error(), "resource is in use")
}

// profile watches fields of profiling of a group, or as many of them as the
// engine takes. The error says which those are not.
func (s *session) profile(group dcgm.GroupHandle, set *fieldSet) error {
	err := s.watch([]dcgm.GroupHandle{group}, set, s.options.Interval, 0)
	switch {
	case err == nil:
		s.profiled[group] = append(s.profiled[group], set.fields...)
		return nil
	case inUse(err) || s.halved:
		return err
	case len(set.fields) == 1:
		return fmt.Errorf("field %d of %s: %w", set.fields[0], s.plan.models[s.members[group][0]], err)
	}
	half := len(set.fields) / 2
	return errors.Join(s.profileSome(group, set.fields[:half]), s.profileSome(group, set.fields[half:]))
}

// profileSome is profile for a part of a set, with a field group of its own,
// of which an engine holds few.
func (s *session) profileSome(group dcgm.GroupHandle, fields []uint16) error {
	set, err := s.createFieldSet(fields)
	if err != nil {
		return err
	}
	err = s.profile(group, set)
	if slices.Contains(s.watches, watch{group, set.handle}) {
		s.halves = append(s.halves, set.handle)
	} else {
		_ = dcgm.FieldGroupDestroy(set.handle)
	}
	return err
}

// endWatches ends all watches but the first so many. Those of profiling are
// the last.
func (s *session) endWatches(before int) {
	for _, w := range s.watches[before:] {
		_ = dcgm.UnwatchFields(w.fields, w.group)
	}
	for _, set := range s.halves {
		_ = dcgm.FieldGroupDestroy(set)
	}
	s.watches, s.halves = s.watches[:before], nil
	clear(s.profiled)
}
