package tpu

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/tpu/runtimemetrics"
)

// The metrics that are read. The duty cycle is that of a chip, memory that of a core:
// a chip of TPU v2, v3 and v7 has two.
const (
	dutyCycle   = "tpu.runtime.tensorcore.dutycycle.percent"
	memoryUsage = "tpu.runtime.hbm.memory.usage.bytes"
	memoryTotal = "tpu.runtime.hbm.memory.total.bytes"
)

const (
	driver = "tpu.google.com"
	vendor = "google"

	maxChips = 64
	maxAge   = 90 * time.Second
)

// metricValue is the value of one device of a metric.
type metricValue struct {
	number   float64
	measured device.Window
}

// decodeValues returns the values of a response by the number of the device. A value that
// is older than those of other sources may be is left out. read is when the metric was
// read, now its end.
func decodeValues(response *runtimemetrics.MetricResponse, read device.Window, now clock.Instant) (map[int64]metricValue, error) {
	metrics := response.GetMetric().GetMetrics()
	if len(metrics) > 2*maxChips {
		return nil, fmt.Errorf("%d devices are more than %d", len(metrics), 2*maxChips)
	}
	values := make(map[int64]metricValue, len(metrics))
	for _, m := range metrics {
		id := m.GetAttribute().GetValue().GetIntAttr()
		if _, ok := values[id]; ok || id < 0 || id >= 2*maxChips {
			return nil, fmt.Errorf("the device %d is there twice, or is no number of a device", id)
		}
		v := metricValue{measured: read}
		switch of := m.GetGauge().GetValue().(type) {
		case *runtimemetrics.Gauge_AsDouble:
			v.number = of.AsDouble
		case *runtimemetrics.Gauge_AsInt:
			v.number = float64(of.AsInt)
		default:
			return nil, fmt.Errorf("the value of the device %d is no number", id)
		}
		if !(v.number >= 0 && v.number <= 1<<50) {
			return nil, fmt.Errorf("the value of the device %d is %v", id, v.number)
		}
		if m.GetTimestamp() != nil {
			age := max(now.Wall.Sub(m.GetTimestamp().AsTime()), 0)
			if !m.GetTimestamp().IsValid() || age > maxAge {
				continue
			}
			v.measured = device.Window{From: now.Elapsed - age, To: now.Elapsed - age}
		}
		values[id] = v
	}
	return values, nil
}

// observe returns the chips with what the metrics say of them. hasFile reports whether
// the device file of a name is there. An error beside chips says what is missing.
func observe(duty, used, total map[int64]metricValue, hasFile func(name string) bool) ([]device.Observation, error) {
	var err error
	cores := 1 // of a chip
	switch chips := len(duty); {
	case chips == 0 || len(total)%chips != 0 || len(used) != len(total):
		err = fmt.Errorf("%d duty cycles, %d used and %d total sizes of memory do not fit together", len(duty), len(used), len(total))
		used, total = nil, nil
	case len(total) > 0:
		cores = len(total) / chips
	}
	var chips []device.Observation
	for _, id := range slices.Sorted(maps.Keys(duty)) {
		chip := device.Observation{Device: identity(id, hasFile)}
		busy := duty[id]
		if busy.number > 100 {
			err = errors.Join(err, fmt.Errorf("the duty cycle of the chip %d is %v %%", id, busy.number))
		} else {
			chip.Readings = append(chip.Readings, device.Reading{Quantity: device.Utilization, Value: busy.number / 100, Measured: busy.measured})
		}
		for quantity, values := range map[device.Quantity]map[int64]metricValue{device.MemoryUsed: used, device.MemorySize: total} {
			if sum, ok := sumCores(values, id, cores); ok {
				chip.Readings = append(chip.Readings, device.Reading{Quantity: quantity, Value: sum.number, Measured: sum.measured})
			}
		}
		chips = append(chips, chip)
	}
	return chips, err
}

// sumCores adds the values of all cores of a chip; false if one is missing.
func sumCores(values map[int64]metricValue, chip int64, cores int) (metricValue, bool) {
	sum := metricValue{measured: device.Window{From: math.MaxInt64, To: math.MinInt64}}
	for core := chip * int64(cores); core < (chip+1)*int64(cores); core++ {
		v, ok := values[core]
		if !ok {
			return metricValue{}, false
		}
		sum.number += v.number
		sum.measured.From, sum.measured.To = min(sum.measured.From, v.measured.From), max(sum.measured.To, v.measured.To)
	}
	return sum, true
}

// identity is a chip by its published name: that of its file in /dev, if it has one
// there, else that of its file in /dev/vfio.
func identity(chip int64, hasFile func(name string) bool) device.Device {
	name := strconv.FormatInt(chip, 10)
	if accel := "accel" + name; hasFile(accel) {
		name = accel
	}
	return device.Device{
		Vendor: vendor, Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		Published: device.PublishedName{Driver: driver, Device: name},
	}
}
