package naming

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// subject is a device or a claim with the facts of the model. It is kept as long as
// the model has it or rows refer to it. Facts stay when the model has it no longer: the
// identity of its points must not change then.
type subject struct {
	facts     map[attribute.Key]string
	version   int // counts changes of facts, from 1
	firstSeen int // generation
	lastSeen  int // generation

	// recreated is when a claim got another UID after points were exported; the
	// zero time if it did not.
	recreated time.Time

	memorySize float64 // of a device in this generation, in bytes; 0: unknown
	warning    bool    // a device has one in this generation
}

// start is the start time of a counter of the subject. A claim that is recreated
// under its name continues the counters of the one before. Their earlier part
// was exported under the other UID and must not count again, as it would with a
// start time from before: the start is unknown then.
func (s *subject) start(start time.Time) time.Time {
	if start.Before(s.recreated) {
		return time.Time{}
	}
	return start
}

// state is a device's hw.status, by whether its hardware is healthy (1) or not (0): a
// healthy device with a warning is degraded.
func (s *subject) state(healthy float64) string {
	switch {
	case healthy == 0:
		return "failed"
	case s.warning:
		return "degraded"
	default:
		return "ok"
	}
}

// set sets a fact, as a label would have it.
func (s *subject) set(key attribute.Key, value string) {
	if value = metric.Bounded(value); s.facts[key] != value {
		s.facts[key] = value
		s.version++
	}
}

// inferType is for devices whose source does not state the type, but which have
// readings that only devices of one type have.
func (s *subject) inferType(hardware string) {
	if s.facts[hwType] == "" {
		s.set(hwType, hardware)
	}
}

type claimKey struct{ namespace, name string }

// subjects are all devices and claims of the present snapshot.
type subjects struct {
	generation int
	devices    map[string]*subject // by uuid
	claims     map[claimKey]*subject
	unknown    subject // without facts
}

func newSubjects() subjects {
	return subjects{devices: map[string]*subject{}, claims: map[claimKey]*subject{}, unknown: subject{version: 1}}
}

// find returns the subject of the labels.
func (s *subjects) find(kind subjectKind, labels *metric.Labels) *subject {
	switch kind {
	case deviceSubject:
		return lookup(s.devices, labels.Get("uuid"), s.generation)
	case claimSubject:
		return lookup(s.claims, claimKey{labels.Get("namespace"), labels.Get("resourceclaim")}, s.generation)
	default:
		return &s.unknown
	}
}

func lookup[K comparable](all map[K]*subject, key K, generation int) *subject {
	s := all[key]
	if s == nil {
		s = &subject{facts: map[attribute.Key]string{}, version: 1, firstSeen: generation}
		all[key] = s
	}
	s.lastSeen = generation
	return s
}

// observe takes the facts of devices and claims from a model; nil has none.
func (s *subjects) observe(node *model.Node, at time.Time) {
	s.generation++
	if node == nil {
		return
	}
	for i := range node.Devices {
		d := &node.Devices[i]
		lookup(s.devices, metric.Bounded(d.UUID), s.generation).observeDevice(d)
	}
	for _, claim := range node.Claims {
		c := lookup(s.claims, claimKey{metric.Bounded(claim.Ref.Namespace), metric.Bounded(claim.Ref.Name)}, s.generation)
		version := c.version
		if c.set(ResourceClaimUID, claim.UID); c.version != version && c.firstSeen < s.generation {
			c.recreated = at
		}
	}
}

// observeDevice takes the facts of a device. Only hw.gpu.memory.limit has what
// identifies its board, which is there once for each GPU: other series need not end when
// a board is flashed.
func (s *subject) observeDevice(d *model.Device) {
	s.set(hwVendor, d.Vendor)
	s.set(hwModel, d.Model)
	s.set(hwDriverVersion, d.DriverVersion)
	if hardware := sourceType(d.Source); hardware != "" {
		s.set(hwType, hardware)
	}
	if d.IsIdentified() {
		s.set(hwSerialNumber, d.Hardware.Serial)
		s.set(hwFirmwareVersion, d.Hardware.VBIOS)
	}
	for i := range d.Readings {
		switch reading := &d.Readings[i]; {
		case reading.Quantity == device.MemorySize && d.Fresh:
			s.memorySize = reading.Value
			s.inferType("gpu")
		case reading.Quantity == device.NetworkReceive, reading.Quantity == device.NetworkLinks && d.Fresh:
			s.inferType("network")
		}
	}
	s.warning = slices.ContainsFunc(d.Signals, func(signal model.Signal) bool { return !signal.Critical })
}

// sourceType is the hw.type of a source's devices; empty if it reads devices
// of several types.
func sourceType(source string) string {
	row, _ := vendors.SourceByName(source)
	switch row.Kind {
	case vendors.GPU:
		return "gpu"
	case vendors.Network:
		return "network"
	default:
		return ""
	}
}

// evict removes the subjects that this snapshot did not refer to, and of the others
// what is of one generation.
func (s *subjects) evict() {
	for uuid, d := range s.devices {
		if d.lastSeen != s.generation {
			delete(s.devices, uuid)
		}
		d.memorySize, d.warning = 0, false
	}
	for key, c := range s.claims {
		if c.lastSeen != s.generation {
			delete(s.claims, key)
		}
	}
}
