package device

// hearing is what a loop learns from a source that is a Listener: the XIDs of
// each device, also of one that is not being read. It belongs to the
// goroutine of the loop.
type hearing struct {
	listener Listener          // nil: the source is none
	known    map[string]Sample // by UUID: the last sample of each device that is listened to
}

func newHearing(from Source) hearing {
	listener, _ := from.(Listener)
	return hearing{listener: listener, known: make(map[string]Sample)}
}

// heard tells when there is something new to attach; never, where nobody
// listens.
func (h *hearing) heard() <-chan struct{} {
	if h.listener == nil {
		return nil
	}
	return h.listener.Heard()
}

// attach returns the samples with what has been heard of their devices, and
// behind them the samples of devices of which something has been heard though
// they are not among those read: as they were last, or, where they have a
// seat and have never been read, with nothing but their UUID. The samples
// given are not changed.
func (h *hearing) attach(samples []Sample, seats []*seat, source string) []Sample {
	if h.listener == nil {
		return samples
	}
	all := h.listener.XIDs()
	attached := make([]Sample, len(samples), len(samples)+1)
	there := make(map[string]bool, len(samples))
	for i, sample := range samples {
		uuid := sample.Device.UUID
		there[uuid] = true
		if xids, listening := all[uuid]; listening {
			sample.XIDs = xids
			h.known[uuid] = sample
		}
		attached[i] = sample
	}
	for uuid := range h.known {
		if _, listening := all[uuid]; !listening {
			delete(h.known, uuid)
		}
	}
	for uuid, xids := range all {
		if len(xids) == 0 || there[uuid] {
			continue
		}
		sample, known := h.unread(uuid, seats, source)
		if !known || sample.Device.IsPartition() && there[sample.Device.ParentUUID] {
			continue // a partition goes when its device is read without it
		}
		sample.XIDs = xids
		attached = append(attached, sample)
	}
	return attached
}

// unread is the sample of a device that is not among those read. A UUID that
// is not the key of a reader may be that of a partition, of which too little
// is known to show it before it has been read.
func (h *hearing) unread(uuid string, seats []*seat, source string) (Sample, bool) {
	if sample, known := h.known[uuid]; known {
		return sample, true
	}
	for _, s := range seats {
		if s.key == uuid && !s.gone {
			return Sample{Device: unseen(uuid), Source: source, bare: true}, true
		}
	}
	return Sample{}, false
}

// unseen is a device of which nothing but the UUID is known.
func unseen(uuid string) Device {
	return Device{
		UUID: uuid, Minor: Unknown, RenderMinor: Unknown,
		Placement: Unknown, GPUInstance: Unknown, ComputeInstance: Unknown,
	}
}
