package page

import "slices"

// Summary is the node in a few numbers, over whole devices. A sum is over the
// devices whose use is known; what it is a part of is known only where it is
// known for each of them.
type Summary struct {
	Devices, Free int // whole ones
	ClaimsHeld    int
	Utilization   Mean
	Memory, Power Sum
	Sick          int // whole devices that are sick, or have a sick partition
	Recovering    int // likewise, of those that are not sick
}

// SickDevice is a device that is sick, and who suffers.
type SickDevice struct {
	Device
	Suffering []Holder
}

// Sick are the devices to look at first: whole ones with all who hold them or
// a partition of them, and partitions of devices that are not sick themselves.
func (v View) Sick() []SickDevice {
	var sick []SickDevice
	for _, device := range v.Devices {
		whole := SickDevice{device, device.Holders}
		for _, partition := range device.Partitions {
			whole.Suffering = append(slices.Clip(whole.Suffering), partition.Holders...)
			if device.Health.Severity() != Sick && partition.Health.Severity() == Sick {
				sick = append(sick, SickDevice{partition, partition.Holders})
			}
		}
		if device.Health.Severity() == Sick {
			sick = append(sick, whole)
		}
	}
	return sick
}

// Mean is a mean over Count devices; nil over none.
type Mean struct {
	Value *float64
	Count int
}

// Sum is how much of how much, over Count devices; Used is nil over none.
type Sum struct {
	Used, Whole *float64
	Count       int
}

// Summary counts and adds up what the view shows. A partition's use is part
// of its parent's and is not added again.
func (v View) Summary() Summary {
	var s Summary
	for _, device := range v.Devices {
		s.Devices++
		if device.Free() {
			s.Free++
		}
		switch device.Severity() {
		case Sick:
			s.Sick++
		case Recovering:
			s.Recovering++
		}
		s.Utilization.add(device.Utilization)
		s.Memory.add(device.MemoryUsed, device.MemorySize)
		s.Power.add(device.Power, device.PowerLimit)
	}
	for _, claim := range v.Claims {
		if claim.Held {
			s.ClaimsHeld++
		}
	}
	return s
}

func (m *Mean) add(value *float64) {
	if value == nil {
		return
	}
	mean := *value
	if m.Value != nil {
		mean = *m.Value + (*value-*m.Value)/float64(m.Count+1)
	}
	m.Value, m.Count = &mean, m.Count+1
}

func (s *Sum) add(used, whole *float64) {
	if used == nil {
		return
	}
	if s.Count == 0 {
		s.Used, s.Whole = plus(used, new(float64)), plus(whole, new(float64))
	} else {
		s.Used, s.Whole = plus(s.Used, used), plus(s.Whole, whole)
	}
	s.Count++
}

// plus is nil where one of the two is unknown.
func plus(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}
