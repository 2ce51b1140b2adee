package inventory

import (
	"encoding/binary"

	resourcev1 "k8s.io/api/resource/v1"
)

// countsKept is how many counts are kept. One has an entry for each node.
const countsKept = 16

// countStore keeps the counts of one version of the inventory. Requests whose
// selectors match the same devices share a count: different specifications
// often select the same published devices.
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
	found, ok := cs.byKey[key]
	return found, ok
}

func (cs *countStore) keep(key memoKey, count Count) { cs.byKey[key] = count }

// key returns a key that is the same for requests with the same count, as far as
// selectors have been evaluated. It is false for requests with a selector that
// is broken, which the count names.
func (cs *countStore) key(q *requestQuery) (memoKey, bool) {
	buffer := cs.scratch[:0]
	buffer = append(buffer, byte(bit(q.classExists)), byte(bit(q.request.AdminAccess)), byte(len(q.class)))
	if asked := (&resourcev1.ExactDeviceRequest{Tolerations: q.request.Tolerations, Capacity: q.request.Capacity}); len(asked.Tolerations) > 0 || asked.Capacity != nil {
		raw, err := asked.Marshal()
		if err != nil {
			return memoKey{}, false
		}
		buffer = append(binary.AppendUvarint(buffer, uint64(len(raw))), raw...)
	}
	for _, chain := range [][]*selector{q.class, q.own} {
		for _, s := range chain {
			if s.broken != "" || s.shapes == nil {
				return memoKey{}, false
			}
			buffer = s.appendResults(buffer)
		}
	}
	cs.scratch = buffer
	return q.selectors.hash(buffer), true
}

// appendResults appends what is known of the selector's results.
func (s *selector) appendResults(buffer []byte) []byte {
	buffer = binary.LittleEndian.AppendUint64(buffer, s.shapes.id)
	buffer = binary.LittleEndian.AppendUint64(buffer, s.shapes.changes)
	for i := range s.shapes.shapes {
		r := s.shapeResult(i)
		buffer = binary.LittleEndian.AppendUint64(buffer, r.evaluated)
		buffer = binary.LittleEndian.AppendUint64(buffer, r.match)
		buffer = binary.LittleEndian.AppendUint64(buffer, r.failed)
	}
	return buffer
}
