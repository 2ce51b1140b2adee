package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Limits of all exporters together. Most pages have some 100 KiB.
const (
	maxPages   = 8 << 20  // bytes of pages that are being read
	maxWork    = 40 << 20 // bytes of pages in workPeriod
	workPeriod = 10 * time.Second
	maxKept    = 4 << 20 // bytes of devices with their readings
)

// Source reads the pages of exporters, one reader for each.
type Source struct{ pages []*page }

// New returns a source of the exporters, whose names must differ.
func New(configs []Config, now clock.Clock) (*Source, error) {
	s := &Source{}
	seen := make(map[string]bool)
	reading, kept := source.NewBudget("bytes of pages at a time", maxPages), source.NewBudget("bytes of devices and readings", maxKept)
	work, parsing := source.NewWork("bytes of pages", maxWork, workPeriod, now), &sync.Mutex{}
	for _, config := range configs {
		if seen[config.Name] {
			return nil, fmt.Errorf("two exporters have the name %s: give each a name of its own, in --exporter.config", config.Name)
		}
		seen[config.Name] = true
		one := &page{
			config: config, client: newClient(config.URL), names: config.rules.names(), now: now, missing: make(missing), choices: make(choices),
			reading: reading, work: work.Share(nil), parsing: parsing,
		}
		one.kept = kept.Share(func(err error) { one.set(nil, one.named(err)) })
		s.pages = append(s.pages, one)
	}
	return s, nil
}

// Name is "exporter".
func (s *Source) Name() string { return "exporter" }

// Readers returns a reader for each exporter. It connects to none.
func (s *Source) Readers(context.Context) ([]device.Reader, error) {
	readers := make([]device.Reader, len(s.pages))
	for i, page := range s.pages {
		readers[i] = page
	}
	return readers, nil
}

// Close does nothing: no connection stays open between two reads.
func (s *Source) Close() error { return nil }

// page reads the page of one exporter at its interval. Reads between return the
// same values, with the time of their measurement.
type page struct {
	config  Config
	client  *client
	names   map[string]bool // of the metrics that are read
	now     clock.Clock
	missing missing
	choices choices

	reading    *source.Budget // of all exporters
	work, kept *source.Share
	parsing    *sync.Mutex // of all exporters: pages are parsed one after the other

	began clock.Instant // of the newest scrape; zero: never

	mu      sync.Mutex
	devices []device.Observation
	err     error
}

// Key is the exporter's name.
func (p *page) Key() string { return p.config.Name }

// Read returns the devices of the newest page, which it reads if that is due: up to
// a tenth before its time, because reads do not come exactly at their interval.
func (p *page) Read(ctx context.Context, _ device.Tier) ([]device.Observation, error) {
	if began := p.now(); p.began.IsZero() || began.Since(p.began) >= p.config.Every-p.config.Every/10 {
		p.began = began
		devices, err := p.scrape(ctx)
		if refused := p.kept.Set(device.Weight(devices)); refused != nil {
			devices, err = nil, p.named(refused)
		}
		p.set(devices, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	devices := make([]device.Observation, len(p.devices))
	for i, one := range p.devices {
		devices[i] = device.Observation{Device: one.Device, Readings: slices.Clone(one.Readings)}
	}
	return devices, p.err
}

func (p *page) set(devices []device.Observation, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.devices, p.err = devices, err
}

// scrape reads the page. A value may be as much older than the page as the exporter
// keeps values.
func (p *page) scrape(ctx context.Context) ([]device.Observation, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	reading := p.reading.Share(end)
	defer reading.Leave()
	text, err := p.client.read(ctx, func(bytes int) error { return cmp.Or(p.work.Add(bytes), reading.Add(bytes)) })
	now := p.now()
	if err != nil {
		return nil, p.named(err)
	}
	p.parsing.Lock()
	defer p.parsing.Unlock()
	families, err := parsePage(text, p.names)
	if err != nil {
		return nil, p.named(err)
	}
	window := device.Window{From: p.began.Elapsed - p.config.Age, To: now.Elapsed}
	devices, had, err := p.choices.mapPage(&p.config.rules, families, window, now)
	err = errors.Join(p.missing.update(&p.config.rules, had, now.Wall), err)
	if len(devices) == 0 && err == nil {
		err = &source.Failure{Reason: source.ReasonInvalid, Err: errors.New("no series on the page is of a device that the rules identify")}
	}
	if err != nil {
		return devices, p.named(err)
	}
	return devices, nil
}

// named says which exporter has failed.
func (p *page) named(err error) error {
	return fmt.Errorf("exporter %s at %s: %w", p.config.Name, p.config.URL, err)
}
