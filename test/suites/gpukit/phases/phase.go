package phases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/child"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/node"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/sample"
)

// Around the window of a phase.
const (
	settle = 4 * time.Second         // until what was before is no longer on the agent's page
	tail   = 2500 * time.Millisecond // in which the other sides may be later than the agent
)

// bench is what all phases run on.
type bench struct {
	options   Options
	device    Device
	node      *node.Node
	collector *sample.Collector
	usage     []report.Usage // of the phases so far
}

// runningLoad is a load of a phase.
type runningLoad struct {
	Load
	process *child.Process
	events  *sample.Load
	errors  *child.Tail
	file    *os.File // with what it prints
}

// run runs a phase. Its section has a failed row for everything that has gone
// wrong.
func (b *bench) run(ctx context.Context, p Phase) report.Section {
	section := report.Section{Title: p.Title}
	if why := p.lacks(b.device); why != "" {
		section.Text = "Not run: " + why + "."
		section.Results = []compare.Result{b.notRun(p, why)}
		return section
	}
	b.collector.Take() // what was before
	var problems []error
	for _, claim := range p.Claims {
		problems = append(problems, b.node.Claim(claim, b.device.UUID))
	}
	if p.Fault { // which comes at once: the pages before it are the other side
		b.wait(ctx, p.Name, "begins", tail)
	}
	loads, err := b.start(ctx, p)
	problems = append(problems, err)
	window := b.observe(ctx, p, loads)
	for _, l := range loads {
		l.process.Stop()
		problems = append(problems, l.file.Close(), b.node.Remove(l.process.PID))
	}
	taken := b.collector.Take()
	for _, claim := range p.Claims {
		problems = append(problems, b.node.EndClaim(claim))
	}
	section.Text = summary(p, taken)
	b.usage = append(b.usage, used(p, taken.Usage)...)
	if err := errors.Join(problems...); err != nil {
		section.Results = append(section.Results, compare.Result{Row: p.Name, Device: b.device.UUID, Status: compare.Failed, Detail: err.Error()})
	}
	if ctx.Err() != nil {
		section.Results = append(section.Results, b.notRun(p, "interrupted"))
		return section
	}
	section.Results = append(section.Results, b.results(p, loads, taken, window)...)
	return section
}

// notRun is the row of a phase that was not compared.
func (b *bench) notRun(p Phase, why string) compare.Result {
	return compare.Result{Row: p.Name, Device: b.device.UUID, Status: compare.NotReported, Detail: "not run: " + why}
}

// start starts the loads of a phase in the containers of their claims, and waits
// until all are ready or one has failed.
func (b *bench) start(ctx context.Context, p Phase) ([]*runningLoad, error) {
	var loads []*runningLoad
	for i, of := range p.Loads {
		file, err := os.Create(filepath.Join(b.options.Out, LoadsFolder, fmt.Sprintf("%s-%d.jsonl", p.Name, i)))
		if err != nil {
			return loads, fmt.Errorf("create a file for a load: %w", err)
		}
		l := &runningLoad{Load: of, events: sample.NewLoad(), errors: &child.Tail{Bytes: 1 << 10}, file: file}
		process, err := child.Start(ctx, child.Options{
			Path: b.options.Program,
			Arguments: []string{
				"load", "--device=" + b.device.UUID, "--kind=" + string(of.Kind), "--duty=" + strconv.Itoa(of.Duty), "--duration=0",
				"--memory=" + strconv.FormatUint(b.device.held(len(p.Loads)), 10), "--library=" + b.options.CUDALibrary,
			},
			Out: io.MultiWriter(file, &child.Lines{Each: l.events.Add, Most: mostLine}), Err: l.errors,
		})
		if err != nil {
			_ = file.Close()
			return loads, err
		}
		l.process = process
		loads = append(loads, l)
		if err := b.node.Place(process.PID, of.Claim); err != nil {
			return loads, err
		}
	}
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	for _, l := range loads {
		select {
		case <-l.events.Started():
		case <-l.process.Done():
		case <-ctx.Done():
			return loads, nil
		case <-limit.C:
			return loads, fmt.Errorf("a load %s is not ready within %s", l.Kind, startLimit)
		}
	}
	return loads, nil
}

// observe waits while the observations of a phase are made. If a load fails, it
// returns at once.
func (b *bench) observe(ctx context.Context, p Phase, loads []*runningLoad) compare.Window {
	failed, stop := context.WithCancel(ctx)
	defer stop()
	for _, l := range loads {
		if l.Kind != load.Fault {
			go func() {
				select {
				case <-l.process.Done():
					stop()
				case <-failed.Done():
				}
			}()
		}
	}
	b.wait(failed, p.Name, "begins", settle)
	from := time.Now()
	b.wait(failed, p.Name, "is observed", p.Duration)
	window := compare.Window{From: from, To: time.Now()}
	b.wait(failed, p.Name, "ends", tail)
	return window
}

// wait waits, and shows the seconds that are left on a terminal.
func (b *bench) wait(ctx context.Context, name, what string, lasts time.Duration) {
	end := time.NewTimer(lasts)
	defer end.Stop()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	until := time.Now().Add(lasts)
	for {
		if b.options.Terminal {
			fmt.Fprintf(b.options.Progress, "\r\033[K%s %s, %.0f s left", name, what, time.Until(until).Seconds())
		}
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-every.C:
		}
	}
}

// results are a row for each load, the comparisons, and the agent's own use.
func (b *bench) results(p Phase, loads []*runningLoad, taken sample.Taken, w compare.Window) []compare.Result {
	var results []compare.Result
	var compared []compare.Load
	for _, l := range loads {
		results = append(results, b.loadResult(l))
		of := compare.Load{Claim: l.Claim, Device: b.device.UUID}
		if l.Claim != "" {
			of.Namespace = node.Namespace
		}
		if of.Ready, of.Progress = l.events.Events(); len(of.Progress) > 0 {
			compared = append(compared, of)
		}
	}
	if len(compared) < len(p.Loads) || slices.ContainsFunc(results, func(r compare.Result) bool { return r.Status == compare.Failed }) {
		return append(results, compare.Result{Row: p.Name, Device: b.device.UUID, Status: compare.NotReported,
			Detail: "not compared: a load has failed"})
	}
	for _, comparison := range p.Compare {
		results = append(results, comparison(taken.Observations, w, compared)...)
	}
	results = append(results, failures(taken)...)
	if p.Leaks {
		results = append(results, leak(taken.Usage))
	}
	return results
}

func (b *bench) loadResult(l *runningLoad) compare.Result {
	name := "none"
	if l.Claim != "" {
		name = node.Namespace + "/" + l.Claim
	}
	r := compare.Result{
		Row: fmt.Sprintf("load %s, %d %%, claim %s", l.Kind, l.Duty, name), Device: b.device.UUID, Against: compare.LoadGenerator, Status: compare.Passed,
	}
	ready, progress := l.events.Events()
	if err := errors.Join(l.events.Err(), l.process.Err()); err != nil || ready.UUID == "" || len(progress) == 0 {
		r.Status, r.Detail = compare.Failed, fmt.Sprintf("the load has failed: %v; %s", err, l.errors)
		return r
	}
	last := progress[len(progress)-1]
	r.Other = fmt.Sprintf("busy for %.1f of %.1f s", last.Busy, last.Elapsed)
	return r
}

// failures are rows for parts that could not be observed.
func failures(taken sample.Taken) []compare.Result {
	var results []compare.Result
	for _, text := range taken.Failures {
		results = append(results, compare.Result{Row: "observation", Status: compare.Failed, Detail: text})
	}
	return results
}
