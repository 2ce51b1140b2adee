package nvml

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// noInstance is what an event names that is not of one instance of a MIG
// device.
const noInstance = 0xFFFFFFFF

// ear remembers which XIDs have been heard of each device. It is safe for
// concurrent use.
//
// A GPU that nobody listens to any more is told of for a while, so that the
// last it was heard to say reaches everybody; then it is left to others who
// may listen. What was heard of it is told again once somebody listens.
//
// A GPU that has been taken away in good order is not told of, until it is
// back. A MIG device that is gone is forgotten: another one with its UUID is
// another one.
type ear struct {
	changed chan struct{}
	now     clock.Clock

	mu    sync.Mutex
	gpus  map[string]*hearing        // by UUID
	parts map[string]map[string]part // by the UUIDs of the GPU and of the MIG device
	told  map[string][]device.XID    // nil: to be made anew
	until clock.Instant              // told is true before this; zero: until there is a change
}

// farewell is how long a GPU is told of that nobody listens to any more.
const farewell = 2 * time.Minute

// hearing is what has been heard of one GPU itself.
type hearing struct {
	xids      []device.XID // sorted by code
	listening bool
	last      clock.Instant // when somebody still listened, or heard something
	away      bool
}

// part is a MIG device as events name it, and what has been heard of it.
type part struct {
	gpuInstance, computeInstance uint32
	xids                         []device.XID
}

func newEar(now clock.Clock) *ear {
	return &ear{
		now:     now,
		changed: make(chan struct{}, 1),
		gpus:    make(map[string]*hearing),
		parts:   make(map[string]map[string]part),
	}
}

// listen notes whether somebody listens for the errors of a GPU, which has not
// been taken away.
func (e *ear) listen(gpu string, listening bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h, known := e.gpus[gpu]
	if !known {
		h = new(hearing)
		e.gpus[gpu] = h
	}
	if known && h.listening == listening && !h.away {
		return
	}
	if h.listening {
		h.last = e.now()
	}
	h.listening, h.away = listening, false
	e.change()
}

// ignore notes that nobody listens to any GPU but those named.
func (e *ear) ignore(but map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for gpu, h := range e.gpus {
		if h.listening && !but[gpu] {
			h.listening, h.last = false, e.now()
			e.change()
		}
	}
}

// leave notes that a GPU was taken away in good order.
func (e *ear) leave(gpu string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.parts, gpu)
	if h := e.gpus[gpu]; h != nil && !h.away {
		h.away = true
		e.change()
	}
}

// divide notes which MIG devices a GPU has now.
func (e *ear) divide(gpu string, parts map[string]part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.parts[gpu]
	same := len(parts) == len(before)
	for uuid, p := range parts {
		earlier, known := before[uuid]
		same = same && known && earlier.gpuInstance == p.gpuInstance && earlier.computeInstance == p.computeInstance
		p.xids = earlier.xids
		parts[uuid] = p
	}
	e.parts[gpu] = parts
	if !same {
		e.change()
	}
}

// hear takes in one XID of a GPU. It is of the MIG device that is named, if
// that is known, else of the GPU.
func (e *ear) hear(gpu string, gpuInstance, computeInstance uint32, code int) {
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.change()
	h := e.gpus[gpu]
	if h == nil {
		h = new(hearing)
		e.gpus[gpu] = h
	}
	h.last = now
	if uuid, found := e.named(gpu, gpuInstance, computeInstance); found {
		p := e.parts[gpu][uuid]
		p.xids = counted(p.xids, code, now.Wall)
		e.parts[gpu][uuid] = p
		return
	}
	h.xids = counted(h.xids, code, now.Wall)
}

// named finds the MIG device of an event. One that names a GPU instance alone
// is of a MIG device only where that is the only one in the instance.
func (e *ear) named(gpu string, gpuInstance, computeInstance uint32) (uuid string, found bool) {
	if gpuInstance == noInstance {
		return "", false
	}
	for candidate, p := range e.parts[gpu] {
		if p.gpuInstance != gpuInstance || computeInstance != noInstance && p.computeInstance != computeInstance {
			continue
		}
		if found {
			return "", false
		}
		uuid, found = candidate, true
	}
	return uuid, found
}

// counted is the XIDs with one more.
func counted(xids []device.XID, code int, at time.Time) []device.XID {
	i, known := slices.BinarySearchFunc(xids, code, func(x device.XID, code int) int { return cmp.Compare(x.Code, code) })
	if !known {
		xids = slices.Insert(xids, i, device.XID{Code: code})
	}
	xids[i].Count++
	xids[i].Last = at
	return xids
}

// change tells that there is something else to be told. mu is locked.
func (e *ear) change() {
	e.told = nil
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// xids is what has been heard of each device that is listened to, or that
// something was heard of not long ago.
func (e *ear) xids() map[string][]device.XID {
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told != nil && (e.until.IsZero() || now.Since(e.until) < 0) {
		return e.told
	}
	e.told, e.until = make(map[string][]device.XID), clock.Instant{}
	for gpu, h := range e.gpus {
		if h.away || !h.listening && now.Since(h.last) >= farewell {
			continue
		}
		e.tell(gpu, h.xids, h)
		for uuid, p := range e.parts[gpu] {
			e.tell(uuid, p.xids, h)
		}
	}
	return e.told
}

// tell adds a device to what is told. mu is locked.
func (e *ear) tell(uuid string, xids []device.XID, h *hearing) {
	if !h.listening && len(xids) == 0 {
		return
	}
	e.told[uuid] = append([]device.XID{}, xids...)
	if end := h.last.Add(farewell); !h.listening && (e.until.IsZero() || end.Since(e.until) < 0) {
		e.until = end
	}
}
