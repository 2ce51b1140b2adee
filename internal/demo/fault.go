package demo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// faults returns the faults that the hardware reports.
func (a deviceFault) faults(d device.Device) []simulated.Fault {
	reported := simulated.Fault{Kind: "xid", Code: a.xid}
	if d.IsPartition() {
		reported.Partition = d.UUID
	}
	return append([]simulated.Fault{reported}, a.signs...)
}

// faultInjector makes the hardware report faults, and its driver publish the
// taints for them. It is safe for concurrent use.
type faultInjector struct {
	hardware hardware
	source   *simulated.Source
	server   *apiserver.Server
	log      *slog.Logger

	mu      sync.Mutex
	present []deviceFault
	slice   *resourcev1.ResourceSlice // of the devices as they are published without faults
}

// newFaultInjector finds the driver's slice among the objects that stand.
func newFaultInjector(h hardware, source *simulated.Source, server *apiserver.Server, objects []apiserver.Object, log *slog.Logger) *faultInjector {
	w := &faultInjector{hardware: h, source: source, server: server, log: log}
	for _, object := range objects {
		if slice, ok := object.(*resourcev1.ResourceSlice); ok && slice.Spec.Driver == driver && len(slice.Spec.Devices) > 0 {
			w.slice = slice
		}
	}
	return w
}

// play starts and ends a fault again and again until ctx ends.
func (w *faultInjector) play(ctx context.Context, t scenarioClock, a deviceFault) error {
	for run := 0; t.until(ctx, a.starts+time.Duration(run)*a.every); run++ {
		w.log.Debug("a device becomes unhealthy", "device", a.device, "xid", a.xid)
		if err := w.change(func(present []deviceFault) []deviceFault { return append(present, a) }); err != nil {
			return fmt.Errorf("inject the fault of %s: %w", a.device, err)
		}
		if !t.until(ctx, t.now()+a.lasts) {
			return nil
		}
		w.log.Debug("a device recovers", "device", a.device)
		passed := func(other deviceFault) bool { return other.device == a.device }
		if err := w.change(func(present []deviceFault) []deviceFault { return slices.DeleteFunc(present, passed) }); err != nil {
			return fmt.Errorf("end the fault of %s: %w", a.device, err)
		}
	}
	return nil
}

// change sets the present faults of the hardware and of what its driver publishes.
func (w *faultInjector) change(how func([]deviceFault) []deviceFault) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.present = how(w.present)
	w.source.Replace(w.config())
	return w.server.Put(w.published())
}

// config is the hardware's, with the present faults.
func (w *faultInjector) config() simulated.Config {
	config := w.hardware.config
	config.Devices = slices.Clone(config.Devices)
	for _, a := range w.present {
		faulty, _ := w.hardware.byName(a.device)
		for i := range config.Devices {
			d := &config.Devices[i]
			if whole := d.Identity.UUID; whole != "" && (whole == faulty.UUID || whole == faulty.ParentUUID) {
				d.Faults = append(slices.Clip(d.Faults), a.faults(faulty)...)
			}
		}
	}
	return config
}

// published returns the driver's slice with the taints of the present faults.
// The taint is the one that NVIDIA's driver sets for XIDs.
func (w *faultInjector) published() *resourcev1.ResourceSlice {
	slice := w.slice.DeepCopy()
	for _, a := range w.present {
		for i := range slice.Spec.Devices {
			if d := &slice.Spec.Devices[i]; a.tainted && d.Name == a.device {
				d.Taints = append(d.Taints, resourcev1.DeviceTaint{
					Key: driver + "/xid", Value: strconv.Itoa(a.xid), Effect: resourcev1.DeviceTaintEffectNoSchedule,
				})
			}
		}
	}
	return slice
}
