package inventory

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pack keeps of a slice what the allocator looks at.
func pack(published *resourcev1.ResourceSlice) ([]byte, error) {
	kept := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: published.Name}, Spec: published.Spec}
	raw, err := kept.Marshal()
	if err != nil {
		return nil, fmt.Errorf("pack slice %s: %w", published.Name, err)
	}
	return slices.Clip(slices.Clone(s2.Encode(nil, raw))), nil
}

// unpack is the slice that was packed.
func unpack(packed []byte) (*resourcev1.ResourceSlice, error) {
	raw, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("decompress slice: %w", err)
	}
	kept := &resourcev1.ResourceSlice{}
	if err := kept.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("unpack slice: %w", err)
	}
	return kept, nil
}

// parcel is a slice to be unpacked, with the rules to be applied.
type parcel struct {
	slice  *slice
	packed []byte
	rules  []rule
	opened *resourcev1.ResourceSlice // if it has been unpacked before
}

// unpackingLimit is of how many devices the unpacked form is kept, to be used
// again: a few kilobytes each.
const unpackingLimit = 4096

// open unpacks slices and applies the rules to them.
func (inv *Inventory) open(parcels []parcel) ([]*resourcev1.ResourceSlice, error) {
	opened := make([]*resourcev1.ResourceSlice, len(parcels))
	for i, parcel := range parcels {
		published := parcel.opened
		if published == nil {
			var err error
			if published, err = unpack(parcel.packed); err != nil {
				return nil, err
			}
			inv.keepOpen(parcel.slice, published)
		}
		opened[i] = withRules(published, parcel.rules)
	}
	return opened, nil
}

func (inv *Inventory) keepOpen(of *slice, published *resourcev1.ResourceSlice) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.slices[of.name] != of {
		return // it is gone meanwhile
	}
	if inv.unpacking += len(of.devices); inv.unpacking > unpackingLimit {
		clear(inv.unpacked)
		inv.unpacking = len(of.devices)
	}
	inv.unpacked[of] = published
}

// withRules is the slice with the taints of rules after its own, as the
// scheduler's tracker makes it.
func withRules(published *resourcev1.ResourceSlice, rules []rule) *resourcev1.ResourceSlice {
	if len(rules) == 0 {
		return published
	}
	changed := *published
	changed.Spec.Devices = slices.Clone(published.Spec.Devices)
	for i := range changed.Spec.Devices {
		device := &changed.Spec.Devices[i]
		taints := slices.Clip(device.Taints)
		for _, r := range rules {
			if r.device == nil || *r.device == device.Name {
				taints = append(taints, r.taint)
			}
		}
		device.Taints = taints
	}
	return &changed
}
