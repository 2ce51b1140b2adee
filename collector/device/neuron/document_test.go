package neuron

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// linesOf has a line for each reading, in the order of the devices.
func linesOf(devices []device.Observation) []string {
	var lines []string
	for _, one := range devices {
		for _, r := range one.Readings {
			lines = append(lines, fmt.Sprintf("%s %s %.9g", one.Device.Published.Device, device.Specs()[r.Quantity].Name, r.Value))
		}
	}
	return lines
}

// Two devices of two cores, of which two runtimes use three.
const twoDevices = `{"neuron_hardware_info": {"neuron_device_count": 2, "neuroncore_per_device_count": 2, "neuron_device_memory_size": 1000},
"neuron_runtime_data": [
 {"pid": 1, "report": {
  "neuroncore_counters": {"period": 2, "neuroncores_in_use": {"0": {"neuroncore_utilization": 50}, "1": {"neuroncore_utilization": 100}}},
  "memory_used": {"neuron_runtime_used_bytes": {"usage_breakdown": {"neuroncore_memory_usage": {"0": {"constants": 10, "tensors": 5}, "1": {"tensors": 1}}}}}}},
 {"pid": 2, "report": {
  "neuroncore_counters": {"period": 1, "neuroncores_in_use": {"3": {"neuroncore_utilization": 20}, "1": {"neuroncore_utilization": 10}}},
  "memory_used": {"neuron_runtime_used_bytes": {"usage_breakdown": {"neuroncore_memory_usage": {"3": {"tensors": 7}}}}}}}]}`

func TestDecode(t *testing.T) {
	inf1, err := os.ReadFile("testdata/inf1.json")
	if err != nil {
		t.Fatal(err)
	}
	inf2, err := os.ReadFile("testdata/inf2.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text  string
		cores int
		want  string
		err   string
	}{
		// (89.01827638996558 + 0 + 0 + 0) / 4 %; 61766864 + 1308832 + 43216 bytes.
		"inf1": {text: string(inf1), want: "neurondevice0 utilization 0.222545691\nneurondevice0 memory_used 63118912"},
		// (89.40087251059674 + 0) / 2 %.
		"inf2":        {text: string(inf2), want: "neurondevice0 memory_size 3.43597384e+10\nneurondevice0 utilization 0.447004363\nneurondevice0 memory_used 0"},
		"two devices": {text: twoDevices, want: "neurondevice0 memory_size 1000\nneurondevice0 utilization 0.75\nneurondevice0 memory_used 16\nneurondevice1 memory_size 1000\nneurondevice1 utilization 0.1\nneurondevice1 memory_used 7"},
		"idle": {
			text: `{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 2}, "neuron_runtime_data": null}`,
			want: "neurondevice0 utilization 0\nneurondevice0 memory_used 0",
		},
		"logical cores": {
			text: `{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 8, "logical_neuroncore_config": 2, "neuron_device_memory_size": 5}}`,
			want: "neurondevice0 memory_size 5", err: "the logical NeuronCore configuration is 2: say how many logical cores a device has by --neuron.cores-per-device",
		},
		"logical cores that are known": {
			text: `{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 8, "logical_neuroncore_config": 2},
			 "neuron_runtime_data": [{"report": {"neuroncore_counters": {"neuroncores_in_use": {"3": {"neuroncore_utilization": 100}}}}}]}`,
			cores: 4, want: "neurondevice0 utilization 0.25\nneurondevice0 memory_used 0",
		},
		"a runtime that cannot be read": {
			text: `{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 2, "neuron_device_memory_size": 5}, "neuron_runtime_data": [{"pid": 9, "error": "no access"}]}`,
			want: "neurondevice0 memory_size 5", err: `neuron-monitor cannot read the runtime with the pid 9: "no access"`,
		},
		"a core of no device":    {text: `{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 2}, "neuron_runtime_data": [{"report": {"neuroncore_counters": {"neuroncores_in_use": {"2": {}}}}}]}`, err: `NeuronCore "2" is none of the 2 of the node`},
		"a utilization too high": {text: `{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 2}, "neuron_runtime_data": [{"report": {"neuroncore_counters": {"neuroncores_in_use": {"1": {"neuroncore_utilization": 101}}}}}]}`, err: "the utilization of NeuronCore 1 is 101 %"},
		"negative memory":        {text: `{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 2}, "neuron_runtime_data": [{"report": {"memory_used": {"neuron_runtime_used_bytes": {"usage_breakdown": {"neuroncore_memory_usage": {"0": {"x": -1}}}}}}}]}`, err: `the memory "x" of NeuronCore 0 is -1 bytes`},
		"no cores":               {text: `{"neuron_hardware_info": {"neuron_device_count": 1}}`, err: "a device has 0 NeuronCores, want 1 to 64"},
		"too many cores":         {text: `{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 9999999999}}`, err: "a device has 9999999999 NeuronCores, want 1 to 64"},
		"no hardware":            {text: `{}`, err: "has 0 devices, want 1 to 1024"},
		"too many devices":       {text: `{"neuron_hardware_info": {"neuron_device_count": 2000}}`, err: "has 2000 devices"},
		"an error of hardware":   {text: `{"neuron_hardware_info": {"error": "driver is not loaded"}}`, err: `neuron-monitor cannot read the hardware: "driver is not loaded"`},
		"empty runtimes":         {text: `{"neuron_runtime_data": [` + strings.Repeat("{},", maxValues) + `{}]}`, err: "the document of neuron-monitor has more than 250000 values"},
		"no JSON":                {text: `neuron`, err: "decode a document of neuron-monitor: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			devices, err := decode([]byte(c.text), c.cores, time.Hour)
			if got := strings.Join(linesOf(devices), "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got the error %v, want %q", err, c.err)
			}
		})
	}
}

// The utilization is that of the period before the document.
func TestTimeOfMeasurement(t *testing.T) {
	devices, err := decode([]byte(twoDevices), 0, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(devices[0].Readings, func(r device.Reading) bool { return r.Quantity == device.Utilization })
	if got, want := devices[0].Readings[i].Measured, (device.Window{From: time.Hour - 2*time.Second, To: time.Hour}); got != want {
		t.Errorf("measured %v, want %v", got, want)
	}
}

// FuzzDocument decodes foreign documents: nothing may panic, and no reading may be
// out of its range.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(twoDevices), 0)
	f.Add([]byte(`{"neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 9999999999}}`), 3)
	f.Fuzz(func(t *testing.T, text []byte, cores int) {
		devices, err := decode(text, max(cores, 0), time.Hour)
		if devices == nil && err == nil || len(devices) > maxDevices {
			t.Fatalf("%d devices, %v", len(devices), err)
		}
		for _, one := range devices {
			for _, r := range one.Readings {
				if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Value < 0 || r.Quantity == device.Utilization && r.Value > 1 || r.Measured.From > r.Measured.To {
					t.Fatalf("the reading %+v", r)
				}
			}
		}
	})
}
