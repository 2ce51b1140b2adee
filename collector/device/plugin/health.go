package plugin

import (
	"context"
	"log/slog"
	"slices"

	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// healthLog logs health signals that change, with their reasons, which are in no
// metric. Of each report it writes one line at most. It is not safe for concurrent
// use.
type healthLog struct {
	log    *slog.Logger
	states map[signalID]v1alpha1.HealthState // of signals that were not healthy
}

type signalID struct{ pool, device, signal string }

// observe applies a report that the decoder has accepted, and the description
// before it.
func (h *healthLog) observe(ctx context.Context, description *v1alpha1.Description, report *v1alpha1.Report) {
	if len(h.states) == 0 && !slices.ContainsFunc(report.GetDevices(), func(r *v1alpha1.DeviceReport) bool { return len(r.GetHealth()) > 0 }) {
		return
	}
	states := make(map[signalID]v1alpha1.HealthState)
	var first signalID
	var reason string
	changes := 0
	for _, r := range report.GetDevices() {
		for _, signal := range r.GetHealth() {
			d := description.GetDevices()[r.GetDevice()]
			id := signalID{d.GetPool(), d.GetName(), signal.GetName()}
			if signal.GetState() > v1alpha1.HealthState_HEALTH_STATE_HEALTHY {
				states[id] = signal.GetState()
			}
			if states[id] == h.states[id] {
				continue
			}
			if changes++; changes == 1 {
				first, reason = id, signal.GetReason()
			}
		}
	}
	before := h.states
	h.states = states
	if changes == 0 {
		return
	}
	state := func(of map[signalID]v1alpha1.HealthState) string {
		return healthStates()[max(of[first], v1alpha1.HealthState_HEALTH_STATE_HEALTHY)]
	}
	level := slog.LevelWarn
	if states[first] == 0 {
		level = slog.LevelInfo
	}
	h.log.Log(ctx, level, "the driver reports another health of devices",
		"changes", changes, "pool", first.pool, "device", first.device, "signal", first.signal,
		"state", state(states), "before", state(before), "reason", reason)
}
