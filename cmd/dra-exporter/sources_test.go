package main

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// A missing source is silent only if no flag names it, its library or its host
// engine.
func TestOptionalSources(t *testing.T) {
	for name, c := range map[string]struct {
		selected       []string
		flags          sourceFlags
		opened, silent string
	}{
		"nothing is named":            {[]string{"auto"}, sourceFlags{}, "nvml amdgpu intel rdma exporter", "amdgpu exporter intel nvml rdma"},
		"a source":                    {[]string{"auto", "nvml"}, sourceFlags{}, "nvml amdgpu intel rdma exporter", "amdgpu exporter intel rdma"},
		"a source alone":              {[]string{"dcgm"}, sourceFlags{}, "dcgm", ""},
		"a library":                   {[]string{"auto"}, sourceFlags{nvmlLibrary: "/l.so"}, "nvml amdgpu intel rdma exporter", "amdgpu exporter intel rdma"},
		"a host engine":               {[]string{"auto"}, sourceFlags{hostEngine: "engine:5555"}, "nvml dcgm amdgpu intel rdma exporter", "amdgpu exporter intel nvml rdma"},
		"neuron-monitor":              {[]string{"auto"}, sourceFlags{neuronMonitor: "/n.json"}, "nvml amdgpu intel rdma neuron exporter", "amdgpu exporter intel nvml rdma"},
		"TPUs":                        {[]string{"auto"}, sourceFlags{tpuMetrics: []string{"localhost:8431"}}, "nvml amdgpu intel rdma tpu exporter", "amdgpu exporter intel nvml rdma"},
		"an exporter":                 {[]string{"auto"}, sourceFlags{exporterPresets: []string{"furiosa"}}, "nvml amdgpu intel rdma exporter", "amdgpu intel nvml rdma"},
		"a driver":                    {[]string{"auto"}, sourceFlags{exporterDrivers: []string{"gpu.example.com=http://127.0.0.1:9100"}}, "nvml amdgpu intel rdma exporter", "amdgpu intel nvml rdma"},
		"a library of what is not in": {[]string{"auto"}, sourceFlags{dcgmLibrary: "/l.so"}, "nvml amdgpu intel rdma exporter", "amdgpu exporter intel nvml rdma"},
	} {
		c.flags.sysfs, c.flags.clock, c.flags.log = t.TempDir(), clock.System(), slog.New(slog.DiscardHandler)
		c.flags.interval, c.flags.slow = time.Second, 30*time.Second
		c.flags.exporterFolder = "/does/not/exist"
		sources, optional, err := openSources(c.selected, c.flags)
		if err != nil {
			t.Fatal(err)
		}
		var opened []string
		for _, s := range sources {
			opened = append(opened, s.Name())
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		maps.DeleteFunc(optional, func(_ string, silent bool) bool { return !silent })
		silent := strings.Join(slices.Sorted(maps.Keys(optional)), " ")
		if got := strings.Join(opened, " "); got != c.opened || silent != c.silent {
			t.Errorf("%s: opened %q, of which %q may be missing; want %q and %q", name, got, silent, c.opened, c.silent)
		}
	}
}

// A flag of a source that is not selected is refused, and so is a wrong one.
func TestFlagsOfSources(t *testing.T) {
	for name, c := range map[string]struct {
		selected []string
		flags    sourceFlags
		want     string
	}{
		"a host engine":         {[]string{"nvml"}, sourceFlags{hostEngine: "e:5555"}, "--dcgm.host-engine is set, but no --device.source is dcgm or auto: it would not be read"},
		"a preset":              {[]string{"nvml"}, sourceFlags{exporterPresets: []string{"furiosa"}}, "--exporter.preset or --exporter.config is set, but no --device.source is exporter or auto: it would not be read"},
		"neuron-monitor":        {[]string{"nvml"}, sourceFlags{neuronMonitor: "/n"}, "--neuron.monitor is set, but no --device.source is neuron or auto: it would not be read"},
		"TPUs":                  {[]string{"nvml"}, sourceFlags{tpuMetrics: []string{"localhost:8431"}}, "--tpu.metrics is set, but no --device.source is tpu or auto: it would not be read"},
		"no TPUs":               {[]string{"tpu"}, sourceFlags{}, "--device.source=tpu needs --tpu.metrics"},
		"a name of a host":      {[]string{"auto"}, sourceFlags{tpuMetrics: []string{"tpu-1:8431"}}, `--tpu.metrics: "tpu-1:8431" is not HOST:PORT with an IP address of this node or localhost`},
		"simulated devices":     {[]string{"auto"}, sourceFlags{simulatedConfig: "/s"}, "--simulated.config is set, but no --device.source is simulated: it would not be read"},
		"a driver":              {[]string{"nvml"}, sourceFlags{exporterDrivers: []string{"a=http://127.0.0.1:1"}}, "--exporter.driver is set, but no --device.source is exporter or auto: it would not be read"},
		"no driver":             {[]string{"auto"}, sourceFlags{exporterDrivers: []string{"http://127.0.0.1:1"}}, "--exporter.driver: want DRIVER=URL"},
		"no page":               {[]string{"exporter"}, sourceFlags{}, "--device.source=exporter needs --exporter.dir, --exporter.driver, --exporter.preset or --exporter.config"},
		"no neuron-monitor":     {[]string{"neuron"}, sourceFlags{}, "--device.source=neuron needs --neuron.monitor"},
		"a misspelt preset":     {[]string{"auto"}, sourceFlags{exporterPresets: []string{"furios"}}, "did you mean furiosa?"},
		"a file without folder": {[]string{"auto"}, sourceFlags{neuronMonitor: "n.json"}, `--neuron.monitor: "n.json" is neither unix:///SOCKET nor the absolute path of a file`},
		"no file":               {[]string{"auto"}, sourceFlags{exporterConfig: "/does/not/exist.yaml"}, "--exporter.config: stat /does/not/exist.yaml"},
		"an extension":          {[]string{"exporter"}, sourceFlags{exporterFolder: "/f", extensions: []string{"Fan"}}, `"Fan" is not the name of an extension`},
	} {
		c.flags.sysfs, c.flags.clock, c.flags.log = t.TempDir(), clock.System(), slog.New(slog.DiscardHandler)
		if _, _, err := openSources(c.selected, c.flags); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// The flag, the chart, the documents, the drivers that a source reads, and check and OTLP,
// which read the table of vendors, know the same sources.
func TestSourcesAreTheSame(t *testing.T) {
	var known []string
	for _, source := range vendors.Sources() {
		known = append(known, source.Name)
	}
	if flag := sourceNames(); !slices.Equal(flag, append([]string{sourceAuto}, known...)) {
		t.Errorf("--device.source knows %q, collector/vendors %q", flag, known)
	}
	var schema struct {
		Properties struct {
			Node struct {
				Properties struct {
					DeviceSources struct{ Items struct{ Enum []string } }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(readText(t, "../../deploy/helm/dra-exporter/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	if chart := schema.Properties.Node.Properties.DeviceSources.Items.Enum; !slices.Equal(chart, sourceNames()) {
		t.Errorf("node.deviceSources of the chart knows %q, --device.source %q", chart, sourceNames())
	}
	document := readText(t, "../../docs/sources.md")
	for _, name := range known {
		if !strings.Contains(document, "\n| `"+name+"`") {
			t.Errorf("docs/sources.md has no line for the source %s", name)
		}
	}
	for _, row := range vendors.All() {
		for _, name := range row.Sources {
			if _, ok := vendors.SourceByName(name); !ok && name != "" {
				t.Errorf("%s is read by %q, which is no source", row.Driver, name)
			}
		}
	}
}
