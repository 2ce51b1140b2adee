package exporter

import (
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

// sockets finds the sockets of drivers in a folder.
type sockets struct {
	folder     string
	every      time.Duration
	configured map[string]bool // drivers and exporters whose pages are at other addresses
	log        *slog.Logger

	pages   map[string]*page // by driver
	seen    bool             // there has been a socket
	refused map[string]bool  // files that were logged because they are no sockets of drivers
}

func newSockets(o Options, configured map[string]bool) *sockets {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &sockets{
		folder: o.Folder, every: max(o.Interval, time.Second), configured: configured,
		log: log.With("component", "exporter"), pages: make(map[string]*page),
	}
}

// look returns the pages of the sockets that are there now, in the order of the drivers.
// Those of sockets that were there before are the same.
func (s *sockets) look(open func(Config) *page) ([]*page, error) {
	found, err := s.find()
	if err != nil {
		return nil, err
	}
	for driver, page := range s.pages {
		if !found[driver] {
			page.leave()
			delete(s.pages, driver)
			s.log.Info("the socket of a driver is gone", "driver", driver)
		}
	}
	for driver := range found {
		if s.pages[driver] == nil {
			s.log.Info("a driver has a socket for metrics of its devices", "driver", driver)
			s.pages[driver] = open(driverConfig(driver, "unix://"+filepath.Join(s.folder, driver+suffix), s.every))
		}
	}
	var pages []*page
	for _, driver := range slices.Sorted(maps.Keys(s.pages)) {
		pages = append(pages, s.pages[driver])
	}
	return pages, nil
}

// find returns the drivers that have a socket.
func (s *sockets) find() (map[string]bool, error) {
	names, err := readNames(s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		names, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the sockets of drivers: %w", err)
	}
	found, refused := make(map[string]bool), make(map[string]bool)
	refuse := func(name, why string) {
		if refused[name] = true; !s.refused[name] {
			s.log.Warn("a file is not used as a driver's socket", "file", filepath.Join(s.folder, name), "why", why)
		}
	}
	for _, name := range names {
		driver, ok := strings.CutSuffix(name, suffix)
		switch file, err := os.Lstat(filepath.Join(s.folder, name)); {
		case !ok || strings.HasPrefix(name, ".") || errors.Is(err, fs.ErrNotExist):
		case err != nil:
			refuse(name, err.Error())
		case file.Mode().Type() != fs.ModeSocket:
			refuse(name, "it is not a socket")
		case !isDriver(driver):
			refuse(name, "it is not named <driver>.sock: a DNS subdomain in lower case of at most 63 bytes")
		case s.configured[driver]:
			refuse(name, "the page of this driver is configured at another address")
		case len(found) == maxDrivers:
			refuse(name, fmt.Sprintf("%d drivers are read already", maxDrivers))
		default:
			found[driver] = true
		}
	}
	s.refused = refused
	s.seen = s.seen || len(found) > 0
	if !s.seen {
		return nil, &source.Failure{Reason: source.ReasonLibraryMissing, Err: fmt.Errorf("there is no socket <driver>.sock in %s: no driver on this node serves metrics of its devices", s.folder)}
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
