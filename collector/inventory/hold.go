package inventory

import (
	"maps"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hold is one device of an allocation.
type hold struct {
	claim    *claim
	pool     *pool
	device   unique.Handle[string]
	share    string // its share of a device that several claims have; of one whole: empty
	admin    bool   // spends nothing
	consumed amounts
	next     *hold // that has the same device
}

func shareOf(result *resourcev1.DeviceRequestAllocationResult) string {
	if result.ShareID == nil {
		return ""
	}
	return string(*result.ShareID)
}

func isAdmin(result *resourcev1.DeviceRequestAllocationResult) bool {
	return result.AdminAccess != nil && *result.AdminAccess
}

// amountsOf is what a share consumes. A device that is allocated as a whole
// consumes nothing that anybody could want.
func amountsOf(result *resourcev1.DeviceRequestAllocationResult) amounts {
	if result.ShareID == nil || len(result.ConsumedCapacity) == 0 {
		return nil
	}
	return maps.Clone(result.ConsumedCapacity)
}

// placeOf is the pool of an allocated device. Admin access keeps no pool: it
// gets one that nobody else knows.
func (inv *Inventory) placeOf(result *resourcev1.DeviceRequestAllocationResult) *pool {
	if isAdmin(result) {
		return &pool{poolKey: poolKey{clean(result.Driver), clean(result.Pool)}}
	}
	return inv.poolOf(clean(result.Driver), clean(result.Pool))
}

// release takes the hold out of the chain of those that have its device.
func (h *hold) release() {
	first := h.pool.held[h.device]
	if first == h {
		if h.next == nil {
			delete(h.pool.held, h.device)
		} else {
			h.pool.held[h.device] = h.next
		}
		return
	}
	for before := first; before != nil; before = before.next {
		if before.next == h {
			before.next = h.next
			return
		}
	}
}

// sum says whether something has the device alone, and what all shares
// of it consume.
func (h *hold) sum() (exclusive bool, consumed amounts) {
	for one := h; one != nil; one = one.next {
		exclusive = exclusive || one.share == ""
		for name, amount := range one.consumed {
			if consumed == nil {
				consumed = amounts{}
			}
			total := consumed[name].DeepCopy()
			total.Add(amount)
			consumed[name] = total
		}
	}
	return exclusive, consumed
}

// uid makes upstream's share id of ours.
func (h *hold) uid() *types.UID {
	uid := types.UID(h.share)
	return &uid
}
