//go:build cgo && linux

package dcgm

import (
	"context"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// An answer that claims more entries than it can hold is refused: the source is
// down if the answer is essential, otherwise it is impaired. The error names
// the limit.
func TestOversizedAnswers(t *testing.T) {
	for function, c := range map[string]struct {
		essential bool
		limit     string
	}{
		"dcgmGetEntityGroupEntities":  {true, "1024"},
		"dcgmGetGpuInstanceHierarchy": {true, "448"},
		"dcgmGetNvLinkLinkStatus":     {false, "32"},
		"dcgmHealthCheck":             {false, "1024"},
		"dcgmGetValuesSince_v2":       {false, "4096"},
	} {
		for _, count := range []string{"5000", "2147483647", "4294967295"} {
			t.Run(function+"/"+count, func(t *testing.T) {
				node := stubs.NewNode(t, 1)
				node.SetNode("dcgm.event_interval_ms", "1")
				use(t, node)
				s := newSource(t, Options{})
				r := connected(t, s)
				read(t, r, device.Slow)
				s.linksAt = -linkInterval // read them again
				node.SetNode("dcgm.count."+function, count)
				var observations []device.Observation
				var err error
				eventually(t, "the answer is refused", func() bool {
					node.XID(0, 31)
					observations, err = r.Read(t.Context(), device.Slow)
					if c.essential && err == nil {
						_, err = s.Readers(t.Context())
					}
					return source.ReasonOf(err) == source.ReasonResourceExhausted && strings.Contains(err.Error(), c.limit)
				})
				if !c.essential {
					if _, is := reading(observations[0], device.Power); !is {
						t.Errorf("the rest is not read:\n%s", written(observations, err))
					}
				}
				node.UnsetNode("dcgm.count." + function)
				eventually(t, "it is read again", func() bool {
					s.linksAt = -linkInterval
					readers, err := s.Readers(t.Context())
					if err == nil {
						_, err = readers[0].Read(t.Context(), device.Slow)
					}
					return err == nil
				})
			})
		}
	}
}

// Texts without an end are truncated to their maximum length.
func TestTextsWithoutEnd(t *testing.T) {
	for _, function := range []string{"dcgmHostengineVersionInfo", "dcgmEntitiesGetLatestValues", "dcgmHealthCheck"} {
		t.Run(function, func(t *testing.T) {
			node := stubs.NewNode(t, 1)
			node.Set(0, "dcgm.health.thermal", "warn")
			use(t, node)
			node.SetNode("dcgm.unterminated."+function, "1")
			s := newSource(t, Options{})
			readers, err := s.Readers(t.Context())
			if function == "dcgmEntitiesGetLatestValues" {
				if err == nil || !strings.Contains(err.Error(), "UUID") {
					t.Errorf("a GPU with an endless UUID: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(s.session.version) > 512 {
				t.Errorf("the version has %d bytes", len(s.session.version))
			}
			if v, _ := reading(read(t, readers[0], device.Slow)[0], device.HealthCheck, "thermal", "warn"); v != 1 {
				t.Error("the incident is not reported")
			}
		})
	}
}

// If an engine answers every call, but slowly, its source counts as hung, other
// sources are not affected, and calls do not accumulate.
func TestSlowEngineUnderTheSampler(t *testing.T) {
	slow := stubs.NewNode(t, 1)
	now := clock.System()
	s := New(Options{HostEngine: startEngine(t, slow).Address, Library: stubs.Build(t).DCGM, Interval: pace, Clock: now})
	other := &counting{}
	sampler := device.NewSampler(device.Options{
		Sources: []device.Source{s, other}, Interval: pace, SlowInterval: 10 * pace, Clock: now,
	})
	ended := make(chan struct{})
	stop := run(sampler, ended)
	eventually(t, "there is a device", func() bool { return len(sampler.Latest()) == 2 })
	threads, goroutines := tasks(t), runtime.NumGoroutine()
	for _, function := range []string{"dcgmEntitiesGetLatestValues", "dcgmGetGpuInstanceHierarchy", "dcgmGetEntityGroupEntities", "dcgmHealthCheck"} {
		slow.SetNode("dcgm.slow."+function, "1500")
	}
	eventually(t, "the source counts as hung", func() bool {
		status := sampler.Statuses()[0]
		return !status.Up && status.Reason == source.ReasonTimeout
	})
	reads := other.reads.Load()
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(pace) {
		if now := tasks(t); now > threads+16 {
			t.Fatalf("%d threads, before it were %d", now, threads)
		}
		if now := runtime.NumGoroutine(); now > goroutines+16 {
			t.Fatalf("%d goroutines, before it were %d", now, goroutines)
		}
	}
	if status := sampler.Statuses()[1]; !status.Up || other.reads.Load() < reads+20 {
		t.Errorf("the other source was read %d times meanwhile, and is %+v", other.reads.Load()-reads, status)
	}
	stop()
	<-ended
	eventually(t, "the call comes back", func() bool { return s.Close() == nil })
}

// tasks returns the number of threads of this process.
func tasks(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// counting is a healthy source with one device that counts its reads.
type counting struct{ reads atomic.Int64 }

func (c *counting) Name() string { return "counting" }
func (c *counting) Key() string  { return "device" }
func (c *counting) Close() error { return nil }

func (c *counting) Readers(context.Context) ([]device.Reader, error) { return []device.Reader{c}, nil }

func (c *counting) Read(context.Context, device.Tier) ([]device.Observation, error) {
	c.reads.Add(1)
	return []device.Observation{{Device: device.Device{UUID: "counted"}}}, nil
}
