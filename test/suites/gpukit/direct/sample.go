// Package direct asks NVIDIA's management library, libnvidia-ml.so.1, without
// the agent's binding: the functions are looked up at run time, and the layouts
// of the structures are written down here. It is the other side of a comparison
// with the agent, so that a mistake of the agent's binding does not hide.
//
// It calls no function that changes a setting.
package direct

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Sample is what the library reports of all devices at a time. Numbers are in
// base units. What the driver does not report is nil, absent from the JSON text.
type Sample struct {
	Time          time.Time `json:"time"` // before the first call
	DriverVersion string    `json:"driver_version,omitempty"`
	NVMLVersion   string    `json:"nvml_version,omitempty"`
	Devices       []Device  `json:"devices"` // each GPU, followed by its MIG devices
}

// Device is a GPU or a MIG device.
type Device struct {
	Time       time.Time `json:"time"` // before its first call
	UUID       string    `json:"uuid"`
	ParentUUID string    `json:"parent_uuid,omitempty"` // of a MIG device: its GPU's
	Name       string    `json:"name,omitempty"`
	PCIBusID   string    `json:"pci_bus_id,omitempty"` // 00000000:53:00.0
	Serial     string    `json:"serial,omitempty"`

	GPUInstance     *float64 `json:"gpu_instance_id,omitempty"` // of a MIG device
	ComputeInstance *float64 `json:"compute_instance_id,omitempty"`

	Memory      Memory      `json:"memory"`
	BAR1        Memory      `json:"bar1"`
	Utilization Utilization `json:"utilization"`
	Power       Power       `json:"power"`
	Energy      *float64    `json:"energy_joules,omitempty"` // since the driver was loaded
	Temperature Temperature `json:"temperature_celsius"`
	Clocks      Clocks      `json:"clocks_hertz"`
	MaxClocks   Clocks      `json:"max_clocks_hertz"`
	ECC         ECC         `json:"ecc"`
	Rows        Rows        `json:"remapped_rows"`
	PCIe        PCIe        `json:"pcie"`

	// EventReasons are the bits nvmlClocksEventReason….
	EventReasons *uint64 `json:"clocks_event_reasons,omitempty"`
	// Throttled is for how long (seconds) clocks have been lowered, by the name
	// of Throttles.
	Throttled map[string]float64 `json:"throttled_seconds,omitempty"`

	PState  *float64 `json:"pstate,omitempty"`   // 0 (fastest) to 15
	MIGMode *float64 `json:"mig_mode,omitempty"` // 1: enabled

	// Processes is nil if the driver lists none of a kind, and empty if no
	// process uses the device.
	Processes []Process `json:"processes,omitzero"`
	// ProcessSamples are those since the sample before, in the driver's order.
	ProcessSamples []ProcessSample `json:"process_samples,omitempty"`
	// GPM are metrics between this sample and the one before, by the name of
	// GPMMetrics: ratios, and bytes per second.
	GPM map[string]float64 `json:"gpm,omitempty"`

	// Errors are the return codes of calls that failed for another reason than
	// that the device does not have the quantity.
	Errors map[string]int `json:"errors,omitempty"`
}

// Memory is in bytes.
type Memory struct {
	Total    *float64 `json:"total_bytes,omitempty"`
	Used     *float64 `json:"used_bytes,omitempty"` // without what is reserved, where that is reported
	Free     *float64 `json:"free_bytes,omitempty"`
	Reserved *float64 `json:"reserved_bytes,omitempty"`
}

// Utilization are ratios of time.
type Utilization struct {
	GPU    *float64 `json:"gpu,omitempty"`
	Memory *float64 `json:"memory,omitempty"`
}

// Power is in watts.
type Power struct {
	Usage         *float64 `json:"usage_watts,omitempty"`
	Instant       *float64 `json:"instant_watts,omitempty"`
	EnforcedLimit *float64 `json:"enforced_limit_watts,omitempty"`
	Limit         *float64 `json:"limit_watts,omitempty"` // set by an administrator
	DefaultLimit  *float64 `json:"default_limit_watts,omitempty"`
	MinimumLimit  *float64 `json:"minimum_limit_watts,omitempty"`
	MaximumLimit  *float64 `json:"maximum_limit_watts,omitempty"`
}

// Temperature is in degrees Celsius.
type Temperature struct {
	GPU    *float64 `json:"gpu,omitempty"`
	Memory *float64 `json:"memory,omitempty"`
}

// Clocks are in hertz.
type Clocks struct {
	Graphics *float64 `json:"graphics,omitempty"`
	SM       *float64 `json:"sm,omitempty"`
	Memory   *float64 `json:"memory,omitempty"`
	Video    *float64 `json:"video,omitempty"`
}

// ECC counts memory errors: since the driver was loaded, and in the GPU's life.
type ECC struct {
	Mode                 *float64 `json:"mode,omitempty"` // 1: enabled
	VolatileCorrected    *float64 `json:"volatile_corrected,omitempty"`
	VolatileUncorrected  *float64 `json:"volatile_uncorrected,omitempty"`
	AggregateCorrected   *float64 `json:"aggregate_corrected,omitempty"`
	AggregateUncorrected *float64 `json:"aggregate_uncorrected,omitempty"`
}

// Rows are rows of memory that have been replaced. Pending and Failed are 0 or 1.
type Rows struct {
	Corrected   *float64 `json:"corrected,omitempty"`
	Uncorrected *float64 `json:"uncorrected,omitempty"`
	Pending     *float64 `json:"pending,omitempty"`
	Failed      *float64 `json:"failed,omitempty"`
}

// PCIe is the link to the host, from the GPU's side.
type PCIe struct {
	Generation    *float64 `json:"generation,omitempty"`
	MaxGeneration *float64 `json:"max_generation,omitempty"`
	Width         *float64 `json:"width,omitempty"` // lanes
	MaxWidth      *float64 `json:"max_width,omitempty"`
	TransmitRate  *float64 `json:"transmit_bytes_per_second,omitempty"` // of about 20 ms
	ReceiveRate   *float64 `json:"receive_bytes_per_second,omitempty"`
	// TransmitBytes and ReceiveBytes are counters that wrap at 2^32.
	TransmitBytes *float64 `json:"transmit_bytes,omitempty"`
	ReceiveBytes  *float64 `json:"receive_bytes,omitempty"`
	Replays       *float64 `json:"replays,omitempty"`
}

// Process uses a device.
type Process struct {
	PID    int      `json:"pid"`
	Kind   string   `json:"kind"` // compute, graphics or mps
	Memory *float64 `json:"memory_bytes,omitempty"`
}

// ProcessSample is the utilization of a device by a process: ratios.
type ProcessSample struct {
	PID       int     `json:"pid"`
	Timestamp int64   `json:"timestamp_microseconds"` // Unix time
	SM        float64 `json:"sm"`
	Memory    float64 `json:"memory"`
	Encoder   float64 `json:"encoder"`
	Decoder   float64 `json:"decoder"`
}

// MaxLine is how long a line of a sample may be, in bytes.
const MaxLine = 16 << 20

// Decode decodes one line that `gpukit direct` has printed. Every number is
// finite, and each device has a UUID that no other device of the sample has.
func Decode(line []byte) (Sample, error) {
	if len(line) > MaxLine {
		return Sample{}, fmt.Errorf("decode a sample of the library: more than %d bytes", MaxLine)
	}
	var s Sample
	if err := json.Unmarshal(line, &s); err != nil {
		return Sample{}, fmt.Errorf("decode a sample of the library: %w", err)
	}
	if s.Time.IsZero() {
		return Sample{}, errors.New("decode a sample of the library: it has no time")
	}
	known := make(map[string]bool, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.UUID == "" || known[d.UUID] {
			return Sample{}, fmt.Errorf("decode a sample of the library: device %d has no UUID of its own", i)
		}
		known[d.UUID] = true
		if d.Time.IsZero() {
			d.Time = s.Time
		}
	}
	return s, nil
}

// Encode writes a sample as one line.
func Encode(to io.Writer, s Sample) error {
	if err := json.NewEncoder(to).Encode(s); err != nil {
		return fmt.Errorf("write a sample of the library: %w", err)
	}
	return nil
}

// finite returns a number, or nil if it is none.
func finite(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}
