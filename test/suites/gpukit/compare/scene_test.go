package compare

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/smi"
)

// The scene is one minute of two GPUs and one GPU in MIG mode with one MIG
// device. The agent's page has what was so half a second before.

const duration = 60 // seconds

func start() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) }

func at(second float64) time.Time {
	return start().Add(time.Duration(second * float64(time.Second)))
}

func minute() Window { return Window{at(0), at(duration)} }

// page is what the agent exports: values by series.
type page map[string]float64

// scene is how observations differ from the truth; each function may be nil.
type scene struct {
	agent   func(second float64, p page)
	library func(second float64, s *direct.Sample)
	smi     func(second float64, l *smi.Log)
	rate    float64 // received PCIe bytes per second of GPU 0; 0 is 1e9
}

const (
	mib      = 1 << 20
	total    = 81559 * mib
	reserved = 623 * mib
	migTotal = 9856 * mib
	migUUID  = "MIG-0"
)

func gpuUUID(g int) string { return fmt.Sprintf("GPU-%d", g) }

func used(g int, t float64) float64 {
	if t < 30 {
		return float64(1000+50*g) * mib
	}
	return float64(3000+50*g) * mib
}

func powerAt(g int, t float64) float64 { return 300 + 100*float64(g) + 10*math.Sin(t/5) }

func energyAt(g int, t float64) float64 {
	return 1e5 + (300+100*float64(g))*t + 50*(1-math.Cos(t/5))
}

func received(rate float64, g int, t float64) float64 { return 4e9 + rate*float64(1+g)*t }

func series1(name, uuid string, labels ...string) string {
	parent := ""
	if uuid == migUUID {
		parent = "GPU-2"
	}
	text := fmt.Sprintf("%s{uuid=%q,parent_uuid=%q", name, uuid, parent)
	for i := 0; i < len(labels); i += 2 {
		text += fmt.Sprintf(",%s=%q", labels[i], labels[i+1])
	}
	return text + "}"
}

func info(g int) string {
	return series1(deviceInfo, gpuUUID(g), "vendor", "nvidia", "model", "NVIDIA H200", "pci_bus_id", fmt.Sprintf("0000:5%d:00.0", g),
		"partition_profile", "", "driver_version", "580.65.06", "source", "nvml")
}

func (s scene) pageAt(t float64) page {
	then := t - 0.5
	p := page{}
	for g := range 3 {
		uuid := gpuUUID(g)
		set := func(name string, value float64, labels ...string) { p[series1(name, uuid, labels...)] = value }
		p[info(g)] = 1
		set(deviceMemorySizeBytes, total)
		set(deviceMemoryUsedBytes, used(g, then))
		set(deviceMemoryReservedBytes, reserved)
		set(devicePowerWatts, powerAt(g, then))
		set(devicePowerLimitWatts, 700)
		set(deviceEnergyJoules, energyAt(g, then))
		set(deviceTemperatureCelsius, 60+10*float64(g), "sensor", "gpu")
		if g != 1 {
			set(deviceTemperatureCelsius, 72, "sensor", "memory")
		}
		set(deviceClockHertz, 1500e6+150e6*float64(g), "clock", "sm")
		set(deviceClockHertz, 2619e6, "clock", "memory")
		set(deviceECCErrors, 5+float64(g), "severity", "corrected")
		set(deviceECCErrors, float64(g), "severity", "uncorrected")
		set(deviceRemappedRows, 1, "severity", "corrected")
		set(deviceRemappedRows, float64(g), "severity", "uncorrected")
		set(deviceRowRemapPending, 0)
		set(deviceRowRemapFailed, 0)
		set(devicePCIeTransmitBytes, 1e6*then)
		set(devicePCIeReceiveBytes, received(s.pcieRate(), g, then))
		set(devicePCIeReplays, 3+float64(g))
		set(deviceThrottledSeconds, 10+0.1*then, "reason", "power_cap")
		set(deviceThrottledSeconds, 0, "reason", "thermal")
		set(deviceThrottledSeconds, 1, "reason", "hw_thermal") // added up by the agent
		if g < 2 {
			set(deviceUtilizationRatio, 0.5+0.3*float64(g))
			set(deviceMemoryActivityRatio, 0.2+0.3*float64(g))
		}
	}
	p[series1(deviceInfo, migUUID, "vendor", "nvidia", "model", "NVIDIA H200", "pci_bus_id", "0000:52:00.0",
		"partition_profile", "1g.10gb", "driver_version", "580.65.06", "source", "nvml")] = 1
	p[series1(devicePartitionInfo, migUUID, "gpu_instance_id", "9", "compute_instance_id", "0")] = 1
	p[series1(deviceMemorySizeBytes, migUUID)] = migTotal
	p[series1(deviceMemoryUsedBytes, migUUID)] = 512 * mib
	p[series1(deviceMemoryReservedBytes, migUUID)] = 16 * mib
	if s.agent != nil {
		s.agent(t, p)
	}
	return p
}

func (s scene) pcieRate() float64 {
	if s.rate == 0 {
		return 1e9
	}
	return s.rate
}

func of(value float64) *float64 { return &value }

func (s scene) sampleAt(t float64) direct.Sample {
	sample := direct.Sample{Time: at(t), DriverVersion: "580.65.06"}
	for g := range 3 {
		d := direct.Device{
			Time: at(t), UUID: gpuUUID(g), Name: "NVIDIA H200", PCIBusID: fmt.Sprintf("00000000:5%d:00.0", g), Serial: "165",
			Memory: direct.Memory{Total: of(total), Used: of(used(g, t)), Free: of(total - reserved - used(g, t)), Reserved: of(reserved)},
			Power:  direct.Power{Usage: of(powerAt(g, t)), EnforcedLimit: of(700)}, Energy: of(energyAt(g, t)),
			Temperature: direct.Temperature{GPU: of(60 + 10*float64(g)), Memory: of(72)},
			Clocks:      direct.Clocks{SM: of(1500e6 + 150e6*float64(g)), Memory: of(2619e6)},
			ECC:         direct.ECC{AggregateCorrected: of(5 + float64(g)), AggregateUncorrected: of(float64(g))},
			Rows:        direct.Rows{Corrected: of(1), Uncorrected: of(float64(g)), Pending: of(0), Failed: of(0)},
			PCIe: direct.PCIe{TransmitBytes: of(math.Mod(1e6*t, 1<<32)), ReceiveBytes: of(math.Mod(received(s.pcieRate(), g, t), 1<<32)),
				Replays: of(3 + float64(g)), Generation: of(5), Width: of(16)},
			EventReasons: new(uint64), Throttled: map[string]float64{"sw_power_cap": 10 + 0.1*t, "sw_thermal_slowdown": 0},
			Utilization: direct.Utilization{GPU: of(0.5 + 0.3*float64(g)), Memory: of(0.2 + 0.3*float64(g))},
			Processes:   []direct.Process{},
		}
		if g == 1 {
			d.Temperature.Memory = nil
		}
		if g == 2 {
			d.Utilization = direct.Utilization{}
		}
		sample.Devices = append(sample.Devices, d)
	}
	sample.Devices = append(sample.Devices, direct.Device{
		Time: at(t), UUID: migUUID, ParentUUID: "GPU-2", Name: "NVIDIA H200 MIG 1g.10gb", GPUInstance: of(9), ComputeInstance: of(0),
		Memory: direct.Memory{Total: of(migTotal), Used: of(512 * mib), Free: of(migTotal - 528*mib), Reserved: of(16 * mib)},
	})
	if s.library != nil {
		s.library(t, &sample)
	}
	return sample
}

func count(value float64) smi.Number {
	return smi.Number{Value: value, Resolution: 1, Known: true}
}

func rounded(value, resolution float64, unit smi.Unit) smi.Number {
	return smi.Number{Value: math.Round(value/resolution) * resolution, Resolution: resolution, Unit: unit, Known: true}
}

func mebibytes(value float64) smi.Number { return rounded(value, mib, smi.Bytes) }

func (s scene) logAt(t float64) smi.Log {
	l := smi.Log{DriverVersion: "580.65.06"}
	for g := range 3 {
		gpu := smi.GPU{
			UUID: gpuUUID(g), Name: "NVIDIA  H200", PCIBusID: fmt.Sprintf("00000000:5%d:00.0", g), Serial: "165",
			Memory:      smi.Memory{Total: mebibytes(total), Used: mebibytes(used(g, t)), Reserved: mebibytes(reserved), Free: mebibytes(total - reserved - used(g, t))},
			Power:       smi.Power{Average: rounded(powerAt(g, t), 0.01, smi.Watts), Limit: rounded(700, 0.01, smi.Watts)},
			Temperature: smi.Temperature{GPU: rounded(60+10*float64(g), 1, smi.Celsius), Memory: rounded(72, 1, smi.Celsius)},
			Clocks:      smi.Clocks{SM: rounded(1500e6+150e6*float64(g), 1e6, smi.Hertz), Memory: rounded(2619e6, 1e6, smi.Hertz)},
			ECC: smi.ECC{Aggregate: smi.ECCErrors{SRAMCorrectable: count(0), SRAMUncorrectableParity: count(0), SRAMUncorrectableSECDED: count(0),
				DRAMCorrectable: count(5 + float64(g)), DRAMUncorrectable: count(float64(g))}},
			Rows:          smi.RemappedRows{Correctable: count(1), Uncorrectable: count(float64(g)), Pending: smi.Flag{Known: true}, Failure: smi.Flag{Known: true}},
			PCIe:          smi.PCIe{Replays: count(3 + float64(g)), Generation: count(5), Width: count(16)},
			EventCounters: map[string]smi.Number{"sw_power_cap": rounded(10+0.1*t, 1e-6, smi.Seconds), "sw_therm_slowdown": rounded(0, 1e-6, smi.Seconds)},
			Utilization:   smi.Utilization{GPU: rounded(0.5+0.3*float64(g), 0.01, smi.Ratio), Memory: rounded(0.2+0.3*float64(g), 0.01, smi.Ratio)},
		}
		if g == 1 {
			gpu.Temperature.Memory = smi.Number{}
		}
		if g == 2 {
			gpu.Utilization = smi.Utilization{}
			gpu.MIG = smi.MIG{Mode: smi.Flag{Value: true, Known: true}, Devices: []smi.MIGDevice{{
				Index: count(0), GPUInstance: count(9), ComputeInstance: count(0),
				Memory: smi.Memory{Total: mebibytes(migTotal), Used: mebibytes(512 * mib), Reserved: mebibytes(16 * mib)},
			}}}
		}
		l.GPUs = append(l.GPUs, gpu)
	}
	if s.smi != nil {
		s.smi(t, &l)
	}
	return l
}

// observe makes the observations: pages and samples each second, texts of
// nvidia-smi each two.
func (s scene) observe(t testing.TB) Observations {
	t.Helper()
	var o Observations
	for second := -3.0; second <= duration+3; second++ {
		if second >= 0 && second <= duration {
			o.Agent = append(o.Agent, parse(t, at(second), s.pageAt(second)))
		}
		o.Library = append(o.Library, s.sampleAt(second+0.3))
		if math.Mod(second, 2) == 0 {
			o.SMI = append(o.SMI, SMILog{at(second + 0.7), s.logAt(second + 0.7)})
		}
	}
	return o
}

// parse makes a page from its text.
func parse(t testing.TB, when time.Time, p page) AgentPage {
	t.Helper()
	names := make(map[string][]string)
	for line, value := range p {
		name, _, _ := strings.Cut(line, "{")
		names[name] = append(names[name], fmt.Sprintf("%s %g", line, value))
	}
	var text bytes.Buffer
	for name, lines := range names {
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		slices.Sort(lines)
		fmt.Fprintf(&text, "# TYPE %s %s\n%s\n", name, kind, strings.Join(lines, "\n"))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatalf("parse a page: %v", err)
	}
	return AgentPage{when, families}
}

// outcome are the results of one status, as "row, device, against".
func outcome(results []Result, status Status) []string {
	var found []string
	for _, r := range results {
		if r.Status == status {
			found = append(found, r.Row+", "+r.Device+", "+r.Against)
		}
	}
	slices.Sort(found)
	return found
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nnot\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
