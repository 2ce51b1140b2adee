//go:build cgo

package dcgm

import (
	"errors"
	"slices"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// makeGroups makes groups of entities, as few as there can be, each of one
// model of GPU: profiling refuses a group of several, and what one model lacks
// is not to be missed of the others.
func (s *session) makeGroups(entities []entity) (groups []dcgm.GroupHandle, err error) {
	for _, alike := range s.plan.byModel(entities) {
		for part := range slices.Chunk(alike, mostEntities) {
			group, err := dcgm.CreateGroup(s.unique())
			if err != nil {
				return groups, coded("make a group", err)
			}
			if s.fill(group, part) {
				groups = append(groups, group)
			} else {
				_ = dcgm.DestroyGroup(group)
			}
		}
	}
	return groups, nil
}

// fill adds entities to a group and reports whether there is one in it. An
// engine refuses every GPU that is not well (DcgmGroupInfo::AddEntityToGroup
// in DCGM's sources), which must not take the others with it.
func (s *session) fill(group dcgm.GroupHandle, entities []entity) bool {
	for _, e := range entities {
		if err := add(group, e); err != nil {
			if !slices.Contains(s.refused, e) {
				s.refused, s.refusals = append(s.refused, e), append(s.refusals, err)
			}
			continue
		}
		s.members[group] = append(s.members[group], e)
	}
	return len(s.members[group]) > 0
}

func add(group dcgm.GroupHandle, e entity) error {
	pair := theirs(e)
	if err := dcgm.AddEntityToGroup(group, pair.EntityGroupId, pair.EntityId); err != nil {
		return coded("watch it", err)
	}
	return nil
}

// checkRefusals fails if the engine took no GPU at all, and not because one is
// lost, which has to be told of it.
func (s *session) checkRefusals() error {
	err := errors.Join(s.refusals...)
	s.log.report("all GPUs and MIG devices", err)
	if len(s.gpuGroups) == 0 && !slices.ContainsFunc(s.plan.gpus, s.lost) {
		return err
	}
	return nil
}

// readmits reports whether the engine would take one now that it has refused.
func (s *session) readmits() bool {
	if len(s.refused) == 0 {
		return false
	}
	group, err := dcgm.CreateGroup(s.unique())
	if err != nil {
		return false
	}
	defer func() { _ = dcgm.DestroyGroup(group) }()
	return slices.ContainsFunc(s.refused, func(e entity) bool { return add(group, e) == nil })
}

// byModel parts entities by the model of their GPU, in the order in which the
// models come.
func (p *plan) byModel(entities []entity) (parts [][]entity) {
	at := make(map[string]int)
	for _, e := range entities {
		model := p.models[e]
		if _, known := at[model]; !known {
			at[model] = len(parts)
			parts = append(parts, nil)
		}
		parts[at[model]] = append(parts[at[model]], e)
	}
	return parts
}
