package simulation

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
	"github.com/dra-exporter/dra-exporter/internal/simulation/apiserver"
)

// ailment is something that befalls a device and passes: an XID is reported
// when it begins.
type ailment struct {
	device  string // as its driver names it; each has one ailment
	xid     int
	signs   []simulated.Fault // of a whole device: what else it shows meanwhile
	tainted bool              // its driver taints it meanwhile
	starts  time.Duration     // after the scenario began
	lasts   time.Duration
	every   time.Duration // from one start to the next
}

// check says what is wrong with an ailment on this hardware.
func (a ailment) check(h hardware) error {
	if _, there := h.named(a.device); !there {
		return fmt.Errorf("ailment: there is no device %s", a.device)
	}
	if a.every <= a.lasts {
		return fmt.Errorf("ailment of %s: it comes again before it has passed", a.device)
	}
	return nil
}

// faults are those that the hardware shows.
func (a ailment) faults(of device.Device) []simulated.Fault {
	reported := simulated.Fault{Kind: "xid", Code: a.xid}
	if of.IsPartition() {
		reported.Partition = of.UUID
	}
	return append([]simulated.Fault{reported}, a.signs...)
}

// ward is where devices are sick: what the hardware shows, and what its driver
// publishes of it. It is safe for concurrent use.
type ward struct {
	hardware hardware
	source   *simulated.Source
	server   *apiserver.Server
	log      *slog.Logger

	mu      sync.Mutex
	present []ailment
	slice   *resourcev1.ResourceSlice // of the devices as they are published when all are well
}

// newWard finds the driver's slice among the objects that stand.
func newWard(h hardware, source *simulated.Source, server *apiserver.Server, objects []apiserver.Object, log *slog.Logger) *ward {
	w := &ward{hardware: h, source: source, server: server, log: log}
	for _, object := range objects {
		if slice, is := object.(*resourcev1.ResourceSlice); is && slice.Spec.Driver == driver && len(slice.Spec.Devices) > 0 {
			w.slice = slice
		}
	}
	return w
}

// play lets an ailment come and pass, and come again, until ctx ends.
func (w *ward) play(ctx context.Context, t tempo, a ailment) error {
	for run := 0; t.until(ctx, a.starts+time.Duration(run)*a.every); run++ {
		w.log.Debug("a device falls sick", "device", a.device, "xid", a.xid)
		if err := w.change(func(present []ailment) []ailment { return append(present, a) }); err != nil {
			return fmt.Errorf("let %s fall sick: %w", a.device, err)
		}
		if !t.until(ctx, t.now()+a.lasts) {
			return nil
		}
		w.log.Debug("a device recovers", "device", a.device)
		passed := func(other ailment) bool { return other.device == a.device }
		if err := w.change(func(present []ailment) []ailment { return slices.DeleteFunc(present, passed) }); err != nil {
			return fmt.Errorf("let %s recover: %w", a.device, err)
		}
	}
	return nil
}

// change has the hardware and its driver show who is sick from now on.
func (w *ward) change(how func([]ailment) []ailment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.present = how(w.present)
	w.source.Replace(w.config())
	return w.server.Put(w.published())
}

// config is the hardware's, with what ails it.
func (w *ward) config() simulated.Config {
	config := w.hardware.config
	config.Devices = slices.Clone(config.Devices)
	for _, a := range w.present {
		sick, _ := w.hardware.named(a.device)
		for i := range config.Devices {
			of := &config.Devices[i]
			if whole := of.Identity.UUID; whole != "" && (whole == sick.UUID || whole == sick.ParentUUID) {
				of.Faults = append(slices.Clip(of.Faults), a.faults(sick)...)
			}
		}
	}
	return config
}

// published is the driver's slice, with the taints of who is sick. The taint
// is the one by which NVIDIA's driver tells of XIDs.
func (w *ward) published() *resourcev1.ResourceSlice {
	slice := w.slice.DeepCopy()
	for _, a := range w.present {
		for i := range slice.Spec.Devices {
			if of := &slice.Spec.Devices[i]; a.tainted && of.Name == a.device {
				of.Taints = append(of.Taints, resourcev1.DeviceTaint{
					Key: driver + "/xid", Value: strconv.Itoa(a.xid), Effect: resourcev1.DeviceTaintEffectNoSchedule,
				})
			}
		}
	}
	return slice
}
