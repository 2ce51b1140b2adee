package demo

import (
	"math"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// reading returns what the node's hardware reports of a quantity of one device.
func (n *AgentNode) reading(t *testing.T, uuid string, quantity device.Quantity) float64 {
	t.Helper()
	readers, err := n.Source().Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, reader := range readers {
		observations, err := reader.Read(t.Context(), device.Fast)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range observations {
			for _, r := range o.Readings {
				if o.Device.UUID == uuid && r.Quantity == quantity {
					return r.Value
				}
			}
		}
	}
	t.Fatalf("%s does not show it", uuid)
	return 0
}

// setLoad sets the load of an instance's main containers.
func (s *nodeFixture) setLoad(t *testing.T, i *instance, load float64) {
	t.Helper()
	if err := s.activity.set(i, i.processes(false, load)); err != nil {
		t.Fatal(err)
	}
}

func TestLoadsAddUp(t *testing.T) {
	s := newNodeFixture(t)
	first, second := newInstance(row(t, "embedder"), 0, 1, time.Unix(0, 0)), newInstance(row(t, "reranker"), 0, 1, time.Unix(0, 0))
	loads := func(a, b float64) float64 {
		s.setLoad(t, first, a)
		s.setLoad(t, second, b)
		return s.activity.load("gpu-3")
	}
	for _, c := range []struct{ a, b, want float64 }{{0.5, 0.25, 0.75}, {0.75, 0.75, 1}, {0, 0.25, 0.25}, {0, 0, 0}} {
		if got := loads(c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("loads of %g and %g make %g", c.a, c.b, got)
		}
	}
}

func TestLoadOfPartitionedGPU(t *testing.T) {
	s := newNodeFixture(t)
	const gpu6 = "GPU-f85a3c17-d29b-4e64-a0c6-b71e4d938f25"
	power := func() float64 { return s.reading(t, gpu6, device.Power) }
	before := power()
	chat := newInstance(row(t, "assistant"), 0, 1, time.Unix(0, 0))
	s.setLoad(t, chat, 1)
	if now := power(); now < before+100 {
		t.Errorf("with a busy partition the GPU draws %g W, without %g W", now, before)
	}
	s.setLoad(t, chat, 0)
	if now := power(); now > before+10 {
		t.Errorf("with an idle partition the GPU draws %g W, at first %g W", now, before)
	}
}

func TestMonitoringPodHasNoLoad(t *testing.T) {
	s := newNodeFixture(t)
	s.setLoad(t, newInstance(row(t, "dcgm"), 0, 1, time.Unix(0, 0)), 1)
	if load := s.activity.load("gpu-4"); load != 0 {
		t.Errorf("a monitor makes a load of %g", load)
	}
}
