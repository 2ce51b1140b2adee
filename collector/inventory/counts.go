package inventory

import (
	"encoding/binary"

	resourcev1 "k8s.io/api/resource/v1"
)

// countsKept is how many counts are kept. One has an entry for each node.
const countsKept = 16

// countStore keeps the counts of one version of the inventory, for requests of
// which the selectors match the same devices: different specifications often
// differ in nothing that is published.
type countStore struct {
	version uint64
	byKey   map[memoKey]Count
	scratch []byte
}

// get returns the count with the key, and false if it is not kept.
func (cs *countStore) get(version uint64, key memoKey) (Count, bool) {
	if cs.version != version || cs.byKey == nil || len(cs.byKey) >= countsKept {
		cs.version, cs.byKey = version, map[memoKey]Count{}
	}
	found, known := cs.byKey[key]
	return found, known
}

func (cs *countStore) keep(key memoKey, count Count) { cs.byKey[key] = count }

// key returns a key that is the same for requests with the same count, as far as
// selectors have been evaluated. It is false for requests with a selector that
// is broken, which the count names.
func (cs *countStore) key(q *query) (memoKey, bool) {
	to := cs.scratch[:0]
	to = append(to, byte(bit(q.classExists)), byte(bit(q.request.AdminAccess)), byte(len(q.class)))
	if asked := (&resourcev1.ExactDeviceRequest{Tolerations: q.request.Tolerations, Capacity: q.request.Capacity}); len(asked.Tolerations) > 0 || asked.Capacity != nil {
		raw, err := asked.Marshal()
		if err != nil {
			return memoKey{}, false
		}
		to = append(binary.AppendUvarint(to, uint64(len(raw))), raw...)
	}
	for _, chain := range [][]*selector{q.class, q.own} {
		for _, s := range chain {
			if s.broken != "" || s.shapes == nil {
				return memoKey{}, false
			}
			to = s.appendResults(to)
		}
	}
	cs.scratch = to
	return q.selectors.hash(to), true
}

// appendResults appends what is known of the selector's results.
func (s *selector) appendResults(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, s.shapes.id)
	to = binary.LittleEndian.AppendUint64(to, s.shapes.changes)
	for i := range s.shapes.shapes {
		r := s.resultOf(i)
		to = binary.LittleEndian.AppendUint64(to, r.evaluated)
		to = binary.LittleEndian.AppendUint64(to, r.match)
		to = binary.LittleEndian.AppendUint64(to, r.failed)
	}
	return to
}
