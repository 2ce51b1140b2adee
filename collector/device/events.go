package device

// events are the XIDs that a loop takes from a source that is an EventSource,
// those of each device, also of one that is not being read. It belongs to the
// goroutine of the loop.
type events struct {
	source EventSource       // nil: the source is none
	known  map[string]Sample // by UUID: the last sample of each device that is reported
}

func newEvents(from Source) events {
	reported, _ := from.(EventSource)
	return events{source: reported, known: make(map[string]Sample)}
}

// changed signals that there is something new to attach; never, where the
// source reports no XIDs.
func (e *events) changed() <-chan struct{} {
	if e.source == nil {
		return nil
	}
	return e.source.Changed()
}

// attach returns the samples with the XIDs of their devices, and
// behind them the samples of devices of which XIDs are reported though
// they are not among those read: as they were last, or, where they have a
// reader and have never been read, with nothing but their UUID. The samples
// given are not changed.
func (e *events) attach(samples []Sample, readers []*readerState, source string) []Sample {
	if e.source == nil {
		return samples
	}
	all := e.source.XIDs()
	attached := make([]Sample, len(samples), len(samples)+1)
	there := make(map[string]bool, len(samples))
	for i, sample := range samples {
		uuid := sample.Device.UUID
		there[uuid] = true
		if xids, reported := all[uuid]; reported {
			sample.XIDs = xids
			e.known[uuid] = sample
		}
		attached[i] = sample
	}
	for uuid := range e.known {
		if _, reported := all[uuid]; !reported {
			delete(e.known, uuid)
		}
	}
	for uuid, xids := range all {
		if len(xids) == 0 || there[uuid] {
			continue
		}
		sample, known := e.unreadSample(uuid, readers, source)
		if !known || sample.Device.IsPartition() && there[sample.Device.ParentUUID] {
			continue // a partition goes when its device is read without it
		}
		sample.XIDs = xids
		attached = append(attached, sample)
	}
	return attached
}

// unreadSample is the sample of a device that is not among those read. A UUID that
// is not the key of a reader may be that of a partition, of which too little
// is known to show it before it has been read.
func (e *events) unreadSample(uuid string, readers []*readerState, source string) (Sample, bool) {
	if sample, known := e.known[uuid]; known {
		return sample, true
	}
	for _, s := range readers {
		if s.key == uuid && !s.removed {
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
