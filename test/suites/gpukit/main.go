// Gpukit is a set of programs for tests on machines with real GPUs.
//
//	gpukit run --out=report
//	gpukit load --device=0 --kind=compute --duty=50 --duration=10s
//	gpukit direct --interval=1s --duration=10s
//	gpukit session --flags=2
//
// It needs NVIDIA's driver and nothing else: no toolkit, no cgo. It never
// changes a setting of a GPU.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const usage = `Usage: gpukit COMMAND [FLAGS]

Commands:
  run      compare the agent with nvidia-smi, the library and loads; the default
  direct   print what NVIDIA's management library reports
  load     put a load of a known size on one GPU
  session  print what a session of the library opens

gpukit COMMAND --help lists the flags. gpukit never changes a setting of a GPU.
`

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "gpukit:", err)
		var exit *exitError
		if errors.As(err, &exit) {
			os.Exit(exit.status)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, in io.Reader, out, help io.Writer) error {
	command := "run"
	isHelp := len(arguments) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, arguments[0])
	if len(arguments) > 0 && (isHelp || !strings.HasPrefix(arguments[0], "-")) {
		command, arguments = arguments[0], arguments[1:]
	}
	switch command {
	case "run":
		return withoutHelp(runPhases(ctx, arguments, out, help))
	case "direct":
		return withoutHelp(runDirect(ctx, arguments, in, out, help))
	case "load":
		return withoutHelp(runLoad(ctx, arguments, in, out, help))
	case "session":
		return withoutHelp(runSession(arguments, out, help))
	case "-h", "-help", "--help", "help":
		fmt.Fprint(out, usage)
		return nil
	default:
		fmt.Fprint(help, usage)
		return fmt.Errorf("unknown command %q", command)
	}
}

// withoutHelp returns nil for a request for help, which is no error.
func withoutHelp(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}

// parseFlags parses the flags of a command, which has no other arguments. After
// --help it writes the usage and the flags to help, and returns flag.ErrHelp.
func parseFlags(flags *flag.FlagSet, arguments []string, usage string, help io.Writer) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, usage)
		flags.SetOutput(help)
		flags.PrintDefaults()
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return err
}
