package simulation

import (
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

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics"
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
		if driverOf(name) != driver {
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

// accelerators serves the metrics of the other vendors' devices: of TPU chips as
// device metrics of their driver, by the kit for drivers; of the Intel GPU as a page
// with the names of Intel's xpumd.
type accelerators struct {
	source  *simulated.Source
	devices []device.Device
	clock   clock.Clock
	log     *slog.Logger

	plugins  string // directory of the socket of TPU metrics
	exporter string // socket of the exporter of Intel's GPU
	serving  sync.WaitGroup
}

// serve begins to serve in a directory until ctx ends.
func (a *accelerators) serve(ctx context.Context, dir string) error {
	a.plugins, a.exporter = filepath.Join(dir, "plugins"), filepath.Join(dir, "xpumd.sock")
	if err := os.MkdirAll(a.plugins, 0o755); err != nil {
		return err
	}
	listener, err := net.Listen("unix", a.exporter)
	if err != nil {
		return err
	}
	page := &http.Server{Handler: http.HandlerFunc(a.intelPage), ReadHeaderTimeout: 5 * time.Second}
	a.serving.Go(func() {
		if err := page.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.log.Warn("the metrics of the Intel GPU are not served any more", "error", err)
		}
	})
	context.AfterFunc(ctx, func() { _ = page.Close() })
	a.serving.Go(func() {
		err := devicemetrics.Serve(ctx, devicemetrics.Options{
			Driver: tpuDriver, Folder: a.plugins, Log: a.log, Now: func() time.Time { return a.clock().Wall }, Read: a.readTPUs,
		})
		if err != nil {
			a.log.Warn("the metrics of TPUs are not served any more", "error", err)
		}
	})
	return nil
}

// wait returns when nothing is served any more.
func (a *accelerators) wait() { a.serving.Wait() }

// readTPUs reads the TPU chips as their driver does.
func (a *accelerators) readTPUs(ctx context.Context) ([]devicemetrics.Device, error) {
	var devices []devicemetrics.Device
	for _, d := range a.devices {
		if d.Vendor != vendorGoogle {
			continue
		}
		readings, err := a.read(ctx, d)
		if err != nil {
			return devices, err
		}
		described := devicemetrics.Device{Pool: nodeName, Name: acceleratorName(d), Model: d.Model, Vendor: d.Vendor}
		specs := device.Specs()
		for _, r := range readings {
			spec := specs[r.Quantity]
			reading := devicemetrics.Reading{Quantity: devicemetrics.Quantity(spec.Name), Value: r.Value}
			for i := range spec.Details {
				reading.Details = append(reading.Details, r.Details[i])
			}
			described.Readings = append(described.Readings, reading)
		}
		devices = append(devices, described)
	}
	return devices, nil
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
func (a *accelerators) read(ctx context.Context, of device.Device) ([]device.Reading, error) {
	readers, err := a.source.Readers(ctx)
	if err != nil {
		return nil, err
	}
	for _, reader := range readers {
		if reader.Key() != cmp.Or(of.UUID, of.PCIBusID) {
			continue
		}
		observations, err := reader.Read(ctx, device.Slow)
		if len(observations) == 0 {
			return nil, err
		}
		return append(observations[0].Readings, observations[0].Slow...), nil
	}
	return nil, fmt.Errorf("the device %s is not there", cmp.Or(of.UUID, of.PCIBusID))
}
