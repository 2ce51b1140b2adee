package cdi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

const moments = "../../test/fakes/fixtures/moments"

func TestDecode(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"json": {
			`{"cdiVersion":"0.6.0","kind":"nvidia.com/gpu","devices":[{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}}]}`,
			"nvidia.com/gpu=0 /dev/nvidia0\n"},
		"yaml, with nodes for all devices": {
			"cdiVersion: 0.5.0\nkind: k8s.gpu.nvidia.com/claim\n" +
				"containerEdits: {deviceNodes: [{path: /dev/nvidiactl}]}\n" +
				"devices:\n- name: uid-gpu-1\n  containerEdits: {deviceNodes: [{path: /dev/nvidia1, hostPath: /run/driver/dev/nvidia1}]}\n",
			"k8s.gpu.nvidia.com/claim=uid-gpu-1 /dev/nvidia1\n"},
		"another path in the container": {
			`{"cdiVersion":"0.6.0","kind":"a/b","devices":[{"name":"c","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0","hostPath":"/dev/nvidia3"}]}}]}`,
			"a/b=c /dev/nvidia3\n"},
		"numbers that contradict the path": {
			`{"cdiVersion":"0.6.0","kind":"a/b","devices":[{"name":"c","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0","type":"c","major":195,"minor":3},` +
				`{"path":"/dev/dri/renderD128","major":226,"minor":130},{"path":"/dev/dri/card0","major":226,"minor":2},{"path":"/dev/nvidiactl","major":195,"minor":255}]}}]}`,
			"a/b=c /dev/nvidia3 /dev/dri/renderD130 /dev/dri/card2 /dev/nvidiactl\n"},
		"what the version does not know": {
			`{"cdiVersion":"9.9.9","kind":"a/b","new":1,"devices":[{"name":"c","newer":[2],"containerEdits":{"newest":3}}]}`,
			"a/b=c\n"},
		"empty and repeated entries": {
			`{"cdiVersion":"1.0.0","kind":"a/b","devices":[{},{"name":"c","containerEdits":{"deviceNodes":[null,{},{"path":"/dev/x"},{"path":"/dev/x"}]}}]}`,
			"a/b=c /dev/x\n"},
		"device metadata, as Kubernetes' library for drivers writes it": {
			`{"cdiVersion":"0.5.0","kind":"gpu.example.com/metadata","devices":[{"name":"uid_main","containerEdits":{"mounts":[` +
				`{"hostPath":"/var/lib/kubelet/plugins/gpu.example.com/dra-device-metadata/ml_train/main/metadata.json",` +
				`"containerPath":"/var/run/kubernetes.io/dra-device-attributes/resourceclaims/train/main/gpu.example.com-metadata.json","options":["ro","bind"]}]}}]}`,
			"gpu.example.com/metadata=uid_main\n"},
		"no devices": {`{"cdiVersion":"1.0.0","kind":"a/b"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			devices, err := Decode([]byte(test.spec), name)
			if got := render(devices); err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{
		"", "\x00\x01", "neither json nor yaml: [", "just words", "[]", "{}", "null",
		`{"cdiVersion":"1.0.0"}`, `{"kind":"a/b"}`, `{"cdiVersion":"1.0.0","kind":"ab"}`, `{"cdiVersion":"1.0.0","kind":"/b"}`,
		`{"cdiVersion":"1.0.0","kind":"a/b","devices":"none"}`,
	} {
		devices, err := Decode([]byte(text), "/etc/cdi/broken.yaml")
		if err == nil || !strings.Contains(err.Error(), "/etc/cdi/broken.yaml") || devices != nil {
			t.Errorf("%q: got %v, %v", text, devices, err)
		}
	}
}

// The work for a specification is linear in its bytes: each of these would take minutes
// or all memory.
func TestDecodeIsBounded(t *testing.T) {
	const begin = "cdiVersion: '1.0'\nkind: a/b\n"
	many := make([]*specs.DeviceNode, 200_000)
	for i := range many {
		many[i] = &specs.DeviceNode{Path: fmt.Sprint("/", i/2)}
	}
	if paths := nodes(many); len(paths) != len(many)/2 {
		t.Errorf("got %d paths", len(paths))
	}
	for want, text := range map[string]string{
		"its aliases stand for more than 4194304 bytes": "x: &x " + strings.Repeat("y", 1<<20) + "\ny: [" + strings.Repeat("*x,", 100_000) + "]\n",
		"it has more than 250000 values":                "devices: [" + strings.Repeat("{},", 250_001) + "]\n",
		"it has more than 16 directives":                "...\n" + strings.Repeat("%TAG !a! b\n", 10_000) + "---\na: 1\n",
	} {
		if devices, err := Decode([]byte(begin+text), "large"); devices != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %d devices, %v; want %s", len(devices), err, want)
		}
	}
}

// TestDecodeSnapshots decodes what real drivers had written in each snapshot of
// the fixtures.
func TestDecodeSnapshots(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(moments, "*", "cdi"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, folder := range folders {
		moment := filepath.Base(filepath.Dir(folder))
		t.Run(moment, func(t *testing.T) {
			found := newScanner([]string{folder}).scan()
			if len(found.problems) > 0 {
				t.Error(joinErrors(found.problems))
			}
			golden(t, moment+".txt", render(found.devices))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "moments", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got != string(want) {
		t.Errorf("%s differs (UPDATE_GOLDEN=1 rewrites it)\n--- want\n%s\n--- got\n%s", path, want, got)
	}
}

func FuzzDecode(f *testing.F) {
	specs, _ := filepath.Glob(filepath.Join(moments, "0[17]*", "cdi", "*.yaml"))
	for _, path := range specs {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"cdiVersion":"0.6.0","kind":"a/b","devices":[{"name":"\xff","containerEdits":{"deviceNodes":[null]}}]}`))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		devices, err := Decode(data, "fuzzed")
		if err != nil && len(devices) > 0 {
			t.Error("devices beside an error")
		}
		for _, device := range devices {
			if vendor, rest, _ := strings.Cut(device.Name, "/"); vendor == "" || !strings.Contains(rest, "=") {
				t.Errorf("%q is not a qualified name", device.Name)
			}
			if !utf8.ValidString(device.Name) || slices.Contains(device.Nodes, "") {
				t.Errorf("got %q", device)
			}
		}
	})
}
