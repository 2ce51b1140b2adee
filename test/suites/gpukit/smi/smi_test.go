package smi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const mib = 1 << 20

func bytesOf(mebibytes float64) Number { return Number{mebibytes * mib, Bytes, mib, true} }

func watts(value float64) Number { return Number{value, Watts, 0.01, true} }

func celsius(value float64) Number { return Number{value, Celsius, 1, true} }

func count(value float64) Number { return Number{value, Count, 1, true} }

func ratio(percent float64) Number { return Number{percent * 0.01, Ratio, 0.01, true} }

func megahertz(value float64) Number { return Number{value * 1e6, Hertz, 1e6, true} }

func rate(kilobytes float64) Number { return Number{kilobytes * 1e3, BytesPerSecond, 1e3, true} }

func yes(value bool) Flag { return Flag{value, true} }

func events(active ...string) map[string]bool {
	reasons := make(map[string]bool)
	for _, name := range []string{"gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
		"hw_power_brake_slowdown", "sync_boost", "sw_thermal_slowdown", "display_clocks_setting"} {
		reasons[name] = slices.Contains(active, name)
	}
	return reasons
}

func decodeFile(t *testing.T, name string) Log {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	log, err := Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// compare compares field by field, so that a difference is named.
func compare(t *testing.T, got, want GPU) {
	t.Helper()
	got.tree = nil
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		field := g.Type().Field(i)
		if field.IsExported() && !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s:\n got %+v\nwant %+v", field.Name, g.Field(i), w.Field(i))
		}
	}
}

// The schema v11: one power draw, reasons of throttling, retired pages, ECC
// errors by bits, no reserved memory; and a GPU that answers nothing.
func TestV11(t *testing.T) {
	log := decodeFile(t, "v11-v100-470.xml")
	if log.Schema != "nvsmi_device_v11.dtd" || log.DriverVersion != "470.256.02" || log.CUDAVersion != "11.4" ||
		log.AttachedGPUs != count(2) || log.Timestamp != "Mon Nov  2 10:11:12 2026" || len(log.GPUs) != 2 {
		t.Fatalf("the text is %+v", log)
	}
	compare(t, log.GPUs[0], GPU{
		ID: "00000000:15:00.0", UUID: "GPU-11111111-2222-3333-4444-555555555555", Name: "Tesla V100-SXM2-32GB", Brand: "Tesla",
		Serial: "0323000000001", VBIOS: "88.00.7E.00.03", Minor: count(2), PCIBusID: "00000000:15:00.0",
		PersistenceMode: yes(true), ComputeMode: "Exclusive_Process", PerformanceState: "P0",
		Memory:      Memory{Total: bytesOf(32510), Used: bytesOf(1205), Free: bytesOf(31305)},
		BAR1:        Memory{Total: bytesOf(32768), Used: bytesOf(8), Free: bytesOf(32760)},
		Utilization: Utilization{GPU: ratio(97), Memory: ratio(41), Encoder: ratio(0), Decoder: ratio(0)},
		Power: Power{Draw: watts(287.15), Limit: watts(290), Requested: watts(300), Default: watts(300),
			Minimum: watts(150), Maximum: watts(300), State: "P0"},
		Temperature: Temperature{GPU: celsius(61), Memory: celsius(58), Shutdown: celsius(90), Slowdown: celsius(87),
			MaxOperating: celsius(83), MemoryMaxOperating: celsius(85)},
		Clocks:    Clocks{megahertz(1380), megahertz(1380), megahertz(877), megahertz(1237)},
		MaxClocks: Clocks{megahertz(1530), megahertz(1530), megahertz(877), megahertz(1372)},
		ECC: ECC{Mode: yes(true), PendingMode: yes(false),
			Volatile: ECCErrors{SingleBit: count(3), DoubleBit: count(0)}, Aggregate: ECCErrors{SingleBit: count(12), DoubleBit: count(1)}},
		Pages: RetiredPages{SingleBit: count(2), DoubleBit: count(1), Pending: yes(true)},
		PCIe: PCIe{Generation: count(3), MaxGeneration: count(3), Width: count(16), MaxWidth: count(16),
			Transmitted: rate(123000), Received: rate(4567), Replays: count(7), ReplayRollovers: count(0)},
		Voltage:      Number{0.9125, Volts, 1e-6, true},
		EventReasons: events("sw_power_cap", "sw_thermal_slowdown"), EventCounters: map[string]Number{},
		Processes: []Process{
			{PID: count(4711), Type: "C", Name: "/usr/bin/python3 <a> & b", Memory: bytesOf(1183)},
			{PID: count(4712), Type: "G", Name: "/usr/lib/xorg/Xorg"},
		},
	})
	compare(t, log.GPUs[1], GPU{
		ID: "00000000:16:00.0", UUID: "GPU-11111111-2222-3333-4444-666666666666", Name: "Tesla V100-SXM2-32GB", PCIBusID: "00000000:16:00.0",
		PCIe:         PCIe{MaxGeneration: count(3), MaxWidth: count(16), ReplayRollovers: count(0)},
		EventReasons: map[string]bool{}, EventCounters: map[string]Number{},
	})
}

// The schema v12: MIG devices, reasons of events, remapped rows, and no
// utilization of a partitioned GPU.
func TestV12WithMIG(t *testing.T) {
	log := decodeFile(t, "v12-a100-mig-535.xml")
	if log.Schema != "nvsmi_device_v12.dtd" || len(log.GPUs) != 1 {
		t.Fatalf("the text is %+v", log)
	}
	bar1 := Memory{Total: bytesOf(16383), Used: bytesOf(0), Free: bytesOf(16383)}
	compare(t, log.GPUs[0], GPU{
		ID: "00000000:07:00.0", UUID: "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", Name: "NVIDIA A100-SXM4-80GB", Brand: "NVIDIA",
		Architecture: "Ampere", Serial: "1650000000012", BoardPartNumber: "692-2G506-0000-000", VBIOS: "92.00.45.00.03",
		Minor: count(0), PCIBusID: "00000000:07:00.0", PersistenceMode: yes(false), ComputeMode: "Default", PerformanceState: "P0",
		AddressingMode: "None",
		Memory:         Memory{bytesOf(81920), bytesOf(871), bytesOf(49), bytesOf(80999)},
		BAR1:           Memory{Total: bytesOf(131072), Used: bytesOf(1), Free: bytesOf(131071)},
		Power: Power{Draw: watts(67.03), Limit: watts(400), Requested: watts(500), Default: watts(500),
			Minimum: watts(100), Maximum: watts(500), State: "P0"},
		ModulePower: Power{State: "P0"},
		Temperature: Temperature{GPU: celsius(31), Memory: celsius(44), Shutdown: celsius(92), Slowdown: celsius(89),
			MaxOperating: celsius(85), MemoryMaxOperating: celsius(95)},
		Clocks:    Clocks{megahertz(210), megahertz(210), megahertz(1593), megahertz(585)},
		MaxClocks: Clocks{megahertz(1410), megahertz(1410), megahertz(1593), megahertz(1290)},
		ECC: ECC{Mode: yes(true), PendingMode: yes(true),
			Volatile:  ECCErrors{SRAMCorrectable: count(0), SRAMUncorrectable: count(1), DRAMCorrectable: count(0), DRAMUncorrectable: count(2)},
			Aggregate: ECCErrors{SRAMCorrectable: count(5), SRAMUncorrectable: count(6), DRAMCorrectable: count(7), DRAMUncorrectable: count(8)}},
		Rows: RemappedRows{Correctable: count(1), Uncorrectable: count(2), Pending: yes(true), Failure: yes(false),
			BanksMax: count(637), BanksHigh: count(2), BanksPartial: count(1), BanksLow: count(0), BanksNone: count(0)},
		PCIe: PCIe{Generation: count(4), MaxGeneration: count(4), DeviceMaxGeneration: count(4), HostMaxGeneration: count(5),
			Width: count(8), MaxWidth: count(16), Transmitted: rate(4000), Received: rate(0), Replays: count(0), ReplayRollovers: count(0)},
		EventReasons: events("gpu_idle"), EventCounters: map[string]Number{},
		MIG: MIG{Mode: yes(true), PendingMode: yes(false), Devices: []MIGDevice{
			{Index: count(0), GPUInstance: count(2), ComputeInstance: count(0), Multiprocessors: count(42),
				Memory: Memory{bytesOf(40192), bytesOf(0), bytesOf(37), bytesOf(40155)}, BAR1: bar1, SRAMUncorrectable: count(0)},
			{Index: count(1), GPUInstance: count(9), ComputeInstance: count(1), Multiprocessors: count(14),
				Memory: Memory{bytesOf(9728), bytesOf(0), bytesOf(12), bytesOf(9715)}, BAR1: bar1, SRAMUncorrectable: count(0)},
		}},
		Processes: []Process{{PID: count(99), Type: "C", Name: "/app/serve", Memory: bytesOf(25), GPUInstance: count(2), ComputeInstance: count(0)}},
	})
}

// The schema v13: average and momentary power, margins of temperature, counters
// of events, uncorrectable SRAM errors in two parts, a fabric.
func TestV13(t *testing.T) {
	log := decodeFile(t, "v13-h200-580.xml")
	if log.Schema != "nvsmi_device_v13.dtd" || len(log.GPUs) != 1 {
		t.Fatalf("the text is %+v", log)
	}
	microseconds := func(value float64) Number { return Number{value * 1e-6, Seconds, 1e-6, true} }
	compare(t, log.GPUs[0], GPU{
		ID: "00000000:53:00.0", UUID: "GPU-01234567-89ab-cdef-0123-456789abcdef", Name: "NVIDIA H200", Brand: "NVIDIA",
		Architecture: "Hopper", Serial: "1650000000013", BoardPartNumber: "692-2G520-0000-000", VBIOS: "96.00.BC.00.02",
		Minor: count(3), PCIBusID: "00000000:53:00.0", PersistenceMode: yes(true), ComputeMode: "Default", PerformanceState: "P0",
		RecoveryAction: "None", AddressingMode: "HMM",
		Memory:      Memory{bytesOf(143771), bytesOf(629), bytesOf(70523), bytesOf(72620)},
		BAR1:        Memory{Total: bytesOf(262144), Used: bytesOf(17), Free: bytesOf(262127)},
		Utilization: Utilization{ratio(100), ratio(63), ratio(0), ratio(2), ratio(0), ratio(1)},
		Power: Power{Average: watts(688.5), Instant: watts(701.92), Limit: watts(700), Requested: watts(700), Default: watts(700),
			Minimum: watts(200), Maximum: watts(700), State: "P0"},
		ModulePower: Power{State: "P0"},
		MemoryPower: Power{Average: watts(102.98)},
		Temperature: Temperature{GPU: celsius(63), Memory: celsius(71), Margin: celsius(24), ShutdownMargin: celsius(-8),
			SlowdownMargin: celsius(-2), MaxOperatingMargin: celsius(0), MemoryMargin: celsius(0)},
		Clocks:    Clocks{megahertz(1725), megahertz(1725), megahertz(3201), megahertz(1365)},
		MaxClocks: Clocks{megahertz(1980), megahertz(1980), megahertz(3201), megahertz(1545)},
		ECC: ECC{Mode: yes(true), PendingMode: yes(true),
			Volatile: ECCErrors{SRAMCorrectable: count(0), SRAMUncorrectableParity: count(0), SRAMUncorrectableSECDED: count(1),
				DRAMCorrectable: count(2), DRAMUncorrectable: count(0)},
			Aggregate: ECCErrors{SRAMCorrectable: count(4), SRAMUncorrectableParity: count(3), SRAMUncorrectableSECDED: count(2),
				DRAMCorrectable: count(9), DRAMUncorrectable: count(1), SRAMThresholdExceeded: yes(true)}},
		Rows: RemappedRows{Correctable: count(0), Uncorrectable: count(1), Pending: yes(false), Failure: yes(true),
			BanksMax: count(3070), BanksHigh: count(1), BanksPartial: count(0), BanksLow: count(0), BanksNone: count(1)},
		PCIe: PCIe{Generation: count(5), MaxGeneration: count(5), DeviceMaxGeneration: count(5), Width: count(16), MaxWidth: count(16),
			Transmitted: rate(502), Received: rate(578), Replays: count(150), ReplayRollovers: count(0)},
		Fabric:       Fabric{State: "Completed", Status: "Success", Clique: "7", ClusterUUID: "00000000-1111-2222-3333-444444444444", Health: "Healthy"},
		EventReasons: events("sw_power_cap"),
		EventCounters: map[string]Number{"sw_power_cap": microseconds(7015662857), "sync_boost": microseconds(0),
			"sw_therm_slowdown": microseconds(12), "hw_therm_slowdown": microseconds(0)},
		MIG: MIG{Mode: yes(false), PendingMode: yes(false)},
		Processes: []Process{
			{PID: count(31337), Type: "C", Name: "python", Memory: bytesOf(70000)},
			{PID: count(31338), Type: "M+C", Name: "nvidia-cuda-mps-server", Memory: bytesOf(30)},
		},
	})
	if text, found := log.GPUs[0].Text("inforom_version/ecc_object"); text != "7.16" || !found {
		t.Errorf("an element without a field is %q", text)
	}
	for _, path := range []string{"inforom_version/none", "none", "", "uuid/none"} {
		if text, found := log.GPUs[0].Text(path); found {
			t.Errorf("%s is %q", path, text)
		}
	}
	if _, found := (GPU{}).Text("uuid"); found {
		t.Error("a GPU that was not decoded has a text")
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]Number{
		"0":          count(0),
		" 16x\n":     count(16),
		"12 bank(s)": count(12),
		"0.5 W":      {0.5, Watts, 0.1, true},
		"250 mW":     {0.25, Watts, 0.001, true},
		"-3 C":       celsius(-3),
		"2 GiB":      {2 << 30, Bytes, 1 << 30, true},
		"4 KiB":      {4096, Bytes, 1024, true},
		"7 B":        {7, Bytes, 1, true},
		"1.5 GB/s":   {1.5e9, BytesPerSecond, 1e8, true},
		"3 MB/s":     {3e6, BytesPerSecond, 1e6, true},
		"93088 us":   {0.093088, Seconds, 1e-6, true},
		"5 ms":       {0.005, Seconds, 1e-3, true},
		"5 s":        {5, Seconds, 1, true},
		"50%":        ratio(50),

		"": {}, "N/A": {}, "[N/A]": {}, "[Not Supported]": {}, "Unknown Error": {}, "GPU is lost": {}, "None": {},
		"Requested functionality has been deprecated": {}, "[Insufficient Permissions]": {},
		"5 parsecs": {}, "0x10": {}, "1e3": {}, "1.2.3": {}, "-": {}, ".5": {}, "5. W": {}, "+5": {}, "--5": {}, "5 5": {}, "5 W W": {}, "Inf": {}, "NaN": {},
		strings.Repeat("9", 400): {},
	} {
		got := parseNumber(text)
		if math.Abs(got.Value-want.Value) > 1e-12*math.Abs(want.Value) || got.Unit != want.Unit || math.Abs(got.Resolution-want.Resolution) > 1e-12*want.Resolution || got.Known != want.Known {
			t.Errorf("%q is %+v, not %+v", text, got, want)
		}
	}
}

func TestTextsAndFlags(t *testing.T) {
	for _, text := range []string{"N/A", "[N/A]", "[Not Supported]", "Unknown Error", "GPU is lost", "Requested functionality has been deprecated", " ", ""} {
		if got, flag := parseText(text), parseFlag(text); got != "" || flag.Known {
			t.Errorf("%q is %q and %+v", text, got, flag)
		}
	}
	if got := parseText(" P0\n"); got != "P0" {
		t.Errorf("P0 is %q", got)
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestWrongTexts(t *testing.T) {
	wrong := func(name, want string, text io.Reader) {
		t.Helper()
		_, err := Decode(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "decode what nvidia-smi printed: ") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	wrong("nothing", "no element nvidia_smi_log", strings.NewReader(""))
	wrong("a message", "no element nvidia_smi_log", strings.NewReader("No devices were found\n"))
	wrong("another document", "no element nvidia_smi_log", strings.NewReader("<html></html>"))
	wrong("a part", "XML syntax error", strings.NewReader("<nvidia_smi_log><gpu>"))
	wrong("an entity", "invalid character entity", strings.NewReader(`<!DOCTYPE a [<!ENTITY b "c">]><nvidia_smi_log>&b;</nvidia_smi_log>`))
	wrong("a deep text", "inside each other", strings.NewReader("<nvidia_smi_log>"+strings.Repeat("<a>", 40)))
	wrong("many elements", "more than 200000 elements", strings.NewReader("<nvidia_smi_log>"+strings.Repeat("<a/>", 250_000)))
	wrong("a long text", fmt.Sprintf("more than %d bytes", MaxBytes), io.MultiReader(strings.NewReader("<nvidia_smi_log><supported_clocks>"), endless{}))
	wrong("an error", "broken", io.MultiReader(strings.NewReader("<nvidia_smi_log>"), &failing{}))
}

type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

// A text without GPUs is none of their absence: the caller compares it with
// AttachedGPUs.
func TestNoGPUs(t *testing.T) {
	log, err := Decode(strings.NewReader("<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>"))
	if err != nil || log.AttachedGPUs != count(0) || len(log.GPUs) != 0 || log.Schema != "" {
		t.Errorf("it is %+v (%v)", log, err)
	}
}

// Whatever is decoded, numbers are finite, and what is not known is zero.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(files) != 3 {
		f.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`<nvidia_smi_log><gpu id="a"><fb_memory_usage><total>1e400 MiB</total></fb_memory_usage></gpu></nvidia_smi_log>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		log, err := Decode(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, gpu := range log.GPUs {
			gpu.tree = nil
			checkNumbers(t, reflect.ValueOf(gpu))
		}
	})
}

func checkNumbers(t *testing.T, v reflect.Value) {
	t.Helper()
	if number, ok := v.Interface().(Number); ok {
		if !number.Known && number != (Number{}) || math.IsInf(number.Value, 0) || math.IsNaN(number.Value) || number.Known && number.Resolution <= 0 {
			t.Errorf("a number is %+v", number)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				checkNumbers(t, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkNumbers(t, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			checkNumbers(t, v.MapIndex(key))
		}
	}
}
