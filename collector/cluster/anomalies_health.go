package cluster

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// kubeletWord is what a pod's status says of one device.
type kubeletWord struct {
	device  dra.DeviceID
	healthy bool
}

// healthWords holds what kubelets say of devices against what their drivers
// say, as far as both speak.
type healthWords struct {
	devices map[dra.DeviceID]*deviceWords
	order   []*deviceWords // sorted
	added   []*deviceWords // since order was made
	changed bool           // what kubelets say, since they were compared

	from   *dra.Supply           // of which the drivers' words were taken
	driver map[dra.DeviceID]bool // tainted devices: true if a taint calls it sick, false if the driver does not watch it
}

type deviceWords struct {
	device       dra.DeviceID
	well, sick   int // how many entries of pods say so
	spoken       bool
	disagreement bool
	labels       *metric.Labels
}

func newHealthWords() healthWords {
	return healthWords{devices: make(map[dra.DeviceID]*deviceWords)}
}

// hear takes in what the status of a pod says of devices, in place of what it
// said before.
func (h *healthWords) hear(p *podEntry) {
	words := wordsOf(p)
	if slices.Equal(words, p.waiting.words) {
		return
	}
	for _, word := range p.waiting.words {
		h.count(word, -1)
	}
	for _, word := range words {
		h.count(word, 1)
	}
	p.waiting.words = words
}

func (h *healthWords) count(word kubeletWord, by int) {
	d, known := h.devices[word.device]
	if !known {
		d = &deviceWords{device: word.device}
		h.devices[word.device] = d
		h.added = append(h.added, d)
	}
	h.changed = true
	if word.healthy {
		d.well += by
	} else {
		d.sick += by
	}
}

// wordsOf lists the devices that the entries of a pod's status can mean.
func wordsOf(p *podEntry) []kubeletWord {
	if p.life == nil || p.life.Terminal {
		return nil
	}
	var words []kubeletWord
	for i := range p.life.Health {
		said := &p.life.Health[i]
		at := slices.IndexFunc(p.refs, func(r reference) bool { return r.stands(said.PodClaim) })
		if at < 0 || p.refs[at].claim == nil || p.refs[at].claim.life == nil {
			continue
		}
		if device, found := meant(p.refs[at].claim.life.Results, said); found {
			words = append(words, kubeletWord{device, said.Healthy})
		}
	}
	return words
}

// stands reports whether the reference is the one that the kubelet names: a
// claim of extended resources has no name within the pod.
func (r *reference) stands(podClaim string) bool {
	return r.name == podClaim || podClaim == "" && r.extended > 0
}

// meant is the one device that the kubelet can mean. It names a device by its
// first CDI id, which nobody tells us of here, else by driver, pool and name;
// so an id counts only where one device of the claim and the request can be
// meant, as in the node role.
func meant(results []dra.AllocatedDevice, said *dra.ResourceHealth) (dra.DeviceID, bool) {
	var found dra.DeviceID
	candidates := 0
	for i := range results {
		if !(dra.Use{Request: said.Request}).Covers(results[i].Request) {
			continue
		}
		device := results[i].Device
		if device.String() == said.ResourceID {
			return device, true
		}
		if candidates == 0 || device != found {
			candidates++
		}
		found = device
	}
	return found, candidates == 1
}

// compare sets each kubelet's words against the driver's, and reports those
// that began to differ.
func (h *healthWords) compare(facts Facts) []Event {
	if facts.Supply == h.from && !h.changed {
		return nil
	}
	h.takeTaints(facts.Supply)
	h.arrange()
	var pools []*dra.PoolSupply
	if facts.Supply != nil {
		pools = facts.Supply.Pools
	}
	var events []Event
	for _, d := range h.order {
		for len(pools) > 0 && d.compareToPool(pools[0]) > 0 {
			pools = pools[1:] // sorted as the devices are
		}
		published := len(pools) > 0 && d.compareToPool(pools[0]) == 0 && publishes(pools[0], d.device.Name)
		sick, tainted := h.driver[d.device]
		was := d.disagreement
		d.spoken = published && (!tainted || sick)
		d.disagreement = d.spoken && sick != (d.sick > 0)
		if d.disagreement && !was {
			events = append(events, Event{slog.LevelWarn, "driver and kubelet differ on whether a device is well", []slog.Attr{
				slog.String("device", d.device.String()), slog.Bool("driver_says_well", !sick), slog.Bool("kubelet_says_well", d.sick == 0),
			}})
		}
	}
	return events
}

// publishes reports whether the pool has the device: of one that is withdrawn
// its driver says nothing.
func publishes(pool *dra.PoolSupply, device string) bool {
	_, found := slices.BinarySearch(pool.Names, device)
	return found
}

// takeTaints takes in what the drivers say: a taint that forbids pods calls
// the device sick, one named unmonitored says that the driver does not know.
// Taints of rules are an administrator's word, not the driver's.
func (h *healthWords) takeTaints(supply *dra.Supply) {
	if supply == h.from {
		return
	}
	h.from, h.driver = supply, make(map[dra.DeviceID]bool)
	if supply == nil {
		return
	}
	for i := range supply.Tainted {
		tainted := &supply.Tainted[i]
		for _, taint := range tainted.Taints {
			switch {
			case taint.Effect == "NoSchedule" || taint.Effect == "NoExecute":
				h.driver[tainted.Device] = true
			case strings.HasSuffix(taint.Key, "/unmonitored") && !h.driver[tainted.Device]:
				h.driver[tainted.Device] = false
			}
		}
	}
}

// arrange brings the order up to date, and forgets devices of which no pod says
// anything any more: not before all pods have been heard, since what one says no
// more it or another may say anew.
func (h *healthWords) arrange() {
	if !h.changed {
		return
	}
	silent := func(d *deviceWords) bool {
		if d.well > 0 || d.sick > 0 {
			return false
		}
		delete(h.devices, d.device)
		return true
	}
	h.added = slices.DeleteFunc(h.added, silent)
	slices.SortFunc(h.added, compareDevices)
	h.order = merge(slices.DeleteFunc(h.order, silent), h.added, compareDevices)
	clear(h.added)
	h.added, h.changed = h.added[:0], false
}

func compareDevices(a, b *deviceWords) int {
	return cmp.Or(cmp.Compare(a.device.Driver, b.device.Driver), cmp.Compare(a.device.Pool, b.device.Pool), cmp.Compare(a.device.Name, b.device.Name))
}

func (d *deviceWords) compareToPool(pool *dra.PoolSupply) int {
	return cmp.Or(cmp.Compare(d.device.Driver, pool.Driver), cmp.Compare(d.device.Pool, pool.Pool))
}

func (h *healthWords) rows(b *metric.Builder, f *families) {
	b.In(f.disagreement)
	for _, d := range h.order {
		if !d.spoken {
			continue
		}
		if d.labels == nil {
			d.labels = metric.NewLabels(f.disagreement.Labels, d.device.Driver, d.device.Pool, d.device.Name)
		}
		b.Add(d.labels, flag(d.disagreement))
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
