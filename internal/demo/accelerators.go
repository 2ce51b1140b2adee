package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
)

// The vendors whose devices the agent does not read by itself, and their drivers.
const (
	vendorGoogle = "google"
	vendorIntel  = "intel"
	tpuDriver    = "tpu.google.com"
	intelDriver  = "gpu.intel.com"
)

// acceleratorName is how the drivers call a device: accel0, and the PCI address with
// the device id, 0000-3a-00-0-0x0bda.
func acceleratorName(d device.Device) string {
	if d.Vendor == vendorGoogle {
		return fmt.Sprintf("accel%d", d.Minor)
	}
	return nicName(d)[len("pci-"):] + "-0x0bda"
}

// publishedAccelerators are the devices of one of the two drivers, with the
// attributes that it publishes.
func (h hardware) publishedAccelerators(driver string) []resourcev1.Device {
	var devices []resourcev1.Device
	for _, d := range h.accelerators {
		name := acceleratorName(d)
		if deviceDriver(name) != driver {
			continue
		}
		published := resourcev1.Device{Name: name}
		if driver == tpuDriver {
			published.Attributes = attributes{
				"index": {IntValue: new(int64(d.Minor))}, "uuid": text("tpu-" + nodeName + "-" + name), "tpuGen": text("v4"), "brand": text("Google"),
			}
		} else {
			published.Attributes = attributes{"model": text(d.Model), "family": text("Max"), "resource.kubernetes.io/pciBusID": text(d.PCIBusID)}
			published.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("48Gi")}}
		}
		devices = append(devices, published)
	}
	return devices
}

// localSource is the source of what the agent reads by itself.
type localSource struct{ *simulated.Source }

// Readers returns those of the devices of NVIDIA and Mellanox.
func (s localSource) Readers(ctx context.Context) ([]device.Reader, error) {
	readers, err := s.Source.Readers(ctx)
	var local []device.Reader
	for _, reader := range readers {
		if !isAccelerator(reader.Key()) {
			local = append(local, reader)
		}
	}
	return local, err
}

// isAccelerator reports whether the key of a reader is that of a TPU chip or of the
// Intel GPU.
func isAccelerator(key string) bool { return strings.HasPrefix(key, "tpu-") || key == intelAddress }

// intelAddress is the PCI address of the Intel GPU.
const intelAddress = "0000:3a:00.0"

// accelerators serves the metrics of the other vendors' devices: of TPU chips as the
// page of their driver; of the Intel GPU as a page with the names of Intel's xpumd.
type accelerators struct {
	source  *simulated.Source
	devices []device.Device
	log     *slog.Logger

	sockets  string // directory of the socket of the TPU driver
	exporter string // socket of the exporter of Intel's GPU
	serving  sync.WaitGroup
}

// serve begins to serve in a directory until ctx ends.
func (a *accelerators) serve(ctx context.Context, dir string) error {
	a.sockets, a.exporter = filepath.Join(dir, "drivers"), filepath.Join(dir, "xpumd.sock")
	if err := os.MkdirAll(a.sockets, 0o755); err != nil {
		return err
	}
	if err := a.servePage(ctx, a.exporter, a.intelPage); err != nil {
		return err
	}
	return a.servePage(ctx, filepath.Join(a.sockets, tpuDriver+".sock"), a.tpuPage)
}

// servePage begins to serve a page on a socket until ctx ends.
func (a *accelerators) servePage(ctx context.Context, socket string, page http.HandlerFunc) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 5 * time.Second}
	a.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.log.Warn("metrics of devices are not served any more", "socket", socket, "error", err)
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// wait returns when nothing is served any more.
func (a *accelerators) wait() { a.serving.Wait() }

// tpuPage answers with the page of the driver of TPUs: the project's own families.
func (a *accelerators) tpuPage(w http.ResponseWriter, r *http.Request) {
	specs := device.Specs()
	var page bytes.Buffer
	for _, d := range a.devices {
		if d.Vendor != vendorGoogle {
			continue
		}
		readings, err := a.read(r.Context(), d)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		labels := fmt.Sprintf("driver=%q,pool=%q,device=%q", tpuDriver, nodeName, acceleratorName(d))
		fmt.Fprintf(&page, "%sinfo{%s,vendor=%q,model=%q} 1\n", device.FamilyPrefix, labels, d.Vendor, d.Model)
		for _, reading := range readings {
			spec := &specs[reading.Quantity]
			more := ""
			for i, name := range spec.Details {
				more += fmt.Sprintf(",%s=%q", name, reading.Details[i])
			}
			fmt.Fprintf(&page, "%s{%s%s} %v\n", spec.Family(), labels, more, reading.Value)
		}
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(page.Bytes())
}

// intelPage answers with the page of Intel's xpumd.
func (a *accelerators) intelPage(w http.ResponseWriter, r *http.Request) {
	readings, err := a.read(r.Context(), device.Device{PCIBusID: intelAddress})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	const labels = `com_intel_subdevice_id="",hw_id="9f1c2d34-0000-0000-0000-000000000000",pci_bdf="` + intelAddress + `"`
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "# TYPE hw_gpu_info gauge\nhw_gpu_info{%s,hw_model=\"Intel Data Center GPU Max 1100\"} 1\n", labels)
	for _, reading := range readings {
		name, more := "", ""
		switch reading.Quantity {
		case device.Utilization:
			name, more = "hw_gpu_utilization_ratio", `hw_gpu_task="all"`
		case device.MemoryUsed:
			name, more = "hw_memory_usage_bytes", `hw_memory_location="device"`
		case device.MemorySize:
			name, more = "hw_memory_size_bytes", `hw_memory_location="device"`
		case device.Power:
			name, more = "hw_power_watts", `hw_sensor_location="card"`
		case device.Energy:
			name, more = "hw_energy_joules_total", `hw_sensor_location="card"`
		case device.Temperature:
			name, more = "hw_temperature_celsius", `hw_sensor_location="gpu",statistic="max"`
		case device.ClockFrequency:
			name, more = "hw_frequency_hertz", `hw_frequency_domain="gpu",aggregation="avg"`
		default:
			continue
		}
		fmt.Fprintf(w, "%s{%s,%s} %v\n", name, labels, more, reading.Value)
	}
}

// read reads one device, both tiers.
func (a *accelerators) read(ctx context.Context, d device.Device) ([]device.Reading, error) {
	readers, err := a.source.Readers(ctx)
	if err != nil {
		return nil, err
	}
	for _, reader := range readers {
		if reader.Key() != cmp.Or(d.UUID, d.PCIBusID) {
			continue
		}
		observations, err := reader.Read(ctx, device.Slow)
		if len(observations) == 0 {
			return nil, err
		}
		return append(observations[0].Readings, observations[0].Slow...), nil
	}
	return nil, fmt.Errorf("the device %s is not there", cmp.Or(d.UUID, d.PCIBusID))
}
