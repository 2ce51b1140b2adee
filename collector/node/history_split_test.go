package node

import (
	"maps"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// inForce is the list that counts, and whose its processes are.
type inForce struct {
	at     time.Duration
	list   []device.Process
	owners map[int]dra.Owner
}

// check holds the page against what brute force finds.
func (w *working) check() {
	w.t.Helper()
	said := map[string]map[string]float64{}
	for i := range w.facts.Samples {
		sample := &w.facts.Samples[i]
		uuid := sample.Device.UUID
		w.takeForce(sample)
		said[uuid] = w.split(uuid)
		want, whole := w.expect(sample)
		if !whole {
			for who := range said[uuid] {
				if strings.Contains(who, "process") || strings.Contains(who, "nobody") || strings.Contains(who, "pod") {
					w.t.Fatalf("%s says %s", uuid, who)
				}
			}
			continue
		}
		w.expectSplit(uuid, want)
		w.checkSum(uuid, said[uuid])
		if w.t.Failed() {
			w.t.Fatalf("at %v; in force: %+v", w.now.Elapsed, w.force[uuid])
		}
	}
	w.checkBusy(said)
}

// checkSum adds up what nobody can have done twice. What is unattributed is a
// part of what a claim has that is alone.
func (w *working) checkSum(uuid string, said map[string]float64) {
	w.t.Helper()
	for q, quantity := range map[string]device.Quantity{"time": device.Utilization, "memory": device.MemoryUsed} {
		claims, pods, alone := said["nobody "+q], said["nobody "+q], 0.0
		for who, value := range said {
			switch {
			case !strings.HasSuffix(who, q) || strings.Contains(who, " shared "):
			case strings.HasPrefix(who, "pod "):
				pods += value
			case strings.Contains(who, " exclusive "):
				alone += value
			case !strings.HasPrefix(who, "nobody"):
				claims += value
			}
		}
		if own := w.sampled[uuid][quantity]; w.force[uuid].at > 0 && !w.quiet[uuid] && max(claims, pods, alone) > own*(1+1e-9) {
			w.t.Errorf("%s of %s: claims have %v, pods %v, of %v in all", q, uuid, claims, pods, own)
		}
	}
}

// takeForce takes a list whose processes are all known.
func (w *working) takeForce(sample *device.Sample) {
	if w.facts.Processes.State != ProcessesOK {
		clear(w.force)
		clear(w.untold)
		clear(w.server)
		return
	}
	if w.force[sample.Device.UUID].at == sample.ProcessesAt.Elapsed {
		return
	}
	for _, p := range sample.Processes {
		if _, known := w.facts.Processes.Owners[p.PID]; !known {
			w.seen["missed list"]++
			return
		}
	}
	if !sample.ProcessesAt.IsZero() {
		w.force[sample.Device.UUID] = inForce{sample.ProcessesAt.Elapsed, sample.Processes, w.facts.Processes.Owners}
	}
}

// expect says by brute force what the page must say of a device; false of one
// that processes do not split.
func (w *working) expect(sample *device.Sample) (want map[string]float64, whole bool) {
	uuid := sample.Device.UUID
	if uuid != "GPU-0" && uuid != "GPU-1" {
		return nil, false
	}
	want = map[string]float64{}
	if w.now.Since(sample.At) > 10*time.Second {
		return want, true
	}
	holds := w.holdersOf(uuid)
	for q, name := range []string{"time", "memory"} {
		own := 0.0
		for _, reading := range sample.Readings {
			if reading.Quantity == []device.Quantity{device.Utilization, device.MemoryUsed}[q] {
				own = reading.Value
			}
		}
		if sum, told := w.sum(uuid, name, holds); told {
			sum.tell(want, name, own, holds)
		} else {
			for _, claim := range holds.claims {
				want[claim+" "+holds.attribution()+" "+name] = own
			}
		}
	}
	return want, true
}

// sums is what was told of a quantity, before it is held against the
// device's own.
type sums struct {
	all, nobody float64
	claims      map[string]float64
	pods        map[string]float64
	unclear     map[string]bool
}

func (w *working) sum(uuid, quantity string, h *holdersNow) (s sums, told bool) {
	s = sums{claims: map[string]float64{}, pods: map[string]float64{}, unclear: maps.Clone(h.blurred)}
	force, there := w.force[uuid]
	switch {
	case !there:
		return s, false
	case w.now.Elapsed-force.at > 10*time.Second:
		w.seen["stale list"]++
		return s, false
	case force.at < w.now.Elapsed:
		w.seen["old list"]++
	}
	told, alive := true, false
	for _, p := range force.list {
		owner := force.owners[p.PID]
		if owner.Gone {
			w.seen["gone"]++
			continue
		}
		alive = true
		amount := map[string]float64{"time": p.Utilization, "memory": p.Memory}[quantity]
		if amount < 0 {
			told = false
			continue
		}
		s.all += amount
		w.give(&s, owner, amount, h)
	}
	if !alive && w.untold[uuid+quantity] {
		w.seen["nobody to tell"]++
	} else {
		w.untold[uuid+quantity] = !told
	}
	served := quantity == "time" && w.served(uuid, force, h)
	return s, !w.untold[uuid+quantity] && !served
}

// served reports whether somebody else is told to do the work of MPS clients,
// now or, as long as it is there, before.
func (w *working) served(uuid string, force inForce, h *holdersNow) bool {
	clients, busy, server, remembered := false, false, 0, false
	for _, p := range force.list {
		switch owner := force.owners[p.PID]; {
		case owner.Gone:
		case p.Proxied:
			clients, busy = true, busy || p.Utilization > 0
		case h.uses[owner.PodUID] != nil:
		case p.PID == w.server[uuid]:
			remembered = true
			fallthrough
		default:
			if p.Utilization > 0 && server == 0 {
				server = p.PID
			}
		}
	}
	switch {
	case remembered && (server > 0 || !busy):
		w.seen["MPS"]++
		if server == 0 {
			w.seen["MPS server at rest"]++
		}
		return true
	case clients && server > 0:
		w.seen["MPS"]++
		w.server[uuid] = server
		return true
	}
	w.server[uuid] = 0
	return false
}

func (w *working) give(s *sums, owner dra.Owner, amount float64, h *holdersNow) {
	holds := h.uses[owner.PodUID]
	switch {
	case holds == nil && h.unnamed && owner.PodUID != "":
		w.seen["aside"]++
		return
	case holds == nil:
		w.seen["nobody"]++
		s.nobody += amount
		return
	}
	claims, unclear := holds[""], false
	switch used := holds[owner.ContainerID]; {
	case len(used) > 0:
		if len(claims) > 1 {
			w.seen["by container"]++
		}
		claims = used
	case h.idle[owner.ContainerID]:
		w.seen["by a container that holds nothing"]++
		s.nobody += amount
		return
	default:
		unclear = h.mixed[owner.PodUID]
	}
	s.pods[owner.PodUID] += amount
	for _, claim := range claims {
		s.claims[claim] += amount
		if len(claims) > 1 || unclear {
			w.seen["ambiguous"]++
			s.unclear[claim] = true
		}
	}
}

// tell writes down what the page must say.
func (s sums) tell(want map[string]float64, quantity string, own float64, h *holdersNow) {
	factor := 1.0
	if s.all > own {
		factor = own / s.all
	}
	want["nobody "+quantity] = s.nobody * factor
	for _, claim := range h.claims {
		switch {
		case !h.several:
			want[claim+" exclusive "+quantity] = own
		case s.unclear[claim]:
			want[claim+" shared "+quantity] = own
		default:
			want[claim+" process "+quantity] = s.claims[claim] * factor
		}
	}
	several := len(h.pods)
	if h.unnamed {
		several++
	}
	for uid, pod := range h.pods {
		if several > 1 {
			want["pod "+pod+" "+quantity] = s.pods[uid] * factor
		}
	}
}
