package node

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// incidentCounts returns the incidents of a scene by kind, those that there are.
func (s *scene) incidentCounts() map[string]float64 {
	counts := map[string]float64{}
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_incidents_total" && row.Value > 0 {
			counts[row.Labels.Get("kind")] += row.Value
		}
	}
	return counts
}

// TestIncidentsOfSignals: each signal is an incident of its kind, once, and a critical
// one an incident of the kind unhealthy as well. A warning of a signal that can be
// critical is none.
func TestIncidentsOfSignals(t *testing.T) {
	kinds := map[string]string{
		"lost": "lost", "recovery_action": "other", "ecc_uncorrected": "ecc", "row_remap_failed": "row_remap",
		"row_remap_pending": "row_remap", "nvlink_down": "link", "network_link_down": "link", "fabric_failure": "link",
		"thermal_throttling": "throttling", "power_brake": "throttling", "xid_79": "xid_service", "xid_94": "xid_application",
		"dcgm_memory": "ecc", "dcgm_link": "link", "dcgm_thermal": "throttling", "dcgm_power": "throttling",
		"dcgm_other": "other", "driver": "other",
	}
	for _, problem := range healthProblems() {
		t.Run(problem.signal+" "+problem.severity, func(t *testing.T) {
			s := healthyGPU(t)
			s.setXIDs("GPU-0")
			s.run(2)
			problem.begin(s)
			s.run(max(problem.onset, 1) + 3)
			want := map[string]float64{}
			switch {
			case problem.severity == "critical":
				want = map[string]float64{kinds[problem.signal]: 1, "unhealthy": 1}
			case problem.signal == "row_remap_pending", problem.signal == "xid_94":
				want = map[string]float64{kinds[problem.signal]: 1}
			}
			if got := s.incidentCounts(); !maps.Equal(got, want) {
				t.Errorf("incidents %v, want %v", got, want)
			}
			claims, _ := s.value("dra_incident_claims_total", "kind", kinds[problem.signal])
			if claims != want[kinds[problem.signal]] {
				t.Errorf("%v claims, want one for each incident: %v", claims, want)
			}
		})
	}
}

// TestIncidentsOfOneDevice: what is counted of a device with partitions, of Xids that
// come again within the hold, of taints, and of what was there before.
func TestIncidentsOfOneDevice(t *testing.T) {
	expect := func(t *testing.T, s *scene, want map[string]float64) {
		t.Helper()
		if got := s.incidentCounts(); !maps.Equal(got, want) {
			t.Errorf("incidents %v, want %v", got, want)
		}
	}
	t.Run("partitions are part of their device", func(t *testing.T) {
		s := partitionedGPU(t)
		for _, uuid := range []string{"GPU-0", "MIG-a", "MIG-b"} {
			s.setXIDs(uuid)
		}
		s.run(2)
		s.setXIDs("MIG-a", 95, 1)
		s.run(1)
		s.setXIDs("MIG-b", 95, 1)
		s.run(1)
		s.setXIDs("GPU-0", 95, 1)
		s.run(1)
		expect(t, s, map[string]float64{"xid_reset": 1, "unhealthy": 1})
		if got, _ := s.value("dra_device_held_failures_total", "uuid", "GPU-0"); got != 1 {
			t.Errorf("%v failures", got)
		}
		if _, there := s.value("dra_device_held_failures_total", "uuid", "MIG-a"); there {
			t.Error("a partition has failures of its own")
		}
		watched, _ := s.value("dra_incident_watched_seconds_total", "kind", "lost")
		if steps := s.now.Since(origin()).Seconds(); watched > steps {
			t.Errorf("one device was watched for %v s of %v", watched, steps)
		}
		before, _ := s.value("dra_incident_watched_seconds_total", "kind", "taint")
		s.facts.Cluster.Published = s.facts.Cluster.Published[1:] // the partitions alone
		s.run(4)
		if watched, _ := s.value("dra_incident_watched_seconds_total", "kind", "taint"); watched != before+4 {
			t.Errorf("watched for taints for %v s more, want 4", watched-before)
		}
		for i := range s.facts.Cluster.Published {
			s.facts.Cluster.Published[i].Taints = []dra.Taint{{Key: "unhealthy", Effect: "NoSchedule"}}
			s.run(1)
		}
		expect(t, s, map[string]float64{"xid_reset": 1, "unhealthy": 1, "taint": 1})
	})
	t.Run("within the hold", func(t *testing.T) {
		s := healthyGPU(t)
		s.setXIDs("GPU-0")
		s.run(2)
		for i := range 5 { // an Xid is present for five seconds
			s.setXIDs("GPU-0", 31, i+1)
			s.run(4)
		}
		expect(t, s, map[string]float64{"xid_application": 1})
		s.run(12)
		s.setXIDs("GPU-0", 31, 6)
		s.run(1)
		expect(t, s, map[string]float64{"xid_application": 2})
		if seconds, _ := s.value("dra_incident_seconds_total", "kind", "xid_application"); seconds != 4*4+5 {
			t.Errorf("%v s of incidents, want 4 times 4 s and 5 s", seconds)
		}
	})
	t.Run("notices", func(t *testing.T) {
		s := healthyGPU(t)
		s.setXIDs("GPU-0")
		s.run(2)
		s.setXIDs("GPU-0", 43, 1, 63, 1, 999, 1)
		s.run(1)
		expect(t, s, map[string]float64{})
	})
	t.Run("taints of the driver", func(t *testing.T) {
		s := newScene(t, gpu(0))
		taint := func(taints ...dra.Taint) {
			s.facts.Cluster.Published[0].Taints = taints
			s.run(1)
		}
		bad := dra.Taint{Key: "gpu.nvidia.com/xid", Effect: "NoExecute"}
		taint(bad)
		expect(t, s, map[string]float64{}) // there before
		taint()
		taint(bad)
		expect(t, s, map[string]float64{"taint": 1})
		s.facts.Cluster.SlicesFresh = false
		s.run(3)
		unread, _ := s.value("dra_incident_seconds_total", "kind", "taint")
		s.run(3)
		if seconds, _ := s.value("dra_incident_seconds_total", "kind", "taint"); seconds != unread {
			t.Errorf("an incident of taints that are not read lasts %v s more", seconds-unread)
		}
		s.facts.Cluster.SlicesFresh = true
		s.run(1)
		expect(t, s, map[string]float64{"taint": 1})
		taint()
		taint(dra.Taint{Key: "gpu.nvidia.com/note", Effect: "None"})
		expect(t, s, map[string]float64{"taint": 1})
		if watched, _ := s.value("dra_incident_watched_seconds_total", "kind", "taint"); watched < 1 || watched > 3 {
			t.Errorf("watched for %v s", watched)
		}
	})
	t.Run("there before", func(t *testing.T) {
		s := healthyGPU(t)
		for _, problem := range healthProblems()[:2] {
			problem.begin(s)
		}
		s.run(10)
		s.state = NewState(s.state.config)
		s.run(3)
		expect(t, s, map[string]float64{})
		if seconds, _ := s.value("dra_incident_seconds_total", "kind", "lost"); seconds != 2 {
			t.Errorf("lost for %v s since the start, want 2", seconds)
		}
	})
	t.Run("not held", func(t *testing.T) {
		s := healthyGPU(t)
		s.setXIDs("GPU-0")
		s.release("ml/train")
		s.run(2)
		s.setXIDs("GPU-0", 79, 1)
		s.run(1)
		expect(t, s, map[string]float64{"xid_service": 1, "unhealthy": 1})
		if got, there := s.value("dra_device_held_failures_total"); got != 0 || !there {
			t.Errorf("%v failures of a free device, %v", got, there)
		}
	})
	t.Run("page", func(t *testing.T) {
		s := healthyGPU(t)
		s.setXIDs("GPU-0")
		s.run(60)
		s.setXIDs("GPU-0", 48, 1)
		s.run(30)
		metrictest.CompareGolden(t, "testdata/incidents.txt", s.page("dra_incident", "dra_device_held_failures"))
	})
}

// TestWallClockJumps: durations do not come from the wall clock. A history has the same
// page, but for the times that it shows, with a wall clock that is set forwards or back
// at any moment: between an error and the step that counts it too.
func TestWallClockJumps(t *testing.T) {
	history := func(jump time.Duration, at int, stamped bool) map[string]float64 {
		s := healthyGPU(t)
		s.setXIDs("GPU-0")
		s.run(2)
		for i := range 40 {
			if i == at && !stamped {
				s.now.Wall = s.now.Wall.Add(jump)
			}
			switch i {
			case 5:
				s.setXIDs("GPU-0", 31, 1)
			case 20:
				s.setXIDs("GPU-0", 31, 2)
			case 30:
				s.setXIDs("GPU-0", 31, 2, 79, 1)
			}
			if i == at && stamped {
				s.now.Wall = s.now.Wall.Add(jump)
			}
			s.run(1)
		}
		values := map[string]float64{}
		for _, row := range s.last.Rows() {
			if !strings.Contains(row.Family.Name, "timestamp") {
				key := row.Family.Name
				row.Labels.Each(func(name, value string) bool { key += " " + name + "=" + value; return true })
				values[key] = row.Value
			}
		}
		return values
	}
	want := history(0, 0, false)
	if len(want) < 50 {
		t.Fatalf("the page has %d series", len(want))
	}
	for _, at := range []int{3, 5, 6, 9, 12, 20, 21, 26, 30, 31, 37} {
		for _, jump := range []time.Duration{-time.Hour, -7 * time.Second, 7 * time.Second, time.Hour} {
			for _, stamped := range []bool{false, true} {
				got := history(jump, at, stamped)
				for key, value := range want {
					if other, ok := got[key]; !ok || other != value {
						t.Errorf("%v at second %d, stamped before %v: %s is %v, want %v", jump, at, stamped, key, other, value)
					}
				}
				if len(got) != len(want) {
					t.Errorf("%v at second %d: %d series, want %d", jump, at, len(got), len(want))
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}

// TestIncidentsKeptWhileADeviceIsLeft: the totals of a model are kept while a device of
// it is known, and not for ever.
func TestIncidentsKeptWhileADeviceIsLeft(t *testing.T) {
	s := newScene(t, gpu(0))
	s.setHealthy("GPU-0")
	s.setXIDs("GPU-0")
	s.run(2)
	s.setXIDs("GPU-0", 79, 1)
	s.run(1)
	s.facts.Samples, s.facts.Cluster.Published = nil, nil
	s.run(10)
	if s.incidentCounts()["xid_service"] != 1 {
		t.Errorf("after the device has vanished: %v", s.incidentCounts())
	}
	s.run(400)
	if page := s.page("dra_incident", "dra_device_held"); page != "" || len(s.state.devices.byUUID)+len(s.state.incidents.byModel) != 0 {
		t.Errorf("after its grace:\n%s", page)
	}
}

// TestIncidentsOfRandomHistories compares the totals with a count over the whole history:
// of two GPUs that get Xids, and are read or not.
func TestIncidentsOfRandomHistories(t *testing.T) {
	codes := map[int]string{31: "xid_application", 48: "xid_reset", 79: "xid_service", 144: "xid_unclear"}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 24))
		s := newScene(t, gpu(0), gpu(1))
		const seconds = 400
		reported := map[string]map[int][]int{} // the seconds in which a device got a code
		read := map[string][]bool{}
		totals := map[string]map[int]int{}
		for _, uuid := range []string{"GPU-0", "GPU-1"} {
			s.setHealthy(uuid)
			s.setXIDs(uuid)
			reported[uuid], totals[uuid] = map[int][]int{}, map[int]int{}
		}
		for second := range seconds {
			for _, uuid := range []string{"GPU-0", "GPU-1"} {
				if random.IntN(40) == 0 {
					s.unreadable[uuid] = !s.unreadable[uuid]
				}
				read[uuid] = append(read[uuid], !s.unreadable[uuid])
				for code := range codes {
					if random.IntN(60) == 0 && second > 0 {
						reported[uuid][code] = append(reported[uuid][code], second)
						totals[uuid][code]++
						s.setXID(uuid, code, totals[uuid][code])
					}
				}
			}
			s.run(1)
		}
		for code, kind := range codes {
			count, during, watched := 0.0, 0.0, 0.0
			for uuid, by := range reported {
				was, previous, lastRead := false, false, -1000
				last, extended := -1000, -1000
				for second := range seconds {
					if read[uuid][second] {
						lastRead = second
					}
					fresh := second-lastRead <= 10
					if slices.Contains(by[code], second) {
						last, extended = second, second
						if !was {
							count++
						}
					}
					// A signal lasts while the device cannot be read, and until it is read
					// five seconds later. Xid 31 is none.
					signal := code != 31 && extended >= 0 && (!fresh || extended == second || lastRead-extended < 5)
					switch {
					case signal && !fresh:
						extended = second
					case !signal && extended != second:
						extended = -1000
					}
					switch {
					case was:
						during++
					case previous && fresh:
						watched++
					}
					was, previous = signal || second-last < 5, fresh
				}
			}
			got := func(family string) float64 {
				value, _ := s.value(family, "kind", kind)
				return math.Round(value)
			}
			if got("dra_incidents_total") != count || got("dra_incident_seconds_total") != during || got("dra_incident_watched_seconds_total") != watched {
				t.Fatalf("seed %d: %s: %v incidents, %v s, watched for %v s; want %v, %v, %v", seed, kind,
					got("dra_incidents_total"), got("dra_incident_seconds_total"), got("dra_incident_watched_seconds_total"), count, during, watched)
			}
		}
	}
}

// setXID sets how often a code has been reported of a device, the last time in the next
// second.
func (s *scene) setXID(uuid string, code, count int) {
	for i := range s.facts.Samples {
		if s.facts.Samples[i].Device.UUID != uuid {
			continue
		}
		xids := slices.Clone(s.facts.Samples[i].XIDs)
		at := slices.IndexFunc(xids, func(x device.XID) bool { return x.Code >= code })
		reported := device.XID{Code: code, Count: uint64(count), Last: s.now.Wall.Add(time.Second)}
		switch {
		case at < 0:
			xids = append(xids, reported)
		case xids[at].Code == code:
			xids[at] = reported
		default:
			xids = slices.Insert(xids, at, reported)
		}
		s.facts.Samples[i].XIDs = xids
	}
}

// TestKindsOfIncidentsAreNamed: each kind has a name of its own.
func TestKindsOfIncidentsAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for kind := range incidentKinds {
		if name := kind.String(); name == "" || seen[name] || strings.ToLower(name) != name {
			t.Errorf("kind %d is %q", kind, name)
		} else {
			seen[name] = true
		}
	}
	if len(seen) != 12 || noIncident.String() != "" {
		t.Error(fmt.Sprint(seen))
	}
}
