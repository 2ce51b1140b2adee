package compare

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/smi"
)

// An agent that is right passes every row that can be compared.
func TestRightAgent(t *testing.T) {
	results := Compare(scene{}.observe(t), minute(), Rows())
	equal(t, "failed", outcome(results, Failed), nil)
	var want []string
	add := func(against string, devices []string, rows ...string) {
		for _, d := range devices {
			for _, row := range rows {
				want = append(want, row+", "+d+", "+against)
			}
		}
	}
	gpus, mig := []string{"GPU-0", "GPU-1", "GPU-2"}, []string{migUUID}
	both := []string{"model", "PCI address", "driver version", "memory size", "memory used", "memory reserved", "power", "power limit",
		"GPU temperature", "SM clock", "memory clock", "ECC errors, corrected", "ECC errors, uncorrected",
		"remapped rows, corrected", "remapped rows, uncorrected", "row remapping pending", "row remapping failed", "PCIe replays",
		"throttled, power_cap", "throttled, thermal"}
	add(NVIDIASMI, gpus, both...)
	add(Library, gpus, both...)
	add(Library, gpus, "energy", "PCIe bytes transmitted", "PCIe bytes received")
	add(NVIDIASMI, gpus[:2], "utilization", "memory activity")
	add(Library, gpus[:2], "utilization", "memory activity")
	add(NVIDIASMI, []string{"GPU-0", "GPU-2"}, "memory temperature")
	add(Library, []string{"GPU-0", "GPU-2"}, "memory temperature")
	add(NVIDIASMI, mig, "MIG: GPU instance", "MIG: compute instance", "memory size", "memory used", "memory reserved")
	add(Library, mig, "model", "driver version", "MIG: GPU", "MIG: profile", "MIG: GPU instance", "MIG: compute instance",
		"memory size", "memory used", "memory reserved")
	equal(t, "passed", outcome(results, Passed), want)
	for _, r := range results {
		switch {
		case r.Row == "memory temperature" && r.Device == "GPU-1":
			if r.Status != NotReported || r.Detail != "neither side has a value" || r.Agent != "none" {
				t.Errorf("%+v", r)
			}
		case r.Row == "throttled, hw_thermal":
			if r.Status != NotReported || !strings.Contains(r.Detail, "adds up") {
				t.Errorf("%+v", r)
			}
		case r.Row == "BAR1 size" || r.Row == "memory free":
			if r.Status != NotReported || r.Agent != "not exported" {
				t.Errorf("%+v", r)
			}
		case r.Row == "memory used" && r.Device == "GPU-0" && r.Against == NVIDIASMI:
			if r.Agent != "1048576000 to 3145728000 bytes" || r.Other != r.Agent || !strings.Contains(r.Detail, "61 of 61") {
				t.Errorf("%+v", r)
			}
		}
	}
}

// failing are results against both sides, or the library alone.
func failing(device string, rows ...string) []string {
	var found []string
	for _, row := range rows {
		found = append(found, row+", "+device+", "+NVIDIASMI, row+", "+device+", "+Library)
	}
	return found
}

func library(device string, rows ...string) []string {
	var found []string
	for _, row := range rows {
		found = append(found, row+", "+device+", "+Library)
	}
	return found
}

// change changes the value of a series of GPU 0.
func change(name string, by func(second, value float64) float64, labels ...string) func(float64, page) {
	return func(second float64, p page) {
		s := series1(name, "GPU-0", labels...)
		p[s] = by(second, p[s])
	}
}

func scaled(factor float64) func(float64, float64) float64 {
	return func(_, value float64) float64 { return value * factor }
}

func remove(name string, from, to float64, labels ...string) func(float64, page) {
	return func(second float64, p page) {
		if second >= from && second < to {
			delete(p, series1(name, "GPU-0", labels...))
		}
	}
}

// swap swaps what two GPUs have, but for their identities.
func swap(_ float64, p page) {
	swapped := page{}
	for s, value := range p {
		if !strings.HasPrefix(s, deviceInfo) {
			s = strings.NewReplacer(`"GPU-0"`, `"GPU-1"`, `"GPU-1"`, `"GPU-0"`).Replace(s)
		}
		swapped[s] = value
	}
	clear(p)
	maps.Copy(p, swapped)
}

// relabel replaces a text in the series of a family.
func relabel(family, from, to string) func(float64, page) {
	return func(_ float64, p page) {
		for s, value := range p {
			if strings.HasPrefix(s, family+"{") && strings.Contains(s, from) {
				delete(p, s)
				p[strings.Replace(s, from, to, 1)] = value
			}
		}
	}
}

// Each fault of the agent fails its rows, and no other.
func TestPlantedFaults(t *testing.T) {
	for name, c := range map[string]struct {
		scene scene
		want  []string
	}{
		"power in milliwatts":       {scene{agent: change(devicePowerWatts, scaled(1000))}, failing("GPU-0", "power")},
		"power limit in milliwatts": {scene{agent: change(devicePowerLimitWatts, scaled(1000))}, failing("GPU-0", "power limit")},
		"energy in millijoules":     {scene{agent: change(deviceEnergyJoules, scaled(1000))}, library("GPU-0", "energy")},
		"energy with an offset": {scene{agent: change(deviceEnergyJoules, func(_, v float64) float64 { return v + 5e4 })},
			library("GPU-0", "energy")},
		"clock in megahertz": {scene{agent: change(deviceClockHertz, scaled(1e-6), "clock", "sm")}, failing("GPU-0", "SM clock")},
		"clocks exchanged": {scene{agent: func(_ float64, p page) {
			one, two := series1(deviceClockHertz, "GPU-0", "clock", "sm"), series1(deviceClockHertz, "GPU-0", "clock", "memory")
			p[one], p[two] = p[two], p[one]
		}}, failing("GPU-0", "SM clock", "memory clock")},
		"sensors exchanged": {scene{agent: func(_ float64, p page) {
			one, two := series1(deviceTemperatureCelsius, "GPU-0", "sensor", "gpu"), series1(deviceTemperatureCelsius, "GPU-0", "sensor", "memory")
			p[one], p[two] = p[two], p[one]
		}}, failing("GPU-0", "GPU temperature", "memory temperature")},
		"utilization in percent":    {scene{agent: change(deviceUtilizationRatio, scaled(100))}, failing("GPU-0", "utilization")},
		"memory in mebibytes":       {scene{agent: change(deviceMemorySizeBytes, scaled(1.0/mib))}, failing("GPU-0", "memory size")},
		"used memory with reserved": {scene{agent: change(deviceMemoryUsedBytes, func(_, v float64) float64 { return v + reserved })}, failing("GPU-0", "memory used")},
		"free memory for reserved":  {scene{agent: change(deviceMemoryReservedBytes, scaled(10))}, failing("GPU-0", "memory reserved")},
		"stale memory":              {scene{agent: change(deviceMemoryUsedBytes, func(_, _ float64) float64 { return used(0, 0) })}, failing("GPU-0", "memory used")},
		"stale energy":              {scene{agent: change(deviceEnergyJoules, func(_, _ float64) float64 { return energyAt(0, 0) })}, library("GPU-0", "energy")},
		"a counter that falls":      {scene{agent: change(deviceEnergyJoules, func(s, v float64) float64 { return v - 1e3*max(0, s-58) })}, library("GPU-0", "energy")},
		"a counter that is not unwrapped": {scene{agent: change(devicePCIeReceiveBytes, func(_, v float64) float64 { return float64(uint64(v) % (1 << 32)) })},
			library("GPU-0", "PCIe bytes received")},
		"a wrap that is missed": {scene{agent: change(devicePCIeReceiveBytes, func(s, v float64) float64 {
			if s > 20 {
				return v - 1<<32 + 6e9 // without a fall: it stands still for some seconds
			}
			return v + 6e9*s/20
		})}, library("GPU-0", "PCIe bytes received")},
		"directions exchanged": {scene{agent: func(_ float64, p page) {
			one, two := series1(devicePCIeTransmitBytes, "GPU-0"), series1(devicePCIeReceiveBytes, "GPU-0")
			p[one], p[two] = p[two], p[one]
		}}, library("GPU-0", "PCIe bytes transmitted", "PCIe bytes received")},
		"an absent power":       {scene{agent: remove(devicePowerWatts, 0, 100)}, failing("GPU-0", "power")},
		"power that goes":       {scene{agent: remove(devicePowerWatts, 40, 100)}, failing("GPU-0", "power")},
		"a counter that goes":   {scene{agent: remove(deviceThrottledSeconds, 10, 20, "reason", "power_cap")}, failing("GPU-0", "throttled, power_cap")},
		"an absent temperature": {scene{agent: remove(deviceTemperatureCelsius, 0, 100, "sensor", "memory")}, failing("GPU-0", "memory temperature")},
		"a value where none is reported": {scene{agent: func(_ float64, p page) {
			p[series1(deviceTemperatureCelsius, "GPU-1", "sensor", "memory")] = 0
		}}, failing("GPU-1", "memory temperature")},
		"utilization of a GPU in MIG mode": {scene{agent: func(_ float64, p page) { p[series1(deviceUtilizationRatio, "GPU-2")] = 0 }},
			failing("GPU-2", "utilization")},
		"two devices swapped": {scene{agent: swap}, slices.Concat(
			failing("GPU-0", "memory used", "power", "GPU temperature", "memory temperature", "SM clock", "ECC errors, corrected", "ECC errors, uncorrected",
				"remapped rows, uncorrected", "PCIe replays", "utilization", "memory activity"),
			failing("GPU-1", "memory used", "power", "GPU temperature", "memory temperature", "SM clock", "ECC errors, corrected", "ECC errors, uncorrected",
				"remapped rows, uncorrected", "PCIe replays", "utilization", "memory activity"),
			library("GPU-0", "energy", "PCIe bytes received"), library("GPU-1", "energy", "PCIe bytes received"))},
		"volatile errors for lifetime": {scene{agent: change(deviceECCErrors, scaled(0), "severity", "corrected")}, failing("GPU-0", "ECC errors, corrected")},
		"severities exchanged": {scene{agent: func(_ float64, p page) {
			one, two := series1(deviceRemappedRows, "GPU-0", "severity", "corrected"), series1(deviceRemappedRows, "GPU-0", "severity", "uncorrected")
			p[one], p[two] = p[two], p[one]
		}}, failing("GPU-0", "remapped rows, corrected", "remapped rows, uncorrected")},
		"a pending remapping":        {scene{agent: change(deviceRowRemapPending, func(_, _ float64) float64 { return 1 })}, failing("GPU-0", "row remapping pending")},
		"throttling in nanoseconds":  {scene{agent: change(deviceThrottledSeconds, scaled(1e9), "reason", "power_cap")}, failing("GPU-0", "throttled, power_cap")},
		"throttling in microseconds": {scene{agent: change(deviceThrottledSeconds, scaled(1e6), "reason", "power_cap")}, failing("GPU-0", "throttled, power_cap")},
		"another model":              {scene{agent: relabel(deviceInfo, `uuid="GPU-0",parent_uuid="",vendor="nvidia",model="NVIDIA H200"`, `uuid="GPU-0",parent_uuid="",vendor="nvidia",model="NVIDIA H100"`)}, failing("GPU-0", "model")},
		"another address":            {scene{agent: relabel(deviceInfo, "0000:50:00.0", "0000:51:00.0")}, failing("GPU-0", "PCI address")},
		"another profile":            {scene{agent: relabel(deviceInfo, "1g.10gb", "2g.20gb")}, library(migUUID, "MIG: profile")},
		"another instance":           {scene{agent: relabel(devicePartitionInfo, `gpu_instance_id="9"`, `gpu_instance_id="8"`)}, failing(migUUID, "MIG: GPU instance")},
		"the GPU's memory for that of a MIG device": {scene{agent: func(_ float64, p page) { p[series1(deviceMemorySizeBytes, migUUID)] = total }},
			failing(migUUID, "memory size")},
		"a device that does not exist": {scene{agent: relabel(deviceInfo, `uuid="GPU-0"`, `uuid="GPU-7"`)}, slices.Concat(
			failing("GPU-0", "model", "PCI address", "driver version"), library("GPU-7", "device"))},
		"a mistake of the library that nvidia-smi does not make": {scene{library: func(_ float64, s *direct.Sample) { s.Devices[0].Power.Usage = of(1) }},
			library("GPU-0", "power")},
		"another driver at nvidia-smi": {scene{smi: func(_ float64, l *smi.Log) { l.DriverVersion = "1" }},
			[]string{"driver version, GPU-0, nvidia-smi", "driver version, GPU-1, nvidia-smi", "driver version, GPU-2, nvidia-smi"}},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "failed", outcome(Compare(c.scene.observe(t), minute(), Rows()), Failed), c.want)
		})
	}
}

// What only one of the other sides has is compared with that one.
func TestOneSideReports(t *testing.T) {
	o := scene{smi: func(_ float64, l *smi.Log) { l.GPUs[0].Power.Average = smi.Number{} }}.observe(t)
	for _, r := range Compare(o, minute(), Rows()) {
		if r.Row == "power" && r.Device == "GPU-0" && (r.Status == NotReported) != (r.Against == NVIDIASMI) {
			t.Errorf("%+v", r)
		}
	}
}

// Too few samples are no success.
func TestTooFewSamples(t *testing.T) {
	for _, r := range Compare(scene{}.observe(t), Window{at(10), at(13)}, Rows()) {
		if r.Row == "power" && (r.Status != Failed || r.Detail != "only 4 samples can be compared, 5 are needed") {
			t.Errorf("%+v", r)
		}
		if r.Row == "energy" && (r.Status != Failed || !strings.Contains(r.Detail, "only 4 samples")) {
			t.Errorf("%+v", r)
		}
	}
}

// One sample of twenty may be outside.
func TestFewOutliersPass(t *testing.T) {
	outliers := func(count float64) Observations {
		return scene{agent: change(devicePowerWatts, func(s, v float64) float64 {
			if s < count {
				return 10 * v
			}
			return v
		})}.observe(t)
	}
	if failed := outcome(Compare(outliers(3), minute(), Rows()), Failed); len(failed) > 0 {
		t.Errorf("with 3 of 61: %v", failed)
	}
	equal(t, "with 4 of 61", outcome(Compare(outliers(4), minute(), Rows()), Failed), failing("GPU-0", "power"))
}

// Without the library, nvidia-smi's GPUs are compared.
func TestWithoutLibrary(t *testing.T) {
	o := scene{agent: change(devicePowerWatts, scaled(1000))}.observe(t)
	o.Library = nil
	results := outcome(Compare(o, minute(), Rows()), Failed)
	if !slices.Contains(results, "observations, , library") || !slices.Contains(results, "power, GPU-0, nvidia-smi") || slices.Contains(results, "power, GPU-1, nvidia-smi") {
		t.Errorf("failed: %v", results)
	}
}

// What has not been observed is no success, and calls that fail are named.
func TestMissingObservations(t *testing.T) {
	results := Compare(Observations{}, minute(), Rows())
	if len(outcome(results, Failed)) != 2 || len(outcome(results, NotReported)) != 1 || len(results) != 3 {
		t.Errorf("without observations: %+v", results)
	}
	o := scene{library: func(second float64, s *direct.Sample) {
		if second > 30 && second < 40 {
			s.Devices[1].Errors = map[string]int{"nvmlDeviceGetPowerUsage": 999, "nvmlDeviceGetName": 15}
		}
	}}.observe(t)
	if r := Compare(o, minute(), Rows())[0]; r.Row != "calls of the library" || r.Device != "GPU-1" || r.Status != NotReported ||
		r.Detail != "nvmlDeviceGetName returns 15, nvmlDeviceGetPowerUsage returns 999" {
		t.Errorf("%+v", r)
	}
}

// Every row has a name of its own, a reader, and a unit unless it is a count or a
// text.
func TestRowsAreComplete(t *testing.T) {
	var names []string
	for _, r := range append(Rows(), ProfilingRows()...) {
		names = append(names, r.Name)
		if r.SMI == nil && r.Library == nil {
			t.Errorf("%s has no other side", r.Name)
		}
		if (r.Kind == Text) != (r.Label != "") && r.Metric != "" {
			t.Errorf("%s: a text has a label, and nothing else has one", r.Name)
		}
		if r.Wraps && r.Origin || r.Origin && r.Kind != Counter {
			t.Errorf("%s: the flags contradict each other", r.Name)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a name is there twice: %v", names)
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"00000000:53:00.0": "0000:53:00.0", "0000:C1:00.0": "0000:c1:00.0", "00010000:53:00.0": "10000:53:00.0", "": "",
	} {
		if got := address(text); got.Text != want {
			t.Errorf("%s is %s, not %s", text, got.Text, want)
		}
	}
}
