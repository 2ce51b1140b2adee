package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
)

const loadUsage = `Usage: gpukit load [FLAGS]

Puts a load of a known size on one GPU, and prints one JSON object a line:
"ready" when the work begins, "progress" each interval with all that has been
done since, and "done", "faulted" or "error" at the end. The exit status is 0
after "done" and "faulted", and 1 after "error". SIGINT and SIGTERM end the load
with "done"; a second one ends the process at once.

It never changes a setting of the GPU: no clocks, power limits, compute or
persistence mode, MIG layout or ECC mode, and it never resets a GPU.

--kind=fault makes the driver report an Xid, and ignores --duration and --duty.
Under MPS it also ends the other clients of the same server.

Flags:
`

// runLoad runs `gpukit load`.
func runLoad(ctx context.Context, arguments []string, in io.Reader, out, help io.Writer) error {
	var lock sync.Mutex
	encoder := json.NewEncoder(out)
	report := func(event any) {
		lock.Lock()
		defer lock.Unlock()
		_ = encoder.Encode(event) // without a reader of standard output, SIGPIPE ends the program
	}
	options, untilEOF, err := loadFlags(arguments, help)
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err == nil {
		err = runWith(ctx, options, untilEOF, in, report)
	}
	if err != nil {
		report(load.NewFailure(err, time.Now()))
	}
	return err
}

// runWith runs a load until a signal or the end of the input ends it.
func runWith(ctx context.Context, options load.Options, untilEOF bool, in io.Reader, report load.Reporter) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		select {
		case received := <-signals:
			signal.Stop(signals)
			stop(fmt.Errorf("signal: %s", received))
		case <-ctx.Done():
		}
	}()
	if untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, in)
			stop(errors.New("end of standard input"))
		}()
	}
	return load.Run(ctx, options, report)
}

func loadFlags(arguments []string, help io.Writer) (options load.Options, untilEOF bool, err error) {
	flags := flag.NewFlagSet("gpukit load", flag.ContinueOnError)
	var kinds []string
	for _, kind := range load.Kinds() {
		kinds = append(kinds, string(kind))
	}
	options.Memory, options.CopyChunk = 256<<20, 16<<20
	flags.StringVar(&options.Device, "device", "0", "the GPU or MIG device: an `index` in CUDA's order, or a UUID (GPU-… or MIG-…)")
	flags.StringVar((*string)(&options.Kind), "kind", string(load.Compute), "the `kind` of work: "+strings.Join(kinds, ", "))
	flags.IntVar(&options.Duty, "duty", 100, "`percent` of each period in which the device is busy")
	flags.DurationVar(&options.Period, "period", 100*time.Millisecond, "`duration` of a period, 10ms to 1s")
	flags.Var((*size)(&options.Memory), "memory", "`bytes` of the device's memory to hold, such as 1GiB; at most half of what is free")
	flags.DurationVar(&options.Duration, "duration", 10*time.Second, "`duration` of the load; 0: until a signal or the end of standard input")
	flags.Var((*size)(&options.CopyChunk), "copy-chunk", "`bytes` of one copy of --kind=copy, at most 1GiB")
	flags.IntVar(&options.BlocksPerSM, "blocks-per-sm", 4, "`number` of blocks of 256 threads for each multiprocessor, 1 to 32")
	flags.DurationVar(&options.Interval, "interval", time.Second, "`duration` between two events \"progress\"")
	flags.DurationVar(&options.Grace, "grace", 10*time.Second, "`duration` for which a call of the driver may go on after the end")
	flags.StringVar(&options.Library, "library", "libcuda.so.1", "`path` or soname of the CUDA driver")
	flags.BoolVar(&untilEOF, "until-eof", false, "end when standard input ends, so that the load ends with its parent")
	err = parseFlags(flags, arguments, loadUsage, help)
	return options, untilEOF, err
}

// size is a number of bytes as a flag: 4096, 64KiB, 256MiB or 2GiB.
type size uint64

// String writes a size with the largest unit that divides it.
func (s *size) String() string {
	value, units := uint64(*s), []string{"", "KiB", "MiB", "GiB"}
	for i := len(units) - 1; i > 0; i-- {
		if unit := uint64(1) << (10 * i); value >= unit && value%unit == 0 {
			return strconv.FormatUint(value/unit, 10) + units[i]
		}
	}
	return strconv.FormatUint(value, 10)
}

// Set reads a size.
func (s *size) Set(text string) error {
	factor := uint64(1)
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if number, found := strings.CutSuffix(text, unit); found {
			text, factor = number, 1<<(10*(i+1))
			break
		}
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("must be a number of bytes, such as 67108864 or 64MiB")
	}
	if over, product := bits.Mul64(value, factor); over == 0 && product <= math.MaxInt64 {
		*s = size(product)
		return nil
	}
	return errors.New("must be less than 8 EiB")
}
