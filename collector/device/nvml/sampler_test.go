//go:build cgo

package nvml

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func migOf(d nvml.Device) *mock.Device { return d.(*mock.Device) }

// failEverything makes every call that reads the GPU fail, each in its own
// way.
func failEverything(d *server.Device) {
	var calls atomic.Int64
	next := func() nvml.Return {
		return []nvml.Return{
			nvml.ERROR_UNKNOWN, nvml.ERROR_TIMEOUT, nvml.ERROR_IRQ_ISSUE, nvml.ERROR_RESET_REQUIRED,
			nvml.ERROR_GPU_IS_LOST, nvml.ERROR_IN_USE, nvml.ERROR_MEMORY, nvml.ERROR_NO_PERMISSION,
			nvml.ERROR_INSUFFICIENT_POWER, nvml.ERROR_CORRUPTED_INFOROM, nvml.ERROR_OPERATING_SYSTEM,
		}[calls.Add(1)%11]
	}
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, next() }
	d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, next() }
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, next() }
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, next() }
	d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 0, next() }
	d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 0, next() }
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 0, next() }
	d.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 0, next() }
	d.GetFieldValuesFunc = func([]nvml.FieldValue) nvml.Return { return next() }
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, next() }
	d.GetNameFunc = func() (string, nvml.Return) { return "", next() }
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, next() }
	d.GetMinorNumberFunc = func() (int, nvml.Return) { return 0, next() }
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 0, next() }
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, next() }
	d.GetPcieReplayCounterFunc = func() (int, nvml.Return) { return 0, next() }
	d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) { return nvml.GpuFabricInfo{}, next() }
	d.GetSupportedClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, next() }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, next() }
	d.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) { return 0, next() }
	d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return 0, next() }
}

// sampled runs a sampler over the server for a minute of fake time and writes
// down, second by second, the samples of all GPUs but two, and how the source
// is at the end.
func sampled(t *testing.T, s *server.Server) (others string, end source.Status) {
	t.Helper()
	time.Sleep(clock.UntilNext(time.Second)) // rounds begin at whole seconds
	sampler := device.NewSampler(device.Options{Sources: []device.Source{NewOver(s, Options{})}, Clock: clock.System()})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(ended)
		sampler.Run(ctx)
	}()
	var b strings.Builder
	for range 59 {
		time.Sleep(time.Second)
		synctest.Wait()
		for _, sample := range sampler.Latest() {
			if sample.Device.UUID == "GPU-2" || sample.Device.UUID == "GPU-5" {
				continue
			}
			fmt.Fprintln(&b, sample.Device, sample.At.Wall.Sub(start), sample.Readings)
		}
	}
	end = sampler.Statuses()[0]
	<-ended
	return b.String(), end
}

// One GPU whose calls never return and one of which every call fails in
// another way leave the samples of the others, to the byte, as they were.
func TestTheOthersAreIdentical(t *testing.T) {
	well, ill := servers(), servers()
	for name := range well {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slice(t, gpu(well[name], 1), 0, 3)
				slice(t, gpu(ill[name], 1), 0, 3)
				want, status := sampled(t, well[name])
				if !status.Up || status.Reason != source.ReasonNone {
					t.Errorf("all is well, but the source says %+v", status)
				}
				if !strings.Contains(want, "MIG-GPU-1-1") || strings.Count(want, "GPU-7") != 59 {
					t.Fatalf("the samples are not all there:\n%s", want)
				}

				forever := make(chan struct{})
				gpu(ill[name], 2).GetPowerUsageFunc = func() (uint32, nvml.Return) {
					<-forever
					return 0, nvml.SUCCESS
				}
				failEverything(gpu(ill[name], 5))
				got, status := sampled(t, ill[name])
				if got != want {
					t.Errorf("beside a GPU that hangs and one that fails the others are\n%s\nwant\n%s", got, want)
				}
				if !status.Up || status.Reason != source.ReasonDeviceTimeout || status.HungSince.IsZero() {
					t.Errorf("the source says %+v", status)
				}
				if len(ill[name].ShutdownCalls()) != 0 {
					t.Error("the library was shut down under a call")
				}
				close(forever)
				synctest.Wait()
			})
		})
	}
}
