package simulated

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// hearing is what has been heard of the devices, under the source's lock.
type hearing struct {
	tallies map[string][]device.XID // by UUID, of every device that anything was ever heard of
	all     map[string][]device.XID // of the devices that there are; nil: to be made anew
	signal  chan struct{}           // nil: nobody listens yet
	alarm   *time.Timer             // rings at the next report
	closed  bool
}

// alarmSpacing is how long it takes at least from one word of Changed to the
// next, however often XIDs are reported.
const alarmSpacing = 10 * time.Millisecond

// XIDs returns what has been heard of each NVIDIA device and partition.
func (s *Source) XIDs() map[string][]device.XID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listen()
	if s.xids.all == nil {
		s.xids.all = s.listened()
	}
	return s.xids.all
}

// Changed signals that XIDs has changed.since it last told so.
func (s *Source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.xids.signal == nil {
		s.xids.signal = make(chan struct{}, 1)
		s.arm()
	}
	return s.xids.signal
}

// listen takes in what has been reported since it was last called.
func (s *Source) listen() {
	now, heard := s.now(), false
	for i := range s.devices {
		d := &s.devices[i]
		elapsed := d.faults.since(now.Since(s.origin))
		for j, fault := range d.faults.list {
			count, last := fault.reports(elapsed)
			if count == d.told[j] {
				continue
			}
			uuid := d.units[0].identity.UUID
			if fault.Partition != "" {
				uuid = fault.Partition
			}
			s.xids.note(uuid, device.XID{Code: fault.Code, Count: count - d.told[j], Last: now.Wall.Add(last - elapsed)})
			d.told[j], heard = count, true
		}
	}
	if heard {
		s.xids.tell()
		s.arm()
	}
}

// arm sets the alarm to the next report, if anybody listens.
func (s *Source) arm() {
	h := &s.xids
	if h.signal == nil || h.closed {
		return
	}
	if h.alarm != nil {
		h.alarm.Stop()
	}
	now, wait := s.now().Since(s.origin), time.Duration(-1)
	for _, d := range s.devices {
		elapsed := d.faults.since(now)
		for _, fault := range d.faults.list {
			if at, comes := fault.next(elapsed); comes && (wait < 0 || at-elapsed < wait) {
				wait = at - elapsed
			}
		}
	}
	if wait >= 0 {
		h.alarm = time.AfterFunc(max(wait, alarmSpacing), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.listen()
			s.arm()
		})
	}
}

// listened is what has been heard of the devices that there are. Only
// NVIDIA's have XIDs.
func (s *Source) listened() map[string][]device.XID {
	all := make(map[string][]device.XID)
	for _, d := range s.devices {
		for _, u := range d.units {
			if u.identity.UUID != "" && u.identity.Vendor == "nvidia" {
				all[u.identity.UUID] = append([]device.XID{}, s.xids.tallies[u.identity.UUID]...)
			}
		}
	}
	return all
}

// note adds reports of one code to what has been heard of a device.
func (h *hearing) note(uuid string, more device.XID) {
	if h.tallies == nil {
		h.tallies = make(map[string][]device.XID)
	}
	xids := h.tallies[uuid]
	at, known := slices.BinarySearchFunc(xids, more.Code, func(x device.XID, code int) int { return x.Code - code })
	if !known {
		h.tallies[uuid] = slices.Insert(xids, at, more)
		return
	}
	xids[at].Count += more.Count
	if more.Last.After(xids[at].Last) {
		xids[at].Last = more.Last
	}
}

// tell says that something has been heard.
func (h *hearing) tell() {
	h.all = nil
	select {
	case h.signal <- struct{}{}:
	default:
	}
}

func (h *hearing) close() {
	h.closed = true
	if h.alarm != nil {
		h.alarm.Stop()
	}
}
