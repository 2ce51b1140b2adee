package simulated

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// reader reads one whole device with its partitions.
type reader struct {
	source *Source
	key    string
}

// Key is the device's UUID, or its address where it has none.
func (r reader) Key() string { return r.key }

// Read reads what the device shows now. It heeds its context as little as a
// vendor's library does.
func (r reader) Read(_ context.Context, tier device.Tier) ([]device.Observation, error) {
	s := r.source
	// What is wrong with the file, Readers says.
	_ = s.reload()
	s.await(r.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now, d := s.elapsed(), s.find(r.key)
	if _, fails := s.faults.at(now, "error", ""); fails {
		return nil, errSource
	}
	if d == nil {
		return nil, errGone
	}
	if _, gone := d.faults.at(now, "disappear", ""); gone {
		return nil, errGone
	}
	if _, fails := d.faults.at(now, "error", ""); fails {
		return nil, errDevice
	}
	if _, lost := d.faults.at(now, "lost", ""); lost {
		return d.lost(), errLost
	}
	observations := make([]device.Observation, len(d.units))
	for i := range d.units {
		observations[i] = d.units[i].observe(now, d.faults, tier)
	}
	if s.listing != nil && s.listing() {
		d.units[0].list(&observations[0])
	}
	return observations, d.failing(now, tier)
}

// lost is what is known of a device that the driver has lost: who it was.
func (d *simulatedDevice) lost() []device.Observation {
	observations := make([]device.Observation, len(d.units))
	for i := range d.units {
		observations[i].Device = d.units[i].identity
	}
	observations[0].Readings = []device.Reading{{Quantity: device.Lost, Value: 1}}
	return observations
}

// failing returns an error that names the quantities of the device that fail now.
func (d *simulatedDevice) failing(now float64, wanted device.Tier) error {
	failing := make(map[string]bool)
	for _, u := range d.units {
		for _, s := range u.series {
			if _, fails := d.faults.at(now, "error", s.name); fails && tier(s.quantity) <= wanted {
				failing[s.name] = true
			}
		}
	}
	var errs []error
	for _, quantity := range slices.Sorted(maps.Keys(failing)) {
		errs = append(errs, fmt.Errorf("read %s of %s: %w", quantity, d.key, errDevice))
	}
	return errors.Join(errs...)
}
