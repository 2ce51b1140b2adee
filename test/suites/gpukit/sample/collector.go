// Package sample observes the agent, nvidia-smi and the management library at
// the same time, and the agent's processor time and memory.
package sample

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/child"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/smi"
)

// What one read may be.
const (
	mostBytes = 16 << 20
	longest   = 10 * time.Second
)

// The parts of a Collector, by which Failures counts.
const (
	agentPart   = "the agent's page"
	smiPart     = "nvidia-smi"
	libraryPart = "gpukit direct"
	usagePart   = "the agent's processor time and memory"
)

// Options are what a Collector observes. What is empty is not observed.
type Options struct {
	URL      string // of the agent's pages, without a path
	AgentPID int
	SMI      string // path of nvidia-smi

	Interval    time.Duration // between two pages; 0: 1 s
	SMIInterval time.Duration // between two runs of nvidia-smi; 0: 2 s
}

// Collector collects observations until its context ends. Its methods are safe
// for concurrent use.
type Collector struct {
	options Options
	running sync.WaitGroup

	mu       sync.Mutex
	observed compare.Observations
	usage    []Usage
	failures map[string]failure
	first    chan struct{} // closed with the first sample of the library
	newest   direct.Sample
	version  string // of the agent
}

// failure is how often a part could not be observed.
type failure struct {
	count int
	last  error
}

// New returns a collector, which observes nothing yet.
func New() *Collector {
	return &Collector{failures: make(map[string]failure), first: make(chan struct{})}
}

// Start observes until ctx ends, and Wait returns after that.
func (c *Collector) Start(ctx context.Context, o Options) {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.SMIInterval == 0 {
		o.SMIInterval = 2 * time.Second
	}
	c.options = o
	if o.URL != "" {
		c.each(ctx, o.Interval, c.readPage)
	}
	if o.AgentPID != 0 {
		c.each(ctx, o.Interval, c.readUsage)
	}
	if o.SMI != "" {
		c.each(ctx, o.SMIInterval, c.readSMI)
	}
}

// Wait waits until nothing is observed any more.
func (c *Collector) Wait() { c.running.Wait() }

// each calls a function at once and each interval, and one call after the other.
func (c *Collector) each(ctx context.Context, interval time.Duration, read func(context.Context)) {
	c.running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			within, cancel := context.WithTimeout(ctx, longest)
			read(within)
			cancel()
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// middle is the time in the middle of a read that has just ended.
func middle(began time.Time) time.Time { return began.Add(time.Since(began) / 2) }

func (c *Collector) readPage(ctx context.Context) {
	began := time.Now()
	families, err := page(ctx, c.options.URL+"/metrics")
	at := middle(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.fail(ctx, agentPart, err)
		return
	}
	for _, m := range families[buildInfo].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "version" {
				c.version = l.GetValue()
			}
		}
	}
	c.observed.Agent = append(c.observed.Agent, compare.AgentPage{Time: at, Families: families})
}

// page reads a page, and keeps what is about devices and claims, and which
// version the agent has.
func page(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := readAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.200s", response.Status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(families, func(name string, _ *dto.MetricFamily) bool {
		return !strings.HasPrefix(name, "dra_") || strings.HasPrefix(name, "dra_exporter_") && name != buildInfo
	})
	return families, nil
}

// buildInfo is the agent's family with its version.
const buildInfo = "dra_exporter_build_info"

func readAll(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = fmt.Errorf("more than %d bytes", mostBytes)
	}
	return text, err
}

func (c *Collector) readSMI(ctx context.Context) {
	began := time.Now()
	text, err := output(ctx, c.options.SMI, "-q", "-x")
	at := middle(began)
	var log smi.Log
	if err == nil {
		log, err = smi.Decode(bytes.NewReader(text))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.fail(ctx, smiPart, err)
		return
	}
	c.observed.SMI = append(c.observed.SMI, compare.SMILog{Time: at, Log: log})
}

// output is what a program prints.
func output(ctx context.Context, path string, arguments ...string) ([]byte, error) {
	var text bytes.Buffer
	complaint := &child.Tail{Bytes: 1 << 10}
	p, err := child.Start(ctx, child.Options{
		Path: path, Arguments: arguments, Out: &limited{&text, mostBytes}, Err: complaint, Grace: time.Second,
	})
	if err != nil {
		return nil, err
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("run %s: %w: %s", path, err, complaint)
	}
	return text.Bytes(), nil
}

// limited is a writer that takes so many bytes.
type limited struct {
	to   io.Writer
	left int
}

func (l *limited) Write(text []byte) (int, error) {
	if l.left -= len(text); l.left < 0 {
		return 0, fmt.Errorf("more than %d bytes", mostBytes)
	}
	return l.to.Write(text)
}

func (c *Collector) readUsage(ctx context.Context) {
	usage, err := ReadUsage(c.options.AgentPID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.fail(ctx, usagePart, err)
		return
	}
	c.usage = append(c.usage, usage)
}

// AddLibrary takes a line of `gpukit direct`.
func (c *Collector) AddLibrary(line []byte) {
	s, err := direct.Decode(line)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.fail(context.Background(), libraryPart, err)
		return
	}
	if c.newest.Time.IsZero() {
		close(c.first)
	}
	c.newest = s
	c.observed.Library = append(c.observed.Library, s)
}

// First is closed once there is a sample of the library, and Newest returns the
// last one.
func (c *Collector) First() <-chan struct{} { return c.first }

// AgentVersion is the version of the last page.
func (c *Collector) AgentVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// Newest is the last sample of the library.
func (c *Collector) Newest() direct.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

// fail counts what could not be observed while it should have been.
func (c *Collector) fail(ctx context.Context, part string, err error) {
	if ctx.Err() != context.Canceled {
		c.failures[part] = failure{c.failures[part].count + 1, err}
	}
}

// Taken is what has been observed between two calls of Take.
type Taken struct {
	Observations compare.Observations
	Usage        []Usage
	Failures     []string // one sentence for each part that could not be observed
}

// Take returns what has been observed since the last call, and keeps none of it.
func (c *Collector) Take() Taken {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := Taken{Observations: c.observed, Usage: c.usage}
	for _, part := range slices.Sorted(maps.Keys(c.failures)) {
		f := c.failures[part]
		t.Failures = append(t.Failures, fmt.Sprintf("%s could not be read %d times, at last: %v", part, f.count, f.last))
	}
	c.observed, c.usage = compare.Observations{}, nil
	clear(c.failures)
	return t
}
