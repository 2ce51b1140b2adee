package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Limits of all pages together. Most pages have some 100 KiB.
const (
	maxPages   = 8 << 20  // bytes of pages that are being read
	maxWork    = 40 << 20 // bytes of pages in workPeriod
	workPeriod = 10 * time.Second
	maxKept    = 4 << 20 // bytes of devices with their readings
)

// Options configure a Source.
type Options struct {
	Exporters []Config      // their names must differ
	Folder    string        // where DRA drivers create sockets; empty: none are looked for
	Interval  time.Duration // at which these are read, a second at least; 0: a second
	// Extensions are the metrics of drivers' extensions that are read, as
	// device.ParseExtension takes them.
	Extensions []string
	Clock      clock.Clock
	Log        *slog.Logger // nil: no log
}

// Source reads the pages of exporters and drivers, one reader for each. Its methods are
// called as device.Source says.
type Source struct {
	exporters  []*page
	sockets    *sockets // nil: none are looked for
	extensions map[string]bool
	clock      clock.Clock

	reading, work, kept *source.Budget
	parsing             *sync.Mutex // pages are parsed one after the other
}

// New returns a source that has read nothing yet.
func New(o Options) (*Source, error) {
	s := &Source{
		clock: o.Clock, extensions: make(map[string]bool), parsing: &sync.Mutex{},
		reading: source.NewBudget("bytes of pages at a time", maxPages),
		work:    source.NewWork("bytes of pages", maxWork, workPeriod, o.Clock),
		kept:    source.NewBudget("bytes of devices and readings", maxKept),
	}
	for _, name := range o.Extensions {
		if _, err := device.ParseExtension(name); err != nil {
			return nil, err
		}
		s.extensions[name] = true
	}
	seen, configured := make(map[string]bool), make(map[string]bool)
	for _, config := range o.Exporters {
		if seen[config.Name] {
			return nil, fmt.Errorf("two exporters have the name %s: give each a name of its own, in --exporter.config", config.Name)
		}
		seen[config.Name] = true
		configured[config.Name], configured[config.rules.driver] = true, true
		s.exporters = append(s.exporters, s.newPage(config))
	}
	if o.Folder != "" {
		s.sockets = newSockets(o, configured)
	}
	return s, nil
}

// newPage returns the reader of a page, which has not been read.
func (s *Source) newPage(config Config) *page {
	p := &page{
		config: config, client: newClient(config.URL), now: s.clock, decode: config.decoder(s.extensions),
		reading: s.reading, work: s.work.Share(nil), parsing: s.parsing,
	}
	p.kept = s.kept.Share(func(err error) { p.set(nil, p.named(err)) })
	return p
}

// Name is "exporter".
func (s *Source) Name() string { return "exporter" }

// LookEvery returns how often to look for sockets: they come and go while the source
// runs, and a folder is read quickly.
func (s *Source) LookEvery() time.Duration { return 5 * time.Second }

// Readers returns a reader for each exporter and each socket. It connects to none. If
// there has never been one, it fails with source.ReasonLibraryMissing.
func (s *Source) Readers(context.Context) ([]device.Reader, error) {
	pages, err := s.exporters, error(nil)
	if s.sockets != nil {
		var found []*page
		if found, err = s.sockets.look(s.newPage); err == nil {
			pages = slices.Concat(pages, found)
		} else if len(pages) > 0 && source.ReasonOf(err) == source.ReasonLibraryMissing {
			err = nil
		}
	}
	readers := make([]device.Reader, len(pages))
	for i, page := range pages {
		readers[i] = page
	}
	return readers, err
}

// Close does nothing: no connection stays open between two reads.
func (s *Source) Close() error { return nil }

// decode decodes the text of a page to devices. An error beside them says what was left
// out. window is when values without a time stamp were measured.
type decode func(text []byte, window device.Window, now clock.Instant) ([]device.Observation, error)

// decoder returns how the pages of an exporter are decoded. It is called once for each
// exporter: it keeps what depends on earlier pages.
func (c *Config) decoder(extensions map[string]bool) decode {
	if c.ownFamilies {
		return decodeFamilies(newDecoder(c.rules.driver, extensions), c.URL)
	}
	rules, names, missing, choices := &c.rules, c.rules.names(), make(missing), newChoices()
	return func(text []byte, window device.Window, now clock.Instant) ([]device.Observation, error) {
		families, err := parsePage(text, names)
		if err != nil {
			return nil, err
		}
		devices, had, err := choices.mapPage(rules, families, window, now)
		err = errors.Join(missing.update(rules, had, now.Wall), err)
		if len(devices) == 0 && err == nil {
			err = invalid("no series on the page is of a device that the rules identify")
		}
		return devices, err
	}
}

// decodeFamilies decodes pages of a driver. Errors name the command that says more.
func decodeFamilies(d *decoder, url string) decode {
	return func(text []byte, window device.Window, now clock.Instant) ([]device.Observation, error) {
		devices, violations, err := d.decode(text, window, now)
		if err == nil {
			err = violations.err()
		}
		if len(devices) == 0 && err == nil {
			err = invalid("no series on the page is of a device of the driver")
		}
		if err != nil {
			err = fmt.Errorf("%w (dra-exporter check exporter --driver=%s %s names the rule)", err, d.driver, url)
		}
		return devices, err
	}
}

// page reads the page of one exporter or driver at its interval. Reads between return
// the same values, with the time of their measurement.
type page struct {
	config Config
	client *client
	now    clock.Clock
	decode decode

	reading    *source.Budget // of all pages
	work, kept *source.Share
	parsing    *sync.Mutex // of all pages

	began clock.Instant // of the newest scrape; zero: never

	mu      sync.Mutex
	devices []device.Observation
	err     error
}

// Key is the name of the exporter or the driver.
func (p *page) Key() string { return p.config.Name }

// leave releases what a page has of the budgets. It is not read any more, except that a
// read may be under way.
func (p *page) leave() {
	p.work.Leave()
	p.kept.Leave()
}

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
	for i, observation := range p.devices {
		devices[i] = device.Observation{Device: observation.Device, Readings: slices.Clone(observation.Readings), Processes: slices.Clone(observation.Processes)}
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
	devices, err := p.decode(text, device.Window{From: p.began.Elapsed - p.config.Age, To: now.Elapsed}, now)
	if err != nil {
		return devices, p.named(err)
	}
	return devices, nil
}

// named says which exporter has failed.
func (p *page) named(err error) error {
	return fmt.Errorf("exporter %s at %s: %w", p.config.Name, p.config.URL, err)
}
