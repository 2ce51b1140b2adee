package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// A tracker logs when something changes, and not at every tick.
func TestTrackerLogsChanges(t *testing.T) {
	var log bytes.Buffer
	now := clock.Instant{Wall: time.Unix(1000, 0), Elapsed: time.Hour}
	tracker := source.NewTracker("kubelet", slog.New(slog.NewTextHandler(&log, nil)), func() clock.Instant { return now }, nil)
	refused := &source.Failure{Reason: source.ReasonUnavailable, Err: errors.New("connection refused")}
	for _, step := range []struct {
		what   string
		report func()
		lines  int // written by this step
		want   source.Status
	}{
		{"well from the start", func() { tracker.Report(nil) }, 0, source.Status{Up: true}},
		{"down", func() { tracker.Report(refused) }, 1, source.Status{Reason: source.ReasonUnavailable, Message: "connection refused", Errors: 1}},
		{"still down", func() { tracker.Report(refused) }, 0, source.Status{Reason: source.ReasonUnavailable, Message: "connection refused", Errors: 2}},
		{"down for another reason", func() { tracker.Report(fs.ErrNotExist) }, 1, source.Status{Reason: source.ReasonNotFound, Message: "file does not exist", Errors: 3}},
		{"up again", func() { tracker.Report(nil) }, 1, source.Status{Up: true, Errors: 3}},
		{"impaired", func() { tracker.Impair(refused) }, 1, source.Status{Up: true, Reason: source.ReasonUnavailable, Message: "connection refused", Errors: 4}},
		{"still impaired", func() { tracker.Impair(refused) }, 0, source.Status{Up: true, Reason: source.ReasonUnavailable, Message: "connection refused", Errors: 5}},
		{"wholly well", func() { tracker.Report(nil) }, 1, source.Status{Up: true, Errors: 5}},
	} {
		log.Reset()
		now = now.Add(time.Second)
		step.report()
		got := tracker.Status()
		if got.Up && got.LastSuccess != now {
			t.Errorf("%s: last success at %v, want now", step.what, got.LastSuccess)
		}
		step.want.Name, step.want.LastSuccess = "kubelet", got.LastSuccess
		if got != step.want {
			t.Errorf("%s: %+v, want %+v", step.what, got, step.want)
		}
		if lines := strings.Count(log.String(), "\n"); lines != step.lines {
			t.Errorf("%s: %d lines in the log, want %d:\n%s", step.what, lines, step.lines, log.String())
		}
	}
}

// That an optional source is not there is no warning; that it fails is one.
func TestTrackerOfAnOptionalSource(t *testing.T) {
	var log bytes.Buffer
	now := func() clock.Instant { return clock.Instant{Wall: time.Unix(1000, 0), Elapsed: time.Hour} }
	tracker := source.NewTracker("nvml", slog.New(slog.NewTextHandler(&log, nil)), now, nil)
	tracker.Optional()
	tracker.Report(&source.Failure{Reason: source.ReasonLibraryMissing, Err: errors.New("no library")})
	if text := log.String(); strings.Contains(text, "WARN") || !strings.Contains(text, "source is not available") || !tracker.Status().NeverFound() {
		t.Errorf("the log of an absent source is: %s", text)
	}
	log.Reset()
	tracker.Report(&source.Failure{Reason: source.ReasonPermission, Err: errors.New("refused")})
	if text := log.String(); !strings.Contains(text, "WARN") || tracker.Status().NeverFound() {
		t.Errorf("the log of a failed source is: %s", text)
	}
}

// A flapping source is logged once, and then its state once
// it has stayed so for half a minute; the status is always the present one.
func TestTrackerOfASourceThatComesAndGoes(t *testing.T) {
	var log bytes.Buffer
	now := clock.Instant{Wall: time.Unix(1000, 0), Elapsed: time.Hour}
	text := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "component" {
			return slog.Attr{}
		}
		return a
	}}))
	tracker := source.NewTracker("nvml", text, func() clock.Instant { return now }, nil)
	broken := &source.Failure{Reason: source.ReasonDeviceError, Err: errors.New("broken")}
	late := &source.Failure{Reason: source.ReasonTimeout, Err: errors.New("late")}
	report := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			now = now.Add(time.Second)
			tracker.Report(err)
			if status := tracker.Status(); status.Up != (err == nil) || status.Reason != source.ReasonOf(err) {
				t.Errorf("the status is %+v after %v", status, err)
			}
		}
	}
	said := func(when, want string) {
		t.Helper()
		if got := log.String(); got != want {
			t.Errorf("%s: the log says\n%swant\n%s", when, got, want)
		}
		log.Reset()
	}
	const (
		down  = "level=WARN msg=\"source is down\" reason=device_error error=broken\n"
		slow  = "level=WARN msg=\"source is down\" reason=timeout error=late\n"
		again = "level=INFO msg=\"source is up again\"\n"
		both  = "level=WARN msg=\"source is unstable\" reason=device_error error=broken\n"
	)
	report(nil, broken, broken, nil)
	said("one failure", down+again)
	report(broken)
	said("another one", both)
	for range 300 {
		report(nil, broken)
	}
	report(late, broken, late)
	said("ten minutes", "")
	report(broken)
	now = now.Add(29 * time.Second)
	_ = tracker.Status()
	said("it has not yet settled", "")
	report(broken)
	said("it stays down", down)
	report(nil, broken)
	said("it recovers for a moment", again+both)
	report(nil)
	now = now.Add(30 * time.Second)
	_ = tracker.Status()
	said("it is well, and nothing is reported", again)
	report(nil, broken, late, broken, late, broken)
	said("it fails now in this way, now in that", down+slow)
	for range 30 {
		report(broken)
	}
	said("one way stays", down)
	tracker.Impair(broken)
	report(broken)
	said("it is impaired for a moment", "level=WARN msg=\"source is impaired\" reason=device_error error=broken\n")
}

// A library that has worked, and then belongs to another driver, needs another
// process. One that has never worked may not work in another process either.
func TestTrackerOfALibraryOfAnotherDriver(t *testing.T) {
	now := clock.Instant{Elapsed: time.Hour}
	tracker := source.NewTracker("nvml", slog.New(slog.DiscardHandler), func() clock.Instant { return now }, nil)
	mismatch := &source.Failure{Reason: source.ReasonLibraryMismatch, Err: errors.New("another version")}
	for i, step := range []struct {
		report error
		ended  time.Duration
	}{
		{mismatch, 0}, {mismatch, 0}, {nil, 0}, {mismatch, 0}, {mismatch, time.Minute}, {mismatch, 2 * time.Minute},
		{errors.New("another"), 0}, {mismatch, 0}, {mismatch, time.Minute}, {nil, 0}, {errors.New("another"), 0},
	} {
		now = now.Add(time.Minute)
		tracker.Report(step.report)
		if ended := tracker.Status().EndedFor(now); ended != step.ended {
			t.Errorf("step %d: ended for %s, want %s", i, ended, step.ended)
		}
	}
}

func TestTrackerTimesAttempts(t *testing.T) {
	now := clock.Instant{Elapsed: time.Hour}
	var took []float64
	tracker := source.NewTracker("nvml", slog.New(slog.DiscardHandler), func() clock.Instant { return now }, func(seconds float64) { took = append(took, seconds) })
	end := tracker.Begin()
	tracker.Hang(now)
	now = now.Add(1500 * time.Millisecond)
	if hung := tracker.Status().HungFor(now); hung != 1500*time.Millisecond {
		t.Errorf("hung for %v, want 1.5 s", hung)
	}
	end(nil)
	tracker.Hang(clock.Instant{})
	if status := tracker.Status(); len(took) != 1 || took[0] != 1.5 || !status.Up || status.HungFor(now) != 0 {
		t.Errorf("took %v s, status %+v", took, status)
	}
}

func TestReasonOf(t *testing.T) {
	for want, err := range map[source.Reason]error{
		source.ReasonNone:       nil,
		source.ReasonTimeout:    fmt.Errorf("read: %w", context.DeadlineExceeded),
		source.ReasonNotFound:   fmt.Errorf("read: %w", fs.ErrNotExist),
		source.ReasonPermission: fmt.Errorf("read: %w", fs.ErrPermission),
		source.ReasonInvalid:    fmt.Errorf("read: %w", &source.Failure{Reason: source.ReasonInvalid, Err: context.DeadlineExceeded}),
		source.ReasonOther:      errors.New("anything else"),
	} {
		if got := source.ReasonOf(err); got != want {
			t.Errorf("the reason of %v is %q, want %q", err, got, want)
		}
	}
}
