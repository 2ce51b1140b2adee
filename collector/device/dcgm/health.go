package dcgm

import "github.com/dra-exporter/dra-exporter/collector/device"

// incident is what a health check of an engine found amiss: dcgmIncidentInfo_t.
type incident struct {
	entity entity
	system uint // one of DCGM_HEALTH_WATCH_*
	result int  // one of DCGM_HEALTH_RESULT_*
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

// systems are those of GPUs (DCGM_HEALTH_WATCH_*). Which of them are checked
// is told by DcgmHealthWatch::MonitorWatches.
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
	}
}

// healthReadings are the worst result of each system of an entity: of those
// that are checked, and of any other that has something amiss.
func healthReadings(of entity, incidents []incident) (readings []device.Reading) {
	for _, s := range systems() {
		worst, amiss := 0, false
		for _, i := range incidents {
			if i.entity == of && i.system == s.bit {
				worst, amiss = max(worst, i.result), true
			}
		}
		if !s.checked && !amiss {
			continue
		}
		for _, r := range results() {
			readings = append(readings, device.Reading{
				Quantity: device.HealthCheck, Details: [2]string{s.name, r.name}, Value: truth(r.code == worst),
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
