package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
)

const directUsage = `Usage: gpukit direct [FLAGS]

Asks NVIDIA's management library about all GPUs and MIG devices, without the
agent's binding, and prints one JSON object a line each interval. A quantity that
the driver does not report is absent. SIGINT and SIGTERM end it.

It never changes a setting of a GPU.

Flags:
`

// directOptions are the flags of `gpukit direct`.
type directOptions struct {
	library                         string
	interval, poll, duration, grace time.Duration
	untilEOF, gpm                   bool
}

// runDirect runs `gpukit direct`.
func runDirect(ctx context.Context, arguments []string, in io.Reader, out, help io.Writer) error {
	options, err := directFlags(arguments, help)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if options.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, options.duration)
		defer cancel()
	}
	if options.untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, in)
			stop()
		}()
	}
	var library atomic.Pointer[direct.Library]
	finished := make(chan error, 1)
	go func() { finished <- sampleUntil(ctx, &library, options, out) }()
	select {
	case err := <-finished:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-finished:
		return err
	case <-time.After(options.grace):
		call := "the initialization of " + options.library
		if l := library.Load(); l != nil {
			call = l.Current()
		}
		return fmt.Errorf("%s has not returned %s after the end", call, options.grace)
	}
}

// sampleUntil prints samples until the context ends. It stores the library once
// that is initialized.
func sampleUntil(ctx context.Context, opened *atomic.Pointer[direct.Library], options directOptions, out io.Writer) error {
	library, err := direct.Open(options.library)
	if err != nil {
		return err
	}
	opened.Store(library)
	sampler := direct.NewSampler(library, time.Now)
	sampler.SkipGPM = !options.gpm
	err = sampler.Run(ctx, options.interval, options.poll, func(s direct.Sample) error { return direct.Encode(out, s) })
	sampler.Close()
	return errors.Join(err, library.Close())
}

func directFlags(arguments []string, help io.Writer) (directOptions, error) {
	flags := flag.NewFlagSet("gpukit direct", flag.ContinueOnError)
	var o directOptions
	flags.StringVar(&o.library, "library", "libnvidia-ml.so.1", "`path` or soname of NVIDIA's management library")
	flags.DurationVar(&o.interval, "interval", time.Second, "`duration` between two samples, at least 120ms: the values of GPM need 100 ms")
	flags.DurationVar(&o.poll, "process-interval", 100*time.Millisecond, "`duration` between two requests for the utilization of processes")
	flags.DurationVar(&o.duration, "duration", 0, "`duration` of sampling; 0: until a signal or the end of standard input")
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "`duration` for which a call of the library may go on after the end")
	flags.BoolVar(&o.gpm, "gpm", true, "measure the activity of engines by GPM, whose counters may allow one reader at a time")
	flags.BoolVar(&o.untilEOF, "until-eof", false, "end when standard input ends, so that it ends with its parent")
	if err := parseFlags(flags, arguments, directUsage, help); err != nil {
		return o, err
	}
	switch {
	case o.library == "":
		return o, errors.New("--library: must be a path or a soname")
	case o.interval < 120*time.Millisecond:
		return o, fmt.Errorf("--interval=%s: must be at least 120ms", o.interval)
	case o.poll <= 0 || o.duration < 0 || o.grace <= 0:
		return o, errors.New("--process-interval and --grace must be positive, --duration must not be negative")
	}
	return o, nil
}
