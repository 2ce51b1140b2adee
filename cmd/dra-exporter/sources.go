package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/amdgpu"
	"github.com/dra-exporter/dra-exporter/collector/device/dcgm"
	"github.com/dra-exporter/dra-exporter/collector/device/exporter"
	"github.com/dra-exporter/dra-exporter/collector/device/intelgpu"
	"github.com/dra-exporter/dra-exporter/collector/device/neuron"
	"github.com/dra-exporter/dra-exporter/collector/device/nvml"
	"github.com/dra-exporter/dra-exporter/collector/device/rdma"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
	"github.com/dra-exporter/dra-exporter/collector/device/tpu"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
)

// sourceAuto selects every source that needs no configuration.
const sourceAuto = "auto"

// deviceSource is one row of the table of device sources, in the order of
// precedence. A new source is a new row.
type deviceSource struct {
	name  string
	auto  bool   // part of --device.source=auto
	named bool   // by a flag of its own: then a missing library is an error
	flag  string // a flag that is set and that only this source reads; empty: none
	open  func(sourceFlags) (device.Source, error)
}

// sourceFlags are the flags that sources use.
type sourceFlags struct {
	simulatedConfig string
	nvmlLibrary     string
	nvlinks         bool
	profiling       bool
	hostEngine      string
	dcgmLibrary     string
	sysfs           string
	exporterFolder  string   // where drivers create sockets
	exporterDrivers []string // DRIVER=URL
	exporterPresets []string // NAME or NAME=URL
	exporterConfig  string
	extensions      []string // of drivers, by the names of their metrics after dra_device_ext_
	neuronMonitor   string   // unix:///SOCKET or a file; empty: none is read
	neuronCores     int
	tpuMetrics      []string    // addresses of libtpu's metric services
	processes       func() bool // whether to list processes
	interval, slow  time.Duration
	clock           clock.Clock
	log             *slog.Logger
}

// deviceSources returns the table. DCGM is part of auto if a host engine is
// set: an embedded engine is started only if --device.source names DCGM. TPUs and
// neuron-monitor are part of it if a flag names them.
func deviceSources(flags sourceFlags) []deviceSource {
	return []deviceSource{
		{name: "nvml", auto: true, named: flags.nvmlLibrary != "", open: openNVML},
		{name: "dcgm", auto: flags.hostEngine != "", named: flags.dcgmLibrary != "", flag: set(flags.hostEngine, "--dcgm.host-engine"), open: openDCGM},
		{name: "amdgpu", auto: true, open: func(f sourceFlags) (device.Source, error) { return amdgpu.New(f.sysfs), nil }},
		{name: "intel", auto: true, open: func(f sourceFlags) (device.Source, error) { return intelgpu.New(f.sysfs), nil }},
		{name: "rdma", auto: true, open: func(f sourceFlags) (device.Source, error) { return rdma.New(f.sysfs), nil }},
		{name: "tpu", auto: len(flags.tpuMetrics) > 0, flag: set(strings.Join(flags.tpuMetrics, ""), "--tpu.metrics"), open: openTPU},
		{name: "neuron", auto: flags.neuronMonitor != "", flag: set(flags.neuronMonitor, "--neuron.monitor"), open: openNeuron},
		{name: "exporter", auto: flags.exporterFolder+flags.exporterFlag() != "", flag: flags.exporterFlag(), open: openExporters},
		{name: "simulated", flag: set(flags.simulatedConfig, "--simulated.config"), open: openSimulated},
	}
}

// set returns the flag if it has a value.
func set(value, flag string) string {
	if value == "" {
		return ""
	}
	return flag
}

func openNVML(f sourceFlags) (device.Source, error) {
	return nvml.New(nvml.Options{
		Library: f.nvmlLibrary, Links: f.nvlinks, Profiling: f.profiling,
		Interval: f.interval, Sysfs: f.sysfs, Clock: f.clock, Processes: f.processes,
	}), nil
}

func openDCGM(f sourceFlags) (device.Source, error) {
	f.hostEngine = hostport.Bracketed(f.hostEngine)
	path, isSocket := strings.CutPrefix(f.hostEngine, "unix://")
	if isSocket != strings.Contains(f.hostEngine, "/") || isSocket && !filepath.IsAbs(path) || hostport.HasUser(f.hostEngine) {
		return nil, usagef("--dcgm.host-engine=%s is neither HOST:PORT nor unix:///PATH", hostport.Redacted(f.hostEngine))
	}
	return dcgm.New(dcgm.Options{
		HostEngine: f.hostEngine, Library: f.dcgmLibrary, Profiling: f.profiling,
		Interval: f.interval, SlowInterval: f.slow, Sysfs: f.sysfs, Log: f.log, Clock: f.clock,
	}), nil
}

func openTPU(f sourceFlags) (device.Source, error) {
	if len(f.tpuMetrics) == 0 {
		return nil, usagef("--device.source=tpu needs --tpu.metrics, the address of libtpu's metric service, such as localhost:8431")
	}
	services, err := tpu.New(tpu.Options{Addresses: f.tpuMetrics, Sysfs: f.sysfs, Clock: f.clock})
	if err != nil {
		return nil, usagef("--tpu.metrics: %w", err)
	}
	return services, nil
}

func openNeuron(f sourceFlags) (device.Source, error) {
	if f.neuronMonitor == "" {
		return nil, usagef("--device.source=neuron needs --neuron.monitor, the place of neuron-monitor's output")
	}
	monitor, err := neuron.New(neuron.Options{Monitor: f.neuronMonitor, CoresPerDevice: f.neuronCores, Clock: f.clock})
	if err != nil {
		return nil, usagef("--neuron.monitor: %w", err)
	}
	return monitor, nil
}

// exporterFlag is the flag that names a page to read; empty: none does, and only the
// sockets of drivers are read.
func (f sourceFlags) exporterFlag() string {
	return cmp.Or(
		set(strings.Join(f.exporterPresets, "")+f.exporterConfig, "--exporter.preset or --exporter.config"),
		set(strings.Join(f.exporterDrivers, ""), "--exporter.driver"))
}

func openExporters(f sourceFlags) (device.Source, error) {
	if f.exporterFolder+f.exporterFlag() == "" {
		return nil, usagef("--device.source=exporter needs --exporter.dir, --exporter.driver, --exporter.preset or --exporter.config, which say what to read")
	}
	var configs []exporter.Config
	for _, driver := range f.exporterDrivers {
		config, err := exporter.Driver(driver, f.interval)
		if err != nil {
			return nil, usagef("--exporter.driver: %w", err)
		}
		configs = append(configs, config)
	}
	for _, preset := range f.exporterPresets {
		config, err := exporter.Preset(preset)
		if err != nil {
			return nil, usagef("--exporter.preset: %w", err)
		}
		configs = append(configs, config)
	}
	if f.exporterConfig != "" {
		read, err := exporter.Load(f.exporterConfig, os.Getenv)
		if err != nil {
			return nil, fmt.Errorf("--exporter.config: %w", err)
		}
		configs = append(configs, read...)
	}
	return exporter.New(exporter.Options{
		Exporters: configs, Folder: f.exporterFolder, Interval: f.interval, Extensions: f.extensions, Clock: f.clock, Log: f.log,
	})
}

func openSimulated(flags sourceFlags) (device.Source, error) {
	if flags.simulatedConfig == "" {
		return nil, usagef("--device.source=simulated needs --simulated.config, a YAML file that describes devices")
	}
	devices, err := simulated.Open(flags.simulatedConfig, flags.clock)
	if err != nil {
		return nil, fmt.Errorf("--simulated.config: %w", err)
	}
	devices.ListProcesses(flags.processes)
	return devices, nil
}

// sourceNames returns the valid values of --device.source.
func sourceNames() []string {
	names := []string{sourceAuto}
	for _, s := range deviceSources(sourceFlags{}) {
		names = append(names, s.name)
	}
	return names
}

// openSources opens the selected sources, in the table's order, and returns
// which of them may lack their library without a warning: those that no flag
// names.
func openSources(selected []string, flags sourceFlags) (sources []device.Source, optional map[string]bool, err error) {
	optional = map[string]bool{}
	for _, row := range deviceSources(flags) {
		byName, byAuto := slices.Contains(selected, row.name), row.auto && slices.Contains(selected, sourceAuto)
		switch {
		case byName || byAuto:
		case row.flag == "":
			continue
		case row.auto:
			return nil, nil, usagef("%s is set, but no --device.source is %s or auto: it would not be read", row.flag, row.name)
		default:
			return nil, nil, usagef("%s is set, but no --device.source is %s: it would not be read", row.flag, row.name)
		}
		source, err := row.open(flags)
		if err != nil {
			return nil, nil, fmt.Errorf("open the device source %s: %w", row.name, err)
		}
		sources = append(sources, source)
		optional[row.name] = !byName && !row.named && row.flag == ""
	}
	return sources, optional, nil
}

func sourceHelp() string {
	return "Source of devices: one of [" + strings.Join(sourceNames(), ", ") + "]. Repeatable; earlier ones in that list take precedence."
}

func exporterPresetHelp() string {
	return "Read devices from a Prometheus exporter on this node: one of [" + strings.Join(exporter.Presets(), ", ") + "], with the URL of its page if that is not the default. Repeatable."
}
