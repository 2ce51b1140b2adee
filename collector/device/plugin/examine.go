package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// ExamineOptions configure Examine.
type ExamineOptions struct {
	Duration time.Duration // of each of the two streams
	Interval time.Duration // that the server is asked for; 0: a second
	Clock    clock.Clock

	limits limits // zero: those of the specification
}

// Examination is what a server did on two streams, one after the other.
type Examination struct {
	Driver     string        // by the name of the socket's file
	Failed     error         // why nothing could be examined, if it is no violation
	Devices    int           // of the first description
	Reports    int           // on both streams
	Readings   int           // of the newest report
	Longest    time.Duration // between two reports
	Violations []Violation   // the first of each rule
	Notes      []string      // what is allowed, and looks like a mistake
}

// Examine reads two streams of a server as the agent does, for a bounded time, and
// compares them with the specification.
func Examine(ctx context.Context, path string, o ExamineOptions) Examination {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.limits == (limits{}) {
		o.limits = defaultLimits()
		o.limits.silence, o.limits.burst = 11*time.Second, 15
	}
	driver, isSocket := strings.CutSuffix(filepath.Base(path), suffix)
	x := &examiner{path: path, options: o, decoder: NewDecoder(driver), result: Examination{Driver: driver}}
	switch file, err := os.Lstat(path); {
	case err != nil:
		x.result.Failed = err
	case file.Mode().Type() != fs.ModeSocket:
		x.violate(violate(ruleSocket, "%s is not a socket", path))
	case !isSocket:
		x.violate(violate(ruleSocket, "the socket's file is not named <driver>%s", suffix))
	case !isDriver(driver):
		x.violate(violate(ruleSocketName, "%q is not the name of a driver", clip(driver)))
	default:
		first, well := x.stream(ctx)
		if !well || ctx.Err() != nil {
			break
		}
		if second, _ := x.stream(ctx); !slices.Equal(first, second) && second != nil {
			x.note("the second stream describes other devices than the first")
		}
	}
	return x.result
}

// examiner is the state of Examine.
type examiner struct {
	path    string
	options ExamineOptions
	decoder *Decoder
	result  Examination
	last    clock.Instant // of a report; zero: none on this stream
}

// errOver ends a stream that has been read for long enough.
var errOver = errors.New("examined")

// stream reads a stream, and returns the names of the devices that it described
// first. well is false if it ended by a violation.
func (x *examiner) stream(ctx context.Context) (devices []device.PublishedName, well bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := time.AfterFunc(x.options.Duration, func() { cancel(errOver) })
	defer over.Stop()
	l := x.options.limits
	silent := time.AfterFunc(l.description, func() { cancel(errNoDescription) })
	defer func() { silent.Stop() }()
	codec := newCodec(make(chan struct{}, 1))
	channel, dialer, err := open(x.path, l, func(int) error { return nil }, codec)
	if err != nil {
		x.result.Failed = err
		return nil, false
	}
	defer channel.Close()
	watch, err := v1alpha1.NewDeviceMetricsClient(channel).Watch(ctx, &v1alpha1.WatchRequest{IntervalMilliseconds: uint32(x.options.Interval.Milliseconds())})
	if err != nil {
		return nil, x.end(ctx, err, dialer)
	}
	x.decoder.Begin()
	x.last = clock.Instant{}
	rate := pace{limits: l, left: l.burst, at: x.options.Clock()}
	for {
		codec.release()
		message, err := watch.Recv()
		now := x.options.Clock()
		if err != nil {
			return devices, x.end(ctx, err, dialer)
		}
		if !rate.take(now) {
			return devices, x.violate(violate(ruleRate, "more than %v messages came in a second", l.perSecond))
		}
		switch description, report := message.GetDescription(), message.GetReport(); {
		case description != nil:
			err = x.decoder.Describe(description)
			if devices == nil && err == nil {
				devices = x.describe(description)
				silent.Stop()
				silent = time.AfterFunc(l.silence, func() { cancel(errSilent) })
			}
		case report != nil:
			silent.Reset(l.silence)
			err = x.report(report, now)
		}
		if err != nil {
			return devices, x.violate(err)
		}
	}
}

// describe notes a description, and returns the names in it.
func (x *examiner) describe(description *v1alpha1.Description) []device.PublishedName {
	x.result.Devices = len(description.GetDevices())
	devices := make([]device.PublishedName, 0, len(x.decoder.devices))
	for _, d := range x.decoder.devices {
		devices = append(devices, d.device.Published)
	}
	slices.SortFunc(devices, func(a, b device.PublishedName) int { return strings.Compare(a.Pool+"/"+a.Device, b.Pool+"/"+b.Device) })
	return devices
}

// report examines a report. Only what ends a stream is an error.
func (x *examiner) report(report *v1alpha1.Report, now clock.Instant) error {
	if !x.last.IsZero() {
		x.result.Longest = max(x.result.Longest, now.Since(x.last))
	}
	x.last = now
	observations, ignored, err := x.decoder.Report(report, now)
	if err != nil {
		return err
	}
	x.result.Reports++
	x.result.Readings = 0
	for _, o := range observations {
		x.result.Readings += len(o.Readings)
	}
	if ignored != nil {
		x.violate(ignored)
	}
	measured := report.GetMeasured().AsTime()
	if now.Wall.Sub(measured) < -time.Second {
		x.note("reports are measured in the future: the agent takes the time of receipt")
	}
	for _, d := range report.GetDevices() {
		for _, r := range d.GetReadings() {
			x.reading(r, measured, now)
		}
	}
	if text := report.GetError(); text != "" {
		x.note("the server reports an error: " + text)
	}
	return nil
}

func (x *examiner) reading(r *v1alpha1.Reading, measured time.Time, now clock.Instant) {
	name := r.GetQuantity()
	if _, known := x.decoder.catalog[name]; name != "" && !known {
		x.note(fmt.Sprintf("the quantity %q is not in this version of the specification: the agent ignores it", clip(name)))
	}
	if own := r.GetMeasured(); own != nil {
		measured = own.AsTime()
		if own.AsTime().After(now.Wall.Add(time.Second)) {
			x.note("readings are measured in the future: the agent takes the time of receipt")
		}
	}
	if now.Wall.Sub(measured) > maxAge {
		x.note(fmt.Sprintf("values are older than %s: the agent ignores them", maxAge))
	}
}

// end applies the end of a stream. It returns whether it ended because it was
// examined for long enough.
func (x *examiner) end(ctx context.Context, err error, dialed *dialer) bool {
	cause, failed := context.Cause(ctx), dialed.failure()
	switch code := status.Code(err); {
	case errors.Is(cause, errOver) && x.result.Devices == 0 && x.last.IsZero():
		return x.violate(violate(ruleFirst, "no description came within %s", x.options.Duration))
	case errors.Is(cause, errOver):
		if x.last.IsZero() {
			x.note("no report came on a stream: is --duration too short?")
		}
		return true
	case errors.Is(cause, errNoDescription):
		return x.violate(violate(ruleFirst, "no description came within %s", x.options.limits.description))
	case errors.Is(cause, errSilent):
		return x.violate(violate(ruleInterval, "no report came within %s", x.options.limits.silence))
	case cause != nil:
		x.result.Failed = cause
	case failed != nil:
		x.result.Failed = failed
	case code == codes.Unimplemented:
		return x.violate(violate(ruleService, "the server has no service devicemetrics/v1alpha1"))
	case objectfields.IsRefusal(err):
		return x.violate(violate(limitEntries, "%v", err))
	case code == codes.ResourceExhausted:
		return x.violate(violate(ruleMessageSize, "%v", err))
	default:
		return x.violate(violate(ruleStream, "the stream has ended: %v", err))
	}
	return false
}

// violate keeps the first violation of each rule. It returns false.
func (x *examiner) violate(err error) bool {
	violation := &Violation{}
	if !errors.As(err, &violation) {
		x.result.Failed = err
		return false
	}
	if !slices.ContainsFunc(x.result.Violations, func(v Violation) bool { return v.Rule == violation.Rule }) {
		x.result.Violations = append(x.result.Violations, Violation{violation.Rule, err.Error()})
	}
	return false
}

// note keeps each note once.
func (x *examiner) note(text string) {
	if !slices.Contains(x.result.Notes, text) && len(x.result.Notes) < 20 {
		x.result.Notes = append(x.result.Notes, text)
	}
}
