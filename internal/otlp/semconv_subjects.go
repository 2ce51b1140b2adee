package otlp

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// subject is a device or a claim: what its info row says of it. It is known
// for as long as rows are about it; facts stay when the info row goes first,
// because the identity of its points must not change for that.
type subject struct {
	facts   map[attribute.Key]string
	version int // counts changes of facts, from 1
	born    int // the turn that saw it first
	turn    int // the last turn that saw it

	// renamed is when a claim got another UID after points had gone out; the
	// zero time if it has not.
	renamed time.Time

	info          *metric.Labels // what the facts were taken from
	size          float64        // of a device's memory
	sized, warned int            // the turns in which the size was told, and a warning spoke against the device
}

// start is when a counter of the subject began. A claim that is created anew
// under its name goes on with the accounts of the one before: what they had
// counted went out under the other UID and must not count again, which a start
// from before would make it do. So it is unknown then.
func (s *subject) start(start time.Time) time.Time {
	if start.Before(s.renamed) {
		return time.Time{}
	}
	return start
}

func (s *subject) learn(key attribute.Key, value string) {
	if s.facts[key] != value {
		s.facts[key] = value
		s.version++
	}
}

type claimKey struct{ namespace, name string }

// subjects are all devices and claims of the present snapshot.
type subjects struct {
	turn    int
	devices map[string]*subject // by uuid
	claims  map[claimKey]*subject
	nobody  subject // of whom nothing is known
}

func newSubjects() subjects {
	return subjects{devices: map[string]*subject{}, claims: map[claimKey]*subject{}, nobody: subject{version: 1}}
}

// of is what the labels are about.
func (s *subjects) of(what about, labels *metric.Labels) *subject {
	switch what {
	case aboutDevice:
		return meet(s.devices, labels.Get("uuid"), s.turn)
	case aboutClaim:
		return meet(s.claims, claimKey{labels.Get("namespace"), labels.Get("resourceclaim")}, s.turn)
	default:
		return &s.nobody
	}
}

func meet[K comparable](all map[K]*subject, key K, turn int) *subject {
	met := all[key]
	if met == nil {
		met = &subject{facts: map[attribute.Key]string{}, version: 1, born: turn}
		all[key] = met
	}
	met.turn = turn
	return met
}

func (s *subjects) touch(met *subject) { met.turn = s.turn }

// learn takes in what a snapshot says of devices and claims.
func (s *subjects) learn(rows []metric.Row, at time.Time) {
	s.turn++
	for family, run := range runs(rows) {
		switch family.Name {
		case "dra_device_info":
			s.learnDevices(run)
		case "dra_claim_info":
			s.learnClaims(run, at)
		case memorySizeFamily:
			for i := range run {
				d := s.of(aboutDevice, run[i].Labels)
				d.size, d.sized = run[i].Value, s.turn
				d.guess("gpu")
			}
		case "dra_device_network_receive_bytes_total", linkStateFamily:
			for i := range run {
				s.of(aboutDevice, run[i].Labels).guess("network")
			}
		case signalFamily:
			for i := range run {
				if run[i].Labels.Get("severity") == "warning" {
					s.of(aboutDevice, run[i].Labels).warned = s.turn
				}
			}
		}
	}
}

func (s *subjects) learnDevices(run []metric.Row) {
	for i := range run {
		labels := run[i].Labels
		d := s.of(aboutDevice, labels)
		if d.info == labels {
			continue
		}
		d.info = labels
		d.learn(hwVendor, labels.Get("vendor"))
		d.learn(hwModel, labels.Get("model"))
		d.learn(hwDriverVersion, labels.Get("driver_version"))
		if known := typeBySource(labels.Get("source")); known != "" {
			d.learn(hwType, known)
		}
	}
}

func (s *subjects) learnClaims(run []metric.Row, at time.Time) {
	for i := range run {
		labels := run[i].Labels
		c := s.of(aboutClaim, labels)
		if c.info == labels {
			continue
		}
		c.info = labels
		version := c.version
		if c.learn(claimUID, labels.Get("claim_uid")); c.version != version && c.born < s.turn {
			c.renamed = at
		}
	}
}

// typeBySource is hw.type of what a source reads, empty where a source reads
// devices of several types.
func typeBySource(source string) string {
	switch source {
	case "nvml", "dcgm", "amdgpu":
		return "gpu"
	case "rdma":
		return "network"
	default:
		return ""
	}
}

// guess is for devices whose source does not tell the type, but which show
// what only devices of one type have.
func (s *subject) guess(is string) {
	if s.facts[hwType] == "" {
		s.learn(hwType, is)
	}
}

// end forgets what nothing was said of in this turn.
func (s *subjects) end() {
	for uuid, d := range s.devices {
		if d.turn != s.turn {
			delete(s.devices, uuid)
		}
	}
	for key, c := range s.claims {
		if c.turn != s.turn {
			delete(s.claims, key)
		}
	}
}
