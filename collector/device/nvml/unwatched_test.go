//go:build cgo

package nvml

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Without a connection no events are received: the last XIDs are reported for a
// while, and again once there is a connection.
func TestNoWatcherWithoutAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		s.Devices = s.Devices[:2]
		board := withEvents(s)
		from := NewOver(s, Options{})
		readers(t, from)
		board.raise(gpu(s, 0), 48, noInstance, noInstance)
		looked()
		initialize := s.InitFunc
		s.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED }
		loseConnection(t, s, from)
		if _, err := from.Readers(t.Context()); err == nil {
			t.Fatal("there is a connection without a driver")
		}
		if all := from.XIDs(); len(all) != 1 || len(all["GPU-0"]) != 1 {
			t.Errorf("at first %v is reported", all)
		}
		time.Sleep(device.RecentXIDs)
		if all := from.XIDs(); len(all) != 0 {
			t.Errorf("two minutes later %v is reported", all)
		}
		s.InitFunc = initialize
		readers(t, from)
		board.raise(gpu(s, 0), 48, noInstance, noInstance)
		looked()
		if all := from.XIDs(); len(all) != 2 || len(all["GPU-0"]) != 1 || all["GPU-0"][0].Count != 2 {
			t.Errorf("with another connection %v is reported", all)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A GPU that fell off the bus and is not in the next connection is reported for
// a while, and then left to any source that watches it.
func TestNoWatcherOfALostGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		s.Devices = s.Devices[:2]
		board := withEvents(s)
		from := NewOver(s, Options{})
		keys(t, from)
		board.raise(gpu(s, 1), 79, noInstance, noInstance)
		looked()
		lose(gpu(s, 1), nvml.ERROR_GPU_IS_LOST)
		keys(t, from)
		s.Devices = s.Devices[:1]
		time.Sleep(time.Minute)
		if got := keys(t, from); got != "GPU-0:0 GPU-1:1" || len(from.XIDs()["GPU-1"]) != 1 {
			t.Errorf("there are %s, reported is %v", got, from.XIDs())
		}
		time.Sleep(device.RecentXIDs)
		if all := from.XIDs(); len(all) != 1 || all["GPU-0"] == nil {
			t.Errorf("two minutes later %v is reported", all)
		}
		if got := keys(t, from); got != "GPU-0:0 GPU-1:1" {
			t.Errorf("there are %s", got)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}
