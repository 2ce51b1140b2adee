//go:build cgo

package stubs

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// metrics takes two samples and returns the metrics between them.
func metrics(t *testing.T, library nvml.Interface, sample func(nvml.GpmSample) nvml.Return, ids ...nvml.GpmMetricId) string {
	t.Helper()
	get := nvml.GpmMetricsGetType{NumMetrics: uint32(len(ids))}
	for _, place := range []*nvml.GpmSample{&get.Sample1, &get.Sample2} {
		taken, ret := library.GpmSampleAlloc()
		must(t, ret)
		defer taken.Free()
		must(t, sample(taken))
		*place = taken
	}
	for i, id := range ids {
		get.Metrics[i].MetricId = uint32(id)
	}
	must(t, library.GpmMetricsGet(&get))
	text := ""
	for _, metric := range get.Metrics[:len(ids)] {
		text += fmt.Sprintf("%.1f (%v) ", metric.Value, nvml.Return(metric.NvmlReturn))
	}
	return text
}

func TestGPM(t *testing.T) {
	n := NewNode(t, 1)
	n.Set(0, "profiling.sm", "0.42")
	n.Set(0, "profiling.decoder", "0.05")
	n.Set(0, "profiling.fp64", "none")
	library := open(t, n)
	device := gpu(t, library, 0)
	got := metrics(t, library, device.GpmSampleGet, nvml.GPM_METRIC_SM_UTIL, nvml.GPM_METRIC_NVDEC_3_UTIL, nvml.GPM_METRIC_FP64_UTIL, nvml.GPM_METRIC_DRAM_BW_UTIL)
	if want := "42.0 (Success) 5.0 (Success) 0.0 (Not Supported) 0.0 (Success) "; got != want {
		t.Errorf("GPM says %s, not %s", got, want)
	}
	gi, _ := n.CreateMIG(0, "2g.20gb", 0)
	n.Set(0, fmt.Sprintf("mig.%d.profiling.sm", gi), "0.9")
	ofInstance := func(sample nvml.GpmSample) nvml.Return { return device.GpmMigSampleGet(gi, sample) }
	if got := metrics(t, library, ofInstance, nvml.GPM_METRIC_SM_UTIL, nvml.GPM_METRIC_DRAM_BW_UTIL); got != "90.0 (Success) 0.0 (Success) " {
		t.Errorf("GPM of an instance says %s", got)
	}
	if live := n.Live(); live.GPMSamples != 0 {
		t.Errorf("%d samples are left", live.GPMSamples)
	}
	sample, ret := library.GpmSampleAlloc()
	must(t, ret)
	defer sample.Free()
	expect(t, "an instance that is not there", device.GpmMigSampleGet(12, sample), nvml.ERROR_INVALID_ARGUMENT)
	n.Set(0, "gpm", "0")
	expect(t, "a GPU without GPM", device.GpmSampleGet(sample), nvml.ERROR_NOT_SUPPORTED)
}

// A sample that was never taken, or of another GPU, measures nothing.
func TestGPMSamples(t *testing.T) {
	n := NewNode(t, 2)
	library := open(t, n)
	one, ret := library.GpmSampleAlloc()
	must(t, ret)
	two, ret := library.GpmSampleAlloc()
	must(t, ret)
	get := nvml.GpmMetricsGetType{NumMetrics: 1, Sample1: one, Sample2: two}
	expect(t, "samples that were never taken", library.GpmMetricsGet(&get), nvml.ERROR_INVALID_ARGUMENT)
	must(t, gpu(t, library, 0).GpmSampleGet(one))
	must(t, gpu(t, library, 1).GpmSampleGet(two))
	expect(t, "samples of two GPUs", library.GpmMetricsGet(&get), nvml.ERROR_INVALID_ARGUMENT)
	n.SetNode("limit.gpm_samples", "2")
	_, ret = library.GpmSampleAlloc()
	expect(t, "a sample beyond the limit", ret, nvml.ERROR_MEMORY)
	must(t, one.Free())
	must(t, two.Free())
	expect(t, "a sample that has been freed", two.Free(), nvml.ERROR_INVALID_ARGUMENT)
}
