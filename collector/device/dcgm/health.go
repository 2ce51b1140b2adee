package dcgm

import "github.com/dra-exporter/dra-exporter/collector/device"

// incident is an error that a health check of an engine found:
// dcgmIncidentInfo_t.
type incident struct {
	entity entity
	system uint // one of DCGM_HEALTH_WATCH_*
	result int  // one of DCGM_HEALTH_RESULT_*
	code   uint // one of DCGM_FR_*
}

// Errors of incidents (dcgm_errors.h) that other readings cover.
const (
	nvlinkDown = 14  // DCGM_FR_NVLINK_DOWN
	anyXID     = 101 // DCGM_FR_XID_ERROR
)

// coveredByReadings reports whether an incident adds nothing to other readings,
// which say more about the same fact:
//
//   - A link that is down fails the NVLink watch as long as it is down, even
//     if it was never up, is being retrained, or is off because the GPU is
//     in MIG mode.
//   - An Xid gives a warning in the system that it belongs to, even one that
//     a program caused by its own error, such as 13 and 31.
//
// The Xids that an engine considers most severe belong to all systems; they are
// kept.
func (i incident) coveredByReadings() bool {
	switch healthSystem(i.system).name {
	case allSystems:
		return false
	case "nvlink":
		return i.code == nvlinkDown || i.code == anyXID
	default:
		return i.code == anyXID
	}
}

// healthResult is a result of a health check (dcgmHealthWatchResults_t).
type healthResult struct {
	code int
	name string
}

func results() []healthResult { return []healthResult{{0, "pass"}, {10, "warn"}, {20, "fail"}} }

// system is a system that an engine watches.
type system struct {
	bit     uint
	name    string
	checked bool // for GPUs; an engine accepts watches of the others and never checks them
}

// allSystems is the name for incidents that belong to no single system.
const allSystems = "all"

// systems are the systems of DCGM_HEALTH_WATCH_*.
// DcgmHealthWatch::MonitorWatches defines which of them are checked. Only newer
// engines check the driver's system, so it is reported only when it has an
// incident.
func systems() []system {
	return []system{
		{0x1, "pcie", true},
		{0x2, "nvlink", true},
		{0x4, "pmu", false},
		{0x8, "mcu", false},
		{0x10, "memory", true},
		{0x20, "sm", false},
		{0x40, "inforom", true},
		{0x80, "thermal", true},
		{0x100, "power", true},
		{0x200, "driver", false},
		{0x400, "nvswitch_nonfatal", false},
		{0x800, "nvswitch_fatal", false},
		{0x1000, "connectx", false},
		{0x2000, "imex", false},
		// DCGM_HEALTH_WATCH_ALL: since DCGM 4.4.2 the Xids after which a GPU
		// cannot be used (48, 74, 79, 95, 119, 120, 140) come as such.
		{0xFFFFFFFF, allSystems, false},
	}
}

// healthSystem returns the system of an incident. An unknown one, as newer engines
// may have, counts as allSystems.
func healthSystem(bit uint) system {
	all := systems()
	for _, s := range all {
		if s.bit == bit {
			return s
		}
	}
	return all[len(all)-1]
}

// healthReadings returns the worst result of each system of an entity: of those
// that are checked, and of any other that has an incident.
func healthReadings(e entity, incidents []incident) (readings []device.Reading) {
	worst := make(map[string]int)
	for _, i := range incidents {
		if i.entity == e && !i.coveredByReadings() {
			name := healthSystem(i.system).name
			worst[name] = max(worst[name], i.result)
		}
	}
	for _, s := range systems() {
		present, ok := worst[s.name]
		if !s.checked && !ok {
			continue
		}
		for _, r := range results() {
			readings = append(readings, device.Reading{
				Quantity: device.HealthCheck, Details: [2]string{s.name, r.name}, Value: boolValue(r.code == present),
			})
		}
	}
	return readings
}

// links is the number of NVLinks of a GPU that are up and down.
type links struct{ up, down int }

// linkReadings returns the readings of a GPU's links; none for a GPU without
// links.
func linkReadings(l links) []device.Reading {
	if l.up+l.down == 0 {
		return nil
	}
	return []device.Reading{
		{Quantity: device.NVLinks, Details: [2]string{"active"}, Value: float64(l.up)},
		{Quantity: device.NVLinks, Details: [2]string{"inactive"}, Value: float64(l.down)},
	}
}
