//go:build cgo

package dcgm

import (
	"slices"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// fieldSet is a field group: those of some fields that the engine knows. One
// without any has no handle.
type fieldSet struct {
	handle dcgm.FieldHandle
	fields []uint16
}

// makeFieldSets makes a field group for each set of fields that are sampled
// together.
func (s *session) makeFieldSets(b *board) error {
	plainOf := func(tier uint8) func(row) bool {
		return func(r row) bool { return uint8(r.tier) == tier && !r.profiling() }
	}
	for _, set := range []struct {
		into   **fieldSet
		fields []uint16
	}{
		{&s.whole[0], b.whole.fields(plainOf(0))},
		{&s.whole[1], b.whole.fields(plainOf(1))},
		{&s.partition, b.partition.fields(plainOf(0))},
		{&s.xid, []uint16{xidError}},
		{&s.wholeProfiling, b.whole.fields(row.profiling)},
		{&s.partProfiling, b.partition.fields(row.profiling)},
	} {
		made, err := s.makeFieldSet(set.fields)
		if err != nil {
			return err
		}
		*set.into = made
	}
	return nil
}

// makeFieldSet makes a field group of those of the fields that library and
// engine know. Which those are, an engine tells by refusing the group.
func (s *session) makeFieldSet(fields []uint16) (*fieldSet, error) {
	known := slices.DeleteFunc(slices.Clone(fields), func(field uint16) bool {
		_, err := dcgm.FieldGetByID(dcgm.Short(field))
		return err != nil
	})
	set, err := s.createFieldSet(known)
	if err != nil {
		if known = s.knownOf(known); len(known) == 0 {
			return nil, err
		}
		if set, err = s.createFieldSet(known); err != nil {
			return nil, err
		}
	}
	for _, field := range fields {
		if !slices.Contains(known, field) {
			s.log.unknown(field, s.version)
		}
	}
	return set, nil
}

func (s *session) createFieldSet(fields []uint16) (*fieldSet, error) {
	set := &fieldSet{fields: fields}
	if len(fields) == 0 {
		return set, nil
	}
	shorts := make([]dcgm.Short, len(fields))
	for i, field := range fields {
		shorts[i] = dcgm.Short(field)
	}
	var err error
	if set.handle, err = dcgm.FieldGroupCreate(s.unique(), shorts); err != nil {
		return nil, coded("make a field group", err)
	}
	return set, nil
}

// knownOf finds the fields that the engine knows by halving.
func (s *session) knownOf(fields []uint16) []uint16 {
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
	return append(slices.Clone(s.knownOf(fields[:half])), s.knownOf(fields[half:])...)
}
