package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// asProgram is the variable that makes the test's program another one.
const asProgram = "GPUKIT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(asProgram) {
	case asGPUKit:
		main()
	case asNVIDIASMI:
		err = imitateNVIDIASMI(os.Stdout)
	case asFaultyAgent:
		err = runFaultyAgent(os.Args[1:])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// event is any event of a load.
type event struct {
	Event         string  `json:"event"`
	PID           int     `json:"pid"`
	Device        int     `json:"device"`
	UUID          string  `json:"uuid"`
	Name          string  `json:"name"`
	PCIBusID      string  `json:"pci_bus_id"`
	SMCount       int     `json:"sm_count"`
	TotalBytes    uint64  `json:"total_bytes"`
	FreeBytes     uint64  `json:"free_bytes"`
	HeldBytes     uint64  `json:"held_bytes"`
	Blocks        uint64  `json:"blocks"`
	CUDAVersion   string  `json:"cuda_version"`
	Elapsed       float64 `json:"elapsed_seconds"`
	Periods       float64 `json:"periods"`
	Kernels       float64 `json:"kernels"`
	Copies        float64 `json:"copies"`
	Busy          float64 `json:"busy_seconds"`
	FLOPs         float64 `json:"flops"`
	ReadBytes     float64 `json:"read_bytes"`
	WrittenBytes  float64 `json:"written_bytes"`
	CopiedBytes   float64 `json:"copied_bytes"`
	Reason        string  `json:"reason"`
	Error         string  `json:"error"`
	Code          int     `json:"code"`
	Call          string  `json:"call"`
	PeriodSeconds float64 `json:"period_seconds"`
}

// process is a running gpukit.
type process struct {
	t       *testing.T
	command *exec.Cmd
	in      io.Closer
	out     *bufio.Reader
	message *bytes.Buffer // its standard error
}

// program is a command that runs gpukit with a node's stub of libcuda.
func program(node *stubs.Node, environment []string, arguments ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], arguments...)
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CUDA_") })
	// The race detector otherwise waits for a second before a program ends.
	command.Env = append(command.Env, asProgram+"="+asGPUKit, "GORACE=atexit_sleep_ms=0")
	command.Env = append(append(command.Env, node.Env()...), environment...)
	return command
}

// startLoad starts `gpukit load` with the stub of libcuda. It lasts until the
// test ends it.
func startLoad(t *testing.T, node *stubs.Node, environment []string, arguments ...string) *process {
	t.Helper()
	arguments = append([]string{"load", "--library=" + stubs.Build(t).CUDA, "--duration=0", "--until-eof", "--interval=1ms"}, arguments...)
	return start(t, program(node, environment, arguments...))
}

func start(t *testing.T, command *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, command: command, message: &bytes.Buffer{}}
	command.Stderr = p.message
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	p.in, p.out = in, bufio.NewReader(out)
	return p
}

// next reads one event.
func (p *process) next() event {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		_ = p.command.Wait()
		p.t.Fatalf("the output ended after %q: %v: %s", line, err, p.message)
	}
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		p.t.Fatalf("%q is no event: %v", line, err)
	}
	return e
}

// until reads events up to the first of a name that satisfies a condition.
func (p *process) until(name string, condition func(event) bool) event {
	p.t.Helper()
	for {
		e := p.next()
		if e.Event == name && (condition == nil || condition(e)) {
			return e
		}
		if e.Event != "ready" && e.Event != "progress" || e.Periods > 200 {
			p.t.Fatalf("%+v comes before %s", e, name)
		}
	}
}

// status waits for the end and returns the exit status and the standard error.
func (p *process) status() (status int, message string) {
	p.t.Helper()
	rest, err := io.ReadAll(p.out)
	if err != nil || len(rest) > 0 {
		p.t.Errorf("the last event is followed by %q (%v)", rest, err)
	}
	_ = p.command.Wait()
	return p.command.ProcessState.ExitCode(), p.message.String()
}

// fails expects a last event "error" and exit status 1, and returns the event.
func (p *process) fails() event {
	p.t.Helper()
	failure := p.until("error", nil)
	status, message := p.status()
	if status != 1 || message != "gpukit: "+failure.Error+"\n" {
		p.t.Errorf("exit status %d after %q, with the message %q", status, failure.Error, message)
	}
	return failure
}

// succeeds expects exit status 0 without a message.
func (p *process) succeeds() {
	p.t.Helper()
	if status, message := p.status(); status != 0 || message != "" {
		p.t.Errorf("exit status %d: %s", status, message)
	}
}

func TestHelpSaysThatNothingIsChanged(t *testing.T) {
	for _, arguments := range [][]string{{"--help"}, {"load", "--help"}, {"run", "--help"}, {"direct", "--help"}, {"session", "--help"}} {
		var out, help bytes.Buffer
		if err := run(t.Context(), arguments, nil, &out, &help); err != nil {
			t.Errorf("%v: %v", arguments, err)
		}
		if text := out.String() + help.String(); !strings.Contains(text, "never changes a setting of") {
			t.Errorf("%v prints %s", arguments, text)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	var out, help bytes.Buffer
	if err := run(t.Context(), []string{"heat"}, nil, &out, &help); err == nil || err.Error() != `unknown command "heat"` {
		t.Errorf("the error is %v", err)
	}
}
