package neuron

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	maxDocument = 4 << 20 // bytes
	staleAfter  = 30 * time.Second
	firstRetry  = time.Second
	lastRetry   = time.Minute

	// What a monitor may send in a second, and at once, with the cost of a document
	// beside its bytes. The largest node has some 200 KiB each period.
	bytesPerSecond = 1 << 20
	bytesAtOnce    = 8 << 20
	documentCost   = 64 << 10
	lineCost       = 64 // of an empty one
)

// Options configure a Source.
type Options struct {
	Monitor        string // unix:///SOCKET, or the path of a file
	CoresPerDevice int    // 0: as neuron-monitor says
	Clock          clock.Clock
}

// Source reads the documents of one neuron-monitor. It is its only reader, which
// reads all devices of the node.
type Source struct {
	options Options
	socket  string // empty: a file is read
	silence time.Duration

	rate *rate.Limiter // of all connections; only used by follow

	stop  context.CancelFunc // nil: nothing is followed yet
	ended chan struct{}      // closed when the socket is not followed any more

	mu      sync.Mutex
	devices []device.Observation
	partial error         // what the newest document lacks
	at      clock.Instant // when it was received; zero: never
	failure error         // why there is no newer one
}

// New returns a source of the documents at a place: unix:///SOCKET, which serves them
// one a line, or the absolute path of a file with the newest one.
func New(o Options) (*Source, error) {
	s := &Source{options: o, silence: staleAfter, rate: rate.NewLimiter(bytesPerSecond, bytesAtOnce), ended: make(chan struct{})}
	path, isSocket := strings.CutPrefix(o.Monitor, "unix://")
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is neither unix:///SOCKET nor the absolute path of a file", hostport.Redacted(o.Monitor))
	}
	if isSocket {
		s.socket = path
	}
	return s, nil
}

// Name is "neuron".
func (s *Source) Name() string { return "neuron" }

// Key is "neuron-monitor".
func (s *Source) Key() string { return "neuron-monitor" }

// Readers returns the source itself. The first call begins to follow the socket.
func (s *Source) Readers(ctx context.Context) ([]device.Reader, error) {
	if s.socket != "" && s.stop == nil {
		ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
		s.failure = fmt.Errorf("no document has come from %s yet", s.socket)
		go s.follow(ctx)
	}
	return []device.Reader{s}, nil
}

// Close ends the connection.
func (s *Source) Close() error {
	if s.stop != nil {
		s.stop()
		<-s.ended
	}
	return nil
}

// Read returns the devices of the newest document, if it is not older than half a
// minute.
func (s *Source) Read(context.Context, device.Tier) ([]device.Observation, error) {
	if s.socket == "" {
		s.readFile()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || s.options.Clock().Since(s.at) > staleAfter {
		return nil, fmt.Errorf("neuron-monitor: %w", s.failure)
	}
	devices := slices.Clone(s.devices)
	for i := range devices {
		devices[i].Readings = slices.Clone(devices[i].Readings)
	}
	return devices, s.partial
}

// receive keeps what a document has. A document without devices is a failure.
func (s *Source) receive(text []byte, at clock.Instant) error {
	devices, err := decode(text, s.options.CoresPerDevice, at.Elapsed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if devices == nil {
		s.failure = &source.Failure{Reason: source.ReasonInvalid, Err: err}
		return s.failure
	}
	s.devices, s.partial, s.at = devices, err, at
	s.failure = fmt.Errorf("no document has come for %v", staleAfter)
	return nil
}

func (s *Source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// readFile reads the newest document of a file. Its time is that of the file.
func (s *Source) readFile() {
	path := s.options.Monitor
	info, err := os.Stat(path) // before the file is read, which may be replaced in between
	if err != nil {
		s.fail(err)
		return
	}
	text, err := hostfile.Read(path, maxDocument)
	now := s.options.Clock()
	age := max(now.Wall.Sub(info.ModTime()), 0)
	switch {
	case err != nil:
		s.fail(err)
	case age > staleAfter:
		s.fail(&source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf("%s was written %v ago", path, age.Round(time.Second))})
	default:
		_ = s.receive(text, now.Add(-age)) // it keeps its failure
	}
}

// follow reads the socket until ctx ends, and connects again after failures.
func (s *Source) follow(ctx context.Context) {
	defer close(s.ended)
	delay := firstRetry
	for {
		received, err := s.connect(ctx)
		if received {
			delay = firstRetry
		}
		if ctx.Err() != nil {
			return
		}
		s.fail(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		delay = min(2*delay, lastRetry)
	}
}

// allows counts a line of this length, and reports whether it may come now.
func (s *Source) allows(length int) bool {
	cost := lineCost
	if length > 0 {
		cost = documentCost + length
	}
	return s.rate.AllowN(time.Unix(0, 0).Add(s.options.Clock().Elapsed), cost)
}

// connect reads documents until the connection ends, and reports whether there was
// one. A monitor that sends too much counts as one without a document.
func (s *Source) connect(ctx context.Context) (received bool, err error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", s.socket)
	if err != nil {
		return false, &source.Failure{Reason: source.ReasonUnavailable, Err: err}
	}
	silent := time.AfterFunc(s.silence, func() { _ = connection.Close() })
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	defer connection.Close()
	lines := bufio.NewScanner(connection)
	lines.Buffer(nil, maxDocument)
	for lines.Scan() {
		if !s.allows(len(lines.Bytes())) {
			silent.Stop()
			return false, &source.Failure{Reason: source.ReasonResourceExhausted, Err: fmt.Errorf("%s sends more than %d bytes a second", s.socket, bytesPerSecond)}
		}
		if len(lines.Bytes()) == 0 {
			continue
		}
		if !silent.Reset(s.silence) {
			return received, s.silent()
		}
		if err := s.receive(lines.Bytes(), s.options.Clock()); err != nil {
			silent.Stop()
			return received, err
		}
		received = true
	}
	switch err := lines.Err(); {
	case !silent.Stop():
		return received, s.silent()
	case errors.Is(err, bufio.ErrTooLong):
		return received, &source.Failure{Reason: source.ReasonInvalid, Err: fmt.Errorf("a document of %s has more than %d bytes", s.socket, maxDocument)}
	case err != nil:
		return received, err
	default:
		return received, &source.Failure{Reason: source.ReasonUnavailable, Err: fmt.Errorf("%s has closed the connection", s.socket)}
	}
}

func (s *Source) silent() error {
	return &source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf("no document has come from %s for %v", s.socket, s.silence)}
}
