package tpu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/tpu/runtimemetrics"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	maxResponse = 64 << 10  // bytes; a device takes some 60
	maxRead     = 512 << 10 // what all responses of a read may cost, see source.MeterFrames
	maxEntries  = 10_000    // of a response; one of 128 devices has some 1,000
	maxServices = 16
	dialTimeout = 500 * time.Millisecond
	callTimeout = 2 * time.Second // of all metrics of a read
	firstRetry  = 2 * time.Second // after a read that cost too much
	lastRetry   = time.Minute
)

// Options configure a Source.
type Options struct {
	Addresses []string // HOST:PORT of metric services
	Sysfs     string   // where the node's sysfs is mounted
	Clock     clock.Clock
}

// Source finds the metric services that are there.
type Source struct {
	options  Options
	services map[string]*service // that listen, by address
}

// New returns a source of the metric services at addresses of this node.
func New(o Options) (*Source, error) {
	if len(o.Addresses) > maxServices {
		return nil, fmt.Errorf("%d addresses are more than %d", len(o.Addresses), maxServices)
	}
	o.Addresses = slices.Clone(o.Addresses)
	for i := range o.Addresses {
		address := hostport.Bracketed(o.Addresses[i])
		o.Addresses[i] = address
		host, _, err := net.SplitHostPort(address)
		if _, notIP := netip.ParseAddr(host); err != nil || notIP != nil && host != "localhost" {
			return nil, fmt.Errorf("%q is not HOST:PORT with an IP address of this node or localhost", hostport.Redacted(address))
		}
	}
	return &Source{options: o, services: make(map[string]*service)}, nil
}

// Name is "tpu".
func (s *Source) Name() string { return "tpu" }

// LookEvery returns how often to look for services: they come and go with workloads.
func (s *Source) LookEvery() time.Duration { return 5 * time.Second }

// Readers returns a reader for each address on which something listens. That nothing
// does is no error: no process uses the TPUs.
func (s *Source) Readers(ctx context.Context) ([]device.Reader, error) {
	var readers []device.Reader
	var errs []error
	for _, address := range s.options.Addresses {
		switch there, err := listens(ctx, address); {
		case err != nil:
			errs = append(errs, err)
		case there && s.services[address] == nil:
			s.services[address] = &service{address: address, options: s.options}
		case !there:
			delete(s.services, address)
		}
		if known := s.services[address]; known != nil {
			readers = append(readers, known)
		}
	}
	return readers, errors.Join(errs...)
}

// listens reports whether something listens at an address.
func listens(ctx context.Context, address string) (bool, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return false, nil
	case err != nil:
		return false, &source.Failure{Reason: source.ReasonUnavailable, Err: fmt.Errorf("look for libtpu's metric service: %w", err)}
	}
	return true, connection.Close()
}

// Close does nothing: no connection stays open between two reads.
func (s *Source) Close() error { return nil }

// service is the metric service of one process. A workload serves it: each read has a
// connection of its own, which may cost a limited amount.
type service struct {
	address string
	options Options

	refused error         // why the last read cost too much
	delay   time.Duration // after it
	again   time.Duration // when, in elapsed time, it may be read again
}

// Key is the address.
func (s *service) Key() string { return s.address }

// Read reads the chips that the process uses. After a read that cost too much it fails
// for a while without connecting.
func (s *service) Read(ctx context.Context, _ device.Tier) ([]device.Observation, error) {
	if s.refused != nil && s.options.Clock().Elapsed < s.again {
		return nil, s.refused
	}
	costs := &costs{left: maxRead}
	chips, err := s.read(ctx, costs)
	if refused := costs.exceeded(); refused != nil {
		s.delay = min(max(firstRetry, 2*s.delay), lastRetry)
		s.again = s.options.Clock().Elapsed + s.delay
		s.refused = fmt.Errorf("read libtpu at %s: %w", s.address, refused)
		return nil, s.refused
	}
	s.refused, s.delay = nil, 0
	return chips, err
}

func (s *service) read(ctx context.Context, costs *costs) ([]device.Observation, error) {
	ctx, end := context.WithTimeout(ctx, callTimeout)
	defer end()
	connection, err := connect(s.address, costs)
	if err != nil {
		return nil, fmt.Errorf("connect to libtpu's metric service at %s: %w", s.address, err)
	}
	defer connection.Close()
	client := runtimemetrics.NewRuntimeMetricServiceClient(connection)
	var values [3]map[int64]metricValue
	for i, name := range []string{dutyCycle, memoryUsage, memoryTotal} {
		began := s.options.Clock()
		response, err := client.GetRuntimeMetric(ctx, &runtimemetrics.MetricRequest{MetricName: name})
		now := s.options.Clock()
		if err == nil {
			values[i], err = decodeValues(response, device.Window{From: began.Elapsed, To: now.Elapsed}, now)
		}
		if err != nil {
			return nil, &source.Failure{Reason: classifyError(err), Err: fmt.Errorf("read %s from libtpu at %s: %w", name, s.address, err)}
		}
	}
	chips, err := observe(values[0], values[1], values[2], s.hasFile)
	if err != nil {
		err = fmt.Errorf("libtpu at %s: %w", s.address, err)
	}
	return chips, err
}

// connect prepares a connection; the first call dials.
func connect(address string, costs *costs) (*grpc.ClientConn, error) {
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		dialed, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return source.MeterFrames(dialed, costs.charge), nil
	}
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithMaxHeaderListSize(16<<10), grpc.WithContextDialer(dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse), grpc.ForceCodecV2(objectfields.Codec(objectfields.AtMost(maxEntries)))))
}

// costs is what a read may still cost, on any number of connections. It is safe for
// concurrent use.
type costs struct {
	mu   sync.Mutex
	left int
}

func (c *costs) charge(cost int) error {
	c.mu.Lock()
	c.left -= cost
	c.mu.Unlock()
	return c.exceeded()
}

// exceeded returns an error once nothing is left.
func (c *costs) exceeded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left >= 0 {
		return nil
	}
	return &source.Failure{Reason: source.ReasonResourceExhausted, Err: fmt.Errorf("the service sends more than %d bytes and frames of half a KiB in a read", maxRead)}
}

// classifyError is the reason of a failed call, or of a wrong response.
func classifyError(err error) source.Reason {
	answer, isCall := status.FromError(err)
	switch {
	case !isCall:
		return source.ReasonInvalid
	case answer.Code() == codes.DeadlineExceeded:
		return source.ReasonTimeout
	case answer.Code() == codes.Unavailable:
		return source.ReasonUnavailable
	case answer.Code() == codes.ResourceExhausted:
		return source.ReasonResourceExhausted
	default:
		return source.ReasonOther
	}
}

// hasFile reports whether the kernel has a device of this name in its class accel.
func (s *service) hasFile(name string) bool {
	_, err := os.Stat(filepath.Join(s.options.Sysfs, "class/accel", name))
	return err == nil
}
