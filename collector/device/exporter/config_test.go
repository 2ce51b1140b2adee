package exporter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

const whole = `exporters:
- name: npu
  url: http://127.0.0.1:9100/metrics
  interval: 10s
  max_age: 30s
  vendor: acme
  device: {uuid: serial}
  metrics:
  - {metric: npu_busy, quantity: utilization, unit: percent, required: true}
  - {metric: npu_temp, match: {place: "die|core"}, quantity: temperature, details: {sensor: gpu}, combine: max}
`

func TestParse(t *testing.T) {
	configs, err := Parse([]byte(whole), nil)
	if err != nil {
		t.Fatal(err)
	}
	one := configs[0]
	if len(configs) != 1 || one.Name != "npu" || one.URL != "http://127.0.0.1:9100/metrics" ||
		one.Every != 10*time.Second || one.Age != 30*time.Second || one.rules.vendor != "acme" || one.rules.labels[fieldUUID] != "serial" {
		t.Errorf("got %+v", one)
	}
	busy, hot := one.rules.metrics[0], one.rules.metrics[1]
	if busy.quantity != device.Utilization || !busy.ratio || busy.unit.base(50) != 0.5 || !busy.required {
		t.Errorf("got %+v", busy)
	}
	if hot.details[0].fixed != "gpu" || hot.combine != combineMax || !hot.match[0].regex.MatchString("core") || hot.match[0].regex.MatchString("cores") {
		t.Errorf("got %+v", hot)
	}
}

func TestParsePreset(t *testing.T) {
	configs, err := Parse([]byte("exporters:\n- {name: gpus, preset: nvidia-dcgm-exporter, url: 'unix:///run/dcgm.sock'}\n"), nil)
	if err != nil || configs[0].Name != "gpus" || configs[0].URL != "unix:///run/dcgm.sock" || len(configs[0].rules.metrics) == 0 {
		t.Errorf("got %+v, %v", configs, err)
	}
	for _, name := range Presets() {
		config, err := Preset(name)
		if err != nil || config.Name != name || config.URL == "" || len(config.rules.metrics) == 0 || config.rules.vendor == "" && name != "all-smi" {
			t.Errorf("%s: %v", name, err)
		}
		for _, url := range []string{"http://10.0.0.7:1234/m?x=y", "http://exporter.gpu-operator.svc:9400/metrics", "http://exporter.gpu-operator.svc.cluster.local:9400"} {
			if moved, err := Preset(name + "=" + url); err != nil || moved.URL != url {
				t.Errorf("%s elsewhere: %q, %v", name, moved.URL, err)
			}
		}
	}
}

// Every error names the line and the key, and what would be right.
func TestParseErrors(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(whole, from, to, 1) }
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                   {"", "it is empty"},
		"no exporters":              {"{}", "line 1: exporters is missing"},
		"another key":               {"exporter: []", `line 1: unknown key "exporter", want one of exporters; did you mean exporters?`},
		"a list of texts":           {"exporters: [a]", "line 1: an exporter is the text \"a\", want keys and values"},
		"a misspelt key":            {change("unit:", "unitt:"), `line 9: unknown key "unitt", want one of metric, match, quantity, details, unit, combine, parts, required, shows_naming, needs_naming; did you mean unit?`},
		"no name":                   {change("name: npu", "vendor: x"), "is set twice"},
		"no url":                    {change("  url: http://127.0.0.1:9100/metrics\n", ""), "line 2: url is missing"},
		"no metrics":                {whole[:strings.Index(whole, "  metrics")], "line 2: metrics is missing"},
		"a host name":               {change("127.0.0.1", "gpu-7.example.com"), `line 3: url: the host "gpu-7.example.com" is neither an IP address of this node, localhost, nor a Service (NAME.NAMESPACE.svc) with internalTrafficPolicy: Local`},
		"no port":                   {change("127.0.0.1:9100", "127.0.0.1"), "has no port"},
		"https":                     {change("http:", "https:"), "is neither http://ADDRESS:PORT/PATH nor unix:///SOCKET"},
		"a password":                {change("127.0.0.1", "me:secret@127.0.0.1"), "is neither http://ADDRESS:PORT/PATH nor unix:///SOCKET"},
		"an interval without unit":  {change("interval: 10s", "interval: 10"), `line 4: interval is "10", want text`},
		"a short interval":          {change("interval: 10s", "interval: 10ms"), `line 4: interval is "10ms", want a duration from 1s to 1m30s`},
		"an unknown preset":         {"exporters:\n- preset: intel-xpum\n", `line 2: there is no preset "intel-xpum", want one of`},
		"a preset with rules":       {"exporters:\n- preset: nvidia-dcgm-exporter\n  vendor: x\n", `line 3: unknown key "vendor", want one of name, preset, url, interval, max_age`},
		"an unknown quantity":       {change("quantity: utilization", "quantity: utilisation"), `line 9: unknown quantity "utilisation", want one of utilization, engine_active`},
		"the nearest quantity":      {change("quantity: utilization", "quantity: utilisation"), `did you mean utilization?`},
		"an unknown unit":           {change("unit: percent", "unit: procent"), `line 9: unit is "procent", want one of percent, ratio; did you mean percent?`},
		"a unit of a count":         {change("quantity: utilization, unit: percent", "quantity: pcie_replays, unit: percent"), "line 9: unit: pcie_replays is a number without a unit"},
		"no details":                {change("details: {sensor: gpu}, ", ""), "line 10: details is missing: temperature has the details sensor"},
		"another detail":            {change("sensor: gpu", "place: gpu"), `line 10: unknown key "place", want one of sensor`},
		"details of none":           {change("unit: percent", "details: {sensor: x}"), `line 9: unknown key "sensor"`},
		"a detail without label":    {change("sensor: gpu", "sensor: {values: {a: b}}"), "line 10: label is missing"},
		"parts of a maximum":        {change("combine: max", "combine: max, parts: [n]"), "line 10: parts belongs to combine: sum and combine: mean"},
		"no part":                   {change("combine: max", "combine: sum, parts: []"), "line 10: parts has no entries"},
		"an unknown combination":    {change("combine: max", "combine: maximum"), `line 10: combine is "maximum", want one of sum, mean, max`},
		"a naming that none shows":  {change("required: true", "needs_naming: new"), `line 9: needs_naming is "new", which no metric shows`},
		"a bad expression":          {change("die|core", "die("), "line 10: place: error parsing regexp"},
		"required of another type":  {change("required: true", "required: often"), `line 9: required is the text "often", want true or false`},
		"a rule twice":              {whole + "  - {metric: npu_busy, quantity: utilization}\n", "line 11: npu_busy maps the same series to the same quantity as line 9"},
		"no identity":               {change("uuid: serial", "model: serial"), "line 7: none of uuid, pci_address and name is there"},
		"an unknown part":           {change("uuid: serial", "uid: serial"), "did you mean uuid?"},
		"a name without driver":     {change("uuid: serial", "name: serial"), "line 7: driver (the DRA driver) and device.name"},
		"a driver without name":     {change("vendor: acme", "driver: acme.com"), "line 7: driver (the DRA driver) and device.name"},
		"a name and a uuid":         {change("vendor: acme\n  device: {uuid: serial}", "driver: acme.com\n  device: {uuid: serial, name: n}"), "line 7: a device has a uuid, a pci_address or both, or else the name"},
		"an instance without a GPU": {change("uuid: serial", "pci_address: a, gpu_instance: b"), "line 7: gpu_instance needs uuid"},
		"a relabeling without goal": {change("  device:", "  relabel: [{source_labels: [a]}]\n  device:"), "line 7: target_label belongs to the action replace"},
		"an unknown action":         {change("  device:", "  relabel: [{source_labels: [a], action: labeldrop}]\n  device:"), `line 7: action is "labeldrop", want one of replace, keep, drop`},
		"a blank that is no number": {whole + "  blanks: [none]\n", `line 11: blanks is the text "none", want a number`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(c.text), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// A URL can refer to variables of the environment.
func TestVariables(t *testing.T) {
	text := []byte("exporters:\n- {preset: intel-xpumd, url: 'http://$(HOST_IP):8080/metrics'}\n")
	env := map[string]string{"HOST_IP": "10.1.2.3"}
	configs, err := Parse(text, func(name string) string { return env[name] })
	if err != nil || configs[0].URL != "http://10.1.2.3:8080/metrics" {
		t.Errorf("got %+v, %v", configs, err)
	}
	for url, want := range map[string]string{
		"http://$(HOST_IP):8080/metrics":   "http://[fd00::10]:8080/metrics",
		"http://[$(HOST_IP)]:8080/metrics": "http://[fd00::10]:8080/metrics",
		"http://fd00::10:8080/metrics":     "http://[fd00::10]:8080/metrics",
	} {
		env["HOST_IP"] = "fd00::10"
		configs, err := Parse([]byte("exporters:\n- {preset: intel-xpumd, url: '"+url+"'}\n"), func(name string) string { return env[name] })
		if err != nil || configs[0].URL != want {
			t.Errorf("%s: got %+v, %v", url, configs, err)
		}
	}
	if _, err := Parse([]byte("exporters:\n- {preset: intel-xpumd, url: 'http://$(HOST_IP)/metrics'}\n"), func(name string) string { return env[name] }); err == nil || !strings.Contains(err.Error(), "has no port") {
		t.Errorf("the end of an address is taken for a port: %v", err)
	}
	delete(env, "HOST_IP")
	if _, err := Parse(text, func(name string) string { return env[name] }); err == nil || err.Error() != "line 2: url: the variable HOST_IP is not set" {
		t.Errorf("got %v", err)
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exporters.yaml")
	if err := os.WriteFile(file, []byte("exporters:\n- nam: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, nil); err == nil || !strings.Contains(err.Error(), "exporters.yaml:2: unknown key \"nam\"") || !strings.Contains(err.Error(), "did you mean name?") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(file+"x", nil); err == nil || !strings.Contains(err.Error(), file+"x") {
		t.Errorf("got %v", err)
	}
}

func TestPresetErrors(t *testing.T) {
	if _, err := Preset("nvidia-dcgm"); err == nil || !strings.Contains(err.Error(), "nvidia-dcgm-exporter") {
		t.Errorf("got %v", err)
	}
	for _, url := range []string{"gpu-1:9400", "http://gpu-1:9400", "http://exporter.svc:9400", "http://.gpu-operator.svc:9400", "http://exporter.gpu-operator.svc"} {
		if _, err := Preset("nvidia-dcgm-exporter=" + url); err == nil {
			t.Errorf("%s is read", url)
		}
	}
}

// The document has a row for each preset, and its example is valid.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/exporters.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	for _, name := range Presets() {
		config, err := Preset(name)
		if err != nil || !strings.Contains(document, "| `"+name+"` | ") || !strings.Contains(document, "| `"+config.URL+"` | ") {
			t.Errorf("%s and its default URL are not in the table: %v", name, err)
		}
	}
	_, example, found := strings.Cut(document, "```yaml\nexporters:")
	example, _, _ = strings.Cut(example, "```")
	if configs, err := Parse([]byte("exporters:"+example), nil); !found || err != nil || len(configs) != 1 || len(configs[0].rules.metrics) != 3 {
		t.Errorf("the example is %+v, %v", configs, err)
	}
}
