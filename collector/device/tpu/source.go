package tpu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/tpu/runtimemetrics"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	maxResponse = 4 << 20 // bytes
	maxEntries  = 10_000  // of a response; one of 128 devices has some 1,000
	maxServices = 16
	dialTimeout = 500 * time.Millisecond
	callTimeout = 2 * time.Second // of all metrics of a read
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
	for _, address := range o.Addresses {
		host, _, err := net.SplitHostPort(address)
		if _, notIP := netip.ParseAddr(host); err != nil || notIP != nil && host != "localhost" {
			return nil, fmt.Errorf("%q is not HOST:PORT with an IP address of this node or localhost", address)
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
			if s.services[address], err = s.connect(address); err != nil {
				delete(s.services, address)
				errs = append(errs, err)
			}
		case !there && s.services[address] != nil:
			_ = s.services[address].connection.Close()
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

// Close ends the connections.
func (s *Source) Close() error {
	var errs []error
	for _, known := range s.services {
		errs = append(errs, known.connection.Close())
	}
	clear(s.services)
	return errors.Join(errs...)
}

// service is the metric service of one process.
type service struct {
	address    string
	connection *grpc.ClientConn
	options    Options
}

func (s *Source) connect(address string) (*service, error) {
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse), grpc.ForceCodecV2(objectfields.Codec(objectfields.AtMost(maxEntries)))))
	if err != nil {
		return nil, fmt.Errorf("connect to libtpu's metric service at %s: %w", address, err)
	}
	return &service{address: address, connection: connection, options: s.options}, nil
}

// Key is the address.
func (s *service) Key() string { return s.address }

// Read reads the chips that the process uses.
func (s *service) Read(ctx context.Context, _ device.Tier) ([]device.Observation, error) {
	ctx, end := context.WithTimeout(ctx, callTimeout)
	defer end()
	client := runtimemetrics.NewRuntimeMetricServiceClient(s.connection)
	var values [3]map[int64]value
	for i, name := range []string{dutyCycle, memoryUsage, memoryTotal} {
		began := s.options.Clock()
		response, err := client.GetRuntimeMetric(ctx, &runtimemetrics.MetricRequest{MetricName: name})
		now := s.options.Clock()
		if err == nil {
			values[i], err = valuesOf(response, device.Window{From: began.Elapsed, To: now.Elapsed}, now)
		}
		if err != nil {
			return nil, &source.Failure{Reason: reasonOf(err), Err: fmt.Errorf("read %s from libtpu at %s: %w", name, s.address, err)}
		}
	}
	chips, err := observe(values[0], values[1], values[2], s.hasFile)
	if err != nil {
		err = fmt.Errorf("libtpu at %s: %w", s.address, err)
	}
	return chips, err
}

// reasonOf is the reason of a failed call, or of a wrong response.
func reasonOf(err error) source.Reason {
	of, isCall := status.FromError(err)
	switch {
	case !isCall:
		return source.ReasonInvalid
	case of.Code() == codes.DeadlineExceeded:
		return source.ReasonTimeout
	case of.Code() == codes.Unavailable:
		return source.ReasonUnavailable
	default:
		return source.ReasonOther
	}
}

// hasFile reports whether the kernel has a device of this name in its class accel.
func (s *service) hasFile(name string) bool {
	_, err := os.Stat(filepath.Join(s.options.Sysfs, "class/accel", name))
	return err == nil
}
