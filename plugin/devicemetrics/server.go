// Package devicemetrics serves metrics of a DRA driver's devices to the node
// agent of dra-exporter. A driver gives a function that reads its devices:
//
//	err := devicemetrics.Serve(ctx, devicemetrics.Options{
//		Driver: "gpu.example.com",
//		Read: func(ctx context.Context) ([]devicemetrics.Device, error) {
//			return []devicemetrics.Device{{
//				Pool: node, Name: "gpu-0",
//				Readings: []devicemetrics.Reading{{Quantity: devicemetrics.Power, Value: 71.5}},
//			}}, nil
//		},
//	})
//
// The protocol is specified in v1alpha1/devicemetrics.proto. It is an alpha version.
package devicemetrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// The defaults of Options.
const (
	DefaultFolder   = "/var/run/dra-exporter/plugins"
	DefaultInterval = time.Second
)

// Options configure Serve. Driver and Read are required.
type Options struct {
	// Driver is the name of the DRA driver, as in its ResourceSlices.
	Driver string
	// Read returns all devices with what can be read of them now. Devices
	// beside an error are reported, with the error; without devices, the
	// description of the devices stays as it is. Read is called only while a
	// client is connected, never twice at a time, and its result must not be
	// changed afterwards. ctx ends after five intervals, but not before 5
	// seconds. While Read hangs, clients receive nothing. A result that
	// violates a limit of the protocol is logged and reported as an error,
	// without devices.
	Read func(ctx context.Context) ([]Device, error)

	// Extensions are the extensions that readings may use.
	Extensions []Extension
	// Folder is where the socket is created. It must exist. Default:
	// DefaultFolder.
	Folder string
	// Interval is the time between two reads, from 100 ms to 5 s. Default:
	// DefaultInterval.
	Interval time.Duration

	Log *slog.Logger     // nil: no log
	Now func() time.Time // the wall clock; nil: the system's. Called by one goroutine.
}

// Serve creates the socket <Folder>/<Driver>.sock, with the mode 0660, and serves
// any number of clients until ctx ends, for which it returns nil. It replaces a
// socket on which nothing listens, and removes its own at the end. It is an
// error if another server listens on the socket, or if the file is not a socket.
// Serve waits for a Read that is running.
func Serve(ctx context.Context, options Options) error {
	options, err := options.complete()
	if err != nil {
		return fmt.Errorf("devicemetrics: %w", err)
	}
	encoder, err := newEncoder(options.Driver, options.Extensions)
	if err != nil {
		return fmt.Errorf("devicemetrics: %w", err)
	}
	listener, remove, err := listen(ctx, filepath.Join(options.Folder, options.Driver+".sock"))
	if err != nil {
		return fmt.Errorf("devicemetrics: %w", err)
	}
	defer remove()
	return serve(ctx, listener, newFeed(options, encoder))
}

func (o Options) complete() (Options, error) {
	if o.Read == nil {
		return o, errors.New("no function to read devices")
	}
	if o.Folder == "" {
		o.Folder = DefaultFolder
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Interval < 100*time.Millisecond || o.Interval > maxInterval {
		return o, fmt.Errorf("interval %v: not from 100ms to %v", o.Interval, maxInterval)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the protocol needs the wall clock, and drivers do not have collector/clock
	}
	return o, nil
}

// serve serves until ctx ends or the listener fails.
func serve(ctx context.Context, listener net.Listener, f *feed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Clients send one small request and then nothing.
	server := grpc.NewServer(grpc.MaxRecvMsgSize(4<<10), grpc.MaxConcurrentStreams(8), grpc.ConnectionTimeout(5*time.Second))
	v1alpha1.RegisterDeviceMetricsServer(server, f)
	served := make(chan error, 1)
	read := make(chan struct{})
	go func() { served <- server.Serve(listener) }()
	go func() { defer close(read); f.run(ctx) }()
	var err error
	select {
	case <-ctx.Done():
		server.Stop()
		if err = <-served; errors.Is(err, grpc.ErrServerStopped) {
			err = nil
		}
	case err = <-served:
		cancel()
		server.Stop()
	}
	<-read
	if err != nil {
		return fmt.Errorf("devicemetrics: %w", err)
	}
	return nil
}

// listen creates the socket under a hidden name and renames it, so that clients
// see it complete and a restart replaces the socket before it. remove removes
// the socket, unless another has replaced it.
func listen(ctx context.Context, path string) (listener net.Listener, remove func(), err error) {
	if err := checkReplaceable(ctx, path); err != nil {
		return nil, nil, err
	}
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.Remove(hidden); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	unix, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, nil, err
	}
	unix.SetUnlinkOnClose(false)
	mine, err := publish(hidden, path)
	if err != nil {
		unix.Close()
		return nil, nil, errors.Join(err, os.Remove(hidden))
	}
	return unix, func() {
		unix.Close()
		if now, err := os.Lstat(path); err == nil && os.SameFile(mine, now) {
			_ = os.Remove(path) // what remains is replaced at the next start
		}
	}, nil
}

func publish(hidden, path string) (os.FileInfo, error) {
	if err := os.Chmod(hidden, 0o660); err != nil {
		return nil, err
	}
	mine, err := os.Lstat(hidden)
	if err != nil {
		return nil, err
	}
	return mine, os.Rename(hidden, path)
}

// checkReplaceable returns an error unless nothing or a socket without a server
// is at path.
func checkReplaceable(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is not a socket", path)
	}
	dialer := net.Dialer{Timeout: time.Second}
	connection, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil // nothing listens
	}
	connection.Close()
	return fmt.Errorf("another server listens on %s", path)
}
