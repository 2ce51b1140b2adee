package dcgm

import "github.com/dra-exporter/dra-exporter/collector/device"

// incident is what a health check of an engine found amiss: dcgmIncidentInfo_t.
type incident struct {
	entity entity
	system uint // one of DCGM_HEALTH_WATCH_*
	result int  // one of DCGM_HEALTH_RESULT_*
	code   uint // one of DCGM_FR_*
}

// Errors that an engine finds (dcgm_errors.h) and that are judged elsewhere.
const (
	nvlinkDown = 14  // DCGM_FR_NVLINK_DOWN
	anyXID     = 101 // DCGM_FR_XID_ERROR
)

// coveredByReadings reports whether an incident is no news of a fault, because
// what it goes by is read by itself and judged with more knowledge:
//
//   - A link that is down fails the watch of NVLinks at once and for as long
//     as it is down, also one that was never up, is being trained anew or is
//     off because the GPU is in MIG mode.
//   - An Xid gives a warning in the system that it belongs to, also one that a
//     program caused by its own mistake, such as 13 and 31.
//
// Those Xids that an engine takes for the worst are of no system but of all of
// them, and stay.
func (i incident) coveredByReadings() bool {
	switch systemOf(i.system).name {
	case allSystems:
		return false
	case "nvlink":
		return i.code == nvlinkDown || i.code == anyXID
	default:
		return i.code == anyXID
	}
}

// result is what a health check can come to (dcgmHealthWatchResults_t).
type result struct {
	code int
	name string
}

func results() []result { return []result{{0, "pass"}, {10, "warn"}, {20, "fail"}} }

// system is one that an engine watches.
type system struct {
	bit     uint
	name    string
	checked bool // of GPUs; an engine accepts the others and never checks them
}

// allSystems is the name of what is amiss with a GPU in no system of its own.
const allSystems = "all"

// systems are those of GPUs (DCGM_HEALTH_WATCH_*). Which of them are checked
// is told by DcgmHealthWatch::MonitorWatches. The driver's is checked by newer
// engines alone: so it is told where it has something amiss, and that it would
// pass is told of no engine.
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

// systemOf is the system of an incident. One of none that is known, as newer
// engines may have, counts as one of all.
func systemOf(bit uint) system {
	all := systems()
	for _, s := range all {
		if s.bit == bit {
			return s
		}
	}
	return all[len(all)-1]
}

// healthReadings are the worst result of each system of an entity: of those
// that are checked, and of any other that has something amiss.
func healthReadings(of entity, incidents []incident) (readings []device.Reading) {
	worst := make(map[string]int)
	for _, i := range incidents {
		if i.entity == of && !i.coveredByReadings() {
			name := systemOf(i.system).name
			worst[name] = max(worst[name], i.result)
		}
	}
	for _, s := range systems() {
		present, amiss := worst[s.name]
		if !s.checked && !amiss {
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

// links are how many NVLinks of a GPU are up and how many are down.
type links struct{ up, down int }

// linkReadings are what a GPU's links say; nothing, of a GPU without any.
func linkReadings(l links) []device.Reading {
	if l.up+l.down == 0 {
		return nil
	}
	return []device.Reading{
		{Quantity: device.NVLinks, Details: [2]string{"active"}, Value: float64(l.up)},
		{Quantity: device.NVLinks, Details: [2]string{"inactive"}, Value: float64(l.down)},
	}
}
