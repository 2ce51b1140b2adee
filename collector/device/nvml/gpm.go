//go:build cgo

package nvml

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// gpmFunctions are what reading engine activity takes.
func gpmFunctions() []string {
	return []string{
		"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree",
		"nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet",
	}
}

// gpmMetric is one metric of GPM, in percent. Those with the same quantity
// and engine are of several units of one kind; their mean is returned.
type gpmMetric struct {
	id       nvml.GpmMetricId
	quantity device.Quantity
	engine   string
}

// gpmMetrics are the metrics that are read.
func gpmMetrics() []gpmMetric {
	metrics := []gpmMetric{
		{nvml.GPM_METRIC_GRAPHICS_UTIL, device.EngineActive, "graphics"},
		{nvml.GPM_METRIC_SM_UTIL, device.EngineActive, "sm"},
		{nvml.GPM_METRIC_ANY_TENSOR_UTIL, device.EngineActive, "tensor"},
		{nvml.GPM_METRIC_FP64_UTIL, device.EngineActive, "fp64"},
		{nvml.GPM_METRIC_FP32_UTIL, device.EngineActive, "fp32"},
		{nvml.GPM_METRIC_FP16_UTIL, device.EngineActive, "fp16"},
		{nvml.GPM_METRIC_DRAM_BW_UTIL, device.EngineActive, "dram"},
		{nvml.GPM_METRIC_SM_OCCUPANCY, device.SMOccupancy, ""},
	}
	for id := nvml.GPM_METRIC_NVENC_0_UTIL; id <= nvml.GPM_METRIC_NVENC_3_UTIL; id++ {
		metrics = append(metrics, gpmMetric{id, device.EngineActive, "encoder"})
	}
	for id := nvml.GPM_METRIC_NVDEC_0_UTIL; id <= nvml.GPM_METRIC_NVDEC_7_UTIL; id++ {
		metrics = append(metrics, gpmMetric{id, device.EngineActive, "decoder"})
	}
	return metrics
}

// gpmPause is the shortest time between two samples of a device: their
// values are not updated more often. It is 100 ms in nvml.h.
const gpmPause = 110 * time.Millisecond

// engineActivity reads how active the engines of a device were between two reads.
type engineActivity struct {
	connection  *librarySession
	gpu         nvml.Device
	instance    int  // the GPU instance, or device.Unknown for the whole GPU
	unsupported bool // the device does not have it

	number   uint64 // of the connection that the samples belong to
	samples  [2]nvml.GpmSample
	present  int           // the newer one
	at       clock.Instant // of it; zero: none yet
	readings []device.Reading
}

// read adds the activity since the read before to the observation.
func (a *engineActivity) read(o *device.Observation, now clock.Instant) error {
	if a.unsupported {
		return nil
	}
	ret := a.measure(now)
	o.Readings = append(o.Readings, a.readings...)
	if u, ok := a.utilization(); ok {
		o.Readings = append(o.Readings, u)
	}
	switch {
	case ret == nvml.SUCCESS, unknown(ret):
		return nil
	case unsupported(ret):
		a.free()
		a.unsupported = true
		return nil
	default:
		return fmt.Errorf("read engine_active of %s: %w", o.Device.UUID, ret)
	}
}

// utilization returns the utilization of a MIG device: the share of time in which
// its engines had work. No other call reports it. The driver reports that of a
// whole GPU.
func (a *engineActivity) utilization() (device.Reading, bool) {
	for _, r := range a.readings {
		if a.instance != device.Unknown && r.Quantity == device.EngineActive && r.Details[0] == "graphics" {
			return device.Reading{Quantity: device.Utilization, Value: r.Value, Measured: r.Measured}, true
		}
	}
	return device.Reading{}, false
}

// measure takes a sample and computes the activity since the one before. Readings
// that cannot be renewed yet keep their time.
func (a *engineActivity) measure(now clock.Instant) nvml.Return {
	if a.number != a.connection.number {
		a.number, a.samples, a.at, a.readings = a.connection.number, [2]nvml.GpmSample{}, clock.Instant{}, nil
	}
	if !a.at.IsZero() && now.Since(a.at) < gpmPause {
		return nvml.SUCCESS
	}
	a.readings = nil
	if ret := a.allocate(); ret != nvml.SUCCESS {
		return ret
	}
	next := 1 - a.present
	if ret := a.sample(a.samples[next]); ret != nvml.SUCCESS {
		a.at = clock.Instant{}
		return ret
	}
	first := a.at.IsZero()
	a.present, a.at = next, now
	if first {
		return nvml.SUCCESS
	}
	ret := a.compare()
	during := device.Window{From: now.Elapsed, To: a.connection.now().Elapsed}
	for i := range a.readings {
		a.readings[i].Measured = during
	}
	return ret
}

// allocate allocates the samples if the device supports GPM.
func (a *engineActivity) allocate() nvml.Return {
	if a.samples[0] != nil {
		return nvml.SUCCESS
	}
	support, ret := a.gpu.GpmQueryDeviceSupport()
	if ret != nvml.SUCCESS {
		return ret
	}
	if support.IsSupportedDevice == 0 {
		return nvml.ERROR_NOT_SUPPORTED
	}
	for i := range a.samples {
		if a.samples[i], ret = a.connection.samples.alloc(a.connection.library); ret != nvml.SUCCESS {
			a.samples[i] = nil
			a.free()
			return ret
		}
	}
	return nvml.SUCCESS
}

func (a *engineActivity) sample(s nvml.GpmSample) nvml.Return {
	if a.instance == device.Unknown {
		return a.gpu.GpmSampleGet(s)
	}
	return a.gpu.GpmMigSampleGet(a.instance, s)
}

// compare queries the activity between the two samples.
func (a *engineActivity) compare() nvml.Return {
	metrics := gpmMetrics()
	question := nvml.GpmMetricsGetType{
		NumMetrics: uint32(len(metrics)),
		Sample1:    a.samples[1-a.present],
		Sample2:    a.samples[a.present],
	}
	for i, m := range metrics {
		question.Metrics[i].MetricId = uint32(m.id)
	}
	if ret := a.connection.library.GpmMetricsGet(&question); ret != nvml.SUCCESS {
		return ret
	}
	return a.decode(metrics, question.Metrics[:len(metrics)])
}

// decode sets the readings from the metrics. It returns the code of a metric that
// failed.
func (a *engineActivity) decode(metrics []gpmMetric, answers []nvml.GpmMetric) nvml.Return {
	failed := nvml.SUCCESS
	sum, units := 0.0, 0
	for i, m := range metrics {
		switch ret := nvml.Return(answers[i].NvmlReturn); {
		case ret == nvml.SUCCESS:
			sum, units = sum+answers[i].Value/100, units+1
		case !unsupported(ret) && !unknown(ret):
			failed = ret
		}
		if next := i + 1; next < len(metrics) && metrics[next].quantity == m.quantity && metrics[next].engine == m.engine {
			continue
		}
		if units > 0 {
			a.readings = append(a.readings, device.Reading{Quantity: m.quantity, Details: [2]string{m.engine}, Value: sum / float64(units)})
		}
		sum, units = 0, 0
	}
	return failed
}

// free frees the samples. Those of an earlier connection were freed with it.
func (a *engineActivity) free() {
	for i, s := range a.samples {
		if s != nil && a.number == a.connection.number {
			a.connection.samples.free(s)
		}
		a.samples[i] = nil
	}
	a.at, a.readings = clock.Instant{}, nil
}

// release frees the samples. It does nothing on nil.
func (a *engineActivity) release() {
	if a != nil {
		a.free()
	}
}
