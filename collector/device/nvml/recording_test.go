//go:build cgo && linux

package nvml

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// recordingRole says, for a process that a test of this file has started, what
// it is to do. Each library needs a process of its own: a function stays bound
// to the library in which it was found first.
const recordingRole = "NVML_TEST_RECORDING_ROLE"

// recordingFolder is where such a process finds and leaves files.
const recordingFolder = "NVML_TEST_RECORDING_FOLDER"

// runRole runs the current test in another process, and returns what that has
// written to standard output and standard error.
func runRole(t *testing.T, role, folder string, environment ...string) string {
	t.Helper()
	stubs.Build(t) // here too, so that go test knows that the result depends on the sources
	process := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	process.Env = append(os.Environ(), recordingRole+"="+role, recordingFolder+"="+folder)
	process.Env = append(process.Env, environment...)
	out, err := process.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", role, err, out)
	}
	return string(out)
}

// pass is what a process has read.
type pass struct {
	Rounds []round
	Raised time.Duration             // no XID was raised earlier
	Seen   time.Duration             // all of them were seen no later
	XIDs   map[string]map[int]uint64 // counts by device and code
}

// round is one sample of all GPUs.
type round struct {
	Ended        time.Duration // since the library was initialized, or a little less
	Observations []device.Observation
}

// recordedRounds are the rounds that are recorded. The last one is slow, so that
// it reads everything.
const recordedRounds = 6

func tierOf(round int) device.Tier {
	if round%3 == 2 {
		return device.Slow
	}
	return device.Fast
}

// readRound reads all GPUs, which must succeed.
func readRound(t *testing.T, found []device.Reader, began time.Time, tier device.Tier) round {
	t.Helper()
	var r round
	for _, reader := range found {
		observations, err := reader.Read(t.Context(), tier)
		if err != nil {
			t.Fatal(err)
		}
		r.Observations = append(r.Observations, observations...)
	}
	r.Ended = time.Since(began)
	return r
}

// countsOf are the XIDs that a source has received.
func countsOf(from *Source) map[string]map[int]uint64 {
	all := make(map[string]map[int]uint64)
	for uuid, xids := range from.XIDs() {
		all[uuid] = make(map[int]uint64)
		for _, x := range xids {
			all[uuid][x.Code] = x.Count
		}
	}
	return all
}

// recordingPath is the recording of a folder.
func recordingPath(folder string) string { return filepath.Join(folder, "recording.txt") }

func resultPath(folder, role string) string { return filepath.Join(folder, role+".json") }

// recordedSource is a source over a library that uses the folder's recording.
func recordedSource(t *testing.T, library, folder string) *Source {
	t.Helper()
	t.Setenv("DRA_RECORDING", recordingPath(folder))
	from := New(Options{Library: library, Links: true, Profiling: true, Processes: always, Sysfs: t.TempDir()})
	t.Cleanup(func() {
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
	return from
}

func writeResult(t *testing.T, folder, role string, p pass) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(resultPath(folder, role), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func readResult(t *testing.T, folder, role string) pass {
	t.Helper()
	text, err := os.ReadFile(resultPath(folder, role))
	if err != nil {
		t.Fatal(err)
	}
	var p pass
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// expectSymbols fails unless the library has every function that is called.
func expectSymbols(t *testing.T, from *Source) {
	t.Helper()
	for name, there := range lookUpSymbols(from.connection.library.Extensions()) {
		if !there {
			t.Errorf("the library has no %s", name)
		}
	}
}

// recordNode samples a scripted node through the recorder.
func recordNode(t *testing.T, folder string) {
	libraries := stubs.Build(t)
	node := stubs.NewNode(t, 2)
	t.Setenv("DRA_STUB_HARDWARE", node.Dir)
	t.Setenv("DRA_RECORDER_LIBRARY", libraries.NVML)
	scripted(node, 0, map[string]string{
		"utilization.gpu": "87", "memory.used": "1073741824", "energy": "123456.5+400/s", "power.draw": "412.5",
		"pcie.tx_bytes": "1000+5000/s", "nvlink.0.tx_bytes": "1048576+1048576/s", "nvlink.1.rx_bytes": "2097152", "nvlink.2.state": "0",
		"nvlink.3.remote.gpu": "1", "nvlink.4.errors.crc_flit": "4", "ecc.corrected": "11", "remapped_rows.corrected": "8",
		"recovery_action": "3", "throttle.power_cap": "1500000000+100000000/s",
		"profiling.graphics": "0.9", "profiling.sm": "0.8", "profiling.sm_occupancy": "0.35", "profiling.decoder": "0.25",
	})
	gi, ci := node.CreateMIG(1, "3g.40gb", 4)
	scripted(node, 1, map[string]string{
		fmt.Sprintf("mig.%d.memory.used", gi): "5368709120", fmt.Sprintf("mig.%d.profiling.sm", gi): "0.7",
	})
	node.SetProcesses(0, stubs.Process{PID: os.Getpid(), Memory: 1 << 30, Utilization: 30},
		stubs.Process{PID: os.Getpid(), Memory: 1 << 20, Kind: stubs.MPS}, stubs.Process{PID: os.Getppid(), Memory: 1 << 29, Utilization: 20})

	from := recordedSource(t, libraries.Recorder, folder)
	began := time.Now()
	found := readers(t, from)
	initialized := time.Now()
	expectSymbols(t, from)
	var p pass
	for i := range recordedRounds {
		time.Sleep(2 * gpmPause)
		switch i {
		case 1:
			p.Raised = time.Since(initialized)
			node.XID(0, 63)
			node.XIDOn(1, gi, ci, 43)
			eventually(t, "two XIDs", func() bool { return xidsOf(from) == 2 })
			p.Seen = time.Since(began)
		case 3:
			found = readers(t, from)
			scripted(node, 0, map[string]string{"utilization.gpu": "12", "memory.used": "2147483648"})
		}
		p.Rounds = append(p.Rounds, readRound(t, found, began, tierOf(i)))
	}
	p.XIDs = countsOf(from)
	writeResult(t, folder, "record", p)
}

// xidsOf is how many XIDs a source has received.
func xidsOf(from *Source) (sum uint64) {
	for _, codes := range countsOf(from) {
		for _, count := range codes {
			sum += count
		}
	}
	return sum
}

// playNode samples the recording, each round no earlier than it was recorded,
// and two more after its end.
func playNode(t *testing.T, folder string) {
	recorded := readResult(t, folder, "record")
	from := recordedSource(t, stubs.Build(t).Player, folder)
	began := time.Now()
	found := readers(t, from)
	initialized := time.Now()
	expectSymbols(t, from)
	var p pass
	for i := range recordedRounds + 2 {
		time.Sleep(2 * gpmPause)
		after := recorded.Rounds[min(i, recordedRounds-1)]
		time.Sleep(time.Until(initialized.Add(after.Ended)))
		if i == 3 {
			found = readers(t, from)
		}
		p.Rounds = append(p.Rounds, readRound(t, found, initialized, tierOf(min(i, recordedRounds-1))))
		if p.Seen == 0 && xidsOf(from) > 0 {
			p.Seen = time.Since(began)
		}
	}
	eventually(t, "the recorded XIDs", func() bool { return reflect.DeepEqual(countsOf(from), recorded.XIDs) })
	p.Seen = cmp.Or(p.Seen, time.Since(began))
	p.XIDs = countsOf(from)
	writeResult(t, folder, "play", p)
}

// valueKey names a value of a device.
type valueKey struct {
	uuid     string
	quantity device.Quantity
	details  [2]string
	slow     bool
}

// values are all readings of a round. Of processes they are the memory, as
// PIDs are in both passes those of the first.
func values(r round) map[valueKey]float64 {
	all := make(map[valueKey]float64)
	for _, o := range r.Observations {
		for slow, readings := range [][]device.Reading{o.Readings, o.Slow} {
			for _, reading := range readings {
				all[valueKey{o.Device.UUID, reading.Quantity, reading.Details, slow == 1}] = reading.Value
			}
		}
	}
	return all
}

// identities are the devices of a round.
func identities(r round) []device.Device {
	var all []device.Device
	for _, o := range r.Observations {
		all = append(all, o.Device)
	}
	return all
}

// processesOf are the processes of a round. How much they do is left out: a
// sample of it is read once, and a pass that comes late reads none.
func processesOf(r round) []device.Process {
	var all []device.Process
	for _, o := range r.Observations {
		for _, p := range o.Processes {
			p.Utilization = 0
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b device.Process) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Memory, b.Memory))
	})
	return all
}

// span is the smallest and the largest value that was recorded in a round or
// later.
func span(rounds []round, key valueKey) (lowest, highest float64) {
	first := true
	for _, r := range rounds {
		value, there := values(r)[key]
		if !there {
			continue
		}
		if first {
			lowest, highest, first = value, value, false
		}
		lowest, highest = min(lowest, value), max(highest, value)
	}
	return lowest, highest
}

// compareRound compares a played round with those that were recorded at its time
// and later, because it may have been read later.
func compareRound(t *testing.T, name string, played round, recorded []round) {
	t.Helper()
	if got, want := identities(played), identities(recorded[0]); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: the devices are %v, want %v", name, got, want)
	}
	if got, want := processesOf(played), processesOf(recorded[0]); !reflect.DeepEqual(got, want) || len(got) == 0 {
		t.Errorf("%s: the processes are %v, want %v", name, got, want)
	}
	got, want := values(played), values(recorded[0])
	for key := range want {
		value, there := got[key]
		lowest, highest := span(recorded, key)
		if !there || value < lowest || value > highest {
			t.Errorf("%s: %v of %s is %v (%t), want from %v to %v", name, key, device.Specs()[key.quantity].Name, value, there, lowest, highest)
		}
	}
	for key := range got {
		if _, there := want[key]; !there {
			t.Errorf("%s: %v of %s was not recorded", name, key, device.Specs()[key.quantity].Name)
		}
	}
}

// What the recorder has written, the player answers: the same devices with
// the same quantities, and at each time the values of that time. The recorder
// answers as the library does.
func TestRecordingPlaysAsTheLibrary(t *testing.T) {
	switch folder := os.Getenv(recordingFolder); os.Getenv(recordingRole) {
	case "record":
		recordNode(t, folder)
		return
	case "play":
		playNode(t, folder)
		return
	}
	folder := t.TempDir()
	runRole(t, "record", folder)
	runRole(t, "play", folder)
	recorded, played := readResult(t, folder, "record"), readResult(t, folder, "play")
	if len(values(recorded.Rounds[recordedRounds-1])) < 100 || xidCount(recorded) != 2 {
		t.Fatalf("too little was recorded: %v", recorded)
	}
	for i := range recorded.Rounds {
		compareRound(t, fmt.Sprintf("round %d", i), played.Rounds[i], recorded.Rounds[i:])
	}
	for i, r := range played.Rounds[recordedRounds:] {
		compareRound(t, fmt.Sprintf("round %d after the end", i), r, recorded.Rounds[recordedRounds-1:])
	}
	if !reflect.DeepEqual(played.XIDs, recorded.XIDs) {
		t.Errorf("the XIDs are %v, want %v", played.XIDs, recorded.XIDs)
	}
	if played.Seen < recorded.Raised {
		t.Errorf("an XID was seen after %v, and had been raised after %v", played.Seen, recorded.Raised)
	}
	grown := 0
	for key, value := range values(recorded.Rounds[recordedRounds-1]) {
		if key.quantity == device.Energy && value > values(recorded.Rounds[0])[key] {
			grown++
		}
	}
	if grown == 0 {
		t.Error("no energy has grown")
	}
}

func xidCount(p pass) (sum uint64) {
	for codes := range maps.Values(p.XIDs) {
		for count := range maps.Values(codes) {
			sum += count
		}
	}
	return sum
}

// script is a recording: its lines after the first.
func script(lines ...string) string {
	return "dra-recording 1 1000000\n" + strings.Join(lines, "\n") + "\n"
}

// badRecordings are recordings that cannot be played, by file name, and a part
// of what is said of them. A file without contents is missing.
func badRecordings() map[string][2]string {
	initialized := "0 10 nvmlInit_v2 = 0"
	return map[string][2]string{
		"missing":    {"", "No such file or directory"},
		"empty":      {" ", "it is empty"},
		"cut":        {script(initialized) + "100 10 nvmlDeviceGetCount_v2 * = 0", "line 3: it is cut off"},
		"cut-first":  {"dra-recording 1", "line 1: it is cut off"},
		"garbage":    {"\x7fELF\x02\x00\x00\n\xff\n", "line 1: it has bytes that are not printable"},
		"text":       {"once upon a time\n", "line 1: it is not the first line of a recording"},
		"version":    {"dra-recording 2 1000000\n" + initialized + "\n", "line 1: its version is not 1"},
		"time":       {"dra-recording 1 now\n", "line 1: it has no time"},
		"no-times":   {script("nvmlInit_v2 = 0"), "line 2: it does not begin with a time and a duration"},
		"huge-time":  {script("99999999999999999999999 10 nvmlInit_v2 = 0"), "line 2: it does not begin with a time and a duration"},
		"no-answer":  {script(initialized, "10 10 nvmlShutdown"), "line 3: it has no answer"},
		"no-code":    {script(initialized, "10 10 nvmlShutdown = -"), "line 3: it has no return code"},
		"function":   {script(initialized, "10 10 nvmlMakeCoffee = 0"), "line 3: it calls a function that this player does not know"},
		"odd-word":   {script(initialized, "10 10 nvmlDeviceGetCount_v2 * = 0 !"), "line 3: its answer is not readable"},
		"open-quote": {script(initialized, `10 10 nvmlSystemGetDriverVersion * ~80 = 0 "5`), "line 3: its answer is not readable"},
		"no-hex":     {script(initialized, "10 10 nvmlDeviceGetMemoryInfo d0 * = 0 xyz"), "line 3: its answer is not readable"},
		"binary":     {script(initialized, "10 10 nvmlShutdown\x01 = 0"), "line 3: it has bytes that are not printable"},
		"blank":      {script(initialized, ""), "line 3: it does not begin with a time and a duration"},
	}
}

// refuseRecordings reads all bad recordings of a folder through one library,
// and then a good one.
func refuseRecordings(t *testing.T, folder string) {
	for name, bad := range badRecordings() {
		path := filepath.Join(folder, name)
		t.Setenv("DRA_RECORDING", path)
		from := New(Options{Library: stubs.Build(t).Player, Sysfs: t.TempDir()})
		for range 2 {
			_, err := from.Readers(t.Context())
			if err == nil || !strings.Contains(err.Error(), path+": "+bad[1]) {
				t.Errorf("%s: the error is %v", name, err)
			}
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	}
	from := recordedSource(t, stubs.Build(t).Player, folder)
	if found := readers(t, from); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}

// A file that is not a recording is an error that names it and its line, and a
// line on standard error. It never ends the process, and once the file is good,
// it is played.
func TestPlayer(t *testing.T) {
	if os.Getenv(recordingRole) == "refuse" {
		refuseRecordings(t, os.Getenv(recordingFolder))
		return
	}
	folder := t.TempDir()
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, bad := range badRecordings() {
		if bad[0] != "" {
			write(filepath.Join(folder, name), strings.TrimPrefix(bad[0], " "))
		}
	}
	write(recordingPath(folder), script("0 10 nvmlInit_v2 = 0", "20 10 nvmlDeviceGetCount_v2 * = 0 0"))
	out := runRole(t, "refuse", folder)
	for name, bad := range badRecordings() {
		line := "libnvidia-ml-player: recording " + filepath.Join(folder, name) + ": " + bad[1]
		if n := strings.Count(out, line+"\n"); n != 1 {
			t.Errorf("%d lines are %q in\n%s", n, line, out)
		}
	}
}

// An hour, as a recording has it.
const hour = "3600000000000"

// hexOf is a structure as a recording has it.
func hexOf(words ...uint64) string {
	var b strings.Builder
	b.WriteByte('x')
	for _, word := range words {
		for range 8 {
			fmt.Fprintf(&b, "%02x", byte(word))
			word >>= 8
		}
	}
	return b.String()
}

// written by hand: a device of which each function shows one rule.
func rulesScript() string {
	field := func(id, at, value uint64) string { return hexOf(id, at, 5, 1<<0|0<<32, value) }
	return script(
		"lacks nvmlDeviceGetEnforcedPowerLimit",
		"0 10 nvmlInit_v2 = 0",
		"20 10 nvmlDeviceGetHandleByIndex_v2 0 * = 0 d0",
		// The answer before now; after the last, the last.
		"30 10 nvmlDeviceGetTotalEnergyConsumption d0 * = 0 1000",
		hour+" 10 nvmlDeviceGetTotalEnergyConsumption d0 * = 0 2000",
		"300000000 10 nvmlDeviceGetTemperature d0 0 * = 0 77",
		"31 10 nvmlDeviceGetTemperature d0 0 * = 0 33",
		// Before the first answer, the first.
		hour+" 10 nvmlDeviceGetPowerUsage d0 * = 0 250000",
		// Lists that did not fit when they were recorded.
		"40 10 nvmlDeviceGetComputeRunningProcesses_v3 d0 * * ~1 = 7 2",
		"41 10 nvmlDeviceGetComputeRunningProcesses_v3 d0 * * ~4 = 0 2 "+hexOf(5, 4096, 1<<32-1|(1<<32-1)<<32)+" "+hexOf(6, 8192, 1<<32-1|(1<<32-1)<<32),
		"42 10 nvmlDeviceGetComputeRunningProcesses_v3 d0 * * ~1 = 7 2",
		// Samples of the wall clock, 5 s after the start.
		"50 10 nvmlDeviceGetProcessUtilization d0 - * ~0 ~77 = 7 100",
		"51 10 nvmlDeviceGetProcessUtilization d0 * * ~100 ~77 = 0 1 "+hexOf(5, 6000000, 40, 0),
		// Fields that were not asked for together.
		"60 10 nvmlDeviceGetFieldValues d0 * #"+hexOf(82)[1:]+" = 0 "+field(82, 3000000, 61),
		"61 10 nvmlDeviceGetFieldValues d0 * #"+hexOf(92)[1:]+" = 0 "+field(92, 0, 4),
		// What cannot be the answer to a call.
		"70 10 nvmlDeviceGetUtilizationRates d0 * = 0 xab",
		"71 10 nvmlDeviceGetMinorNumber d0 * = 0 99999999999",
		// Events, and a sample.
		"80 10 nvmlEventSetCreate * = 0 e0",
		"81 10 nvmlEventSetWait_v2 ~e0 * ~100 = 0 "+hexOf(0, 8, 43, 1<<32-1|(1<<32-1)<<32)+"@d0",
		"82 900000000 nvmlEventSetWait_v2 ~e0 * ~100 = 0 "+hexOf(0, 8, 63, 1<<32-1|(1<<32-1)<<32)+"@d0",
		hour+" 10 nvmlEventSetWait_v2 ~e0 * ~100 = 0 "+hexOf(0, 8, 79, 1<<32-1|(1<<32-1)<<32)+"@d0",
		"82 10 nvmlEventSetFree ~e0 = 0",
		"stopped limit",
	)
}

// expectRules calls the functions of rulesScript through the binding.
func expectRules(t *testing.T, library nvml.Interface) {
	before := time.Now()
	if ret := library.Init(); ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	after := time.Now()
	gpu, ret := library.DeviceGetHandleByIndex(0)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	expect := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	answer := func(value any, ret nvml.Return) string { return fmt.Sprintf("%v %d", value, uint32(ret)) }
	expect("energy", answer(gpu.GetTotalEnergyConsumption()), "1000 0")
	expect("power", answer(gpu.GetPowerUsage()), "250000 0")
	eventually(t, "another temperature", func() bool { return answer(gpu.GetTemperature(nvml.TEMPERATURE_GPU)) == "77 0" })
	_, ret = gpu.GetUUID()
	expect("the UUID", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = gpu.GetEnforcedPowerLimit()
	expect("the limit", ret, nvml.ERROR_FUNCTION_NOT_FOUND)
	_, ret = library.DeviceGetHandleByIndex(1)
	expect("another GPU", ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = gpu.GetTemperature(7)
	expect("another sensor", ret, nvml.ERROR_NOT_SUPPORTED)
	infos, ret := gpu.GetComputeRunningProcesses()
	expect("processes", fmt.Sprint(infos, uint32(ret)), "[{5 4096 4294967295 4294967295} {6 8192 4294967295 4294967295}] 0")
	samples, ret := gpu.GetProcessUtilization(uint64(before.UnixMicro()))
	if ret != nvml.SUCCESS || len(samples) != 1 || samples[0].Pid != 5 || samples[0].SmUtil != 40 {
		t.Fatalf("samples: %v %v", samples, ret)
	}
	at := time.UnixMicro(int64(samples[0].TimeStamp) - 5000000)
	if at.Before(before.Truncate(time.Microsecond)) || at.After(after) {
		t.Errorf("the sample is of %v, initialized from %v to %v", at, before, after)
	}
	fields := []nvml.FieldValue{{FieldId: 92}, {FieldId: 83}, {FieldId: 82}}
	expect("fields", gpu.GetFieldValues(fields), nvml.SUCCESS)
	expect("their codes", []uint32{fields[0].NvmlReturn, fields[1].NvmlReturn, fields[2].NvmlReturn}, []uint32{0, uint32(nvml.ERROR_NOT_SUPPORTED), 0})
	expect("their values", []byte{fields[0].Value[0], fields[2].Value[0]}, []byte{4, 61})
	expect("their times", []bool{fields[0].Timestamp == 0, fields[2].Timestamp > before.UnixMicro()}, []bool{true, true})
	_, ret = gpu.GetUtilizationRates()
	expect("an answer that is too short", ret, nvml.ERROR_UNKNOWN)
	_, ret = gpu.GetMinorNumber()
	expect("an answer that is too large", ret, nvml.ERROR_UNKNOWN)

	set, ret := library.EventSetCreate()
	expect("an event set", ret, nvml.SUCCESS)
	event, ret := set.Wait(1 << 20)
	expect("the first event", answer(event.EventData, ret), "43 0")
	expect("its device", event.Device == gpu, true)
	event, ret = set.Wait(1 << 20)
	expect("the second event", answer(event.EventData, ret), "63 0")
	if passed := time.Since(before); passed < 900*time.Millisecond {
		t.Errorf("the second event came after %v, and was recorded after 900ms", passed)
	}
	began := time.Now()
	_, ret = set.Wait(50)
	expect("the event that is an hour away", ret, nvml.ERROR_TIMEOUT)
	if waited := time.Since(began); waited < 50*time.Millisecond {
		t.Errorf("the wait ended after %v", waited)
	}
	expect("the end of the set", set.Free(), nvml.SUCCESS)
	_, ret = set.Wait(50)
	expect("a set that has been freed", ret, nvml.ERROR_NOT_SUPPORTED)
	expect("shutdown", library.Shutdown(), nvml.SUCCESS)
	_, ret = gpu.GetPowerUsage()
	expect("after shutdown", ret, nvml.ERROR_UNINITIALIZED)
}

// A recording that was written by hand is played by the rules.
func TestPlayerAnswersByTheRules(t *testing.T) {
	if folder := os.Getenv(recordingFolder); folder != "" {
		t.Setenv("DRA_RECORDING", recordingPath(folder))
		expectRules(t, nvml.New(nvml.WithLibraryPath(stubs.Build(t).Player)))
		return
	}
	folder := t.TempDir()
	if err := os.WriteFile(recordingPath(folder), []byte(rulesScript()), 0o644); err != nil {
		t.Fatal(err)
	}
	out := runRole(t, "play", folder)
	if n := strings.Count(out, "does not fit"); n != 1 {
		t.Errorf("%d lines say that an answer does not fit:\n%s", n, out)
	}
}

// A library that lacks most functions is read through the recorder, and from
// its recording, as it is without.
func TestRecordingOfALibraryThatLacksFunctions(t *testing.T) {
	if folder := os.Getenv(recordingFolder); folder != "" {
		readSparseLibrary(t, filepath.Join(folder, os.Getenv(recordingRole)))
		return
	}
	folder := t.TempDir()
	sparse := filepath.Join(folder, "sparse.so")
	if out, err := exec.Command(cmp.Or(os.Getenv("CC"), "cc"), "-shared", "-fPIC", "-o", sparse, "testdata/library.c").CombinedOutput(); err != nil {
		t.Fatalf("compile the library: %v\n%s", err, out)
	}
	for name, library := range map[string]string{"recorder": stubs.Build(t).Recorder, "player": stubs.Build(t).Player} {
		if err := os.Symlink(library, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range []string{"recorder", "player"} {
		runRole(t, role, folder, "DRA_RECORDING="+recordingPath(folder), "DRA_RECORDER_LIBRARY="+sparse)
		text, err := os.ReadFile(filepath.Join(folder, role) + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "library.txt", string(text))
	}
	text, err := os.ReadFile(recordingPath(folder))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("\nlacks nvmlDeviceGetTotalEnergyConsumption\n")) {
		t.Errorf("the recording does not say what the library lacks:\n%s", text)
	}
}
