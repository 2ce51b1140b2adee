package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/agenttest"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/phases"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
)

// fault is a fault of one GPU, and the rows that must find it.
//
// A fault of the script is in what the library reports to the agent. nvidia-smi and
// `gpukit direct` get the correct values: two folders of the stub have the same
// hardware except for the faults. A fault of the agent changes its
// page on the way to the kit (runFaultyAgent). The agent, the libraries, the
// programs and the comparisons are those of any run.
type fault struct {
	name   string
	script map[string]string
	page   pageFault
	want   []string // rows with what they are compared with
}

// both are rows that fail against nvidia-smi and against the library.
func both(rows ...string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, row+", "+compare.NVIDIASMI, row+", "+compare.Library)
	}
	return all
}

// only are rows that fail against the library, which nvidia-smi does not have.
func only(rows ...string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, row+", "+compare.Library)
	}
	return all
}

// faultUUID is the UUID of a GPU with the fault of this index. GPU 0 has none.
func faultUUID(index int) string { return gpuUUID(index + 1) }

func gpuUUID(gpu int) string { return fmt.Sprintf("GPU-%08x-9081-9ccf-8e2d-9eb6aaf1a724", gpu) }

// changed changes the series of a family, with a text in its labels.
func changed(family, label string, by func(value, first float64) float64) pageFault {
	return func(series string, value, first float64) (string, float64, bool) {
		if strings.HasPrefix(series, family+"{") && strings.Contains(series, label) {
			value = by(value, first)
		}
		return series, value, true
	}
}

// exchanged exchanges two texts in the labels of a family.
func exchanged(family, one, two string) pageFault {
	return func(series string, value, _ float64) (string, float64, bool) {
		if strings.HasPrefix(series, family+"{") {
			series = strings.NewReplacer(one, two, two, one).Replace(series)
		}
		return series, value, true
	}
}

// faultTable is a fault for each GPU but the first. The last two are of the MIG
// device of the last GPU, and of two GPUs that are reported with the UUID of the
// other one.
func faultTable() []fault {
	return []fault{
		{name: "power in the wrong unit", script: map[string]string{"power.draw": "0.4"}, want: both("power")},
		{name: "energy that stands still", script: map[string]string{"energy": "1000"}, want: only("energy", "energy, integral of power")},
		{name: "energy in millijoules", script: map[string]string{"energy": "1000000+400000/s"}, want: only("energy", "energy, integral of power")},
		{name: "sensors exchanged", script: map[string]string{"temperature.gpu": "65", "temperature.memory": "50"}, want: both("GPU temperature", "memory temperature")},
		{name: "clocks exchanged", script: map[string]string{"clocks.sm": "2619", "clocks.memory": "1500"}, want: both("SM clock", "memory clock")},
		{name: "power limit", script: map[string]string{"power.limit": "650"}, want: both("power limit")},
		{name: "ECC errors exchanged", script: map[string]string{"ecc.corrected": "2", "ecc.uncorrected": "7"},
			want: both("ECC errors, corrected", "ECC errors, uncorrected")},
		{name: "remapped rows exchanged", script: map[string]string{"remapped_rows.corrected": "1", "remapped_rows.uncorrected": "3"},
			want: both("remapped rows, corrected", "remapped rows, uncorrected")},
		{name: "a pending row remapping hidden", script: map[string]string{"remapped_rows.pending": "0"}, want: both("row remapping pending")},
		{name: "a failed row remapping hidden", script: map[string]string{"remapped_rows.failure": "0"}, want: both("row remapping failed")},
		{name: "PCIe directions exchanged", script: map[string]string{"pcie.tx_bytes": "2000000+90000000/s", "pcie.rx_bytes": "1000000+30000000/s"},
			want: only("PCIe bytes transmitted", "PCIe bytes received")},
		{name: "a PCIe counter that falls", script: map[string]string{"pcie.rx_bytes": "4000000000+-9000000/s"}, want: only("PCIe bytes received")},
		{name: "PCIe replays", script: map[string]string{"pcie.replays": "50"}, want: both("PCIe replays")},
		{name: "throttle counters exchanged", script: map[string]string{"throttle.power_cap": "2000000000+50000000/s", "throttle.sw_thermal": "9000000000+200000000/s"},
			want: both("throttled, power_cap", "throttled, thermal")},
		{name: "a throttle counter in microseconds", script: map[string]string{"throttle.hw_thermal": "3000000+20000/s"}, want: both("throttled, hw_thermal")},
		{name: "utilization of another moment", script: map[string]string{"utilization.gpu": "85"}, want: both("utilization")},
		{name: "memory activity", script: map[string]string{"utilization.memory": "60"}, want: both("memory activity")},
		{name: "used memory with what is reserved", script: map[string]string{"memory.used": "11390681088"}, want: both("memory used")},
		{name: "reserved memory", script: map[string]string{"memory.reserved": "1306525696"}, want: both("memory reserved")},
		{name: "memory size of another model", script: map[string]string{"memory.total": "42760404992"}, want: both("memory size")},
		{name: "another model", script: map[string]string{"name": "NVIDIA H200"}, want: both("model")},
		{name: "a metric of GPM scaled", script: map[string]string{"profiling.tensor": "0.6"}, want: only("engine active, tensor")},
		{name: "a function that fails", script: map[string]string{"return.nvmlDeviceGetTemperature": "NOT_SUPPORTED"}, want: both("GPU temperature")},

		{name: "agent: utilization in percent", page: changed("dra_device_utilization_ratio", "", func(v, _ float64) float64 { return 100 * v }), want: both("utilization")},
		{name: "agent: energy of the first read", page: changed("dra_device_energy_joules_total", "", func(_, first float64) float64 { return first }),
			want: only("energy", "energy, integral of power")},
		{name: "agent: a counter that falls", page: changed("dra_device_throttled_seconds_total", `"power_cap"`, func(v, first float64) float64 { return 2*first - v }),
			want: both("throttled, power_cap")},
		{name: "agent: labels of clocks exchanged", page: exchanged("dra_device_clock_hertz", `"sm"`, `"memory"`), want: both("SM clock", "memory clock")},
		{name: "agent: a series is missing", page: func(series string, value, _ float64) (string, float64, bool) {
			return series, value, !strings.HasPrefix(series, "dra_device_memory_used_bytes{")
		}, want: both("memory used")},

		{name: "the UUID of another index", script: map[string]string{"uuid": faultUUID(29)}, want: both("PCI address", "utilization")},
		{name: "the UUID of another index", script: map[string]string{"uuid": faultUUID(28)}, want: both("PCI address", "utilization")},
		{name: "a MIG device's memory and GPM", script: map[string]string{"mig.2.memory.used": "4294967296", "mig.2.profiling.sm": "0.1"},
			want: append(both("memory used"), only("engine active, sm")...)},
	}
}

// actual returns the values of an imitated GPU without a fault.
func actual(gpu int) map[string]string {
	values := map[string]string{
		"uuid": gpuUUID(gpu), "power.draw": "400", "energy": "1000+400/s", "temperature.gpu": "50", "temperature.memory": "65", "clocks.sm": "1500",
		"utilization.gpu": "40", "utilization.memory": "20", "memory.used": "10737418240",
		"ecc.corrected": "7", "ecc.uncorrected": "2", "remapped_rows.corrected": "3", "remapped_rows.uncorrected": "1",
		"remapped_rows.pending": "1", "remapped_rows.failure": "1",
		"pcie.tx_bytes": "1000000+30000000/s", "pcie.rx_bytes": "2000000+90000000/s", "pcie.replays": "5",
		"throttle.power_cap": "9000000000+200000000/s", "throttle.sw_thermal": "2000000000+50000000/s", "throttle.thermal": "2000000000+50000000/s",
		"throttle.hw_thermal": "3000000000+20000000/s", "throttle.hw_power_brake": "1000000000+10000000/s", "throttle.sync_boost": "500000000+30000000/s",
		"profiling.graphics": "0.55", "profiling.sm": "0.5", "profiling.sm_occupancy": "0.45", "profiling.tensor": "0.3", "profiling.dram": "0.25",
		"profiling.fp32": "0.2", "profiling.fp16": "0.15", "profiling.fp64": "0.1",
		"mig.2.memory.used": "2147483648", "mig.2.profiling.graphics": "0.35", "mig.2.profiling.sm": "0.4",
		// It takes 20 ms, and is called twice for each GPU: more than a second of 32.
		"return.nvmlDeviceGetPcieThroughput": "NOT_SUPPORTED",
	}
	if gpu == 30 { // one of the two whose UUIDs are exchanged
		values["utilization.gpu"] = "90"
	}
	return values
}

// scales are the durations of the attempts of a test. A machine that is too busy
// gives the kit too few samples for its rows, so that rows without a fault fail:
// then the test runs again, for longer. What the last attempt finds is the result.
func scales() []string { return []string{"0.1", "0.4", "1"} }

// attempt calls a function with growing scales until it returns no problems, and
// reports those of the last call.
func attempt(t *testing.T, run func(t *testing.T, scale string) (problems []string)) {
	t.Helper()
	all := scales()
	for i, scale := range all {
		problems := run(t, scale)
		if len(problems) == 0 {
			return
		}
		if i < len(all)-1 {
			t.Logf("the next attempt takes longer, because with --scale=%s: %s", scale, strings.Join(problems, "\n"))
			continue
		}
		t.Error(strings.Join(problems, "\n"))
	}
}

// TestPlantedFaults runs the phase without a load over a GPU without a fault, and
// one for each fault of faultTable. Each fault fails its rows, and no other.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	table := faultTable()
	correct, faulty := stubs.NewNode(t, len(table)+1), stubs.NewNode(t, len(table)+1)
	faulty.SetNode("epoch", nodeEpoch(t, correct))
	for gpu := range len(table) + 1 {
		values := actual(gpu)
		correct.Script(gpu, values)
		if gpu > 0 {
			maps.Copy(values, table[gpu-1].script)
		}
		faulty.Script(gpu, values)
	}
	for _, node := range []*stubs.Node{correct, faulty} {
		if gi, _ := node.CreateMIG(len(table), "3g.40gb", 4); gi != 2 {
			t.Fatalf("the GPU instance is %d: actual and faultTable say 2", gi)
		}
	}
	attempt(t, func(t *testing.T, scale string) []string {
		t.Helper()
		r := newKitRun(t, correct, agenttest.Build(t), kitOptions{faulty: faulty, faults: true, arguments: []string{"--only=idle", "--scale=" + scale, "--simulated-procfs"}})
		return plantedProblems(table, r.finish(t, 1))
	})
}

// plantedProblems are the rows of a report that should not have failed, and those
// that should have.
func plantedProblems(table []fault, r report.Report) (problems []string) {
	failed, passed, problems := outcomes(r)
	if got := failed[gpuUUID(0)]; len(got) > 0 || len(passed[gpuUUID(0)]) < 40 {
		problems = append(problems, fmt.Sprintf("of the GPU without a fault %d rows have passed, and these have failed: %s", len(passed[gpuUUID(0)]), strings.Join(got, "; ")))
	}
	for i, f := range table {
		got := failed[faultUUID(i)]
		if i == len(table)-1 {
			for device, rows := range failed {
				if strings.HasPrefix(device, "MIG-") {
					got = append(got, rows...)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(f.want)
		if !slices.Equal(got, f.want) {
			problems = append(problems, fmt.Sprintf("%s: these rows have failed: %s; not: %s", f.name, strings.Join(got, "; "), strings.Join(f.want, "; ")))
		}
	}
	return problems
}

// loadFaults are distortions of what the library reports to the agent about the loads of
// a phase, and the rows that must find them.
func loadFaults() map[string]struct {
	distort func(*driverReport)
	want    []string
} {
	type of = struct {
		distort func(*driverReport)
		want    []string
	}
	claim := func(row, name, against string) string {
		return row + ", " + imitatedUUID + " (gpukit/" + name + "), " + against
	}
	device := func(row, against string) string { return row + ", " + imitatedUUID + ", " + against }
	return map[string]of{
		// The memory of the first process doubled, the second missing in the lists,
		// and the utilization of the third shifted.
		"split3": {
			func(r *driverReport) {
				if len(r.processes) != 3 {
					return
				}
				r.processes[0].Memory *= 2
				r.processes[2].Utilization -= 25
				r.processes = slices.Delete(r.processes, 1, 2)
			},
			[]string{
				claim("memory of the claim", "one", compare.Library), claim("memory of the claim", "two", compare.Library),
				claim("utilization of the claim", "two", compare.LoadGenerator), claim("utilization of the claim", "three", compare.LoadGenerator),
			},
		},
		// A third of the copied bytes is not counted.
		"copy": {
			func(r *driverReport) { r.received[0], r.received[1] = r.received[0]*2/3, r.received[1]*2/3 },
			[]string{device("copied bytes", compare.LoadGenerator), device("PCIe bytes received", compare.Library)},
		},
		// Activity of SMs halved, and activity of tensor cores that there is not.
		"compute": {
			func(r *driverReport) { r.values["profiling.sm"], r.values["profiling.tensor"] = "0.25", "0.3" },
			[]string{
				device("engine active, sm", compare.Library), device("activity of SMs", compare.LoadGenerator),
				device("engine active, tensor", compare.Library), device("activity of tensor cores", compare.LoadGenerator),
			},
		},
		// The Xid is reported of another GPU: imitation.fault.
		"xid": {func(*driverReport) {}, []string{device("Xids", compare.LoadGenerator)}},
	}
}

// TestPlantedFaultsUnderLoad runs phases with loads. What the library
// reports to the agent about them differs from what it reports to the others. Each fault fails its rows,
// and no other. DRA_GPUKIT_RUN adds the phase compute.
func TestPlantedFaultsUnderLoad(t *testing.T) {
	t.Parallel()
	names := []string{"split3", "copy", "xid"}
	if os.Getenv("DRA_GPUKIT_RUN") != "" {
		names = append(names, "compute")
	}
	attempt(t, func(t *testing.T, scale string) []string { return runLoadFaults(t, scale, names) })
}

func runLoadFaults(t *testing.T, scale string, names []string) (problems []string) {
	t.Helper()
	faults := loadFaults()
	correct, faulty := newImitatedGPUs(t), newImitatedGPUs(t)
	faulty.SetNode("epoch", nodeEpoch(t, correct))
	r := newKitRun(t, correct, agenttest.Build(t), kitOptions{faulty: faulty, arguments: []string{"--scale=" + scale, "--only=" + strings.Join(names, ",")}})
	imitate(t, r, &imitation{stub: correct, faulty: faulty, distort: func(d *driverReport) {
		for _, name := range names {
			if phaseRuns(r.out, name) {
				faults[name].distort(d)
			}
		}
	}})
	if status := r.status(t); status != 1 {
		problems = append(problems, fmt.Sprintf("exit status %d", status))
	}
	found := r.report(t)
	if len(found.Sections) < len(names) {
		return append(problems, fmt.Sprintf("the report has %d sections", len(found.Sections)))
	}
	titles := phaseTitles()
	for _, section := range found.Sections {
		name := titles[section.Title]
		var got []string
		passed := 0
		for _, row := range section.Results {
			if row.Status == compare.Failed {
				got = append(got, row.Row+", "+row.Device+", "+row.Against)
			}
			if row.Status == compare.Passed {
				passed++
			}
		}
		want := slices.Clone(faults[name].want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || name != "" && passed == 0 {
			problems = append(problems, fmt.Sprintf("%s: %d rows have passed, and these have failed: %s; not: %s", section.Title, passed, strings.Join(got, "; "), strings.Join(want, "; ")))
		}
	}
	return problems
}

// phaseRuns reports whether the loads of a phase are the newest.
func phaseRuns(out, name string) bool {
	files, _ := filepath.Glob(filepath.Join(out, "loads", "*.jsonl"))
	newest, at := "", int64(0)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.ModTime().UnixNano() > at {
			newest, at = filepath.Base(file), info.ModTime().UnixNano()
		}
	}
	return strings.HasPrefix(newest, name+"-")
}

// phaseTitles are the names of phases by their titles.
func phaseTitles() map[string]string {
	names := make(map[string]string)
	for _, p := range phases.Table() {
		names[p.Title] = p.Name
	}
	return names
}

// outcomes are the rows of a report that have failed and passed, by device, and
// those without a device that have failed.
func outcomes(r report.Report) (failed, passed map[string][]string, others []string) {
	failed, passed = make(map[string][]string), make(map[string][]string)
	for _, section := range r.Sections {
		for _, row := range section.Results {
			text := row.Row + ", " + row.Against
			switch {
			case row.Status == compare.Passed:
				passed[row.Device] = append(passed[row.Device], text)
			case row.Status == compare.Failed && row.Device == "":
				others = append(others, text+": "+row.Detail)
			case row.Status == compare.Failed:
				failed[row.Device] = append(failed[row.Device], text)
				if os.Getenv("DRA_GPUKIT_RUN") != "" {
					fmt.Printf("%s of %s: agent %s, other %s: %s\n", text, row.Device, row.Agent, row.Other, row.Detail)
				}
			}
		}
	}
	return failed, passed, others
}
