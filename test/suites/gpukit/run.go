package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/phases"
)

const runUsage = `Usage: gpukit run [FLAGS]

Runs the agent on this machine's GPUs with loads of a known size, and compares
what it exports with nvidia-smi, with NVIDIA's management library and with the
loads. Without --long it takes about eight minutes. The folder of --out has the
report (report.md, report.json), the recording of the library (recording.txt), the
agent's log (agent.log) and what the loads have printed (loads). SIGINT and SIGTERM
end it with a report.

It never changes a setting of a GPU: no clocks, power limits, compute or
persistence mode, MIG layout or ECC mode, and it never resets a GPU. It may run as
any user. As root it puts the loads into cgroups of their own, and removes these.

The exit status is 0 if no comparison has failed, 1 if one has, and 2 if nothing
could be run.

Flags:
`

// exitError is an error with an exit status.
type exitError struct {
	error
	status int
}

// Unwrap returns the error.
func (e *exitError) Unwrap() error { return e.error }

// runPhases runs `gpukit run`.
func runPhases(ctx context.Context, arguments []string, out, help io.Writer) error {
	options, err := runFlags(arguments, out, help)
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err != nil {
		return &exitError{err, 2}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second signal ends this process at once, and with it its children
	}()
	found, err := phases.Run(ctx, options)
	if err != nil {
		return &exitError{err, 2}
	}
	count := found.Summary()
	fmt.Fprintf(out, "%d passed, %d failed, %d not reported: %s\n", count.Passed, count.Failed, count.NotReported, filepath.Join(options.Out, "report.md"))
	if err := phases.Check(found); err != nil {
		status := 2
		var failed *phases.FailedError
		if errors.As(err, &failed) {
			status = 1
		}
		return &exitError{err, status}
	}
	return nil
}

func runFlags(arguments []string, out, help io.Writer) (phases.Options, error) {
	program, err := os.Executable()
	if err != nil {
		return phases.Options{}, fmt.Errorf("find this program: %w", err)
	}
	beside := func(name string) string { return filepath.Join(filepath.Dir(program), name) }
	o := phases.Options{Program: program, Progress: out, Terminal: isTerminal(out)}
	flags := flag.NewFlagSet("gpukit run", flag.ContinueOnError)
	flags.StringVar(&o.Agent, "agent", beside("dra-exporter"), "`path` of the agent, built with cgo")
	flags.StringVar(&o.Recorder, "recorder", beside("libnvidia-ml-recorder.so"), "`path` of the recorder of the management library")
	flags.StringVar(&o.Library, "library", "libnvidia-ml.so.1", "`path` or soname of NVIDIA's management library")
	flags.StringVar(&o.CUDALibrary, "cuda-library", "libcuda.so.1", "`path` or soname of the CUDA driver")
	flags.StringVar(&o.SMI, "nvidia-smi", "nvidia-smi", "`path` of nvidia-smi; empty: do not use it")
	flags.StringVar(&o.Out, "out", "report", "`folder` for the report; it is created")
	flags.StringVar(&o.Record, "record", "", "`file` for every answer of the management library to the agent, for tests without a GPU; default: recording.txt in the folder of the report")
	flags.StringVar(&o.Device, "device", "", "`UUID` of the device for loads; default: the first")
	flags.Float64Var(&o.Scale, "scale", 1, "`factor` of all durations, for tests of gpukit itself")
	flags.StringVar(&o.Imitated, "imitated", "", "`text` that names what is not real hardware, for the report")
	flags.BoolVar(&o.Xid, "xid", false, "also make the driver report an Xid, by a process that writes to an address that is not allocated")
	flags.BoolVar(&o.Long, "long", false, "also put a load on the GPU for ten minutes, to find leaks of the agent")
	flags.BoolVar(&o.Profiling, "profiling", true, "let the agent read the GPUs' profiling counters")
	flags.BoolVar(&o.Simulated, "simulated-procfs", false, "do not make cgroups, even as root")
	flags.Func("only", "`names` of the phases to run, with commas between them: "+phaseNames(), func(text string) error {
		o.Only = append(o.Only, strings.Split(text, ",")...)
		return nil
	})
	if err = parseFlags(flags, arguments, runUsage, help); err != nil {
		return o, err
	}
	if o.SMI != "" {
		found, err := exec.LookPath(o.SMI)
		if err != nil && o.SMI != "nvidia-smi" {
			return o, fmt.Errorf("--nvidia-smi=%s: %w", o.SMI, err)
		}
		o.SMI = found
	}
	return o, o.Validate()
}

func phaseNames() string {
	var names []string
	for _, p := range phases.Table() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
