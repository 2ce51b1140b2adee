package inventory

import (
	"iter"
	"math/bits"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// settleBlock finds what can be done with each device of the block.
func (p *pool) settleBlock(b *block) {
	b.taken, b.shared, b.tainted, b.fit, b.roomy = 0, 0, 0, 0, 0
	well := p.complete && p.valid
	for i := range b.slice.in(b) {
		d, bit := &b.slice.devices[b.first+i], uint64(1)<<i
		held := p.held[d.name]
		var consumed amounts
		if held != nil {
			exclusive, amounts := held.sum()
			consumed = amounts
			if exclusive {
				b.taken |= bit
			} else {
				b.shared |= bit
			}
		}
		if _, taint := p.repelled(d, nil); taint != nil {
			b.tainted |= bit
		}
		if well && p.stocked(d, held) {
			b.fit |= bit
		}
		if capacityFits(d.declared(), consumed, nil) {
			b.roomy |= bit
		}
	}
	b.free = b.all & b.fit & b.roomy &^ (b.taken | b.shared | b.tainted)
}

// stocked says whether what the device is cut from suffices for it. A share of
// a device that has been shared before takes nothing more.
func (p *pool) stocked(d *device, held *hold) bool {
	if held != nil && d.multi() {
		if exclusive, _ := held.sum(); !exclusive {
			return true
		}
	}
	return p.left.suffices(d) && p.left.admits(d)
}

// declared is the capacity of a device that may be shared, or that has
// peculiar ones.
func (d *device) declared() capacities {
	if d.more == nil || d.more.capacity == nil {
		return nil
	}
	return d.more.capacity.thing
}

// held are the devices of the block that something has.
func (b *block) held() uint64 { return b.taken | b.shared }

// device is the device with that bit.
func (b *block) device(bit int) *device { return &b.slice.devices[b.first+bit] }

// each are the numbers of the bits of a mask.
func each(mask uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for mask != 0 {
			if !yield(bits.TrailingZeros64(mask)) {
				return
			}
			mask &= mask - 1
		}
	}
}

// available are the devices of the mask that can still be allocated to the
// request, which tolerates their taints.
func (inv *Inventory) available(p *pool, b *block, mask uint64, request *Request) uint64 {
	mask &= b.fit
	if !request.AdminAccess {
		mask &^= b.taken
	}
	if request.Capacity == nil || len(request.Capacity.Requests) == 0 {
		return mask & b.roomy
	}
	for bit := range each(mask) {
		d := b.device(bit)
		if !capacityFits(inv.capacityFor(p, d), p.consumedOf(d), request.Capacity) {
			mask &^= 1 << bit
		}
	}
	return mask
}

func (p *pool) consumedOf(d *device) amounts {
	held := p.held[d.name]
	if held == nil {
		return nil
	}
	_, consumed := held.sum()
	return consumed
}

// capacityFor is the capacity of any device.
func (inv *Inventory) capacityFor(p *pool, d *device) capacities {
	if declared := d.declared(); declared != nil {
		return declared
	}
	published := capacities{}
	for _, f := range d.facts {
		name, is := strings.CutPrefix(inv.texts.text(f.name), nameCapacity+p.driver+"/")
		if !is {
			continue
		}
		if quantity, err := quantityOf(inv.texts.text(f.value)); err == nil {
			published[resourcev1.QualifiedName(name)] = resourcev1.DeviceCapacity{Value: quantity}
		}
	}
	return published
}
