package main

import (
	"context"
	"errors"

	"github.com/alecthomas/kingpin/v2"
)

// commands is the command line, and what each subcommand runs.
type commands struct {
	app    *kingpin.Application
	byName map[string]func(context.Context) error
}

func (c *commands) run(ctx context.Context, name string) error {
	command, known := c.byName[name]
	if !known {
		return errors.New("a command is needed")
	}
	return command(ctx)
}
