//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Reasons why a GPU is slowed down, for which the binding has no names: the
// constants nvmlClocksThrottleReason… of nvml.h.
const (
	hwSlowdown        = 0x08
	hwThermalSlowdown = 0x40
	hwPowerBrake      = 0x80
)

// throttleRows are the reasons why a GPU slows itself down. Where it counts
// for how long, that is told, in nanoseconds of the field; where it does not,
// the reasons that it gives at each read are added up.
//
// The reasons are closed: power_cap, thermal (the software keeps the GPU below
// its highest operating temperature), hw_thermal, hw_power_brake and
// hw_slowdown (the hardware halves the clocks at least: because it is too hot,
// because the supply asserts a brake, for any of the two or a fast trip of the
// power; the last has no counter), sync_boost, board_limit, reliability,
// low_utilization.
func throttleRows() []row {
	return []row{
		throttled("power_cap", nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP),
		throttledNow("power_cap", nvml.ClocksEventReasonSwPowerCap),
		throttled("thermal", nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN),
		throttled("thermal", nvml.FI_DEV_PERF_POLICY_THERMAL),
		throttledNow("thermal", nvml.ClocksEventReasonSwThermalSlowdown),
		throttled("hw_thermal", nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN),
		throttledNow("hw_thermal", hwThermalSlowdown),
		throttled("hw_power_brake", nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN),
		throttledNow("hw_power_brake", hwPowerBrake),
		throttledNow("hw_slowdown", hwSlowdown),
		throttled("sync_boost", nvml.FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST),
		throttledNow("sync_boost", nvml.ClocksEventReasonSyncBoost),
		throttled("board_limit", nvml.FI_DEV_PERF_POLICY_BOARD_LIMIT),
		throttled("reliability", nvml.FI_DEV_PERF_POLICY_RELIABILITY),
		throttled("low_utilization", nvml.FI_DEV_PERF_POLICY_LOW_UTILIZATION),
	}
}

func throttled(reason string, id uint32) row {
	return valued(device.Throttled, reason, device.Fast, field{id: id, scale: 1e-9})
}

func throttledNow(reason string, bit uint64) row {
	return called(device.Throttled, reason, device.Fast, currentReasons, func(p *probe) (float64, nvml.Return) {
		return p.throttledFor(bit)
	})
}

const (
	currentReasons   = "nvmlDeviceGetCurrentClocksEventReasons"
	supportedReasons = "nvmlDeviceGetSupportedClocksEventReasons"
)

// throttledFor is for how long the GPU has been seen slowed down for a
// reason, in seconds since it was first read.
func (p *probe) throttledFor(reason uint64) (float64, nvml.Return) {
	if p.has.has(supportedReasons) {
		all, ret := p.supported.once(p.device.GetSupportedClocksEventReasons)
		if ret == nvml.SUCCESS && all&reason == 0 {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
	}
	_, ret := p.reasons.once(func() (uint64, nvml.Return) {
		now, ret := p.device.GetCurrentClocksEventReasons()
		if ret == nvml.SUCCESS {
			p.past.throttle.observe(now, p.now)
		}
		return now, ret
	})
	return p.past.throttle.seconds[reason], ret
}

// observe takes in the reasons of a read. What was a reason at the read
// before is taken to have been one up to now.
func (t *throttle) observe(reasons uint64, now clock.Instant) {
	if passed := now.Since(t.at); !t.at.IsZero() && passed <= t.gap {
		for rest := t.reasons; rest != 0; rest &= rest - 1 {
			t.seconds[rest&-rest] += passed.Seconds()
		}
	}
	t.reasons, t.at = reasons, now
}
