//go:build cgo

package nvml

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// active are the lines of what was read that are about engines.
func active(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		for _, word := range []string{"GPU-", "engine_active", "sm_occupancy", "error:"} {
			if strings.Contains(line, word) {
				words := strings.Fields(line)
				lines = append(lines, strings.Join(words[:min(3, len(words))], " "))
				break
			}
		}
	}
	return strings.Join(lines, "\n")
}

const everyEngine = `
engine_active decoder 0.335
engine_active dram 0.1
engine_active encoder 1.675
engine_active fp16 0.13
engine_active fp32 0.12
engine_active fp64 0.11
engine_active graphics 0.01
engine_active sm 0.02
engine_active tensor 0.05
sm_occupancy 0.03 ratio`

// utilized are the utilizations in what was read, by the device's line.
func utilized(text string) map[string]string {
	of := make(map[string]string)
	on := ""
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case strings.Contains(words[0], "GPU-"):
			on = words[0]
		case words[0] == "utilization":
			of[on] += words[1]
		}
	}
	return of
}

// Two samples make a reading, of the whole GPU and of each MIG device that is
// alone in its GPU instance.
func TestEngineActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withGPM(t, s)
		slice(t, gpu(s, 0), 0, 3)
		from := NewOver(s, Options{Profiling: true})
		r := readers(t, from)[0]
		read := func() string {
			t.Helper()
			time.Sleep(time.Second)
			return active(written(r.Read(t.Context(), device.Fast)))
		}
		none := "GPU-0 parent=\"\" vendor=nvidia\nMIG-GPU-0-0 parent=\"GPU-0\" vendor=nvidia\nMIG-GPU-0-1 parent=\"GPU-0\" vendor=nvidia"
		all := strings.ReplaceAll(none+"\n", "vendor=nvidia\n", "vendor=nvidia"+everyEngine+"\n")
		all = strings.TrimSuffix(all, "\n")
		if got := read(); got != none {
			t.Errorf("one sample makes\n%s", got)
		}
		for range 3 {
			readers(t, from) // a look does not start over
			if got := read(); got != all {
				t.Errorf("two samples make\n%s\nwant\n%s", got, all)
			}
		}
		// A MIG device has its utilization by them, the whole GPU the driver's.
		utilization := utilized(written(r.Read(t.Context(), device.Fast)))
		if utilization["MIG-GPU-0-0"] != "0.01" || utilization["MIG-GPU-0-1"] != "0.01" || utilization["GPU-0"] == "0.01" {
			t.Errorf("the utilizations are %v", utilization)
		}
		// A read that comes too soon returns what the one before did.
		before := len(gpu(s, 0).GpmSampleGetCalls())
		sampled := from.options.Clock().Elapsed
		time.Sleep(gpmPause / 2)
		again, err := r.Read(t.Context(), device.Fast)
		if got := active(written(again, err)); got != all || len(gpu(s, 0).GpmSampleGetCalls()) != before {
			t.Errorf("at once there are\n%s", got)
		}
		for _, o := range again {
			for _, r := range o.Readings {
				of := r.Quantity == device.EngineActive || r.Quantity == device.SMOccupancy || r.Quantity == device.Utilization && o.Device.IsPartition()
				if want := (device.Window{From: sampled, To: sampled}); of && r.Measured != want || !of && !r.Measured.IsZero() {
					t.Errorf("%s of %s was measured at %v, sampled at %v", device.Specs()[r.Quantity].Name, o.Device.UUID, r.Measured, sampled)
				}
			}
		}
		if held, allocated := board.state(); held != 6 || allocated != 6 {
			t.Errorf("%d of %d samples are held, want two a device", held, allocated)
		}
		slice(t, gpu(s, 0), 3)
		read()
		if held, _ := board.state(); held != 4 {
			t.Errorf("%d samples are held for a GPU and a MIG device", held)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		if held, _ := board.state(); held != 0 {
			t.Errorf("%d samples are held in the end", held)
		}
	})
}

// The activity of a GPU instance is not reported for the compute instances in it.
func TestComputeInstancesShareTheirActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withGPM(t, s)
		slice(t, gpu(s, 0), 0, 3)
		from := NewOver(s, Options{Profiling: true})
		r := readers(t, from)[0]
		part, _ := gpu(s, 0).GetMigDeviceHandleByIndex(1)
		migOf(part).GetGpuInstanceIdFunc = func() (int, nvml.Return) { return 1, nvml.SUCCESS }
		migOf(part).GetComputeInstanceIdFunc = func() (int, nvml.Return) { return 1, nvml.SUCCESS }
		for range 2 {
			time.Sleep(time.Second)
			text := active(written(r.Read(t.Context(), device.Fast)))
			if _, parts, _ := strings.Cut(text, "MIG-"); strings.Contains(parts, "engine_active") {
				t.Errorf("compute instances have their GPU instance's activity:\n%s", text)
			}
		}
		if held, _ := board.state(); held != 2 {
			t.Errorf("%d samples are held", held)
		}
	})
}

// Without being asked, and on a GPU without GPM, nothing is sampled.
func TestNoProfiling(t *testing.T) {
	a100, h100 := fitted(dgxa100.New()), fitted(dgxh100.New())
	board := withGPM(t, h100)
	for _, from := range []*Source{NewOver(a100, Options{Profiling: true}), NewOver(h100, Options{})} {
		r := readers(t, from)[0]
		for range 2 {
			if text := written(r.Read(t.Context(), device.Slow)); strings.Contains(text, "engine") {
				t.Errorf("engines are read:\n%s", text)
			}
		}
	}
	if _, allocated := board.state(); allocated != 0 || len(gpu(a100, 0).GpmQueryDeviceSupportCalls()) != 1 {
		t.Errorf("%d samples were allocated", allocated)
	}
}

func TestEngineActivityFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withGPM(t, s)
		from := NewOver(s, Options{Profiling: true})
		r := readers(t, from)[0]
		read := func() string {
			time.Sleep(time.Second)
			return active(written(r.Read(t.Context(), device.Fast)))
		}
		read()
		board.fails[nvml.GPM_METRIC_FP64_UTIL] = nvml.ERROR_NOT_SUPPORTED
		for i := range 7 {
			board.fails[nvml.GPM_METRIC_NVDEC_1_UTIL+nvml.GpmMetricId(i)] = nvml.ERROR_NOT_SUPPORTED
		}
		board.fails[nvml.GPM_METRIC_SM_UTIL] = nvml.ERROR_UNKNOWN
		text := read()
		if strings.Contains(text, "fp64") || strings.Contains(text, "active sm") || !strings.Contains(text, "decoder 0.3\n") ||
			!strings.Contains(text, "error: read engine_active") || !strings.Contains(text, "fp32 0.12") {
			t.Errorf("some metrics fail:\n%s", text)
		}
		clear(board.fails)
		take := gpu(s, 0).GpmSampleGetFunc
		gpu(s, 0).GpmSampleGetFunc = func(nvml.GpmSample) nvml.Return { return nvml.ERROR_IN_USE }
		if text := read(); strings.Contains(text, "active") && !strings.Contains(text, "error") {
			t.Errorf("no sample could be taken:\n%s", text)
		}
		gpu(s, 0).GpmSampleGetFunc = take
		if text := read(); strings.Contains(text, "active") {
			t.Errorf("a sample from before the failure was used:\n%s", text)
		}
		if text := read(); !strings.Contains(text, "sm 0.02") {
			t.Errorf("there is no recovery:\n%s", text)
		}
		gpu(s, 0).GpmSampleGetFunc = func(nvml.GpmSample) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
		if text := read(); strings.Contains(text, "active") {
			t.Errorf("what is not supported is reported:\n%s", text)
		}
		if held, _ := board.state(); held != 0 {
			t.Errorf("%d samples are held of a GPU without GPM", held)
		}
		if s.GpmSampleAllocFunc = func() (nvml.GpmSample, nvml.Return) { return nil, nvml.ERROR_MEMORY }; true {
			gpu(s, 0).GpmSampleGetFunc = take
			readers(t, from)
		}
		if text := read(); !strings.Contains(text, "error: read") {
			t.Errorf("without memory:\n%s", text)
		}
		if text := fmt.Sprint(from.Close()); text != "<nil>" {
			t.Error(text)
		}
	})
}

// A MIG device without GPM is asked again after a look.
func TestMIGDeviceGainsActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		withGPM(t, s)
		slice(t, gpu(s, 0), 0)
		well := gpu(s, 0).GpmMigSampleGetFunc
		gpu(s, 0).GpmMigSampleGetFunc = func(int, nvml.GpmSample) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
		from := NewOver(s, Options{Profiling: true})
		r := readers(t, from)[0]
		expect := func(lines int) {
			t.Helper()
			var text string
			for range 3 {
				time.Sleep(time.Second)
				text = active(written(r.Read(t.Context(), device.Fast)))
			}
			if n := strings.Count(text, "engine_active"); n != lines {
				t.Errorf("%d engines, want %d:\n%s", n, lines, text)
			}
		}
		expect(9)
		if calls := len(gpu(s, 0).GpmMigSampleGetCalls()); calls != 1 {
			t.Errorf("asked %d times for what is not supported", calls)
		}
		gpu(s, 0).GpmMigSampleGetFunc = well
		expect(9)
		readers(t, from)
		expect(18)
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}
