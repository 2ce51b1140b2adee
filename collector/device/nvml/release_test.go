//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// sampling runs a sampler over a source until the test ends, with each engine activity
// watched, so that all that a connection allocates is there.
func sampling(t *testing.T, from device.Source) *device.Sampler {
	t.Helper()
	sampler := device.NewSampler(device.Options{Sources: []device.Source{from}, Interval: 50 * time.Millisecond, SlowInterval: 100 * time.Millisecond, Clock: clock.System()})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); sampler.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return sampler
}

func fresh(s *device.Sampler, gpus int) bool {
	samples := s.Latest()
	return len(samples) == gpus && s.Access() == device.AccessOpen && !samples[0].Released && !samples[0].At.IsZero()
}

// A released source holds nothing: sessions, event sets, samples, device files. What
// needs the GPUs for itself then succeeds, which before is refused, and the source comes
// back with what it has counted.
func TestRelease(t *testing.T) {
	node, from := stubbed(t, 2, Options{Profiling: true})
	s := sampling(t, from)
	eventually(t, "all is open", func() bool {
		live := node.Live()
		return fresh(s, 2) && live.Sessions == 1 && live.EventSets == 1 && live.SystemEventSets == 1 && live.GPMSamples > 0
	})
	node.XID(0, 48)
	eventually(t, "an Xid is counted", func() bool { return len(s.Latest()[0].XIDs) == 1 })
	for name, operation := range map[string]func() error{
		"a reset":                  func() error { return node.ResetGPU(0) },
		"a change of the MIG mode": func() error { return node.ChangeMIGMode(1, true) },
		"another driver":           func() error { return node.ReplaceDriver("999.1") },
	} {
		if err := operation(); !errors.Is(err, stubs.ErrInUse) {
			t.Errorf("%s while the GPUs are open: %v", name, err)
		}
	}
	s.Release(true)
	eventually(t, "it is released", func() bool { return s.Access() == device.AccessReleased })
	if holders, live := node.Holders(), node.Live(); len(holders) > 0 || live != (stubs.Live{}) {
		t.Errorf("%v hold files, and %+v", holders, live)
	}
	if err := errors.Join(node.ResetGPU(0), node.ChangeMIGMode(1, true)); err != nil {
		t.Errorf("while the GPUs are released: %v", err)
	}
	if samples := s.Latest(); len(samples) != 2 || !samples[0].Released || len(samples[0].XIDs) != 1 {
		t.Errorf("while the GPUs are released: %+v", samples)
	}
	s.Release(false)
	eventually(t, "it is open again", func() bool { return fresh(s, 2) && len(s.Latest()[0].XIDs) == 1 })
}

// The announcement that a driver is to be unbound reaches whoever releases the source,
// and the unbinding then succeeds.
func TestUnbindingIsAnnounced(t *testing.T) {
	node, from := stubbed(t, 2, Options{})
	s := sampling(t, from)
	eventually(t, "it is open", func() bool { return fresh(s, 2) && node.Live().SystemEventSets == 1 })
	unbound := make(chan error, 1)
	go func() { unbound <- node.Unbind(t.Context(), 1) }()
	select {
	case <-s.Unbinding():
	case <-time.After(30 * time.Second):
		t.Fatal("it is not announced")
	}
	s.Release(true)
	if err := <-unbound; err != nil {
		t.Fatal(err)
	}
	s.Release(false)
	eventually(t, "the other GPU is read", func() bool { return fresh(s, 1) })
	s.Release(true)
	eventually(t, "it is released", func() bool { return s.Access() == device.AccessReleased })
	node.Bind(1)
	s.Release(false)
	eventually(t, "both are read", func() bool { return fresh(s, 2) })
}
