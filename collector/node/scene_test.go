package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
	"github.com/dra-exporter/dra-exporter/test/tools/invariant"
)

// A scene is a small world on one node that tests change between steps. It
// turns itself into Facts; the reducer under test is the real one.
type scene struct {
	t            testing.TB
	facts        Facts
	state        State
	now          clock.Instant
	last         Snapshot
	events       []Event
	began        bool                // the last step was the first one of its state
	hold         map[string][]string // claim → published devices
	sampled      map[string]map[device.Quantity]float64
	details      map[string]map[device.Reading]float64 // what else is read: readings with details, without their value
	unreadable   map[string]bool                       // devices that cannot be read
	processLists map[string][]device.Process           // of each device; without an entry they cannot be listed

	measured map[string]map[device.Quantity]device.Window // of what is not measured when it is read

	immutable  bool                       // lists are replaced, never changed in place
	reducer    func(Facts, clock.Instant) // called instead of Step; nil: Step is
	invariants invariant.Watch
}

const sceneNode = "node-a"

// origin is when every scene begins.
func origin() clock.Instant {
	return clock.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Elapsed: time.Hour}
}

func newScene(t testing.TB, devices ...device.Device) *scene {
	s := &scene{t: t, now: origin(), hold: map[string][]string{}, sampled: map[string]map[device.Quantity]float64{},
		details: map[string]map[device.Reading]float64{}, unreadable: map[string]bool{}, processLists: map[string][]device.Process{}}
	s.state = NewState(Config{Node: sceneNode, Interval: time.Second, Grace: 5 * time.Minute, IdleThreshold: 0.01,
		HealthHold: 5 * time.Second, ThrottleRatio: 0.5, Version: self.Build{Version: "v0", Revision: "abc", GoVersion: "go"}})
	s.facts.Cluster = APIFacts{Enabled: true, Fresh: true, SlicesFresh: true}
	for _, d := range devices {
		s.facts.Samples = append(s.facts.Samples, device.Sample{Device: d, Source: "simulated"})
		s.sampled[d.UUID], s.details[d.UUID] = map[device.Quantity]float64{}, map[device.Reading]float64{}
		if !d.IsPartition() {
			s.publish(d)
		}
	}
	return s
}

// gpu is a whole GPU whose published name is gpu-<minor>.
func gpu(minor int) device.Device {
	return device.Device{
		UUID: fmt.Sprintf("GPU-%d", minor), Vendor: "nvidia", Model: "NVIDIA H100", DriverVersion: "580.65.06",
		PCIBusID: fmt.Sprintf("0000:%02x:00.0", minor+16), Minor: minor, RenderMinor: device.Unknown, Placement: device.Unknown,
		Nodes: []string{fmt.Sprintf("/dev/nvidia%d", minor)},
	}
}

func (s *scene) publish(d device.Device) {
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
		ID: sceneID(fmt.Sprintf("gpu-%d", d.Minor)), Node: sceneNode, UUID: d.UUID, PCIAddress: d.PCIBusID,
		Placement: dra.PlacementUnknown, Model: d.Model, Capacity: map[string]float64{"memory": 80e9},
	})
}

func sceneID(name string) dra.DeviceID {
	return dra.DeviceID{Driver: "gpu.nvidia.com", Pool: sceneNode, Name: name}
}

// allocate makes a claim "namespace/name" that holds the devices, and a pod
// of the same name that runs with it.
func (s *scene) allocate(claim string, names ...string) *dra.Claim {
	namespace, name, _ := strings.Cut(claim, "/")
	c := dra.Claim{
		Ref: dra.ClaimRef{Namespace: namespace, Name: name}, UID: "uid-of-" + name, Allocated: true, Node: sceneNode,
		Requests:    []dra.Request{{Name: "gpu", DeviceClass: "gpu.nvidia.com"}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: name, UID: "pod-uid-of-" + name}},
	}
	for _, device := range names {
		c.Results = append(c.Results, dra.Result{Request: "gpu", Device: sceneID(device)})
	}
	s.facts.Cluster.Claims = append(s.facts.Cluster.Claims, c)
	s.facts.Cluster.Pods = append(s.facts.Cluster.Pods, dra.Pod{
		Ref: dra.PodRef{Namespace: namespace, Name: name}, UID: "pod-uid-of-" + name, Node: sceneNode,
		OwnerKind: "Job", OwnerName: "job",
		Claims:     []dra.PodClaim{{Name: "gpu", Template: "template", Claim: name}},
		Containers: []dra.Container{{Name: "main", Uses: []dra.Use{{Claim: name}}}},
	})
	return &s.facts.Cluster.Claims[len(s.facts.Cluster.Claims)-1]
}

// release deletes the claim and its pod.
func (s *scene) release(claim string) {
	namespace, name, _ := strings.Cut(claim, "/")
	s.facts.Cluster.Claims = without(s.facts.Cluster.Claims, func(c dra.Claim) bool { return c.Ref == dra.ClaimRef{Namespace: namespace, Name: name} })
	s.facts.Cluster.Pods = without(s.facts.Cluster.Pods, func(p dra.Pod) bool { return p.Ref == dra.PodRef{Namespace: namespace, Name: name} })
}

func without[T any](list []T, drop func(T) bool) []T {
	var kept []T
	for _, item := range list {
		if !drop(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// set sets what the next sample of a device reads.
func (s *scene) set(uuid string, q device.Quantity, value float64) { s.sampled[uuid][q] = value }

// setDetail sets a reading that has details.
func (s *scene) setDetail(uuid string, q device.Quantity, value float64, details ...string) {
	reading := device.Reading{Quantity: q}
	copy(reading.Details[:], details)
	s.details[uuid][reading] = value
}

// conceal leaves a quantity out of what is read from now on.
func (s *scene) unset(uuid string, q device.Quantity) {
	delete(s.sampled[uuid], q)
	maps.DeleteFunc(s.details[uuid], func(r device.Reading, _ float64) bool { return r.Quantity == q })
}

// choose sets a state set: the present state is 1, the others are 0. first is
// the detail before the state, if the quantity has one.
func (s *scene) setState(uuid string, q device.Quantity, present string, states []string, first ...string) {
	for _, state := range states {
		value := 0.0
		if state == present {
			value = 1
		}
		s.setDetail(uuid, q, value, append(slices.Clone(first), state)...)
	}
}

// setXIDs sets what a source reports of a device, codes and counts in turns; each
// was last reported at the time of the next sample, a second from now.
func (s *scene) setXIDs(uuid string, counts ...int) {
	xids := []device.XID{}
	for i := 0; i < len(counts); i += 2 {
		xids = append(xids, device.XID{Code: counts[i], Count: uint64(counts[i+1]), Last: s.now.Wall.Add(time.Second)})
	}
	for i := range s.facts.Samples {
		if s.facts.Samples[i].Device.UUID == uuid {
			s.facts.Samples[i].XIDs, s.facts.Samples[i].XIDSource = xids, s.facts.Samples[i].Source
		}
	}
}

// step lets the time pass, reads every device that can be read, and steps.
func (s *scene) step(after time.Duration) {
	s.now = s.now.Add(after)
	samples := make([]device.Sample, len(s.facts.Samples))
	for i, sample := range s.facts.Samples {
		if !s.unreadable[sample.Device.UUID] {
			sample.At, sample.Readings, sample.Released = s.now, s.read(sample.Device.UUID), false
			if processes, listed := s.processLists[sample.Device.UUID]; listed {
				sample.Processes, sample.ProcessesAt = slices.Clone(processes), s.now
			}
		}
		samples[i] = sample
	}
	s.facts.Samples = samples
	s.reduce()
}

// letGo lets seconds pass in which the devices are released, and every counter grows by
// its rate.
func (s *scene) letGo(seconds int) {
	for i := range s.facts.Samples {
		uuid := s.facts.Samples[i].Device.UUID
		s.unreadable[uuid], s.facts.Samples[i].Released = true, true
	}
	s.facts.Access = DeviceAccess{State: device.AccessReleased, Reason: "file"}
	s.run(seconds)
	clear(s.unreadable)
	s.facts.Access = DeviceAccess{}
}

// reduce steps with the facts as they are. Facts are immutable, but tests
// change them in place: what Step sees is a copy, unless the test promises to
// make new lists itself.
func (s *scene) reduce() {
	if !s.immutable {
		s.facts.Cluster.Pods = slices.Clone(s.facts.Cluster.Pods)
		s.facts.Cluster.Claims = slices.Clone(s.facts.Cluster.Claims)
		s.facts.Cluster.Published = slices.Clone(s.facts.Cluster.Published)
		s.facts.Cluster.PluginPods = slices.Clone(s.facts.Cluster.PluginPods)
	}
	if s.reducer != nil {
		s.reducer(s.facts, s.now)
		return
	}
	s.began = s.state.health.last.IsZero()
	s.state, s.last, s.events = Step(s.state, s.facts, s.now)
	s.checkInvariants(&s.invariants)
}

// run steps once a second and grows every counter by its rate.
func (s *scene) run(seconds int) {
	for range seconds {
		for _, values := range s.sampled {
			for q := range values {
				switch {
				case q == device.Throttled:
					values[q]++
				case device.Specs()[q].Kind == device.Counter:
					values[q] += 100
				}
			}
		}
		s.step(time.Second)
	}
}

func (s *scene) read(uuid string) []device.Reading {
	var readings []device.Reading
	for q := range device.Quantity(device.Quantities) {
		if value, ok := s.sampled[uuid][q]; ok {
			reading := device.Reading{Quantity: q, Value: value, Measured: s.measured[uuid][q]}
			for i, name := range device.Specs()[q].Details {
				reading.Details[i] = "some " + name
			}
			readings = append(readings, reading)
		}
	}
	for reading, value := range s.details[uuid] {
		reading.Value = value
		readings = append(readings, reading)
	}
	slices.SortFunc(readings, func(a, b device.Reading) int {
		return cmp.Or(cmp.Compare(a.Quantity, b.Quantity), cmp.Compare(a.Details[0], b.Details[0]), cmp.Compare(a.Details[1], b.Details[1]))
	})
	return readings
}

// page is the exposition of the last snapshot, only the families whose name
// has one of the prefixes; comments left out.
func (s *scene) page(prefixes ...string) string {
	s.t.Helper()
	text := metrictest.Text(s.t, metric.NewPage(s.last.Rows()))
	var lines []string
	for line := range strings.Lines(text) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				lines = append(lines, line)
				break
			}
		}
	}
	return strings.Join(lines, "")
}

// value is that of the one row of the family whose labels include these.
func (s *scene) value(family string, labels ...string) (float64, bool) {
	s.t.Helper()
	found, count := 0.0, 0
	for _, row := range s.last.Rows() {
		if row.Family.Name == family && includes(row.Labels, labels) {
			found = row.Value
			count++
		}
	}
	if count > 1 {
		s.t.Fatalf("%d rows of %s have %v", count, family, labels)
	}
	return found, count == 1
}

func includes(labels *metric.Labels, pairs []string) bool {
	for i := 0; i < len(pairs); i += 2 {
		if labels.Get(pairs[i]) != pairs[i+1] {
			return false
		}
	}
	return true
}

// script writes down pages under headings, for a golden file.
type script struct {
	strings.Builder
	scene    *scene
	prefixes []string
}

func (s *scene) script(prefixes ...string) *script { return &script{scene: s, prefixes: prefixes} }

func (p *script) show(heading string) {
	p.scene.t.Helper()
	fmt.Fprintf(p, "## %s\n%s\n", heading, p.scene.page(p.prefixes...))
}
