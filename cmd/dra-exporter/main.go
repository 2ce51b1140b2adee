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
)

func main() {
	os.Exit(run(arguments(os.Args), os.Stdout, os.Stderr))
}

// run returns the exit code: 0, or 1 where starting was impossible.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	commands := newCommands(stdout, stderr)
	name, err := commands.app.Parse(args)
	if err == nil {
		err = commands.run(ctx, name)
	}
	if err != nil {
		fmt.Fprintf(stderr, "dra-exporter: %v\n", err)
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
	byName map[string]func(context.Context) error
}

func newCommands(stdout, stderr io.Writer) *commands {
	c := &commands{
		app:    kingpin.New("dra-exporter", "Observability of Kubernetes Dynamic Resource Allocation: what each ResourceClaim gets of each device, and why it waits."),
		byName: map[string]func(context.Context) error{},
	}
	c.app.UsageWriter(stdout).ErrorWriter(stderr).DefaultEnvars()
	c.app.HelpFlag.Short('h')
	c.app.Version(versionText()).UsageTemplate(kingpin.CompactUsageTemplate)
	c.addNode(stderr)
	c.addCluster(stderr)
	c.addDemo(stdout, stderr)
	c.addExplain(stdout, stderr)
	return c
}

func (c *commands) run(ctx context.Context, name string) error {
	command, known := c.byName[name]
	if !known {
		return errors.New("a command is needed")
	}
	return command(ctx)
}
