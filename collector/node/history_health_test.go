package node

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// healthHistory is the health of a history's devices: Xids of all sorts, from a
// source that begins again now and then, memory errors, and rows that cannot
// be remapped.
type healthHistory struct {
	*scene
	random *rand.Rand

	truth    map[string]map[string]float64 // errors of each device, by label
	reported map[string]map[int]uint64     // what its source reports
	bad      map[constraint]float64        // how often something could have violated it
}

func newHealthHistory(s *scene, random *rand.Rand) *healthHistory {
	a := &healthHistory{scene: s, random: random, truth: map[string]map[string]float64{}, reported: map[string]map[int]uint64{}, bad: map[constraint]float64{}}
	for i := range s.facts.Samples {
		uuid := s.facts.Samples[i].Device.UUID
		a.truth[uuid], a.reported[uuid] = map[string]float64{}, map[int]uint64{}
		s.facts.Samples[i].XIDs = []device.XID{}
		s.setDetail(uuid, device.ECCErrors, 3, "uncorrected")
	}
	return a
}

func (a *healthHistory) change(uuid string) {
	switch a.random.IntN(7) {
	case 0, 1:
		codes := []int{13, 79, 48, 95, 1000, 1001}
		code := codes[a.random.IntN(len(codes))]
		label := strconv.Itoa(code)
		if code >= 1000 {
			label = xidOther
		}
		a.truth[uuid][label]++
		a.reported[uuid][code]++
		a.bad[constraintRecovery]++
		a.bad[constraintMemory]++
		a.publishXIDs(uuid)
	case 2:
		clear(a.reported[uuid])
		a.publishXIDs(uuid)
	case 3:
		a.details[uuid][device.Reading{Quantity: device.ECCErrors, Details: [2]string{"uncorrected"}}]++
		a.bad[constraintMemory]++
	case 4:
		a.set(uuid, device.RowRemapFailed, 1)
		a.bad[constraintMemory]++
	case 5:
		a.sample(uuid).XIDs = nil // not received until the next are
	default:
		a.set(uuid, device.RowRemapFailed, 0)
	}
}

// sample returns the sample of a device; nil if there is none.
func (a *healthHistory) sample(uuid string) *device.Sample {
	for i := range a.facts.Samples {
		if a.facts.Samples[i].Device.UUID == uuid {
			return &a.facts.Samples[i]
		}
	}
	return nil
}

func (a *healthHistory) publishXIDs(uuid string) {
	a.sample(uuid).XIDs = xidsIn(a.reported[uuid], a.now.Wall.Add(time.Second))
}

// check holds the page against the truth.
func (a *healthHistory) check() {
	a.t.Helper()
	values, critical := map[string]float64{}, map[string]bool{}
	for _, row := range a.last.Rows() {
		uuid := row.Labels.Get("uuid")
		switch row.Family.Name {
		case "dra_device_xid_errors_total":
			if want := a.truth[uuid][row.Labels.Get("xid")]; row.Value != want {
				a.t.Fatalf("%v errors %s of %s, want %v", row.Value, row.Labels.Get("xid"), uuid, want)
			}
			if sample := a.sample(uuid); sample == nil || sample.XIDs == nil {
				a.t.Fatalf("%v errors %s of %s, whose Xids are not received", row.Value, row.Labels.Get("xid"), uuid)
			}
		case "dra_device_healthy":
			if row.Labels.Get("by") == "hardware" {
				values[uuid] = row.Value
			}
		case "dra_device_health_signal_info":
			critical[uuid] = critical[uuid] || row.Labels.Get("severity") == "critical"
		case "dra_constraint_violations_total":
			a.checkViolations(row.Labels.Get("constraint"), row.Value)
		}
	}
	for _, uuid := range []string{"GPU-0", "GPU-1", "GPU-2", "MIG-a", "MIG-b"} {
		healthy, known := values[uuid]
		if unhealthy := known && healthy == 0; unhealthy != critical[uuid] {
			a.t.Fatalf("%s: healthy is %v, with a critical signal: %v", uuid, healthy, critical[uuid])
		}
		if values["GPU-2"] == 0 && critical["GPU-2"] && uuid[:3] == "MIG" && !critical[uuid] {
			a.t.Fatalf("%s is healthy though its parent is unhealthy", uuid)
		}
	}
}

func (a *healthHistory) checkViolations(of string, count float64) {
	a.t.Helper()
	for c := range constraints {
		if c.String() == of && count > a.bad[c] {
			a.t.Fatalf("%v violations of %s in %v mishaps", count, of, a.bad[c])
		}
	}
}
