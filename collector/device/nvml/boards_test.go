//go:build cgo

package nvml

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// eventBoard gives the GPUs of a simulated machine events, and counts the sets
// that are held.
type eventBoard struct {
	mu            sync.Mutex
	sets          map[*mock.EventSet]*eventSet
	created, held int
}

type eventSet struct {
	gpus   map[nvml.Device]bool
	events chan nvml.EventData
}

// looked waits until the event loop has looked for events, in a test with its own time.
func looked() {
	time.Sleep(lookInterval)
	synctest.Wait()
}

func withEvents(s *server.Server) *eventBoard {
	b := &eventBoard{sets: make(map[*mock.EventSet]*eventSet)}
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return b.create(), nvml.SUCCESS }
	for i := range s.Devices {
		d := gpu(s, i)
		d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) {
			return nvml.EventTypeXidCriticalError | nvml.EventTypeClock, nvml.SUCCESS
		}
		d.RegisterEventsFunc = func(types uint64, set nvml.EventSet) nvml.Return { return b.register(d, types, set) }
	}
	return b
}

func (b *eventBoard) create() nvml.EventSet {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &eventSet{gpus: make(map[nvml.Device]bool), events: make(chan nvml.EventData, 100)}
	set := &mock.EventSet{WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
		select {
		case event := <-e.events:
			return event, nvml.SUCCESS
		default: // none is waited for
			return nvml.EventData{}, nvml.ERROR_TIMEOUT
		}
	}}
	set.FreeFunc = func() nvml.Return {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.sets, set)
		b.held--
		return nvml.SUCCESS
	}
	b.sets[set] = e
	b.created++
	b.held++
	return set
}

func (b *eventBoard) register(d nvml.Device, types uint64, set nvml.EventSet) nvml.Return {
	b.mu.Lock()
	defer b.mu.Unlock()
	if types != nvml.EventTypeXidCriticalError {
		return nvml.ERROR_INVALID_ARGUMENT
	}
	b.sets[set.(*mock.EventSet)].gpus[d] = true
	return nvml.SUCCESS
}

// raise makes an XID happen.
func (b *eventBoard) raise(d nvml.Device, code uint64, gpuInstance, computeInstance uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, set := range b.sets {
		if set.gpus[d] {
			set.events <- nvml.EventData{
				Device: d, EventType: nvml.EventTypeXidCriticalError, EventData: code,
				GpuInstanceId: gpuInstance, ComputeInstanceId: computeInstance,
			}
		}
	}
}

// state is how many sets are held, and how many there ever were.
func (b *eventBoard) state() (held, created int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held, b.created
}

// gpmBoard gives the GPUs of a simulated machine GPM, and counts the samples
// that are held. Each sample holds of which device it was taken last.
type gpmBoard struct {
	mu        sync.Mutex
	of        map[nvml.GpmSample]string
	allocated int
	fails     map[nvml.GpmMetricId]nvml.Return // by metric
}

func withGPM(t testing.TB, s *server.Server) *gpmBoard {
	b := &gpmBoard{of: make(map[nvml.GpmSample]string), fails: make(map[nvml.GpmMetricId]nvml.Return)}
	s.GpmSampleAllocFunc = func() (nvml.GpmSample, nvml.Return) {
		b.mu.Lock()
		defer b.mu.Unlock()
		sample := new(mock.GpmSample)
		sample.FreeFunc = func() nvml.Return {
			b.mu.Lock()
			defer b.mu.Unlock()
			if _, held := b.of[sample]; !held {
				t.Error("a sample was freed twice")
			}
			delete(b.of, sample)
			return nvml.SUCCESS
		}
		b.of[sample] = ""
		b.allocated++
		return sample, nvml.SUCCESS
	}
	s.GpmMetricsGetFunc = func(question *nvml.GpmMetricsGetType) nvml.Return { return b.answer(t, question) }
	for i := range s.Devices {
		d := gpu(s, i)
		d.GpmQueryDeviceSupportFunc = func() (nvml.GpmSupport, nvml.Return) {
			return nvml.GpmSupport{IsSupportedDevice: 1}, nvml.SUCCESS
		}
		take := func(of string, sample nvml.GpmSample) nvml.Return {
			b.mu.Lock()
			defer b.mu.Unlock()
			if _, held := b.of[sample]; !held {
				t.Error("a sample that was freed is taken")
			}
			b.of[sample] = of
			return nvml.SUCCESS
		}
		d.GpmSampleGetFunc = func(sample nvml.GpmSample) nvml.Return { return take(d.UUID, sample) }
		d.GpmMigSampleGetFunc = func(instance int, sample nvml.GpmSample) nvml.Return {
			return take(fmt.Sprintf("%s/%d", d.UUID, instance), sample)
		}
	}
	return b
}

// answer returns each metric as its id, in percent.
func (b *gpmBoard) answer(t testing.TB, question *nvml.GpmMetricsGetType) nvml.Return {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, second := b.of[question.Sample1], b.of[question.Sample2]
	if question.Sample1 == question.Sample2 || first == "" || first != second {
		t.Errorf("samples of %q and %q are compared", first, second)
	}
	for i := range question.Metrics[:question.NumMetrics] {
		m := &question.Metrics[i]
		m.Value, m.NvmlReturn = float64(m.MetricId), uint32(b.fails[nvml.GpmMetricId(m.MetricId)])
	}
	return nvml.SUCCESS
}

// state is how many samples are held, and how many there ever were.
func (b *gpmBoard) state() (held, allocated int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.of), b.allocated
}
