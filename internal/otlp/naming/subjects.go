package naming

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// subject is a device or a claim with the facts of its info row. It is kept as
// long as rows refer to it. Facts stay when the info row disappears first: the
// identity of its points must not change then.
type subject struct {
	facts     map[attribute.Key]string
	version   int // counts changes of facts, from 1
	firstSeen int // generation
	lastSeen  int // generation

	// recreated is when a claim got another UID after points were exported; the
	// zero time if it did not.
	recreated time.Time

	info, hardware        *metric.Labels // the sources of the facts
	size                  float64        // of a device's memory, in bytes
	sizeSeen, warningSeen int            // the generations that last had the size, and a warning about the device
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

func (s *subject) set(key attribute.Key, value string) {
	if s.facts[key] != value {
		s.facts[key] = value
		s.version++
	}
}

// inferType is for devices whose source does not state the type, but which have
// a metric that only devices of one type have.
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

// of returns the subject of the labels.
func (s *subjects) of(kind subjectKind, labels *metric.Labels) *subject {
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
	found := all[key]
	if found == nil {
		found = &subject{facts: map[attribute.Key]string{}, version: 1, firstSeen: generation}
		all[key] = found
	}
	found.lastSeen = generation
	return found
}

// observe takes the facts of devices and claims from a snapshot.
func (s *subjects) observe(rows []metric.Row, at time.Time) {
	s.generation++
	for family, run := range runs(rows) {
		switch family.Name {
		case metric.DeviceInfo:
			s.observeDevices(run)
		case metric.DeviceHardwareInfo:
			s.observeHardware(run)
		case metric.ClaimInfo:
			s.observeClaims(run, at)
		case memorySizeFamily:
			for i := range run {
				d := s.of(deviceSubject, run[i].Labels)
				d.size, d.sizeSeen = run[i].Value, s.generation
				d.inferType("gpu")
			}
		case metric.DeviceNetworkReceiveBytes, linkStateFamily:
			for i := range run {
				s.of(deviceSubject, run[i].Labels).inferType("network")
			}
		case signalFamily:
			for i := range run {
				if run[i].Labels.Get("severity") == "warning" {
					s.of(deviceSubject, run[i].Labels).warningSeen = s.generation
				}
			}
		}
	}
}

func (s *subjects) observeDevices(run []metric.Row) {
	for i := range run {
		labels := run[i].Labels
		d := s.of(deviceSubject, labels)
		if d.info == labels {
			continue
		}
		d.info = labels
		d.set(hwVendor, labels.Get("vendor"))
		d.set(hwModel, labels.Get("model"))
		d.set(hwDriverVersion, labels.Get("driver_version"))
		if known := typeOfSource(labels.Get("source")); known != "" {
			d.set(hwType, known)
		}
	}
}

// observeHardware takes what identifies the board of a device. Only
// hw.gpu.memory.limit has it, which is there once for each GPU: other series need not
// end when a board is flashed.
func (s *subjects) observeHardware(run []metric.Row) {
	for i := range run {
		labels := run[i].Labels
		d := s.of(deviceSubject, labels)
		if d.hardware == labels {
			continue
		}
		d.hardware = labels
		d.set(hwSerialNumber, labels.Get("serial"))
		d.set(hwFirmwareVersion, labels.Get("vbios"))
	}
}

// typeOfSource is the hw.type of a source's devices; empty if it reads devices
// of several types.
func typeOfSource(source string) string {
	switch source {
	case "nvml", "dcgm", "amdgpu", "intel":
		return "gpu"
	case "rdma":
		return "network"
	default:
		return ""
	}
}

func (s *subjects) observeClaims(run []metric.Row, at time.Time) {
	for i := range run {
		labels := run[i].Labels
		c := s.of(claimSubject, labels)
		if c.info == labels {
			continue
		}
		c.info = labels
		version := c.version
		if c.set(claimUID, labels.Get("claim_uid")); c.version != version && c.firstSeen < s.generation {
			c.recreated = at
		}
	}
}

// evict removes the subjects that this snapshot did not refer to.
func (s *subjects) evict() {
	for uuid, d := range s.devices {
		if d.lastSeen != s.generation {
			delete(s.devices, uuid)
		}
	}
	for key, c := range s.claims {
		if c.lastSeen != s.generation {
			delete(s.claims, key)
		}
	}
}
