package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/gpukit/agenttest"
	"github.com/dra-exporter/dra-exporter/test/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/gpukit/load"
	"github.com/dra-exporter/dra-exporter/test/gpukit/report"
	"github.com/dra-exporter/dra-exporter/test/stubs"
)

// kitRun is a `gpukit run` over the stubs.
type kitRun struct {
	command *exec.Cmd
	out     string // the folder of the report
	printed buffer
}

// buffer is text that may be read while it is written.
type buffer struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(text []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.Write(text)
}

func (b *buffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.String()
}

// nvidiaSMI is a program that prints a file, which the imitation writes.
func nvidiaSMI(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec cat "+filepath.Join(folder, textFile)+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// textFile is the text of the imitated nvidia-smi.
const textFile = "smi.xml"

// nvidiaSMIText has a few of the elements of a real text: of the GPU, its
// utilization in percent, and its used memory in MiB.
const nvidiaSMIText = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
	<driver_version>580.65.06</driver_version>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000000:1B:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<uuid>%s</uuid>
		<fb_memory_usage><total>81559 MiB</total><used>%d MiB</used></fb_memory_usage>
		<utilization><gpu_util>%d %%</gpu_util></utilization>
		<gpu_power_readings><average_power_draw>%.2f W</average_power_draw></gpu_power_readings>
		<temperature><gpu_temp>32 C</gpu_temp></temperature>
	</gpu>
</nvidia_smi_log>
`

func newKitRun(t *testing.T, stub *stubs.Node, agent string, arguments ...string) *kitRun {
	t.Helper()
	libraries, out := stubs.Build(t), t.TempDir()
	r := &kitRun{out: out, command: program(stub, nil, append([]string{
		"run", "--agent=" + agent, "--recorder=" + libraries.Recorder, "--library=" + libraries.NVML, "--cuda-library=" + libraries.CUDA,
		"--nvidia-smi=" + nvidiaSMI(t, out), "--out=" + out, "--imitated=the GPU, its driver and its libraries",
	}, arguments...)...)}
	r.command.Stdout, r.command.Stderr = &r.printed, &r.printed
	return r
}

// status is the exit status of the run.
func (r *kitRun) status(t *testing.T) int {
	t.Helper()
	_ = r.command.Wait()
	t.Logf("%s", &r.printed)
	return r.command.ProcessState.ExitCode()
}

func (r *kitRun) report(t *testing.T) report.Report {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.out, report.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	var found report.Report
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// imitation imitates what a driver reports of the loads that run. The stub does
// not know what its processes do.
type imitation struct {
	stub *stubs.Node
	out  string // the folder of the run's report
	run  int    // pid of `gpukit run`, the parent of all loads

	copied     float64 // bytes so far
	copyRate   float64
	lastChange time.Time
	last       string
	faulted    bool
}

// What the imitated GPU uses without a load, and what each load needs besides
// what it holds.
const (
	idleMemory    = 600 * mebibyte
	contextMemory = 500 * mebibyte
	power         = 400.0 // watts
	fp32PerBusy   = 0.77  // of what the SMs can do, by the stub's rate of threads
	fieldsOfStat  = 4
)

// activeLoad is a running load as its command line says.
type activeLoad struct {
	pid    int
	kind   load.Kind
	share  float64 // of the time in which it is busy
	memory int64
}

// follow changes the imitated hardware with the loads until the test is done.
func (i *imitation) follow(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(20 * time.Millisecond):
			i.apply(i.loads())
			i.fault()
		}
	}
}

// loads are the loads that run now.
func (i *imitation) loads() []activeLoad {
	var found []activeLoad
	children, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range children {
		stat, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < fieldsOfStat || string(fields[1]) != strconv.Itoa(i.run) || string(fields[0]) == "Z" {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		arguments := strings.Split(string(line), "\x00")
		if len(arguments) < 2 || arguments[1] != "load" {
			continue
		}
		l := activeLoad{}
		l.pid, _ = strconv.Atoi(filepath.Base(folder))
		for _, argument := range arguments {
			name, value, _ := strings.Cut(argument, "=")
			switch name {
			case "--kind":
				l.kind = load.Kind(value)
			case "--duty":
				duty, _ := strconv.Atoi(value)
				l.share = i.busy(l.pid, float64(duty)/100)
			case "--memory":
				l.memory, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		if l.share > 0 {
			found = append(found, l)
		}
	}
	return found
}

// busy is the share of the time in which a load was busy between its last two
// events: on a machine without enough processors it is less than what was asked
// for.
func (i *imitation) busy(pid int, asked float64) float64 {
	files, _ := filepath.Glob(filepath.Join(i.out, "loads", "*.jsonl"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		var last [2]event
		for line := range strings.Lines(string(text)) {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && (e.Event == "ready" && e.PID == pid || last[1].Event != "") {
				last = [2]event{last[1], e}
			}
		}
		if elapsed := last[1].Elapsed - last[0].Elapsed; last[1].Event == "progress" && elapsed > 0 {
			return (last[1].Busy - last[0].Busy) / elapsed
		}
	}
	return asked
}

// apply scripts the GPU for loads. A counter goes on where it was.
func (i *imitation) apply(loads []activeLoad) {
	if text := fmt.Sprint(loads); text == i.last {
		return
	} else {
		i.last = text
	}
	values := map[string]float64{"profiling.sm": 0, "profiling.tensor": 0, "profiling.dram": 0, "profiling.fp32": 0, "utilization.memory": 0}
	sum, memory, copyRate := 0, int64(idleMemory), 0.0
	var processes []stubs.Process
	for _, l := range loads {
		share, percent := l.share, int(math.Round(100*l.share))
		processes = append(processes, stubs.Process{PID: l.pid, Memory: l.memory + contextMemory, Utilization: percent})
		sum, memory = sum+percent, memory+l.memory+contextMemory
		switch l.kind {
		case load.Compute:
			values["profiling.sm"] += share
			values["profiling.fp32"] += fp32PerBusy * share
		case load.Tensor:
			values["profiling.sm"] += share
			values["profiling.tensor"] += share / 2
		case load.Memory:
			values["profiling.sm"] += share
			values["profiling.dram"] += share / 2
		case load.Copy:
			copyRate = copyRateOf(share)
		}
	}
	now := time.Now()
	i.copied += i.copyRate * now.Sub(i.lastChange).Seconds()
	i.copyRate, i.lastChange = copyRate, now
	i.stub.Set(0, "pcie.rx_bytes", i.counter(i.copied, copyRate, now))
	for key, value := range values {
		i.stub.Set(0, key, strconv.FormatFloat(value, 'f', 3, 64))
	}
	i.stub.Set(0, "utilization.gpu", strconv.Itoa(min(sum, 100)))
	i.stub.Set(0, "memory.used", strconv.FormatInt(memory, 10))
	i.stub.SetProcesses(0, processes...)
	i.print(min(sum, 100), memory)
}

// print writes the text of nvidia-smi.
func (i *imitation) print(utilization int, memory int64) {
	path := filepath.Join(i.out, textFile)
	text := fmt.Sprintf(nvidiaSMIText, imitatedUUID, memory/mebibyte, utilization, power)
	_ = os.WriteFile(path+".new", []byte(text), 0o644)
	_ = os.Rename(path+".new", path)
}

// fault reports an Xid once the load of the phase xid has had its fault.
func (i *imitation) fault() {
	text, _ := os.ReadFile(filepath.Join(i.out, "loads", "xid-0.jsonl"))
	if !i.faulted && bytes.Contains(text, []byte(`"event":"faulted"`)) {
		i.faulted = true
		i.stub.XID(0, 31)
	}
}

// copyRateOf is what the stub copies in a share of the time, with the headers of
// packets: bytes per second.
func copyRateOf(share float64) float64 { return 1.05 * copyRate * share }

// counter scripts a counter that is at a value now and grows.
func (i *imitation) counter(value, rate float64, now time.Time) string {
	return fmt.Sprintf("%.0f+%.0f/s", value-rate*(float64(now.UnixMilli())/1000-i.epoch()), rate)
}

// epoch is when the counters of the stub begin: Unix seconds.
func (i *imitation) epoch() float64 {
	text, _ := os.ReadFile(filepath.Join(i.stub.Dir, "hardware.conf"))
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "node.epoch = "); found {
			epoch, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return epoch
		}
	}
	return 0
}

// imitate starts an imitation of a run's hardware.
func imitate(t *testing.T, stub *stubs.Node, r *kitRun) {
	t.Helper()
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	i := &imitation{stub: stub, out: r.out, run: r.command.Process.Pid, last: "nothing was applied", lastChange: time.Now()}
	done := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() { i.follow(done) })
	t.Cleanup(func() {
		_ = r.command.Process.Kill()
		close(done)
		following.Wait()
	})
}

const imitatedUUID = "GPU-4f03597e-9081-9ccf-8e2d-9eb6aaf1a724"

// newImitatedGPU is a GPU whose energy is the integral of its power.
func newImitatedGPU(t *testing.T) *stubs.Node {
	t.Helper()
	stub := stubs.NewNode(t, 1)
	stub.Set(0, "uuid", imitatedUUID)
	stub.Set(0, "clocks.sm", "1980") // MHz
	stub.Set(0, "power.draw", fmt.Sprint(power))
	stub.Set(0, "energy", fmt.Sprintf("1000+%g/s", power))
	return stub
}

// TestRun runs most phases, shortened, over the stubs. All rows pass that the
// stubs can satisfy.
func TestRun(t *testing.T) {
	if os.Getenv("DRA_GPUKIT_RUN") == "" {
		t.Skip("takes most of a minute: set DRA_GPUKIT_RUN=1, or use make -C test gpukit-run")
	}
	stub := newImitatedGPU(t)
	r := newKitRun(t, stub, agenttest.Build(t), "--scale=0.1", "--only="+cmp.Or(os.Getenv("DRA_GPUKIT_PHASES"), "compute,copy,split3"))
	imitate(t, stub, r)
	if status := r.status(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	passed := make(map[string]bool)
	for _, section := range r.report(t).Sections {
		for _, row := range section.Results {
			passed[row.Row] = passed[row.Row] || row.Status == compare.Passed
			if row.Status == compare.Failed {
				t.Errorf("%s: %+v", section.Title, row)
			}
		}
	}
	if os.Getenv("DRA_GPUKIT_PHASES") != "" {
		return
	}
	for _, row := range []string{"energy, integral of power", "memory of the claim", "utilization of the claim", "copied bytes", "activity of SMs", "sum of memory"} {
		if !passed[row] {
			t.Errorf("no row %q has passed", row)
		}
	}
	if settings := stub.Settings(); len(settings) != 0 {
		t.Errorf("settings were changed: %q", settings)
	}
}

// What is missing is named, with exit status 2 and without a report.
func TestRunWithoutParts(t *testing.T) {
	stub := stubs.NewNode(t, 1)
	empty := stubs.NewNode(t, 0)
	for _, c := range []struct {
		node      *stubs.Node
		arguments []string
		message   string
	}{
		{stub, nil, "gpukit: --agent=/no/such/agent: stat /no/such/agent: no such file or directory"},
		{stub, []string{"--library=/no/such/library.so"}, "gpukit: --library=/no/such/library.so: gpukit: "},
		{empty, nil, "nvmlInit_v2: No GPUs found (28): install NVIDIA's driver"},
		{stub, []string{"--device=GPU-other"}, "gpukit: --device=GPU-other: the management library lists: GPU-"},
		{stub, []string{"--only=heat"}, "gpukit: --only=heat: must be one of idle, compute, memory, "},
		{stub, []string{"--scale=2"}, "gpukit: --scale=2: must be more than 0, and at most 1"},
		{stub, []string{"--nvidia-smi=/no/such/program"}, "gpukit: --nvidia-smi=/no/such/program: "},
	} {
		r := newKitRun(t, c.node, "/no/such/agent", c.arguments...)
		if err := r.command.Start(); err != nil {
			t.Fatal(err)
		}
		if status := r.status(t); status != 2 || !strings.Contains(r.printed.String(), c.message) {
			t.Errorf("%v: exit status %d", c.arguments, status)
		}
		if _, err := os.Stat(filepath.Join(r.out, report.JSONFile)); err == nil {
			t.Errorf("%v: there is a report", c.arguments)
		}
	}
}

// A run that is interrupted writes a report, and leaves no process.
func TestRunIsInterrupted(t *testing.T) {
	stub := newImitatedGPU(t)
	r := newKitRun(t, stub, agenttest.Build(t), "--only=idle", "--simulated-procfs")
	imitate(t, stub, r)
	for !strings.Contains(r.printed.String(), "loads run on") {
		time.Sleep(10 * time.Millisecond)
	}
	if err := r.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := r.status(t); status != 2 {
		t.Errorf("exit status %d", status)
	}
	if stub.Live() != (stubs.Live{}) {
		t.Errorf("%+v is open", stub.Live())
	}
	sections := r.report(t).Sections
	last := sections[len(sections)-1]
	if !slices.ContainsFunc(last.Results, func(c compare.Result) bool { return c.Detail == "not run: interrupted" }) {
		t.Errorf("the last section is %+v", last)
	}
}
