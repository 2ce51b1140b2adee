package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/agenttest"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
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

// kitOptions are what a run is made of. What is empty has a default.
type kitOptions struct {
	faulty     *stubs.Node // what the library reports to the agent; nil: correct values
	faults     bool        // the agent's page has the faults of faultTable
	library    string      // path; empty: the stub
	variables  []string
	withoutSMI bool
	arguments  []string
}

// newKitRun is a run whose libraries report the hardware of a node.
func newKitRun(t *testing.T, node *stubs.Node, agent string, o kitOptions) *kitRun {
	t.Helper()
	libraries, out := stubs.Build(t), t.TempDir()
	library := cmp.Or(o.library, libraries.NVML)
	var agentEnv []string
	if o.faulty != nil {
		agentEnv = o.faulty.Env()
	}
	if o.faults {
		agentEnv = append(agentEnv, asProgram+"="+asFaultyAgent, faultyAgentPath+"="+agent)
		agent = os.Args[0]
	}
	if len(agentEnv) > 0 {
		agent = script(t, "dra-exporter", agent, agentEnv...)
	}
	smi := ""
	if !o.withoutSMI {
		smi = script(t, "nvidia-smi", os.Args[0], asProgram+"="+asNVIDIASMI, smiLibrary+"="+library)
	}
	r := &kitRun{out: out, command: program(node, o.variables, append([]string{
		"run", "--agent=" + agent, "--recorder=" + libraries.Recorder, "--library=" + library, "--cuda-library=" + libraries.CUDA,
		"--nvidia-smi=" + smi, "--out=" + out, "--imitated=the GPU, its driver and its libraries",
	}, o.arguments...)...)}
	r.command.Stdout, r.command.Stderr = &r.printed, &r.printed
	return r
}

// script is a program that runs another one with more variables.
func script(t *testing.T, name, path string, variables ...string) string {
	t.Helper()
	text := "#!/bin/sh\n"
	for _, v := range variables {
		key, value, _ := strings.Cut(v, "=")
		text += "export " + key + "='" + value + "'\n"
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text+"exec '"+path+"' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
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

// TestRun runs most phases, shortened, over the stubs. All rows pass that the
// stubs can satisfy.
func TestRun(t *testing.T) {
	if os.Getenv("DRA_GPUKIT_RUN") == "" {
		t.Skip("takes three minutes: set DRA_GPUKIT_RUN=1, or use make -C test gpukit-run")
	}
	attempt(t, runAll)
}

// runAll runs phases at a scale, and returns the rows that have failed.
func runAll(t *testing.T, scale string) (problems []string) {
	t.Helper()
	stub := newImitatedGPUs(t)
	r := newKitRun(t, stub, agenttest.Build(t), kitOptions{arguments: []string{
		"--scale=" + scale, "--only=" + cmp.Or(os.Getenv("DRA_GPUKIT_PHASES"), "compute,memory,copy,copyfast,tensor,split2,split3,outside,xid,sessions"),
	}})
	imitate(t, r, &imitation{stub: stub})
	if status := r.status(t); status != 0 {
		problems = append(problems, fmt.Sprintf("exit status %d", status))
	}
	passed := make(map[string]bool)
	for _, section := range r.report(t).Sections {
		for _, row := range section.Results {
			passed[row.Row] = passed[row.Row] || row.Status == compare.Passed
			if row.Status == compare.Failed {
				problems = append(problems, fmt.Sprintf("%s: %+v", section.Title, row))
			}
		}
	}
	if settings := stub.Settings(); len(settings) != 0 {
		t.Errorf("settings were changed: %q", settings)
	}
	if os.Getenv("DRA_GPUKIT_PHASES") != "" {
		return problems
	}
	for _, row := range []string{"energy, integral of power", "memory of the claim", "utilization of the claim", "copied bytes", "activity of SMs", "sum of memory", "Xids", "NO_ATTACH"} {
		if !passed[row] {
			problems = append(problems, fmt.Sprintf("no row %q has passed", row))
		}
	}
	return problems
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
		r := newKitRun(t, c.node, "/no/such/agent", kitOptions{arguments: c.arguments})
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
	stub := newImitatedGPUs(t)
	r := newKitRun(t, stub, agenttest.Build(t), kitOptions{arguments: []string{"--only=idle", "--simulated-procfs"}})
	imitate(t, r, &imitation{stub: stub})
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
