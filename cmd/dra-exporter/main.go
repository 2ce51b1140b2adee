// Command dra-exporter shows what each Kubernetes ResourceClaim gets of each
// device. See the README.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

func main() {
	os.Exit(run(arguments(os.Args), os.Stdout, os.Stderr))
}

// run returns the exit code: 0, or 1 where starting was impossible.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	commands := newCommands(stdout, stderr)
	args, commands.check.inherited, commands.check.inheritError = inherit(cgroup.DefaultProcfs, args)
	name, err := commands.app.Parse(args)
	if err == nil {
		err = commands.run(ctx, name)
	} else if culprit := refused(newCommands(io.Discard, io.Discard).app, args); culprit != "" {
		err = fmt.Errorf("%s%w", culprit, err)
	}
	if err != nil {
		fmt.Fprintf(stderr, "dra-exporter: %s\n", terminal.Markup([]byte(err.Error())))
		if name == "" {
			fmt.Fprintln(stderr, "dra-exporter --help lists the commands, dra-exporter COMMAND --help its flags")
		}
		return 1
	}
	return 0
}

// commands is the command line: each subcommand with its flags.
type commands struct {
	app    *kingpin.Application
	check  *checkFlags
	byName map[string]func(context.Context) error
}

func newCommands(stdout, stderr io.Writer) *commands {
	c := &commands{
		app:    kingpin.New("dra-exporter", "Observability of Kubernetes Dynamic Resource Allocation: what each ResourceClaim gets of each device, and why it waits."),
		byName: map[string]func(context.Context) error{},
	}
	c.app.UsageWriter(stdout).ErrorWriter(stderr).DefaultEnvars()
	c.app.HelpFlag.Short('h').NoEnvar()
	c.app.Version(versionText())
	sayUsage(c.app)
	c.app.VersionFlag.NoEnvar() // DRA_EXPORTER_VERSION is what many would call a version
	c.addNode(stderr)
	c.addCluster(stderr)
	c.addDemo(stdout, stderr)
	c.addExplain(stdout, stderr)
	c.addTop(stdout, stderr)
	c.addCompletion(stdout)
	c.addVersion(stdout)
	c.addCheck(stdout, stderr)
	return c
}

func (c *commands) run(ctx context.Context, name string) error {
	command, known := c.byName[name]
	if !known {
		return errors.New("a command is needed")
	}
	return command(ctx)
}
