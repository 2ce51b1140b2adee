package neuron

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

const (
	driver = "neuron.aws.com"
	vendor = "aws"

	maxDevices = 1024
	maxCores   = 64      // of a device; a Trainium2 has 8
	maxValues  = 250_000 // of all kinds
	maxPeriod  = 90 * time.Second
)

// document is what is read of a document of neuron-monitor. Numbers of cores are
// keys of objects.
type document struct {
	Runtimes []runtime `json:"neuron_runtime_data"`
	Hardware hardware  `json:"neuron_hardware_info"`
}

type hardware struct {
	Devices        int     `json:"neuron_device_count"`
	MemorySize     float64 `json:"neuron_device_memory_size"` // bytes of a device
	CoresPerDevice int     `json:"neuroncore_per_device_count"`
	LogicalConfig  int     `json:"logical_neuroncore_config"` // physical cores in a logical one
	Type           string  `json:"neuron_device_type"`
	Error          string  `json:"error"`
}

type runtime struct {
	PID    int    `json:"pid"`
	Error  string `json:"error"`
	Report struct {
		Counters struct {
			Period float64 `json:"period"` // seconds
			Error  string  `json:"error"`
			Cores  map[string]struct {
				Utilization float64 `json:"neuroncore_utilization"` // percent
			} `json:"neuroncores_in_use"`
		} `json:"neuroncore_counters"`
		Memory struct {
			Error string `json:"error"`
			Used  struct {
				Breakdown struct {
					Cores map[string]map[string]float64 `json:"neuroncore_memory_usage"` // bytes by kind
				} `json:"usage_breakdown"`
			} `json:"neuron_runtime_used_bytes"`
		} `json:"memory_used"`
	} `json:"report"`
}

// decode returns the devices of a document that was received at the elapsed time.
// cores is how many NeuronCores of the document a device has; 0: as the document
// says. An error beside devices says what is missing.
func decode(text []byte, cores int, at time.Duration) ([]device.Observation, error) {
	if objectfields.CountText(text, maxValues+1) > maxValues {
		return nil, fmt.Errorf("the document of neuron-monitor has more than %d values", maxValues)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("decode a document of neuron-monitor: %w", err)
	}
	switch h := d.Hardware; {
	case h.Error != "":
		return nil, fmt.Errorf("neuron-monitor cannot read the hardware: %q", clip(h.Error))
	case h.Devices < 1 || h.Devices > maxDevices:
		return nil, fmt.Errorf("the document of neuron-monitor has %d devices, want 1 to %d", h.Devices, maxDevices)
	}
	devices := make([]device.Observation, d.Hardware.Devices)
	for i := range devices {
		devices[i].Device = device.Device{
			Vendor: vendor, Model: clip(d.Hardware.Type), Minor: device.Unknown, RenderMinor: device.Unknown,
			Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
			Published: device.PublishedName{Driver: driver, Device: "neurondevice" + strconv.Itoa(i)},
		}
		if size := d.Hardware.MemorySize; size > 0 && !math.IsInf(size, 0) {
			devices[i].Readings = append(devices[i].Readings, device.Reading{
				Quantity: device.MemorySize, Value: size, Measured: device.Window{From: at, To: at},
			})
		}
	}
	return devices, d.addUse(devices, cores, at)
}

// addUse adds what the runtimes use. The monitor lists all runtimes of the node: a
// core that none of them has is idle. If one cannot be read, nothing is known of any
// core.
func (d *document) addUse(devices []device.Observation, cores int, at time.Duration) error {
	if cores == 0 {
		if cores = d.Hardware.CoresPerDevice; d.Hardware.LogicalConfig > 1 {
			return fmt.Errorf("the logical NeuronCore configuration is %d: say how many logical cores a device has by --neuron.cores-per-device", d.Hardware.LogicalConfig)
		}
	}
	if cores < 1 || cores > maxCores {
		return fmt.Errorf("a device has %d NeuronCores, want 1 to %d", cores, maxCores)
	}
	all := len(devices) * cores
	busy, memory := make([]float64, all), make([]float64, len(devices))
	period := time.Duration(0)
	for _, r := range d.Runtimes {
		counters, used := &r.Report.Counters, &r.Report.Memory
		for _, text := range []string{r.Error, counters.Error, used.Error} {
			if text != "" {
				return fmt.Errorf("neuron-monitor cannot read the runtime with the pid %d: %q", r.PID, clip(text))
			}
		}
		if seconds := counters.Period; seconds > 0 && seconds <= maxPeriod.Seconds() {
			period = max(period, time.Duration(seconds*float64(time.Second)))
		}
		for name, core := range counters.Cores {
			i, err := index(name, all)
			if err != nil {
				return err
			}
			if !(core.Utilization >= 0 && core.Utilization <= 100) {
				return fmt.Errorf("the utilization of NeuronCore %d is %v %%", i, core.Utilization)
			}
			busy[i] = min(1, busy[i]+core.Utilization/100)
		}
		for name, kinds := range used.Used.Breakdown.Cores {
			i, err := index(name, all)
			if err != nil {
				return err
			}
			for kind, bytes := range kinds {
				if !(bytes >= 0 && bytes <= 1<<50) {
					return fmt.Errorf("the memory %q of NeuronCore %d is %v bytes", clip(kind), i, bytes)
				}
				memory[i/cores] += bytes
			}
		}
	}
	for i := range devices {
		sum := 0.0
		for _, ratio := range busy[i*cores : (i+1)*cores] {
			sum += ratio
		}
		window := device.Window{From: at - period, To: at}
		devices[i].Readings = append(devices[i].Readings,
			device.Reading{Quantity: device.Utilization, Value: min(1, sum/float64(cores)), Measured: window},
			device.Reading{Quantity: device.MemoryUsed, Value: memory[i], Measured: device.Window{From: at, To: at}})
	}
	return nil
}

// index is the number of a NeuronCore of the node.
func index(name string, all int) (int, error) {
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= all {
		return 0, fmt.Errorf("NeuronCore %q is none of the %d of the node: is --neuron.cores-per-device right?", clip(name), all)
	}
	return i, nil
}

// clip shortens foreign text for messages and labels.
func clip(text string) string {
	const longest = 64
	if len(text) <= longest {
		return text
	}
	return text[:longest]
}
