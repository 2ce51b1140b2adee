//go:build cgo && linux

package dcgm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// files returns the number of open files of this process.
func files(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// After an engine was killed and started again, the devices, groups and watches
// are the same, and no counter decreases.
func TestEngineKilledAndRestarted(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.SetNode("dcgm.event_interval_ms", "1")
	node.CreateMIG(1, "1g.10gb", -1)
	node.Set(0, "pcie.tx_bytes", "0+1000000000/s")
	node.Set(0, "nvlink.rx_bytes", "0+3000000000/s")
	engine := startEngine(t, node)
	s := newSource(t, Options{HostEngine: engine.Address, Profiling: true})
	r := connected(t, s)
	before := read(t, r, device.Slow)
	var held stubs.Inspection
	last := make(map[device.Quantity]float64)
	grow := func(o device.Observation) {
		t.Helper()
		for _, q := range []device.Quantity{device.PCIeTransmit, device.NVLinkReceive, device.Energy} {
			v, is := reading(o, q)
			if is && v < last[q] {
				t.Errorf("%s fell from %v to %v", device.Specs()[q].Name, last[q], v)
			}
			last[q] = max(last[q], v)
		}
	}
	for round := range 3 {
		eventually(t, "bytes are counted", func() bool {
			o := read(t, r, device.Fast)[0]
			earlier := last[device.PCIeTransmit]
			grow(o)
			return earlier > 0 && last[device.PCIeTransmit] > earlier
		})
		if now := engine.Inspect(); round > 0 && now != held {
			t.Errorf("the engine holds %+v, at first it was %+v", now, held)
		} else {
			held = now
		}
		engine.Kill()
		_, err := r.Read(t.Context(), device.Fast)
		if source.ReasonOf(err) != source.ReasonUnavailable {
			t.Errorf("without an engine a read is %q: %v", source.ReasonOf(err), err)
		}
		if _, err := s.Readers(t.Context()); source.ReasonOf(err) != source.ReasonUnavailable {
			t.Errorf("without an engine a refresh is %v", err)
		}
		if len(s.XIDs()) != 3 {
			t.Error("its devices are not watched for XIDs any more")
		}
		engine.Restart()
		node.XID(0, 48)
		if connected(t, s) != r {
			t.Error("another reader")
		}
		after := read(t, r, device.Fast)
		for i := range before {
			if fmt.Sprint(after[i].Device) != fmt.Sprint(before[i].Device) {
				t.Errorf("device %d was %+v and is %+v", i, before[i].Device, after[i].Device)
			}
		}
		grow(after[0])
	}
	if held.Settings != 0 || held.Groups == 0 || held.Watches == 0 || held.HealthWatches != 1 || held.Connections != 1 {
		t.Errorf("the engine held %+v", held)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "all is given back", func() bool { return engine.Inspect() == stubs.Inspection{} })
}

// The driver is replaced below an embedded engine, whose values or start fail then.
// That is said as long as it fails, and never of a host engine.
func TestDriverBelowTheEngine(t *testing.T) {
	node := stubs.NewNode(t, 1)
	use(t, node)
	sysfs := t.TempDir()
	version := filepath.Join(sysfs, "module/nvidia/version")
	load := func(driver string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(version), 0o755), os.WriteFile(version, []byte(driver+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	load("580.65.06")
	s := newSource(t, Options{Sysfs: sysfs})
	r := connected(t, s)
	read(t, r, device.Fast)
	const cause = "driver 580.65.06 was replaced by 999.1 below the embedded DCGM engine: restart the agent"
	expect := func(what string, err error) {
		t.Helper()
		if source.ReasonOf(err) != source.ReasonLibraryMismatch || !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: %v", what, err)
		}
	}
	node.Set(0, "dcgm.field.155", "status:NVML_ERROR")
	var failed error
	eventually(t, "an error", func() bool {
		_, failed = r.Read(t.Context(), device.Fast)
		return failed != nil
	})
	if source.ReasonOf(failed) == source.ReasonLibraryMismatch {
		t.Errorf("with the same driver: %v", failed)
	}
	load("999.1")
	_, err := r.Read(t.Context(), device.Fast)
	expect("a read", err)
	node.SetNode("dcgm.return.dcgmStartEmbedded", "NVML_ERROR")
	for range 2 {
		_, err = s.Readers(t.Context())
		expect("a start", err)
		_, err = r.Read(t.Context(), device.Fast)
		expect("a read without an engine", err)
	}
	node.UnsetNode("dcgm.return.dcgmStartEmbedded")
	node.Unset(0, "dcgm.field.155")
	node.SetNode("driver_version", "999.1")
	read(t, connected(t, s), device.Fast)
	if s.driver != "999.1" {
		t.Errorf("the driver is %s", s.driver)
	}
}

func TestHundredReconnectsLeakNothing(t *testing.T) {
	for _, embedded := range []bool{false, true} {
		t.Run(fmt.Sprintf("embedded %v", embedded), func(t *testing.T) {
			node := stubs.NewNode(t, 1)
			node.CreateMIG(0, "1g.10gb", -1)
			use(t, node)
			engine := startEngine(t, node)
			o := Options{HostEngine: engine.Address, Profiling: true}
			if embedded {
				o.HostEngine = ""
			}
			s := newSource(t, o)
			round := func() {
				read(t, connected(t, s), device.Slow)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			round()
			unchanged := goleak.IgnoreCurrent()
			open := files(t)
			for range 100 {
				round()
			}
			if now := files(t); now > open {
				t.Errorf("%d files are open, before it were %d", now, open)
			}
			goleak.VerifyNone(t, unchanged)
			eventually(t, "all is given back", func() bool { return engine.Inspect() == stubs.Inspection{} })
			if n := len(s.converter.states); n != 2 {
				t.Errorf("%d devices are remembered", n)
			}
		})
	}
}

func TestTenThousandSamplesLeakNothing(t *testing.T) {
	samples := 10_000
	if testing.Short() {
		samples = 500
	}
	node := stubs.NewNode(t, 1)
	node.CreateMIG(0, "1g.10gb", -1)
	engine := startEngine(t, node)
	s := newSource(t, Options{HostEngine: engine.Address, Profiling: true})
	r := connected(t, s)
	tier := func(i int) device.Tier {
		if i%30 == 0 {
			return device.Slow
		}
		return device.Fast
	}
	for i := range 100 {
		read(t, r, tier(i))
	}
	unchanged, open, held, heap := goleak.IgnoreCurrent(), files(t), engine.Inspect(), heapInUse()
	for i := range samples {
		read(t, r, tier(i))
		if i%1000 == 0 {
			connected(t, s)
		}
	}
	if now := files(t); now > open {
		t.Errorf("%d files are open, before it were %d", now, open)
	}
	if now := engine.Inspect(); now != held {
		t.Errorf("the engine holds %+v, before it was %+v", now, held)
	}
	if now := heapInUse(); now > heap+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", heap, now)
	}
	goleak.VerifyNone(t, unchanged)
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Under the sampler, devices remain while the engine is not running, the source
// is down, and both recover without intervention.
func TestUnderTheSampler(t *testing.T) {
	unchanged := goleak.IgnoreCurrent()
	node := stubs.NewNode(t, 2)
	node.SetNode("dcgm.event_interval_ms", "1")
	engine := startEngine(t, node)
	now := clock.System()
	s := New(Options{HostEngine: engine.Address, Library: stubs.Build(t).DCGM, Interval: pace, Clock: now})
	sampler := device.NewSampler(device.Options{
		Sources: []device.Source{s}, Interval: pace, SlowInterval: 10 * pace, Clock: now,
	})
	ended := make(chan struct{})
	stop := run(sampler, ended)
	defer func() {
		stop()
		<-ended
		engine.Kill()
		goleak.VerifyNone(t, unchanged)
	}()

	up := func() bool { return sampler.Statuses()[0].Up }
	power := func() float64 {
		for _, sample := range sampler.Latest() {
			for _, r := range sample.Readings {
				if r.Quantity == device.Power {
					return r.Value
				}
			}
		}
		return 0
	}
	eventually(t, "there are two devices", func() bool { return up() && len(sampler.Latest()) == 2 && power() == 70.5 })
	engine.Kill()
	eventually(t, "the source is down", func() bool { return !up() })
	if status := sampler.Statuses()[0]; status.Reason != source.ReasonUnavailable || len(sampler.Latest()) != 2 {
		t.Errorf("%d devices, %+v", len(sampler.Latest()), status)
	}
	node.Set(0, "power.draw", "300")
	node.Set(1, "power.draw", "300")
	engine.Restart()
	eventually(t, "it is up again", func() bool { return up() && power() == 300 })
	node.XID(1, 79)
	eventually(t, "the XID is reported", func() bool {
		for _, sample := range sampler.Latest() {
			if len(sample.XIDs) == 1 && sample.XIDs[0].Code == 79 {
				return true
			}
		}
		return false
	})
}

// Values of an engine on the same node were measured at their timestamps:
// between two reads, and before the answer. All other readings were measured
// during the call that read them. The clock is the sampler's.
func TestTimesUnderTheSampler(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.CreateMIG(1, "1g.10gb", -1)
	now := clock.System()
	s := New(Options{HostEngine: startEngine(t, node).Address, Library: stubs.Build(t).DCGM, Profiling: true, Interval: pace, SlowInterval: 10 * pace, Clock: now})
	sampler := device.NewSampler(device.Options{Sources: []device.Source{s}, Interval: pace, SlowInterval: 10 * pace, Clock: now})
	ended := make(chan struct{})
	stop := run(sampler, ended)
	defer func() {
		stop()
		<-ended
	}()
	seen := make(map[device.Quantity]bool)
	energy := make(map[device.Window]bool)
	check := func(sample device.Sample) {
		for _, r := range sample.Readings {
			w := r.Measured
			if w.IsZero() || w.From > w.To || w.To > now().Elapsed {
				t.Errorf("%s of %s was measured at %v", device.Specs()[r.Quantity].Name, sample.Device.UUID, w)
			}
			seen[r.Quantity] = true
			if r.Quantity == device.Energy && w.From == w.To {
				energy[w] = true
			}
		}
	}
	eventually(t, "the energy is measured at ten times", func() bool {
		for _, sample := range sampler.Latest() {
			check(sample)
		}
		return t.Failed() || len(energy) >= 10
	})
	for _, q := range []device.Quantity{device.NVLinks, device.HealthCheck, device.Lost, device.PCIeTransmit, device.Throttled, device.MemoryUsed} {
		if !seen[q] {
			t.Errorf("%s was not reported", device.Specs()[q].Name)
		}
	}
}

// A call that hangs affects only its source. The sampler reports it and ends
// without waiting for it.
func TestHangUnderTheSampler(t *testing.T) {
	node := stubs.NewNode(t, 1)
	engine := startEngine(t, node)
	now := clock.System()
	s := New(Options{HostEngine: engine.Address, Library: stubs.Build(t).DCGM, Interval: pace, Clock: now})
	sampler := device.NewSampler(device.Options{
		Sources: []device.Source{s}, Interval: pace, SlowInterval: 10 * pace, Clock: now,
	})
	ended := make(chan struct{})
	stop := run(sampler, ended)
	eventually(t, "there is a device", func() bool { return len(sampler.Latest()) == 1 })
	engine.Pause()
	eventually(t, "the source is known to hang", func() bool {
		status := sampler.Statuses()[0]
		return !status.Up && status.Reason == source.ReasonTimeout && !status.HungSince.IsZero()
	})
	stop()
	<-ended
	engine.Resume()
	eventually(t, "the call comes back", func() bool { return s.Close() == nil })
}

// run starts a sampler, which closes ended when it has returned.
func run(sampler *device.Sampler, ended chan<- struct{}) (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		sampler.Run(ctx)
	}()
	return stop
}

// BenchmarkSample measures one read of eight GPUs with seven MIG devices each.
// The engine and its library work in other threads and in another process; the
// time of the benchmark is that of this package.
func BenchmarkSample(b *testing.B) {
	node := stubs.NewNode(b, 8)
	for gpu := range 8 {
		for range 7 {
			node.CreateMIG(gpu, "1g.10gb", -1)
		}
	}
	engine := startEngine(b, node)
	s := newSource(b, Options{HostEngine: engine.Address, Profiling: true, Interval: time.Second})
	r := connected(b, s)
	read(b, r, device.Slow)
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if n := len(read(b, r, device.Fast)); n != 64 {
			b.Fatalf("%d devices", n)
		}
	}
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// processorTime returns the processor time of this process.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
