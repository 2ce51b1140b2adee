package dcgmnames

import (
	"strconv"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// plan is the series that exist. It is valid until the facts change.
type plan struct {
	facts   []fact // that it is derived from
	devices []entry
	series  []series
	index   map[string]int // of a device, by uuid
	holders map[holder]int // numbered from 0
	labels  map[identity]*metric.Labels
}

// entry is a device of the plan.
type entry struct {
	uuid   string
	parent int // index of the GPU of a partition; its own index for others
	first  int // of its series
	end    int
}

// series has the values of a device, for one container that uses it or for none.
type series struct {
	labels     *metric.Labels
	pod, claim int // the holders whose share it shows, in this order; none: -1
}

// holder is a pod or a claim that may have rows about its use of a device.
type holder struct {
	pod                   bool // else a claim
	namespace, name, uuid string
}

// newPlan plans the series of the facts. Labels of the plan before, if there was one,
// are used again.
func newPlan(rows []fact, before *plan) *plan {
	f := newFacts(rows)
	p := &plan{
		facts:   append([]fact(nil), rows...),
		index:   make(map[string]int, len(f.devices)),
		holders: map[holder]int{},
		labels:  map[identity]*metric.Labels{},
	}
	partitioned := map[string]bool{}
	for i, d := range f.devices {
		p.index[d.uuid] = i
		if d.parent != "" {
			partitioned[d.parent] = true
		}
	}
	for i, d := range f.devices {
		users := f.users(d.uuid)
		if len(users) == 0 && !partitioned[d.uuid] {
			users = []consumer{{}}
		}
		parent, known := p.index[d.parent]
		if !known {
			parent = i
		}
		e := entry{uuid: d.uuid, parent: parent, first: len(p.series)}
		for _, user := range users {
			p.series = append(p.series, p.newSeries(f, d, f.devices[parent], parent, user, before))
		}
		e.end = len(p.series)
		p.devices = append(p.devices, e)
	}
	return p
}

func (p *plan) newSeries(f *facts, d, gpu hardware, index int, user consumer, before *plan) series {
	id := identity{whole: gpu, hardware: d, instance: f.instances[d.uuid], consumer: user,
		published: f.published[holding{user.namespace, user.claim, d.uuid}]}
	if gpu.parent == "" {
		id.gpu = strconv.Itoa(index)
	} else {
		id.whole = hardware{uuid: d.parent} // only its UUID is known
	}
	s := series{labels: p.labelsOf(id, before), pod: -1, claim: -1}
	if user.pod != "" && d.parent == "" {
		s.pod = p.holder(holder{true, user.namespace, user.pod, d.uuid})
	}
	if user.claim != "" && d.parent == "" {
		s.claim = p.holder(holder{false, user.namespace, user.claim, d.uuid})
	}
	return s
}

func (p *plan) holder(h holder) int {
	number, known := p.holders[h]
	if !known {
		number = len(p.holders)
		p.holders[h] = number
	}
	return number
}

func (p *plan) labelsOf(id identity, before *plan) *metric.Labels {
	if before != nil {
		p.labels[id] = before.labels[id]
	}
	if p.labels[id] == nil {
		p.labels[id] = id.labels()
	}
	return p.labels[id]
}

// device is the index of a device, -1 if it has none.
func (p *plan) device(uuid string) int {
	if at, known := p.index[uuid]; known {
		return at
	}
	return -1
}

// holderAt is the number of a holder, -1 if it has none.
func (p *plan) holderAt(h holder) int {
	if at, known := p.holders[h]; known {
		return at
	}
	return -1
}

// identity is the values from which the labels of a series are derived.
type identity struct {
	gpu       string   // number of the GPU; empty where it is not known
	whole     hardware // the GPU
	hardware  hardware // the device: the same, or a partition of it
	instance  string   // the partition's GPU instance
	consumer  consumer
	published publishedName
}

// labels returns the labels without empty ones, which is equivalent.
func (id identity) labels() *metric.Labels {
	var names, values []string
	for _, pair := range id.pairs() {
		if pair.value != "" {
			names, values = append(names, pair.name), append(values, pair.value)
		}
	}
	return metric.NewLabels(names, values...)
}

type pair struct{ name, value string }

// pairs returns all labels, in the order of the documentation. UUID, address
// and model are those of the GPU, also for its partitions. The uuid of a
// partition distinguishes two of one profile whose instances are unknown.
func (id identity) pairs() []pair {
	var device, namespace, profile, partition string
	if id.gpu != "" {
		device = "nvidia" + id.gpu
	}
	if id.consumer.claim != "" {
		namespace = id.consumer.namespace
	}
	if id.hardware.parent != "" {
		profile, partition = id.hardware.profile, id.hardware.uuid
	}
	return []pair{
		{"gpu", id.gpu},
		{"UUID", id.whole.uuid},
		{"pci_bus_id", id.whole.address},
		{"device", device},
		{"modelName", id.whole.model},
		{"GPU_I_PROFILE", profile},
		{"GPU_I_ID", id.instance},
		{"Hostname", id.hardware.node},
		{"DCGM_FI_DRIVER_VERSION", id.hardware.version},
		{"namespace", id.consumer.namespace},
		{"pod", id.consumer.pod},
		{"container", id.consumer.name},
		{"dra_claim_name", id.consumer.claim},
		{"dra_claim_namespace", namespace},
		{"dra_driver_name", id.published.driver},
		{"dra_pool_name", id.published.pool},
		{"dra_device_name", id.published.device},
		{"dra_mig_profile", profile},
		{"dra_mig_device_uuid", partition},
		{"resourceclaim", id.consumer.claim},
	}
}

func labelNames() []string {
	var names []string
	for _, pair := range (identity{}).pairs() {
		names = append(names, pair.name)
	}
	return names
}
