package simulated

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// xidState is the XIDs that are counted, guarded by the source's mutex.
type xidState struct {
	counts    map[string][]device.XID // by UUID, of every device that has ever reported an XID
	published map[string][]device.XID // of the devices that exist; nil: must be built
	signal    chan struct{}           // nil: Changed was not called yet
	timer     *time.Timer             // expires at the next report
	closed    bool
}

// minSignalInterval is the shortest time between two signals of Changed,
// however often XIDs are reported.
const minSignalInterval = 10 * time.Millisecond

// XIDs returns the XIDs of each NVIDIA device and partition, by UUID.
func (s *Source) XIDs() map[string][]device.XID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countXIDs()
	if s.xids.published == nil {
		s.xids.published = s.watchedXIDs()
	}
	return s.xids.published
}

// Received is the present time: nothing is missed.
func (s *Source) Received() (clock.Instant, error) { return s.now(), nil }

// Changed signals that XIDs has changed since its last signal.
func (s *Source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.xids.signal == nil {
		s.xids.signal = make(chan struct{}, 1)
		s.setTimer()
	}
	return s.xids.signal
}

// countXIDs counts the reports since its last call.
func (s *Source) countXIDs() {
	now, counted := s.now(), false
	for i := range s.devices {
		d := &s.devices[i]
		elapsed := d.faults.since(now.Since(s.origin))
		for j, fault := range d.faults.list {
			count, last := fault.reports(elapsed)
			if count == d.reported[j] {
				continue
			}
			uuid := d.units[0].identity.UUID
			if fault.Partition != "" {
				uuid = fault.Partition
			}
			s.xids.add(uuid, device.XID{Code: fault.Code, Count: count - d.reported[j], Last: now.Wall.Add(last - elapsed)})
			d.reported[j], counted = count, true
		}
	}
	if counted {
		s.xids.publish()
		s.setTimer()
	}
}

// setTimer sets the timer to the next report, if Changed is in use.
func (s *Source) setTimer() {
	x := &s.xids
	if x.signal == nil || x.closed {
		return
	}
	if x.timer != nil {
		x.timer.Stop()
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
		x.timer = time.AfterFunc(max(wait, minSignalInterval), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.countXIDs()
			s.setTimer()
		})
	}
}

// watchedXIDs returns the XIDs of the devices that exist. Only NVIDIA's devices
// have XIDs.
func (s *Source) watchedXIDs() map[string][]device.XID {
	all := make(map[string][]device.XID)
	for _, d := range s.devices {
		for _, u := range d.units {
			if u.identity.UUID != "" && u.identity.Vendor == "nvidia" {
				all[u.identity.UUID] = append([]device.XID{}, s.xids.counts[u.identity.UUID]...)
			}
		}
	}
	return all
}

// add adds reports of one code to the counts of a device.
func (x *xidState) add(uuid string, more device.XID) {
	if x.counts == nil {
		x.counts = make(map[string][]device.XID)
	}
	xids := x.counts[uuid]
	at, ok := slices.BinarySearchFunc(xids, more.Code, func(x device.XID, code int) int { return x.Code - code })
	if !ok {
		x.counts[uuid] = slices.Insert(xids, at, more)
		return
	}
	xids[at].Count += more.Count
	if more.Last.After(xids[at].Last) {
		xids[at].Last = more.Last
	}
}

// publish invalidates the published map and signals a change.
func (x *xidState) publish() {
	x.published = nil
	select {
	case x.signal <- struct{}{}:
	default:
	}
}

func (x *xidState) close() {
	x.closed = true
	if x.timer != nil {
		x.timer.Stop()
	}
}
