package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
)

// startDirect starts `gpukit direct` with the stub of libnvidia-ml. It lasts
// until the test ends it.
func startDirect(t *testing.T, node *stubs.Node, arguments ...string) *process {
	t.Helper()
	arguments = append([]string{"direct", "--library=" + stubs.Build(t).NVML, "--until-eof", "--interval=120ms", "--process-interval=20ms"}, arguments...)
	return start(t, program(node, nil, arguments...))
}

func (p *process) sample() direct.Sample {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		_ = p.command.Wait()
		p.t.Fatalf("the output ended after %q: %v: %s", line, err, p.message)
	}
	s, err := direct.Decode(line)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// stop ends a program by its standard input.
func (p *process) stop() {
	p.t.Helper()
	_ = p.in.Close()
	for {
		if _, err := p.out.ReadBytes('\n'); err != nil {
			break
		}
	}
	p.succeeds()
}

func of(value float64) *float64 { return &value }

// Every value that a script has is that of a sample, in base units.
func TestDirectReadsWhatIsScripted(t *testing.T) {
	node := stubs.NewNode(t, 2)
	for key, value := range map[string]string{
		"name": "NVIDIA Test", "uuid": "GPU-00000000-0000-0000-0000-000000000001", "serial": "165", "pci.bus_id": "00000000:53:00.0",
		"memory.total": "1000000", "memory.reserved": "3000", "memory.used": "20000", "bar1.total": "4096", "bar1.used": "1024",
		"utilization.gpu": "87", "utilization.memory": "41",
		"power.draw": "412.5", "power.limit": "650", "power.default_limit": "700", "power.min_limit": "200", "power.max_limit": "750",
		"energy": "1234.567", "temperature.gpu": "61", "temperature.memory": "72",
		"clocks.graphics": "1700", "clocks.sm": "1710", "clocks.memory": "2619", "clocks.video": "1500",
		"clocks.max.graphics": "1980", "clocks.max.sm": "1981", "clocks.max.memory": "2620", "clocks.max.video": "1545",
		"ecc.mode": "1", "ecc.corrected": "11", "ecc.uncorrected": "12", "ecc.volatile.corrected": "13", "ecc.volatile.uncorrected": "14",
		"remapped_rows.corrected": "1", "remapped_rows.uncorrected": "2", "remapped_rows.pending": "1", "remapped_rows.failure": "0",
		"pcie.generation": "5", "pcie.width": "8", "pcie.tx_rate": "502", "pcie.rx_rate": "578", "pcie.replays": "7",
		"pcie.tx_bytes": "4294967306", "pcie.rx_bytes": "20", // above 2^32
		"clocks_event_reasons": "0x24", "pstate": "2",
		"throttle.power_cap": "1500000000", "throttle.thermal": "2000000000", "throttle.sync_boost": "3000000000",
		"throttle.board_limit": "4000000000", "throttle.low_utilization": "5000000000", "throttle.reliability": "6000000000",
		"throttle.sw_thermal": "7000000000", "throttle.hw_thermal": "8000000000", "throttle.hw_power_brake": "9000000000",
		"profiling.graphics": "0.9", "profiling.sm": "0.8", "profiling.sm_occupancy": "0.7", "profiling.integer": "0.1", "profiling.tensor": "0.6",
		"profiling.dram": "0.5", "profiling.fp64": "0.4", "profiling.fp32": "0.3", "profiling.fp16": "0.2",
	} {
		node.Set(0, key, value)
	}
	node.SetNode("driver_version", "999.1")
	node.SetProcesses(0, stubs.Process{PID: os.Getpid(), Memory: 1 << 30, Utilization: 30}, stubs.Process{PID: os.Getppid(), Kind: stubs.MPS, Memory: -1})
	p := startDirect(t, node)
	one := p.sample()
	two := p.sample()
	for range 50 { // on a busy machine, timers are late
		if len(two.Devices[0].ProcessSamples) > 1 {
			break
		}
		two = p.sample()
	}
	p.stop()
	if live := node.Live(); live != (stubs.Live{}) {
		t.Errorf("%+v is open after the end", live)
	}
	if settings := node.Settings(); len(settings) > 0 {
		t.Errorf("it has set %v", settings)
	}
	if one.DriverVersion != "999.1" || one.NVMLVersion == "" || len(one.Devices) != 2 || one.Devices[0].GPM != nil {
		t.Fatalf("the first sample is %+v", one)
	}
	got := two.Devices[0]
	samples := got.ProcessSamples
	if len(samples) < 2 {
		t.Errorf("there are %d process samples of several requests", len(samples))
	}
	for i, s := range samples {
		if s.PID != os.Getpid() || s.SM != 0.3 || i > 0 && s.Timestamp <= samples[i-1].Timestamp || time.UnixMicro(s.Timestamp).After(two.Time.Add(time.Minute)) {
			t.Errorf("process sample %d is %+v", i, s)
		}
	}
	if got.GPM["pcie_transmit"] != 0 || got.Time.Before(two.Time) {
		t.Errorf("%+v", got)
	}
	reasons := uint64(0x24)
	got.Time, got.ProcessSamples = time.Time{}, nil
	compareJSON(t, got, direct.Device{
		UUID: "GPU-00000000-0000-0000-0000-000000000001", Name: "NVIDIA Test", Serial: "165", PCIBusID: "00000000:53:00.0",
		Memory:      direct.Memory{Total: of(1000000), Used: of(20000), Free: of(977000), Reserved: of(3000)},
		BAR1:        direct.Memory{Total: of(4096), Used: of(1024), Free: of(3072)},
		Utilization: direct.Utilization{GPU: of(0.87), Memory: of(0.41)},
		Power: direct.Power{Usage: of(412.5), Instant: of(412.5), EnforcedLimit: of(650), Limit: of(650), DefaultLimit: of(700),
			MinimumLimit: of(200), MaximumLimit: of(750)},
		Energy: of(1234.567), Temperature: direct.Temperature{GPU: of(61), Memory: of(72)},
		Clocks:    direct.Clocks{Graphics: of(1700e6), SM: of(1710e6), Memory: of(2619e6), Video: of(1500e6)},
		MaxClocks: direct.Clocks{Graphics: of(1980e6), SM: of(1981e6), Memory: of(2620e6), Video: of(1545e6)},
		ECC: direct.ECC{Mode: of(1), VolatileCorrected: of(13), VolatileUncorrected: of(14),
			AggregateCorrected: of(11), AggregateUncorrected: of(12)},
		Rows: direct.Rows{Corrected: of(1), Uncorrected: of(2), Pending: of(1), Failed: of(0)},
		PCIe: direct.PCIe{Generation: of(5), MaxGeneration: of(5), Width: of(8), MaxWidth: of(8), TransmitRate: of(502e3), ReceiveRate: of(578e3),
			TransmitBytes: of(10), ReceiveBytes: of(20), Replays: of(7)},
		EventReasons: &reasons, PState: of(2), MIGMode: of(0),
		Throttled: map[string]float64{"sw_power_cap": 1.5, "perf_policy_thermal": 2, "sync_boost": 3, "board_limit": 4, "low_utilization": 5,
			"reliability": 6, "sw_thermal_slowdown": 7, "hw_thermal_slowdown": 8, "hw_power_brake_slowdown": 9},
		Processes: []direct.Process{{PID: os.Getpid(), Kind: "compute", Memory: of(1 << 30)}, {PID: os.Getppid(), Kind: "mps"}},
		GPM: map[string]float64{"graphics": 0.9, "sm": 0.8, "sm_occupancy": 0.7, "integer": 0.1, "tensor": 0.6, "dram": 0.5,
			"fp64": 0.4, "fp32": 0.3, "fp16": 0.2, "pcie_transmit": 0, "pcie_receive": 0},
	})
}

func compareJSON(t *testing.T, got, want direct.Device) {
	t.Helper()
	var both [2]map[string]any
	for i, d := range []direct.Device{got, want} {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &both[i]); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range both[1] {
		if !reflect.DeepEqual(both[0][key], value) {
			t.Errorf("%s is %v, not %v", key, both[0][key], value)
		}
	}
	for key, value := range both[0] {
		if both[1][key] == nil {
			t.Errorf("%s is %v, not absent", key, value)
		}
	}
}

// A quantity that a GPU does not have is absent, and an error of the driver is
// named.
func TestDirectLeavesOutWhatIsNotSupported(t *testing.T) {
	node := stubs.NewNode(t, 1)
	for _, key := range []string{"power.draw", "energy", "temperature.gpu", "temperature.memory", "remapped_rows.corrected", "gpm"} {
		node.Set(0, key, "none")
	}
	node.Set(0, "return.nvmlDeviceGetUtilizationRates", "GPU_IS_LOST")
	node.Set(0, "return.nvmlDeviceGetComputeRunningProcesses_v3", "NOT_SUPPORTED")
	p := startDirect(t, node)
	p.sample()
	d := p.sample().Devices[0]
	p.stop()
	if d.Power.Usage != nil || d.Energy != nil || d.Temperature != (direct.Temperature{}) || d.GPM != nil || d.Utilization != (direct.Utilization{}) || d.Processes != nil {
		t.Errorf("it has %+v", d)
	}
	if want := map[string]int{"nvmlDeviceGetUtilizationRates": 15}; !reflect.DeepEqual(d.Errors, want) {
		t.Errorf("the errors are %v, not %v", d.Errors, want)
	}
	if d.Memory.Total == nil || d.Power.EnforcedLimit == nil {
		t.Errorf("the rest is absent, too: %+v", d)
	}
}

// Without GPM nothing is allocated for it.
func TestDirectWithoutGPM(t *testing.T) {
	node := stubs.NewNode(t, 1)
	p := startDirect(t, node, "--gpm=false")
	p.sample()
	if d := p.sample().Devices[0]; d.GPM != nil || node.Live().GPMSamples != 0 {
		t.Errorf("it has %v, and %+v is open", d.GPM, node.Live())
	}
	p.stop()
}

// MIG devices follow their GPU, with their ids, memory and activity.
func TestDirectReadsMIGDevices(t *testing.T) {
	node := stubs.NewNode(t, 1)
	gi, ci := node.CreateMIG(0, "1g.10gb", -1)
	prefix := "mig." + strconv.Itoa(gi) + "."
	node.Set(0, prefix+"memory.used", "123456")
	node.Set(0, prefix+"profiling.graphics", "0.25")
	p := startDirect(t, node)
	p.sample()
	s := p.sample()
	p.stop()
	if len(s.Devices) != 2 || *s.Devices[0].MIGMode != 1 {
		t.Fatalf("it is %+v", s)
	}
	gpu, mig := s.Devices[0], s.Devices[1]
	if mig.ParentUUID != gpu.UUID || !strings.HasPrefix(mig.UUID, "MIG-") || !strings.HasSuffix(mig.Name, " MIG 1g.10gb") ||
		*mig.GPUInstance != float64(gi) || *mig.ComputeInstance != float64(ci) || *mig.Memory.Used != 123456 || mig.GPM["graphics"] != 0.25 || mig.Power.Usage != nil {
		t.Errorf("the MIG device is %+v", mig)
	}
}

func TestDirectFails(t *testing.T) {
	for want, arguments := range map[string][]string{
		"open NVIDIA's management library": {"--library=/none"},
		"must be at least 120ms":           {"--interval=1ms"},
		"--process-interval and --grace":   {"--process-interval=0"},
		`unexpected argument "x"`:          {"x"},
		"--library: must be a path":        {"--library="},
	} {
		err := run(t.Context(), append([]string{"direct"}, arguments...), nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: the error is %v", arguments, err)
		}
	}
	// A driver that is not loaded, and a duration.
	node := stubs.NewNode(t, 1)
	p := startDirect(t, node, "--duration=1ms")
	p.sample()
	p.succeeds()
	node.SetNode("return.nvmlInit_v2", "DRIVER_NOT_LOADED")
	p = startDirect(t, node)
	if status, message := p.status(); status != 1 || !strings.Contains(message, "nvmlInit_v2: ") || !strings.Contains(message, "(9)") {
		t.Errorf("exit status %d: %s", status, message)
	}
}

// A call that does not return is named.
func TestDirectNamesACallThatHangs(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.Set(0, "hang.nvmlDeviceGetTotalEnergyConsumption", "1")
	p := startDirect(t, node, "--grace=1s") // until it has come to the call
	_ = p.in.Close()
	if status, message := p.status(); status != 1 || message != "gpukit: nvmlDeviceGetTotalEnergyConsumption has not returned 1s after the end\n" {
		t.Errorf("exit status %d: %s", status, message)
	}
}

func TestDirectNamesAnInitializationThatHangs(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.SetNode("hang.nvmlInit_v2", "1")
	p := startDirect(t, node, "--grace=1ms")
	_ = p.in.Close()
	if status, message := p.status(); status != 1 || !strings.HasPrefix(message, "gpukit: the initialization of /") || !strings.HasSuffix(message, " has not returned 1ms after the end\n") {
		t.Errorf("exit status %d: %s", status, message)
	}
}
