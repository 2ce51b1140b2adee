package demo

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
)

const module = "github.com/dra-exporter/dra-exporter/"

// TestImportsNothingOfTheAgent follows the imports of this package, and
// of its parts, through the module.
func TestImportsNothingOfTheAgent(t *testing.T) {
	root := filepath.Join("..", "..")
	waiting := []string{"internal/demo", "internal/demo/apiserver"}
	for at := 0; at < len(waiting); at++ {
		for _, path := range imports(t, filepath.Join(root, waiting[at])) {
			if !slices.Contains(waiting, path) {
				waiting = append(waiting, path)
			}
		}
	}
	for _, path := range []string{"collector/node", "collector/metric", "collector/dra"} {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("look for what must not be imported: %v", err)
		}
		if slices.Contains(waiting, path) {
			t.Errorf("%s is imported: the demo would show what it made up", path)
		}
	}
	if !slices.Contains(waiting, "collector/device/simulated") {
		t.Error("the hardware is not imported: the test looks in the wrong place")
	}
}

// imports returns the packages of the module that the one in a folder imports.
func imports(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("find the package in %s: %v", folder, err)
	}
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if inside, ours := strings.CutPrefix(path, module); ours {
				found = append(found, inside)
			}
		}
	}
	return found
}

func TestNamesDependOnSeed(t *testing.T) {
	names := func(seed uint64) (all []string) {
		h, err := readHardware(seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range staticObjects(h, scenario(), newRandom(seed, "standing")) {
			all = append(all, fmt.Sprintf("%T %s %s", object, object.GetName(), object.GetUID()))
		}
		for _, w := range scenario() {
			i := newInstance(w, 3, seed, time.Unix(0, 0))
			for _, pod := range i.pods {
				all = append(all, pod.Name, string(pod.UID), pod.OwnerReferences[0].Name, string(pod.OwnerReferences[0].UID))
			}
			if i.claim != nil {
				all = append(all, i.claim.Name, string(i.claim.UID))
			}
		}
		return all
	}
	if !reflect.DeepEqual(names(1), names(1)) {
		t.Error("one seed gives several names")
	}
	if reflect.DeepEqual(names(1), names(2)) {
		t.Error("several seeds give one name")
	}
}

func TestRunsDiffer(t *testing.T) {
	for _, w := range scenario() {
		first, second := newInstance(w, 0, 1, time.Unix(0, 0)), newInstance(w, 1, 1, time.Unix(0, 0))
		if first.pods[0].UID == second.pods[0].UID || first.claim != nil && first.claim.UID == second.claim.UID {
			t.Errorf("%s: two runs have one UID", w.name)
		}
		named := w.claim.template == "" && w.claim.extended == ""
		if first.claim != nil && named != (first.claim.Name == second.claim.Name) {
			t.Errorf("%s: its claims are called %s, then %s", w.name, first.claim.Name, second.claim.Name)
		}
		jobs := w.owner == ownedByJob && w.every > 0
		if owners := [2]string{first.pods[0].OwnerReferences[0].Name, second.pods[0].OwnerReferences[0].Name}; jobs == (owners[0] == owners[1]) {
			t.Errorf("%s: its pods belong to %v", w.name, owners)
		}
	}
}

func TestCheck(t *testing.T) {
	h, err := readHardware(1)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(device string) claim {
		return claim{name: "c", template: "t", requests: []request{{name: "r", devices: []string{device}}}}
	}
	cases := map[string]workload{
		"no device gpu-9":               {claim: asked("gpu-9")},
		"no device gpu-6-mig-1g10gb-19": {claim: asked("gpu-6-mig-1g10gb-19-6")}, // published, but not cut
		"no request other":              {claim: asked("gpu-0"), containers: []container{{request: "other"}}},
		"several pods":                  {claim: asked("gpu-0"), pods: 2},
	}
	for want, w := range cases {
		if err := check([]workload{w}, nil, nil, map[string]hardware{nodeName: h}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for want, a := range map[string]deviceFault{
		"no device gpu-9": {device: "gpu-9", every: 1},
		"has ended":       {device: "gpu-0", lasts: 1, every: 1},
	} {
		if err := check(nil, []deviceFault{a}, nil, map[string]hardware{nodeName: h}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestUnattributedProcesses(t *testing.T) {
	h, err := readHardware(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range []string{"gpu-9", "gpu-5", "gpu-6-mig-1g10gb-19-0", "pci-0000-1c-00-0"} {
		if err := check(nil, nil, []hostProcess{{use: use{device: device}}}, map[string]hardware{nodeName: h}); err == nil {
			t.Errorf("a process of no pod on %s would never be seen, and no error says so", device)
		}
	}
	if err := check(nil, nil, hostProcesses(), map[string]hardware{nodeName: h}); err != nil {
		t.Error(err)
	}
}

// TestEveryQuantityIsShown but retired pages, because an H100 remaps rows
// instead, errors of AMD's links, and what only drivers report.
func TestEveryQuantityIsShown(t *testing.T) {
	h, err := readHardware(1)
	if err != nil {
		t.Fatal(err)
	}
	readers, err := simulated.New(h.config, clock.System()).Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen [device.Quantities]bool
	for _, reader := range readers {
		observations, err := reader.Read(t.Context(), device.Slow)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range observations {
			for _, r := range slices.Concat(o.Readings, o.Slow) {
				seen[r.Quantity] = true
			}
		}
	}
	for q, spec := range device.Specs() {
		unseen := []device.Quantity{device.RetiredPages, device.XGMIErrors, device.DriverHealth, device.Extension}
		if want := !slices.Contains(unseen, device.Quantity(q)); seen[q] != want {
			t.Errorf("%s is shown: %t", spec.Name, seen[q])
		}
	}
}

// What is an application's fault is no reason for a taint.
func TestOnlyFaultyDevicesAreTainted(t *testing.T) {
	h, err := readHardware(1)
	if err != nil {
		t.Fatal(err)
	}
	w := newFaultInjector(h, nil, nil, staticObjects(h, scenario(), newRandom(1)), nil)
	w.present = deviceFaults()
	var tainted []string
	for _, of := range w.published().Spec.Devices {
		if len(of.Taints) > 0 {
			tainted = append(tainted, of.Name)
		}
	}
	if !slices.Equal(tainted, []string{"gpu-1"}) {
		t.Errorf("tainted are %v", tainted)
	}
	for _, of := range w.slice.Spec.Devices {
		if len(of.Taints) > 0 {
			t.Errorf("%s is tainted for good", of.Name)
		}
	}
}
