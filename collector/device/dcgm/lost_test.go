//go:build cgo && linux

package dcgm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// lose makes a node's first GPU lost and waits until a source reports it.
func lose(t *testing.T, node *stubs.Node, r device.Reader) {
	t.Helper()
	node.Set(0, "lost", "1")
	eventually(t, "the GPU is lost", func() bool {
		after, _ := r.Read(t.Context(), device.Fast)
		v, _ := reading(after[0], device.Lost)
		return v == 1
	})
}

// A GPU that does not report a UUID cannot be observed, which is an error,
// until it reports one. As long as nothing changes, no watch is set again.
func TestUnidentifiedGPU(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.Set(0, "dcgm.field.54", "blank")
	use(t, node)
	s := newSource(t, Options{})
	names := 0
	for refresh := range 3 {
		readers, err := s.Readers(t.Context())
		if len(readers) != 1 || err == nil || !strings.Contains(err.Error(), "GPU 0") {
			t.Fatalf("a refresh returns %v, %v", readers, err)
		}
		if n := len(read(t, readers[0], device.Fast)); n != 1 {
			t.Errorf("%d devices, want the other one", n)
		}
		if refresh > 0 && s.session.nameCount != names {
			t.Errorf("%d groups were made by a refresh", s.session.nameCount-names)
		}
		names = s.session.nameCount
	}
	node.Unset(0, "dcgm.field.54")
	if n := len(read(t, connected(t, s), device.Fast)); n != 2 {
		t.Errorf("%d devices, want both", n)
	}
}

// A lost GPU and its partitions keep their identities when MIG is configured on
// another GPU, although the GPU does not report its UUID any more and the
// engine refuses it for a group.
func TestLostGPUKeepsIdentity(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.CreateMIG(0, "1g.10gb", -1)
	engine := startEngine(t, node)
	var log logged
	s := newSource(t, Options{HostEngine: engine.Address, Profiling: true, Log: log.logger()})
	r := connected(t, s)
	before := read(t, r, device.Slow)
	lose(t, node, r)
	node.CreateMIG(1, "1g.10gb", -1)
	var after []device.Observation
	eventually(t, "the new partition is there", func() bool {
		var err error
		after, err = r.Read(t.Context(), device.Fast)
		if err == nil {
			t.Error("the lost GPU is no error")
		}
		return len(after) == 4
	})
	for i, was := range before {
		if fmt.Sprint(after[i].Device) != fmt.Sprint(was.Device) {
			t.Errorf("device %d was %+v and is %+v", i, was.Device, after[i].Device)
		}
		if _, watched := s.XIDs()[was.Device.UUID]; !watched {
			t.Errorf("%s is not watched for XIDs", was.Device.UUID)
		}
	}
	if v, _ := reading(after[0], device.Lost); v != 1 {
		t.Error("the GPU is not lost any more")
	}
	if _, is := reading(after[2], device.Power); !is {
		t.Error("the other GPU has no power")
	}
	connected(t, s)
	if n := log.lines("entity group type GPU, entity 0 to group: GPU is lost"); n != 1 {
		t.Errorf("%d lines of the refusal in the log:\n%s", n, log.String())
	}

	held := engine.Inspect()
	connected(t, s)
	if now := engine.Inspect(); now != held {
		t.Errorf("the engine holds %+v, before a refresh it was %+v", now, held)
	}
	node.Unset(0, "lost")
	connected(t, s)
	eventually(t, "the GPU is back", func() bool {
		back, err := r.Read(t.Context(), device.Fast)
		_, is := reading(back[0], device.Power)
		return is && err == nil
	})
}

// The only GPU of a node is lost. Its partition is not reported.
func TestOnlyGPULost(t *testing.T) {
	node := stubs.NewNode(t, 1)
	use(t, node)
	s := newSource(t, Options{})
	r := connected(t, s)
	uuid := read(t, r, device.Fast)[0].Device.UUID
	lose(t, node, r)
	if err := s.rebuildPlan(s.gpus, s.hierarchy); err != nil {
		t.Fatal(err)
	}
	after, err := r.Read(t.Context(), device.Slow)
	if v, _ := reading(after[0], device.Lost); v != 1 || err == nil || after[0].Device.UUID != uuid {
		t.Errorf("the lost GPU says\n%s", written(after, err))
	}
}
