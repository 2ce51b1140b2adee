package amdgpu

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// readWhole reads the MI300X that is not partitioned.
func readWhole(t testing.TB, tree *sysfstest.Tree) (text string, failed bool) {
	t.Helper()
	observations, err := cards(t, New(tree.Root))[1].Read(t.Context(), device.Slow)
	return sysfstest.Text(tree.Root, observations, err), err != nil
}

// Each fault removes lines, adds others, and causes an error.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		break_ func(*sysfstest.Tree)
		gone   []string // beginnings of lines
		there  []string
		err    string // empty: it is no failure
	}{
		{"a file that is missing is an absence",
			func(tree *sysfstest.Tree) { tree.Remove(whole + "gpu_busy_percent") },
			[]string{"utilization"}, []string{"memory_used"}, ""},
		{"a file that cannot be read fails its quantity alone",
			func(tree *sysfstest.Tree) { tree.Break(whole + "gpu_busy_percent") },
			[]string{"utilization"}, []string{"memory_used", "power{}", "energy"},
			"read utilization of 0000:c1:00.0: read /bus/pci/devices/0000:c1:00.0/gpu_busy_percent: input/output error"},
		{"garbage fails its quantity alone",
			func(tree *sysfstest.Tree) { tree.Set(whole+"mem_info_vram_used", "many\n") },
			[]string{"memory_used"}, []string{"utilization"}, `mem_info_vram_used: no number: "many"`},
		{"more than all of the time is garbage",
			func(tree *sysfstest.Tree) { tree.Set(whole+"gpu_busy_percent", "65535\n") },
			[]string{"utilization"}, []string{"memory_used"}, "more than there can be"},
		{"the edge goes before the junction",
			func(tree *sysfstest.Tree) {
				tree.Set(whole+"hwmon/hwmon5/temp1_label", "edge\n")
				tree.Set(whole+"hwmon/hwmon5/temp1_input", "44000\n")
			}, nil, []string{`temperature{sensor="gpu"} 44`}, ""},
		{"a broken edge is not replaced",
			func(tree *sysfstest.Tree) {
				tree.Set(whole+"hwmon/hwmon5/temp1_label", "edge\n")
				tree.Break(whole + "hwmon/hwmon5/temp1_input")
			}, []string{`temperature{sensor="gpu"}`}, []string{`temperature{sensor="memory"}`}, "temp1_input"},
		{"a sensor without a label is the edge",
			func(tree *sysfstest.Tree) { tree.Set(whole+"hwmon/hwmon5/temp1_input", "43000\n") },
			nil, []string{`temperature{sensor="gpu"} 43`}, ""},
		{"the average power goes before that of the moment",
			func(tree *sysfstest.Tree) { tree.Set(whole+"hwmon/hwmon5/power1_average", "300000000\n") },
			nil, []string{"power{} 300"}, ""},
		{"no sensors at all",
			func(tree *sysfstest.Tree) { tree.Remove(whole + "hwmon") },
			[]string{"temperature", "power{}", "clock"}, []string{"utilization"}, ""},
		{"sensors that cannot be listed",
			func(tree *sysfstest.Tree) { tree.Set(whole+"hwmon", "no folder") },
			[]string{"temperature", "power{}", "clock"}, []string{"utilization"}, "find the sensors of 0000:c1:00.0"},
		{"a label that cannot be read",
			func(tree *sysfstest.Tree) { tree.Break(whole + "hwmon/hwmon5/temp2_label") },
			[]string{"temperature"}, []string{"power{}"}, "temp2_label"},
		{"a table that ends too soon",
			func(tree *sysfstest.Tree) { tree.Set(whole+"gpu_metrics", "\x80\x00\x01\x08") },
			[]string{"energy"}, []string{"power{}"}, "gpu_metrics: it ends too soon"},
		{"an unknown table",
			func(tree *sysfstest.Tree) { tree.Set(whole+"gpu_metrics", "\x80\x00\x03\x00 and more") },
			[]string{"energy"}, []string{"power{}"}, ""},
		{"a table that cannot be read",
			func(tree *sysfstest.Tree) { tree.Break(whole + "gpu_metrics") },
			[]string{"energy"}, []string{"power{}"}, "read energy of"},
		{"a block whose errors cannot be read",
			func(tree *sysfstest.Tree) { tree.Break(whole + "ras/gfx_err_count") },
			nil, []string{`ecc_errors{severity="corrected"} (slow) 6`}, "ras/gfx_err_count"},
		{"blocks that do not answer while the card is reset",
			func(tree *sysfstest.Tree) {
				for _, block := range []string{"umc", "gfx", "sdma", "mmhub"} {
					tree.Set(whole+"ras/"+block+"_err_count", "Query currently inaccessible\n")
				}
			}, []string{"ecc_errors"}, []string{"power{}"}, ""},
		{"no error counts", func(tree *sysfstest.Tree) { tree.Remove(whole + "ras") }, []string{"ecc_errors", "xgmi_errors"}, []string{"power{}"}, ""},
		{"links without counts", func(tree *sysfstest.Tree) { tree.Remove(whole + "ras/xgmi_wafl_err_count") }, []string{"xgmi_errors"}, []string{"ecc_errors"}, ""},
		{"links whose counts are none", func(tree *sysfstest.Tree) { tree.Set(whole+"ras/xgmi_wafl_err_count", "many\n") }, []string{"xgmi_errors"}, []string{"ecc_errors"}, "read xgmi_errors"},
		{"error counts that cannot be listed", func(tree *sysfstest.Tree) { tree.Set(whole+"ras", "") }, []string{"ecc_errors"}, []string{"power{}"}, "read ecc_errors"},
		{"a card that sleeps is left asleep",
			func(tree *sysfstest.Tree) { tree.Set(whole+"power/runtime_status", "suspended\n") },
			[]string{"utilization", "power{}", "memory_used"}, []string{`device uuid="" vendor="amd" model="AMD Instinct MI300X OAM"`}, ""},
		{"a card without a render node",
			func(tree *sysfstest.Tree) { tree.Remove(whole + "drm") },
			nil, []string{`device uuid="" vendor="amd" model="AMD Instinct MI300X OAM" pci="0000:c1:00.0" minor=-1 render=-1`}, ""},
		{"a card that cannot be identified",
			func(tree *sysfstest.Tree) { tree.Break(whole + "uevent") }, []string{"device"}, nil, "identify 0000:c1:00.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tree := sysfstest.Plant(t, "amdgpu")
			test.break_(tree)
			text, failed := readWhole(t, tree)
			for _, gone := range test.gone {
				if strings.Contains(text, "\n  "+gone) || strings.HasPrefix(text, gone) {
					t.Errorf("%s is there", gone)
				}
			}
			for _, there := range test.there {
				if !strings.Contains("\n  "+text, "\n  "+there) {
					t.Errorf("%s is not there", there)
				}
			}
			if failed != (test.err != "") || !strings.Contains(text, test.err) {
				t.Errorf("it does not say %q", test.err)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// The number of the hwmon device changes when the driver registers it again.
func TestSensorsUnderAnotherNumber(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	r := cards(t, New(tree.Root))[1]
	if _, err := r.Read(t.Context(), device.Fast); err != nil {
		t.Fatal(err)
	}
	tree.Rename(whole+"hwmon/hwmon5", whole+"hwmon/hwmon9")
	tree.Rename(whole+"hwmon/hwmon9/temp2_label", whole+"hwmon/hwmon9/temp7_label")
	tree.Rename(whole+"hwmon/hwmon9/temp2_input", whole+"hwmon/hwmon9/temp7_input")
	observations, err := r.Read(t.Context(), device.Fast)
	if text := sysfstest.Text(tree.Root, observations, err); err != nil || !strings.Contains(text, `temperature{sensor="gpu"} 54`) {
		t.Errorf("under another number:\n%s", text)
	}
}

// An error count that decreases was reset. One that is temporarily missing does
// not decrease the sum.
func TestErrorCountsOverTime(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	r := cards(t, New(tree.Root))[1]
	uncorrected := func() float64 {
		observations, _ := r.Read(t.Context(), device.Slow)
		for _, reading := range observations[0].Slow {
			if reading.Quantity == device.ECCErrors && reading.Details[0] == "uncorrected" {
				return reading.Value
			}
		}
		return -1
	}
	for _, step := range []struct {
		umc, gfx string
		want     float64
	}{
		{"ue: 1\nce: 0\n", "ue: 10\nce: 0\n", 11},
		{"Query currently inaccessible\n", "ue: 12\nce: 0\n", 13},
		{"ue: 3\nce: 0\n", "ue: 12\nce: 0\n", 15},
		{"ue: 0\nce: 0\n", "ue: 2\nce: 0\n", 2},
	} {
		tree.Set(whole+"ras/umc_err_count", step.umc)
		tree.Set(whole+"ras/gfx_err_count", step.gfx)
		uncorrected()
		uncorrected() // a decrease has to last
		if got := uncorrected(); got != step.want {
			t.Errorf("umc %q, gfx %q: %v, want %v", step.umc, step.gfx, got, step.want)
		}
	}
}

// A pipe in the place of a file affects only the values of that file. When the
// file is back, it is read again.
func TestPipeInPlaceOfFile(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	found := cards(t, New(tree.Root))
	text := func() string {
		observations, err := found[1].Read(t.Context(), device.Slow)
		return sysfstest.Text(tree.Root, observations, err)
	}
	tree.Set(whole+"gpu_busy_percent", "12\n")
	before := text()
	tree.Pipe(whole + "gpu_busy_percent")
	piped := text()
	if !strings.Contains(piped, "it is not a regular file") || strings.Contains(piped, "utilization{}") || strings.Count(piped, "\n") != strings.Count(before, "\n") {
		t.Errorf("with a pipe:\n%s", piped)
	}
	tree.Remove(whole + "gpu_busy_percent")
	tree.Set(whole+"gpu_busy_percent", "12\n")
	if after := text(); after != before {
		t.Errorf("afterwards:\n%s\nwant\n%s", after, before)
	}
}
