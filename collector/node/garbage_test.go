package node

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// A garbageLibrary is the library of two GPUs that returns a wrong value once in
// many, with success. What it returns wrongly has been seen on hardware: blanks that
// are not recognized, numbers of all bits, counters of another state of the GPU, and
// the utilization of NVIDIA/DCGM#199.
type garbageLibrary struct {
	uuid   string
	clock  clock.Clock
	random *rand.Rand
	rare   int // one value in so many is wrong; 0: none
	wrong  map[device.Quantity]int
	count  int

	free bool // nothing uses the GPU
}

func (l *garbageLibrary) Key() string { return l.uuid }

// Read returns the readings of the GPU.
func (l *garbageLibrary) Read(_ context.Context, tier device.Tier) ([]device.Observation, error) {
	seconds := l.clock().Elapsed.Seconds()
	busy, watts := 0.5, 300.0
	if l.free {
		busy, watts = 0, 70
	}
	o := device.Observation{Device: gpu(int(l.uuid[4] - '0'))}
	one := func(q device.Quantity, value float64, details ...string) device.Reading {
		r := device.Reading{Quantity: q, Value: l.spoil(q, value)}
		copy(r.Details[:], details)
		return r
	}
	o.Readings = []device.Reading{
		one(device.Utilization, busy), one(device.MemoryUsed, 40e9), one(device.MemorySize, 80e9), one(device.Power, watts),
		one(device.Energy, 22.5e6+watts*seconds), one(device.Temperature, 50, "gpu"),
		one(device.NVLinkTransmit, 1e12+5e9*seconds), one(device.PCIeTransmit, 3e11+1e9*seconds),
		one(device.Throttled, 40+0.01*seconds, "hw_thermal"), one(device.ECCErrors, 5, "uncorrected"),
		one(device.RowRemapPending, 0), one(device.RowRemapFailed, 0), one(device.NVLinks, 18, "active"),
	}
	if tier == device.Slow {
		o.Slow = []device.Reading{one(device.PowerLimit, 700), one(device.ECCErrors, 100, "corrected"), one(device.PCIeReplays, 9)}
	}
	return []device.Observation{o}, nil
}

// spoil returns a value, or garbage in its place: once, or twice in a row.
func (l *garbageLibrary) spoil(q device.Quantity, value float64) float64 {
	if l.rare == 0 || l.clock().Elapsed < time.Minute {
		return value
	}
	if l.wrong[q]--; l.wrong[q] < 0 {
		if l.random.IntN(l.rare) > 0 {
			return value
		}
		l.wrong[q] = l.random.IntN(2)
	}
	l.count++
	garbage := []float64{math.Pow(2, 64), math.Pow(2, 63), 4294967295, -1}
	switch spec := device.Specs()[q]; {
	case q == device.Utilization:
		garbage = append(garbage, 8083349.05, 655.35)
	case q == device.Energy, q == device.NVLinkTransmit, q == device.PCIeTransmit:
		garbage = append(garbage, 0, 200, 808334905)
	case spec.Kind == device.Counter, q == device.MemorySize, q == device.PowerLimit, q == device.Temperature:
		garbage = append(garbage, 0)
	case q == device.Power:
		garbage = append(garbage, 0.08, 65535)
	case q == device.NVLinks:
		garbage = append(garbage, 500, 0)
	}
	return garbage[l.random.IntN(len(garbage))]
}

// garbageSource is a source of such libraries.
type garbageSource []device.Reader

func (s garbageSource) Name() string                                     { return "garbage" }
func (s garbageSource) Readers(context.Context) ([]device.Reader, error) { return s, nil }
func (s garbageSource) Close() error                                     { return nil }

// readGarbage runs the sampler and the reducer for an hour, and returns the last page
// and how often each signal and incident was shown.
func readGarbage(t *testing.T, rare int) (rows map[string]float64, shown map[string]int, wrong int, refused uint64) {
	rows, shown = map[string]float64{}, map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		s, now := newScene(t, gpu(0), gpu(1)), clock.System()
		random := rand.New(rand.NewPCG(1, 2))
		var libraries []*garbageLibrary
		var source garbageSource
		for _, uuid := range []string{"GPU-0", "GPU-1"} {
			l := &garbageLibrary{uuid: uuid, clock: now, random: random, rare: rare, wrong: map[device.Quantity]int{}, free: uuid == "GPU-1"}
			libraries, source = append(libraries, l), append(source, l)
		}
		// One reader at a time draws numbers.
		var turn atomic.Bool
		for i, l := range libraries {
			source[i] = inTurn{l, &turn}
		}
		sampler := device.NewSampler(device.Options{Sources: []device.Source{source}, Clock: now})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); sampler.Run(ctx) }()
		s.allocate("ml/train", "gpu-0")
		for second := range 3600 {
			time.Sleep(time.Second)
			synctest.Wait()
			if second == 1800 {
				s.allocate("ml/idle", "gpu-1")
			}
			s.now, s.facts.Samples = now(), sampler.Latest()
			s.facts.ListedAt = s.now
			s.reduce()
			if second%10 == 0 {
				for _, row := range s.last.Rows() {
					if row.Family.Name == "dra_device_health_signal" {
						shown[row.Labels.Get("signal")]++
					}
				}
			}
		}
		for _, row := range s.last.Rows() {
			name := row.Family.Name
			if row.Family.Type == metric.Counter && !strings.HasPrefix(name, "dra_device_") && !strings.HasPrefix(name, "dra_exporter_source") {
				rows[seriesName(row)] = row.Value
			}
		}
		refused = sampler.Statuses()[0].Refused
		for _, l := range libraries {
			wrong += l.count
		}
		cancel()
		<-ended
	})
	return rows, shown, wrong, refused
}

// inTurn reads one library after the other.
type inTurn struct {
	*garbageLibrary
	turn *atomic.Bool
}

func (r inTurn) Read(ctx context.Context, tier device.Tier) ([]device.Observation, error) {
	for !r.turn.CompareAndSwap(false, true) {
		time.Sleep(time.Microsecond)
	}
	defer r.turn.Store(false)
	return r.garbageLibrary.Read(ctx, tier)
}

// TestGarbage: with a library that returns garbage once in a thousand values, no total
// of a claim or a namespace, no signal, incident or violation differs from those
// without, but for the time of a read at the end.
func TestGarbage(t *testing.T) {
	want, wantShown, _, none := readGarbage(t, 0)
	got, shown, wrong, refused := readGarbage(t, 1000)
	if wrong < 50 || refused < uint64(wrong)/2 || none != 0 {
		t.Fatalf("%d values were wrong, %d refused (%d without garbage)", wrong, refused, none)
	}
	if len(got) != len(want) {
		t.Errorf("%d counters with garbage, %d without", len(got), len(want))
	}
	for name, value := range want {
		if math.Abs(got[name]-value) > 0.01*value {
			t.Errorf("%s is %v with garbage, %v without", name, got[name], value)
		}
	}
	if len(want) < 20 || fmt.Sprint(shown) != fmt.Sprint(wantShown) {
		t.Errorf("signals are %v with garbage, %v without; of %d counters", shown, wantShown, len(want))
	}
}
