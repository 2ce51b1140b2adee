package devicemetrics

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// At most 10 seconds may pass between two reports: the time that a client wants
// to wait and the time until the next read.
const (
	maxInterval = 5 * time.Second
	maxRest     = 4 * time.Second
)

// feed reads devices while clients are connected and gives the newest messages
// to all of them. A slow client skips reports and delays no other.
type feed struct {
	v1alpha1.UnimplementedDeviceMetricsServer

	read     func(context.Context) ([]Device, error)
	interval time.Duration
	now      func() time.Time
	log      *slog.Logger
	encoder  *encoder      // only used by run
	logged   string        // only used by run: the error that was logged last
	wake     chan struct{} // a first client has connected

	mu      sync.Mutex
	clients int
	newest  *messages
	changed chan struct{} // closed when newest changes
}

// messages are those of one read. They are not changed.
type messages struct{ description, report *v1alpha1.WatchResponse }

func newFeed(options Options, encoder *encoder) *feed {
	return &feed{
		read:     options.Read,
		interval: options.Interval,
		now:      options.Now,
		log:      options.Log,
		encoder:  encoder,
		wake:     make(chan struct{}, 1),
		changed:  make(chan struct{}),
	}
}

// run reads until ctx ends.
func (f *feed) run(ctx context.Context) {
	ticker := time.NewTicker(f.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-ticker.C:
		}
		if ctx.Err() == nil && f.hasClients() {
			f.publish(f.readOnce(ctx))
		}
	}
}

// readOnce reads all devices once and encodes them.
func (f *feed) readOnce(ctx context.Context) *messages {
	ctx, cancel := context.WithTimeout(ctx, max(5*f.interval, 5*time.Second))
	defer cancel()
	devices, failure := f.read(ctx)
	now := f.now()
	description, report, err := f.encoder.encode(devices, failure, now)
	if err != nil {
		failure = errors.Join(failure, err)
		description, report, _ = f.encoder.encode(nil, failure, now) // no devices violate no limit
	}
	f.logChange(failure)
	return &messages{description, report}
}

// logChange logs an error when it differs from the one before.
func (f *feed) logChange(failure error) {
	text := ""
	if failure != nil {
		text = failure.Error()
	}
	switch text {
	case f.logged:
	case "":
		f.log.Info("Devices can be read again")
	default:
		f.log.Error("Devices cannot be read", "error", text)
	}
	f.logged = text
}

func (f *feed) hasClients() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clients > 0
}

func (f *feed) publish(m *messages) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest = m
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) connect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients++
	if f.clients == 1 {
		f.newest = nil // what was read for earlier clients is old
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

func (f *feed) disconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients--
}

// next waits for messages other than those before.
func (f *feed) next(ctx context.Context, before *messages) (*messages, error) {
	for {
		f.mu.Lock()
		newest, changed := f.newest, f.changed
		f.mu.Unlock()
		if newest != nil && newest != before {
			return newest, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// Watch implements DeviceMetrics.
func (f *feed) Watch(request *v1alpha1.WatchRequest, stream grpc.ServerStreamingServer[v1alpha1.WatchResponse]) error {
	f.connect()
	defer f.disconnect()
	ctx := stream.Context()
	var sent messages
	var before *messages
	for {
		m, err := f.next(ctx, before)
		if err != nil {
			return err
		}
		if m.description != sent.description {
			if err := stream.Send(m.description); err != nil {
				return err
			}
		}
		if err := stream.Send(m.report); err != nil {
			return err
		}
		before, sent = m, *m
		if err := rest(ctx, time.Duration(request.GetIntervalMilliseconds())*time.Millisecond-f.interval); err != nil {
			return err
		}
	}
}

// rest waits for d, but not longer than maxRest.
func rest(ctx context.Context, d time.Duration) error {
	d = min(d, maxRest)
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
