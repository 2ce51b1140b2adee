//go:build cgo

package nvml

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Ten thousand samples and a hundred connections, while MIG devices come and
// go and calls fail, leave nothing behind: as many event sets and GPM samples
// are held in the end as in the beginning, and no more goroutines (there may be
// fewer: those of the tests before end when they will).
func TestNothingLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := equip(fitted(dgxh100.New()), 4)
		s.Devices = s.Devices[:1]
		events, profiles := withEvents(s), withGPM(t, s)
		d := gpu(s, 0)
		sample := d.GpmSampleGetFunc
		slice(t, d, 0, 3)
		from := NewOver(s, Options{Links: true, Profiling: true})
		held := func() (sets, samples, goroutines int) {
			synctest.Wait()
			sets, _ = events.state()
			samples, _ = profiles.state()
			return sets, samples, runtime.NumGoroutine()
		}
		readers(t, from)
		r := from.readers["GPU-0"]
		_, _ = r.Read(t.Context(), device.Slow)
		firstSets, firstSamples, firstGoroutines := held()
		for i := range 10_000 {
			switch i % 100 {
			case 10:
				slice(t, d, 0, 3, 5)
			case 30:
				slice(t, d, 3)
			case 40:
				d.MigMode = nvml.DEVICE_MIG_DISABLE
			case 50:
				d.GpmSampleGetFunc = func(nvml.GpmSample) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
			case 60:
				d.GpmSampleGetFunc = sample
				readers(t, from)
			case 70:
				slice(t, d, 0, 3)
			case 99:
				from.connection.connected = false
				readers(t, from)
			}
			time.Sleep(time.Second)
			if _, err := r.Read(t.Context(), device.Tier(i%2)); errors.Is(err, errReconnecting) {
				t.Fatal(err)
			}
		}
		sets, samples, goroutines := held()
		if sets != firstSets || samples != firstSamples || goroutines > firstGoroutines {
			t.Errorf("%d event sets, %d samples and %d goroutines are held; at first there were %d, %d and %d",
				sets, samples, goroutines, firstSets, firstSamples, firstGoroutines)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		sets, samples, _ = held()
		_, created := events.state()
		_, allocated := profiles.state()
		if sets != 0 || samples != 0 || created != 101 || allocated < 600 {
			t.Errorf("%d of %d event sets and %d of %d samples are held after the end", sets, created, samples, allocated)
		}
		if len(s.InitCalls()) != 101 || len(s.ShutdownCalls()) != 101 {
			t.Errorf("initialized %d times, shut down %d times", len(s.InitCalls()), len(s.ShutdownCalls()))
		}
	})
}
