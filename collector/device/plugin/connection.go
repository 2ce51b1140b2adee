package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// limits bound what one server may do. The first two are in the specification.
type limits struct {
	description time.Duration // from the beginning of a stream to the first message
	message     int           // bytes
	silence     time.Duration // without a report: the specification's 10 s and some more
	perSecond   float64       // messages in the long run
	burst       float64       // messages at once, after a pause of this process
	first, most time.Duration // delay after a stream has ended: twice as long after each
	look        time.Duration // how often to look whether a server has replaced the socket
}

func defaultLimits() limits {
	return limits{
		description: 5 * time.Second, message: 4 << 20, silence: 15 * time.Second,
		perSecond: 10, burst: 30, first: time.Second, most: time.Minute, look: time.Second,
	}
}

// connection reads the stream of one driver, and connects again after it has ended.
// It is the reader of the driver's devices.
type connection struct {
	driver, path string
	interval     time.Duration // that the server is asked for
	limits       limits
	now          clock.Clock
	log          *slog.Logger
	budgets      budgets
	work, kept   *source.Share
	decoder      *Decoder // only used by run
	extensions   string   // of the decoder, as logged; only used by run
	health       healthLog
	stop         context.CancelFunc
	ended        chan struct{} // run has returned
	first        chan struct{} // closed when the first stream has given a report, or has ended

	mu           sync.Mutex
	observations []device.Observation // of the newest report
	partial      error                // why some of it is missing
	failure      error                // why there is none; nil while a stream gives reports
}

// connect begins to read a driver's socket until ctx ends or close is called.
func connect(ctx context.Context, driver, path string, o Options) *connection {
	ctx, stop := context.WithCancel(ctx)
	log := o.Log.With("driver", driver)
	c := &connection{
		driver: driver, path: path, interval: o.Interval, limits: o.limits, now: o.Clock, log: log,
		decoder: NewDecoder(driver), health: healthLog{log: log}, stop: stop,
		ended: make(chan struct{}), first: make(chan struct{}), failure: fmt.Errorf("no report from %s yet", path),
	}
	_ = c.decoder.Export(o.Extensions) // New has checked them
	c.budgets, c.work, c.kept = o.budgets, o.budgets.work.Share(nil), o.budgets.kept.Share(func(err error) { c.set(nil, nil, c.refused(err)) })
	go func() {
		defer close(c.ended)
		defer c.work.Leave()
		defer c.kept.Leave()
		c.run(ctx)
	}()
	return c
}

// close ends the connection and returns when its goroutine has.
func (c *connection) close() {
	c.stop()
	<-c.ended
}

// Key is the driver's name.
func (c *connection) Key() string { return c.driver }

// Read returns the devices with the newest report. It waits only for the first
// report after the socket was found, for a second at most.
func (c *connection) Read(ctx context.Context, _ device.Tier) ([]device.Observation, error) {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-c.first:
	case <-late.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return nil, c.failure
	}
	observations := slices.Clone(c.observations)
	for i := range observations { // the caller sorts them
		o := &observations[i]
		o.Readings, o.Processes = slices.Clone(o.Readings), slices.Clone(o.Processes)
	}
	return observations, c.partial
}

// run reads one stream after the other until ctx ends.
func (c *connection) run(ctx context.Context) {
	delay, first := time.Duration(0), sync.OnceFunc(func() { close(c.first) })
	defer first()
	for ctx.Err() == nil {
		before, _ := os.Lstat(c.path)
		reports, err := c.stream(ctx, first)
		_ = c.kept.Set(0) // less is not refused
		c.set(nil, nil, err)
		first()
		switch {
		case errors.Is(err, source.ErrRefused):
			c.decoder.forget()
		case reports:
			delay = 0
		}
		delay = min(max(c.limits.first, 2*delay), c.limits.most)
		if c.wait(ctx, delay, before) {
			delay = 0
		}
	}
}

// wait waits, or returns true as soon as another file is in the place of the
// socket: a server that has restarted.
func (c *connection) wait(ctx context.Context, delay time.Duration, before fs.FileInfo) (replaced bool) {
	over := time.NewTimer(delay)
	defer over.Stop()
	look := time.NewTicker(c.limits.look)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-over.C:
			return false
		case <-look.C:
			if now, err := os.Lstat(c.path); err == nil && (before == nil || !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime())) {
				return true
			}
		}
	}
}

// errSilent and errNoDescription end a stream whose server sends nothing.
var (
	errSilent        = errors.New("the driver has sent no report for too long")
	errNoDescription = errors.New("the driver has sent no description for too long")
)

// stream reads one stream until it ends, for which it always returns a reason.
// reports says whether it gave reports for longer than the shortest delay: a
// server that fails at once must not be asked all the time.
func (c *connection) stream(ctx context.Context, first func()) (reports bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reading, codec := c.budgets.reading.Share(cancel), newCodec(c.budgets.decoding)
	defer reading.Leave()
	defer codec.release()
	channel, dialer, err := open(c.path, c.limits, func(cost int) error { return cmp.Or(c.work.Add(cost), reading.Add(cost)) }, codec)
	if err != nil {
		return false, err
	}
	defer channel.Close()
	silent := time.AfterFunc(c.limits.description, func() { cancel(errNoDescription) })
	defer func() { silent.Stop() }()
	quiet := func() { // until the next report
		silent.Stop()
		silent = time.AfterFunc(c.limits.silence, func() { cancel(errSilent) })
	}
	watch, err := v1alpha1.NewDeviceMetricsClient(channel).Watch(ctx, &v1alpha1.WatchRequest{IntervalMilliseconds: uint32(c.interval.Milliseconds())})
	if err != nil {
		return false, c.explain(ctx, err, dialer)
	}
	c.decoder.Begin()
	began, rate := c.now(), pace{limits: c.limits, left: c.limits.burst, at: c.now()}
	var description *v1alpha1.Description
	for {
		message, err := watch.Recv()
		now := c.now()
		if codec.failed != nil {
			return reports, c.violation(codec.failed)
		}
		if err != nil {
			return reports, c.explain(ctx, err, dialer)
		}
		if !rate.take(now) {
			return reports, c.violation(fmt.Errorf("more than %v messages in a second", c.limits.perSecond))
		}
		switch {
		case message.GetDescription() != nil:
			if description == nil {
				quiet()
			}
			description = message.GetDescription()
			err = c.decoder.Describe(description)
			c.logExtensions()
		case message.GetReport() != nil:
			quiet()
			err = c.apply(ctx, description, message.GetReport(), now)
			if first(); err == nil {
				reports = now.Since(began) > c.limits.first
			}
		}
		codec.release()
		_ = reading.Set(0) // less is not refused
		switch {
		case errors.Is(err, source.ErrRefused):
			return reports, c.refused(err)
		case err != nil:
			return reports, c.violation(err)
		}
	}
}

// logExtensions logs which extensions the driver has, when they change.
func (c *connection) logExtensions() {
	names := strings.Join(c.decoder.Extensions(), ",")
	if names != c.extensions && names != "" {
		c.log.Info("the driver has extensions; --plugin.extensions exports those that it names", "extensions", names)
	}
	c.extensions = names
}

// apply applies a report.
func (c *connection) apply(ctx context.Context, description *v1alpha1.Description, report *v1alpha1.Report, now clock.Instant) error {
	observations, ignored, err := c.decoder.Report(report, now)
	if err != nil {
		return err
	}
	partial := ignored
	if text := report.GetError(); text != "" {
		partial = errors.Join(fmt.Errorf("the driver reports: %s", text), ignored)
	}
	if err := c.kept.Set(device.Weight(observations) + c.decoder.weight()); err != nil {
		return err
	}
	c.set(observations, partial, nil)
	c.health.observe(ctx, description, report)
	return nil
}

func (c *connection) set(observations []device.Observation, partial, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observations, c.partial, c.failure = observations, partial, failure
}

// violation describes what a server sent against the specification.
func (c *connection) violation(err error) error {
	return &source.Failure{Reason: source.ReasonInvalid, Err: fmt.Errorf(
		"%s: %w (dra-exporter check plugin unix://%s names the rule)", c.path, err, c.path)}
}

// refused describes why a server is refused.
func (c *connection) refused(err error) error {
	return fmt.Errorf("%s: of all drivers, %w", c.path, err)
}

// explain describes why a stream has ended.
func (c *connection) explain(ctx context.Context, err error, dialed *dialer) error {
	cause := context.Cause(ctx)
	failed := dialed.failure()
	switch code := status.Code(err); {
	case errors.Is(cause, source.ErrRefused):
		return c.refused(cause)
	case errors.Is(failed, source.ErrRefused):
		return c.refused(failed)
	case errors.Is(cause, errNoDescription) || errors.Is(cause, errSilent):
		return &source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf("%s: %w", c.path, cause)}
	case failed != nil:
		if reason := source.ReasonOf(failed); reason != source.ReasonOther {
			return &source.Failure{Reason: reason, Err: failed}
		}
		return &source.Failure{Reason: source.ReasonUnavailable, Err: fmt.Errorf("the driver's server does not run: %w", failed)}
	case code == codes.Unimplemented:
		return &source.Failure{Reason: source.ReasonUnsupported, Err: fmt.Errorf("%s does not serve devicemetrics/v1alpha1: %w", c.path, err)}
	case code == codes.ResourceExhausted, objectfields.IsRefusal(err):
		return c.violation(err)
	default:
		return &source.Failure{Reason: source.ReasonUnavailable, Err: fmt.Errorf("the stream of %s has ended: %w", c.path, err)}
	}
}

// window is how many bytes a server may send before they are read, beside the message
// that is awaited.
const window = 64 << 10

// open prepares a connection; the first call dials the socket. charge is called with the
// cost of what is read, see source.MeterFrames.
func open(path string, l limits, charge func(cost int) error, codec *codec) (*grpc.ClientConn, *dialer, error) {
	dialer := &dialer{path: path, charge: charge}
	channel, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithMaxHeaderListSize(16<<10),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window), // gRPC's own can grow to 16 MiB
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(l.message), grpc.ForceCodecV2(codec)), grpc.WithContextDialer(dialer.dial))
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the connection to %s: %w", path, err)
	}
	return channel, dialer, nil
}

// dialer keeps the error of the last dial, or why the connection was ended, of which
// gRPC keeps only the text.
type dialer struct {
	path   string
	charge func(cost int) error
	mu     sync.Mutex
	err    error
}

func (d *dialer) dial(ctx context.Context, _ string) (net.Conn, error) {
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", d.path)
	d.set(err)
	if err != nil {
		return nil, err
	}
	return source.MeterFrames(dialed, func(cost int) error {
		err := d.charge(cost)
		if err != nil {
			d.set(err)
		}
		return err
	}), nil
}

func (d *dialer) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *dialer) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// pace limits the rate of messages.
type pace struct {
	limits limits
	left   float64 // messages that may come at once
	at     clock.Instant
}

// take takes a message, and reports whether it may come.
func (p *pace) take(now clock.Instant) bool {
	p.left = min(p.limits.burst, p.left+p.limits.perSecond*now.Since(p.at).Seconds()) - 1
	p.at = now
	return p.left >= 0
}

// budgets bound what all drivers do together.
type budgets struct {
	reading  *source.Budget // bytes of messages that have not been decoded
	work     *source.Budget // bytes and frames
	kept     *source.Budget // bytes of devices, readings and processes
	decoding chan struct{}  // has one element while a message is decoded
}

func newBudgets(now clock.Clock) budgets {
	return budgets{
		reading:  source.NewBudget("bytes of messages at a time", 8<<20),
		work:     source.NewWork("bytes of messages, with half a KiB for each frame,", 80<<20, 10*time.Second, now),
		kept:     source.NewBudget("bytes of devices, readings and processes", 4<<20),
		decoding: make(chan struct{}, 1),
	}
}

// codec is gRPC's codec of protobuf, which decodes the messages of all drivers one after
// the other: the next one once release is called.
type codec struct {
	encoding.CodecV2
	decoding chan struct{}
	holds    bool
	failed   error // why a message is not decoded
}

func newCodec(decoding chan struct{}) *codec {
	c, check := &codec{decoding: decoding}, objectfields.AtMost(maxEntries)
	c.CodecV2 = objectfields.Codec(func(entries objectfields.Entries) error {
		if err := check(entries); err != nil {
			c.failed = err
		}
		return c.failed
	})
	return c
}

// Unmarshal implements encoding.CodecV2.
func (c *codec) Unmarshal(data mem.BufferSlice, into any) error {
	c.decoding <- struct{}{}
	c.holds = true
	return c.CodecV2.Unmarshal(data, into)
}

// release lets the next message be decoded. It may be called without one.
func (c *codec) release() {
	if c.holds {
		c.holds = false
		<-c.decoding
	}
}
