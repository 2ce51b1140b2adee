package phases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/child"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/node"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/sample"
)

// Names of files in Options.Out, besides those of the report.
const (
	RecordingFile = "recording.txt"
	LogFile       = "agent.log"
	LoadsFolder   = "loads" // with a file for each load, of the events that it has printed
)

// Run runs the selected phases, and writes the report. It returns the report
// with an error if nothing could be run, or if the report cannot be written. If
// ctx ends, the report has the phases so far.
func Run(ctx context.Context, o Options) (report.Report, error) {
	if err := o.Validate(); err != nil {
		return report.Report{}, err
	}
	line := func(format string, values ...any) { fmt.Fprintf(o.Progress, format+"\n", values...) }
	line("gpukit changes no setting of a GPU: no clocks, power limits, modes, MIG layout or ECC, and it resets none.")
	running, stop := context.WithCancel(ctx)
	defer stop()
	collector := sample.New()
	library, err := startDirect(running, o, collector)
	if err != nil {
		return report.Report{}, err
	}
	defer library.Stop()
	first := collector.Newest()
	target, err := choose(first, o.Device)
	if err != nil {
		return report.Report{}, err
	}
	// Only now: a machine without a driver is left as it was.
	if err := os.MkdirAll(filepath.Join(o.Out, LoadsFolder), 0o755); err != nil {
		return report.Report{}, fmt.Errorf("--out=%s: %w", o.Out, err)
	}
	device := probe(running, o, target)
	n, err := node.Start(running, node.Options{
		Agent: o.Agent, Recorder: o.Recorder, Library: o.Library, Devices: published(first), Profiling: o.Profiling, Simulated: o.Simulated,
		Recording: o.recording(), Log: filepath.Join(o.Out, LogFile),
	})
	if err != nil {
		return report.Report{}, err
	}
	describe(line, o, first, device, n)
	collector.Start(running, sample.Options{URL: n.URL(), AgentPID: n.AgentPID(), SMI: o.SMI})
	b := &bench{options: o, device: device, node: n, collector: collector}
	r := header(o, first, n)
	r.Sections = append(r.Sections, b.runAll(ctx, line)...)
	stop()
	collector.Wait()
	r.AgentVersion = collector.AgentVersion()
	if err := n.Close(); err != nil {
		r.Sections = append(r.Sections, report.Section{Title: "End", Results: []compare.Result{{Row: "end", Status: compare.Failed, Detail: err.Error()}}})
	}
	library.Stop()
	r.Sections = append(r.Sections, b.tryAll(ctx, line)...)
	r.Cost = &report.Cost{Phases: b.usage}
	r.Cost.Recording, r.Cost.Problem = recorded(o.recording())
	if err := report.Write(o.Out, r); err != nil {
		return r, err
	}
	return r, nil
}

// runAll runs the phases with the agent one after the other until ctx ends or the
// agent does.
func (b *bench) runAll(ctx context.Context, line func(string, ...any)) []report.Section {
	var sections []report.Section
	selected := b.options.selected()
	for i, p := range selected {
		if p.Trial != nil {
			continue
		}
		if ctx.Err() != nil {
			sections = append(sections, report.Section{Title: p.Title, Results: []compare.Result{b.notRun(p, "interrupted")}})
			continue
		}
		section := b.run(ctx, p)
		sections = append(sections, section)
		if b.options.Terminal {
			fmt.Fprint(b.options.Progress, "\r\033[K")
		}
		summarize(line, i+1, len(selected), p, section)
		select {
		case <-b.node.AgentDone():
			if ctx.Err() == nil {
				detail := "the agent has ended; see " + LogFile
				line("%s", detail)
				return append(sections, report.Section{Title: "Agent", Results: []compare.Result{{Row: "agent", Status: compare.Failed, Detail: detail}}})
			}
		default:
		}
	}
	return sections
}

// tryAll runs the trials one after the other until ctx ends. The agent and all else
// that uses the library must have ended.
func (b *bench) tryAll(ctx context.Context, line func(string, ...any)) []report.Section {
	var sections []report.Section
	selected := b.options.selected()
	for i, p := range selected {
		if p.Trial == nil {
			continue
		}
		section := report.Section{Title: p.Title}
		if ctx.Err() == nil {
			section = p.Trial(ctx, b.options)
		}
		if ctx.Err() != nil {
			section.Results = append(section.Results, b.notRun(p, "interrupted"))
		} else {
			summarize(line, i+1, len(selected), p, section)
		}
		sections = append(sections, section)
	}
	return sections
}

// summarize prints what has become of a phase.
func summarize(line func(string, ...any), number, phases int, p Phase, section report.Section) {
	count := report.Report{Sections: []report.Section{section}}.Summary()
	line("%d of %d, %s: %d passed, %d failed, %d not reported. %s", number, phases, p.Name, count.Passed, count.Failed, count.NotReported, section.Text)
}

// startDirect starts `gpukit direct` and waits for its first sample.
func startDirect(ctx context.Context, o Options, collector *sample.Collector) (*child.Process, error) {
	complaint := &child.Tail{Bytes: 1 << 10}
	p, err := child.Start(ctx, child.Options{
		Path: o.Program, Arguments: []string{"direct", "--library=" + o.Library, fmt.Sprintf("--gpm=%t", o.Profiling)},
		Out: &child.Lines{Each: collector.AddLibrary, Most: mostLine}, Err: complaint,
	})
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case <-collector.First():
	case <-p.Done():
		return nil, fmt.Errorf("--library=%s: %s: install NVIDIA's driver, or name its libnvidia-ml.so.1", o.Library, complaint)
	case <-ctx.Done():
		p.Stop()
		return nil, ctx.Err()
	case <-limit.C:
		p.Stop()
		return nil, fmt.Errorf("--library=%s: no answer within %s", o.Library, startLimit)
	}
	if len(collector.Newest().Devices) == 0 {
		p.Stop()
		return nil, fmt.Errorf("--library=%s: the driver lists no GPU that this user may use: check nvidia-smi -L and the permissions of /dev/nvidia*", o.Library)
	}
	return p, nil
}

// describe prints what was found.
func describe(line func(string, ...any), o Options, s direct.Sample, d Device, n *node.Node) {
	for _, name := range names(s) {
		line("device: %s", name)
	}
	line("driver: %s", s.DriverVersion)
	who := "root"
	if os.Geteuid() != 0 {
		who = fmt.Sprintf("not root, but user %d", os.Geteuid())
	}
	line("user: %s", who)
	line("containers of processes: %s", n.Placement())
	if o.SMI == "" {
		line("nvidia-smi: not found; its comparisons are not reported")
	} else {
		line("nvidia-smi: %s", o.SMI)
	}
	if d.CUDA != nil {
		line("no load can run on %s: %v", d.UUID, d.CUDA)
	} else {
		line("loads run on %s, compute capability %s", d.UUID, d.Ready.Capability)
	}
}

// names are the devices with their UUIDs.
func names(s direct.Sample) []string {
	var all []string
	for _, d := range s.Devices {
		all = append(all, fmt.Sprintf("%s (%s)", d.Name, d.UUID))
	}
	return all
}

// header is the report without results. Its first section says on what the
// phases ran.
func header(o Options, s direct.Sample, n *node.Node) report.Report {
	machine := fmt.Sprintf("%s, %d CPUs", runtime.GOOS, runtime.NumCPU())
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		machine = fmt.Sprintf("Linux %s, %d CPUs", bytes.TrimSpace(release), runtime.NumCPU())
	}
	text := "Containers of processes: " + n.Placement() + "."
	if o.SMI == "" {
		text += " There was no nvidia-smi."
	}
	return report.Report{
		Date: time.Now().UTC(), Machine: machine, Devices: names(s), DriverVersion: s.DriverVersion, Imitated: o.Imitated,
		Sections: []report.Section{{Title: "Node", Text: text}},
	}
}

// FailedError is the error of a run in which a row has failed.
type FailedError struct{ Rows []string }

// Error names the first rows.
func (e *FailedError) Error() string {
	const most = 5
	text := fmt.Sprintf("%d rows have failed: %s", len(e.Rows), strings.Join(e.Rows[:min(most, len(e.Rows))], "; "))
	if len(e.Rows) > most {
		text += "; …"
	}
	return text
}

// Check returns a *FailedError if a row of a report has failed, and another error
// if it has no row that has passed.
func Check(r report.Report) error {
	var failed []string
	for _, s := range r.Sections {
		for _, result := range s.Results {
			if result.Status == compare.Failed {
				failed = append(failed, fmt.Sprintf("%s: %s (%s)", s.Title, result.Row, result.Against))
			}
		}
	}
	if len(failed) > 0 {
		return &FailedError{Rows: failed}
	}
	if !slices.ContainsFunc(r.Sections, func(s report.Section) bool {
		return slices.ContainsFunc(s.Results, func(c compare.Result) bool { return c.Status == compare.Passed })
	}) {
		return errors.New("nothing was compared; the report says why")
	}
	return nil
}
