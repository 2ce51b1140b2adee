package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// DefaultFolder is where drivers create their sockets.
const DefaultFolder = "/var/run/dra-exporter/plugins"

// suffix is the end of the name of a socket's file, after the driver's name.
const suffix = ".sock"

const (
	maxFiles   = 1024 // of the folder that are looked at
	maxDrivers = 64
)

// Options configure a Source.
type Options struct {
	Folder   string        // where the sockets are; empty: DefaultFolder
	Interval time.Duration // that drivers are asked for; 0: a second
	// Extensions are the metrics of extensions that are read, as device.ParseExtension
	// takes them.
	Extensions []string
	Clock      clock.Clock
	Log        *slog.Logger // nil: no log

	limits  limits // zero: the defaults
	budgets budgets
}

// Source finds the sockets of drivers and reads each of them. Its methods are
// called as device.Source says.
type Source struct {
	options Options
	drivers map[string]*connection
	seen    bool            // there has been a socket
	refused map[string]bool // files that were logged because they are no sockets of drivers
}

// New returns a source that has not looked for sockets yet. It fails if the name of
// an extension is not valid.
func New(o Options) (*Source, error) {
	if err := NewDecoder("").Export(o.Extensions); err != nil {
		return nil, err
	}
	if o.Folder == "" {
		o.Folder = DefaultFolder
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.limits == (limits{}) {
		o.limits = defaultLimits()
	}
	o.Log, o.budgets = o.Log.With("component", "plugin"), newBudgets(o.Clock)
	return &Source{options: o, drivers: make(map[string]*connection)}, nil
}

// Name is "plugin".
func (s *Source) Name() string { return "plugin" }

// LookEvery returns how often to look for sockets: they come and go while the
// source runs, and a folder is read quickly.
func (s *Source) LookEvery() time.Duration { return 5 * time.Second }

// Readers returns a reader for each socket, and connects to those that are new. If
// there has never been one, it fails with source.ReasonLibraryMissing.
func (s *Source) Readers(ctx context.Context) ([]device.Reader, error) {
	found, err := s.find()
	if err != nil {
		return nil, err
	}
	for driver, known := range s.drivers {
		if !found[driver] {
			known.close()
			delete(s.drivers, driver)
			s.options.Log.Info("the socket of a driver is gone", "driver", driver)
		}
	}
	for driver := range found {
		if s.drivers[driver] == nil {
			s.options.Log.Info("a driver has a socket for device metrics", "driver", driver)
			s.drivers[driver] = connect(context.WithoutCancel(ctx), driver, filepath.Join(s.options.Folder, driver+suffix), s.options)
		}
	}
	readers := make([]device.Reader, 0, len(found))
	for _, driver := range slices.Sorted(maps.Keys(s.drivers)) {
		readers = append(readers, s.drivers[driver])
	}
	return readers, nil
}

// find returns the drivers that have a socket.
func (s *Source) find() (map[string]bool, error) {
	names, err := readNames(s.options.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		names, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the sockets of drivers: %w", err)
	}
	found, refused := make(map[string]bool), make(map[string]bool)
	refuse := func(name, why string) {
		if refused[name] = true; !s.refused[name] {
			s.options.Log.Warn("a file is not used as a socket for device metrics", "file", filepath.Join(s.options.Folder, name), "why", why)
		}
	}
	for _, name := range names {
		driver, isSocket := strings.CutSuffix(name, suffix)
		switch file, err := os.Lstat(filepath.Join(s.options.Folder, name)); {
		case !isSocket || strings.HasPrefix(name, ".") || errors.Is(err, fs.ErrNotExist):
		case err != nil:
			refuse(name, err.Error())
		case file.Mode().Type() != fs.ModeSocket:
			refuse(name, "it is not a socket")
		case !isDriver(driver):
			refuse(name, "it is not named <driver>.sock: a DNS subdomain in lower case of at most 63 bytes")
		case len(found) == maxDrivers:
			refuse(name, fmt.Sprintf("%d drivers are read already", maxDrivers))
		default:
			found[driver] = true
		}
	}
	s.refused = refused
	s.seen = s.seen || len(found) > 0
	if !s.seen {
		return nil, &source.Failure{Reason: source.ReasonLibraryMissing, Err: fmt.Errorf("there is no socket <driver>.sock in %s: no driver on this node serves device metrics", s.options.Folder)}
	}
	return found, nil
}

// readNames returns the names of a folder's files, sorted, maxFiles at most.
func readNames(folder string) ([]string, error) {
	opened, err := os.OpenFile(folder, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(maxFiles)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

// isDriver reports whether text is a DNS subdomain in lower case.
func isDriver(text string) bool {
	if len(text) > maxName {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// Close ends all streams.
func (s *Source) Close() error {
	for _, driver := range s.drivers {
		driver.close()
	}
	s.drivers = make(map[string]*connection)
	return nil
}
