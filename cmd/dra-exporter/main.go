// Command dra-exporter exports which Kubernetes ResourceClaim uses which device, and
// how much of it. See the README.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/check"
)

func main() {
	os.Exit(run(arguments(os.Args), os.Stdout, os.Stderr))
}

// run returns the exit status: 0, exitFailure, exitUsage or exitUnfit.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	commands, checked := newCommands(stdout, stderr)
	if len(args) == 0 {
		commands.app.UsageWriter(stderr).Usage(nil)
		return exitUsage
	}
	if slices.Equal(args, []string{manualFlag}) {
		if err := writeManual(commands.app); err != nil {
			fmt.Fprintf(stderr, "dra-exporter: %v\n", err)
			return exitFailure
		}
		return 0
	}
	args = withStandardInput(args)
	args, checked.inherited, checked.inheritError = inherit(newApp, func() []string { return check.ContainerCommand(cgroup.DefaultProcfs) }, args)
	name, err := "", checkBooleans(newApp(), args)
	if err == nil {
		if name, err = commands.app.Parse(args); err != nil {
			err = describeUsage(newApp(), args, err)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "dra-exporter: %s\n", source.Text(hostport.RedactedText(err.Error())))
		fmt.Fprintln(stderr, "dra-exporter --help lists the commands, dra-exporter COMMAND --help has examples and flags")
		return exitUsage
	}
	if err = finish(ctx, func() error { return commands.run(ctx, name) }); errors.Is(err, errUnfit) {
		return exitUnfit
	}
	if err != nil {
		fmt.Fprintf(stderr, "dra-exporter: %s\n", source.Text(hostport.RedactedText(err.Error())))
		return usageStatus(err)
	}
	return 0
}

// endTimeout is how long a command may take to end after a signal. It is longer than a
// role needs to abandon what hangs, and shorter than terminationGracePeriodSeconds of the
// manifests.
const endTimeout = 4500 * time.Millisecond

// finish runs a command and returns its error, or another one if the command has not
// ended within endTimeout after ctx: it may hang in a call without a deadline, such as
// the initialization of a library, or a read on a network file system.
func finish(ctx context.Context, command func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- command() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return fmt.Errorf("it had to end and has not ended within %s: it hangs in a file or in a library, and is aborted", endTimeout)
	}
}

// newCommands returns the command line with all subcommands, and the flags of
// check, into which inherited flags go.
func newCommands(stdout, stderr io.Writer) (*commands, *checkFlags) {
	c := &commands{
		app:    kingpin.New("dra-exporter", "Observability of Kubernetes Dynamic Resource Allocation: the use of devices by each ResourceClaim, and the reasons of pending claims."),
		byName: map[string]func(context.Context) error{},
	}
	c.app.UsageWriter(stdout).ErrorWriter(stderr).DefaultEnvars()
	c.app.HelpFlag.Short('h').NoEnvar()
	c.app.Version(versionText())
	setUsage(c.app)
	c.app.VersionFlag.NoEnvar() // DRA_EXPORTER_VERSION is a likely name for a variable with a version
	addNode(c, stderr)
	addCluster(c, stderr)
	addDemo(c, stdout, stderr)
	addExplain(c, stdout, stderr)
	addTop(c, stdout, stderr)
	addTopology(c, stdout, stderr)
	addFit(c, stdout, stderr)
	addAdvise(c, stdout, stderr)
	addCompletion(c, stdout)
	addSeries(c, stdout)
	addRunbook(c, stdout)
	addVersion(c, stdout)
	return c, addCheck(c, stdout, stderr)
}

// newApp returns a command line that can only be parsed.
func newApp() *kingpin.Application {
	c, _ := newCommands(io.Discard, io.Discard)
	return c.app
}
