package exporter

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// presetRules are the rules of dcgm-exporter's preset.
func presetRules(t testing.TB) *rules {
	t.Helper()
	config, err := Preset("nvidia-dcgm-exporter")
	if err != nil {
		t.Fatal(err)
	}
	return &config.rules
}

// gpuPage is a page of one GPU with these metrics and values, such as
// "DEV_FB_USED 5".
func gpuPage(series ...string) string {
	var page strings.Builder
	for _, one := range series {
		name, value, _ := strings.Cut(one, " ")
		fmt.Fprintf(&page, "DCGM_FI_%s{UUID=\"GPU-1\"} %s\n", name, value)
	}
	return page.String()
}

// A page has the names of one release, or names of both, if a user lists them. No value
// comes twice, and a name whose unit is not certain gives none.
func TestNamings(t *testing.T) {
	rules := presetRules(t)
	for name, c := range map[string]struct {
		page []string
		want []string
		err  string
	}{
		"4.8": {
			page: []string{"DEV_GPU_UTIL 57", "DEV_FB_USED 5", "DEV_TOTAL_ENERGY_CONSUMPTION 7000"},
			want: []string{"energy 7", "memory_used 5242880", "utilization 0.57"},
		},
		"4.9": {
			page: []string{"DEV_GPU_UTIL_RATIO 0.57", "DEV_FB_USED_BYTES 5242880", "DEV_GPU_ENERGY_JOULES_TOTAL 7"},
			want: []string{"energy 7", "memory_used 5242880", "utilization 0.57"},
		},
		"both": {
			page: []string{
				"DEV_GPU_UTIL 57", "DEV_FB_USED 5", "DEV_TOTAL_ENERGY_CONSUMPTION 7990", "DEV_POWER_USAGE 100", "PROF_SM_ACTIVE 0.5",
				"DEV_GPU_UTIL_RATIO 0.572", "DEV_FB_USED_BYTES 5242881", "DEV_GPU_ENERGY_JOULES_TOTAL 7", "DEV_BOARD_POWER_WATTS 100", "PROF_SM_UTIL_RATIO 0.5",
			},
			want: []string{"energy 7", "engine_active sm 0.5", "memory_used 5242881", "power 100", "utilization 0.572"},
		},
		"old names that a user of 4.9 lists, and a new default": {
			page: []string{"DEV_GPU_UTIL 57", "DEV_FB_USED 5", "DEV_FB_CAPACITY_BYTES 6291456"},
			want: []string{"memory_size 6291456", "memory_used 5242880", "utilization 0.57"},
		},
		"names of DCGM 4.6 that a user of 4.8 lists": {
			page: []string{"DEV_GPU_UTIL_RATIO 1", "DEV_FB_USED 5", "DEV_BOARD_POWER_WATTS 100", "DEV_SM_CLOCK_HERTZ 1980000000"},
			want: []string{"clock sm 1980000000", "memory_used 5242880", "power 100"},
		},
		"a ratio of an unknown release": {
			page: []string{"DEV_GPU_UTIL_RATIO 1", "DEV_BOARD_POWER_WATTS 100"},
			want: []string{"power 100"},
			err:  "the page lacks DCGM_FI_DEV_FB_USED_BYTES and DCGM_FI_DEV_FB_USED of any device",
		},
	} {
		t.Run(name, func(t *testing.T) {
			families, err := parsePage([]byte(gpuPage(c.page...)), rules.names())
			if err != nil {
				t.Fatal(err)
			}
			devices, had, err := newChoices().mapPage(rules, families, device.Window{}, at())
			if err != nil {
				t.Error(err)
			}
			for i := range c.want {
				c.want[i] = "GPU-1 " + c.want[i]
			}
			if got := linesOf(devices); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			lacking := make(missing).update(rules, had, at().Wall)
			if (lacking == nil) != (c.err == "") || lacking != nil && !strings.Contains(lacking.Error(), c.err) {
				t.Errorf("got the error %v, want %q", lacking, c.err)
			}
		})
	}
}

// An exporter that is upgraded, or taken back, under a running agent is followed.
// Gauges go on. A counter of another metric begins another origin, so that nothing
// takes the difference of the two; one whose name stays goes on.
func TestNamingThatChanges(t *testing.T) {
	rules := presetRules(t)
	chosen, filter := newChoices(), device.NewPlausibilityFilter()
	for second, step := range []struct {
		name string
		page []string
		want string // values, and origins after an @
	}{
		{
			"4.8", []string{"DEV_FB_USED 5", "DEV_FB_TOTAL 40960", "DEV_TOTAL_ENERGY_CONSUMPTION 9000000", "DEV_POWER_VIOLATION 1000000000"},
			"memory_used 5242880, memory_size 42949672960@0, energy 9000@0, throttled 1@0",
		},
		{
			"without a counter", []string{"DEV_FB_USED 5", "DEV_GPU_ENERGY_JOULES_TOTAL 11"},
			"memory_used 5242880",
		},
		{
			"4.9, which has no energy yet", []string{"DEV_FB_USED_BYTES 6", "DEV_FB_CAPACITY_BYTES 42949672000"},
			"memory_used 6, memory_size 42949672000@1",
		},
		{
			"4.9", []string{"DEV_FB_USED_BYTES 6", "DEV_FB_CAPACITY_BYTES 42949672000", "DEV_GPU_ENERGY_JOULES_TOTAL 12", "DEV_POWER_VIOLATION 1500000000"},
			"memory_used 6, memory_size 42949672000@1, energy 12@1, throttled 1.5@0",
		},
		{
			"4.9 lacks a metric for once", []string{"DEV_FB_USED_BYTES 6", "DEV_TOTAL_ENERGY_CONSUMPTION 9500000"},
			"memory_used 6",
		},
		{
			"4.8 again", []string{"DEV_FB_USED 7", "DEV_FB_TOTAL 40960", "DEV_TOTAL_ENERGY_CONSUMPTION 10000000", "DEV_POWER_VIOLATION 2000000000"},
			"memory_used 7340032, memory_size 42949672960@2, energy 10000@2, throttled 2@0",
		},
	} {
		families, err := parsePage([]byte(gpuPage(step.page...)), rules.names())
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(second+1) * time.Second
		devices, _, err := chosen.mapPage(rules, families, device.Window{From: now, To: now}, at())
		if err != nil || len(devices) != 1 {
			t.Fatalf("%s: %v, %v", step.name, devices, err)
		}
		readings := slices.Clone(devices[0].Readings)
		slices.SortFunc(readings, func(a, b device.Reading) int { return int(a.Quantity) - int(b.Quantity) })
		plausible, refused := filter.Apply(device.Fast, readings)
		got := make(map[string]bool)
		for _, r := range plausible {
			spec := device.Specs()[r.Quantity]
			text := fmt.Sprintf("%s %.12g", spec.Name, r.Value)
			if spec.Kind == device.Counter || spec.Bounds.Constant {
				text += fmt.Sprintf("@%d", r.Origin)
			}
			got[text] = true
		}
		want := strings.Split(step.want, ", ")
		if len(refused) > 0 || len(got) != len(want) || slices.ContainsFunc(want, func(text string) bool { return !got[text] }) {
			t.Errorf("%s: got %v, refused %v; want %v", step.name, got, refused, want)
		}
	}
}

// The names of both generations in docs/migration.md give the same readings, or none.
func TestNamesInMigration(t *testing.T) {
	document, err := os.ReadFile("../../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := presetRules(t)
	readings := func(name string) (mapped []string) {
		for _, rule := range rules.metrics {
			if rule.metric == name {
				mapped = append(mapped, fmt.Sprint(rule.quantity, rule.details, len(rule.match)))
			}
		}
		return mapped
	}
	read := 0
	for _, row := range regexp.MustCompile("(?m)^\\| `(DCGM_FI_[A-Z0-9_]+)` \\| [^|]+ \\| `(DCGM_FI_[A-Z0-9_]+)`").FindAllStringSubmatch(string(document), -1) {
		before, since := readings(row[1]), readings(row[2])
		if !slices.Equal(before, since) {
			t.Errorf("%s gives %v, and %s gives %v", row[1], before, row[2], since)
		}
		read += min(len(before), 1)
	}
	if read < 20 {
		t.Errorf("the page has %d names that are read", read)
	}
}

// FuzzNamings maps two foreign pages of one exporter: a reading of the second page is of
// the metric that gave it on the first, or of another origin. A metric of an unknown unit
// gives none.
func FuzzNamings(f *testing.F) {
	old := gpuPage("DEV_FB_USED 5", "DEV_TOTAL_ENERGY_CONSUMPTION 9000000", "DEV_GPU_UTIL 57", "DEV_GPU_UTIL_RATIO 57")
	renamed := gpuPage("DEV_FB_USED_BYTES 5", "DEV_GPU_ENERGY_JOULES_TOTAL 9000", "DEV_GPU_UTIL_RATIO 0.57")
	f.Add(old, renamed)
	f.Add(renamed, old)
	f.Add(old+renamed, old)
	f.Add(gpuPage("DEV_GPU_UTIL_RATIO 1"), renamed)
	newIn47 := []string{"FB_CAPACITY_BYTES", "FB_USED_BYTES", "FB_RESERVED_BYTES", "MEMORY_UTIL_RATIO", "ENC_UTIL_RATIO", "DEC_UTIL_RATIO"}
	rules := presetRules(f)
	names := rules.names()
	f.Fuzz(func(t *testing.T, first, second string) {
		chosen := newChoices()
		before := make(map[string]string) // the metric and the origin, by reading
		for _, text := range []string{first, second} {
			families, err := parsePage([]byte(text), names)
			if err != nil {
				return
			}
			devices, _, _ := chosen.mapPage(rules, families, device.Window{}, at())
			for _, one := range devices {
				for _, r := range one.Readings {
					key := choiceKey{deviceName(one.Device), r.Quantity, r.Details}
					choice, ok := chosen.rules[key]
					if !ok {
						continue // one metric alone can give it
					}
					reading := fmt.Sprint(key)
					if metric, ok := before[fmt.Sprint(reading, r.Origin)]; ok && metric != choice.rule.metric {
						t.Fatalf("%s is of %s and of %s, with one origin", reading, metric, choice.rule.metric)
					}
					before[fmt.Sprint(reading, r.Origin)] = choice.rule.metric
					isOnPage := func(name string) bool { return strings.Contains(text, "DCGM_FI_DEV_"+name) }
					if choice.rule.metric == "DCGM_FI_DEV_GPU_UTIL_RATIO" && !slices.ContainsFunc(newIn47, isOnPage) {
						t.Fatalf("%s is of a metric whose unit is not known", reading)
					}
				}
			}
		}
	})
}
