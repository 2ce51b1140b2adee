package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/runbook"
)

// addRunbook adds the subcommand that prints runbooks.
func addRunbook(c *commands, stdout io.Writer) {
	command := c.app.Command("runbook", "What to do about an alert: prints its runbook, or the names of all.").HelpLong(`  dra-exporter runbook
  dra-exporter runbook DRAClaimPendingTooLong`)
	name := command.Arg("alert", "Name of the alert. Default: list them.").String()
	c.byName[command.FullCommand()] = func(context.Context) error {
		names, err := runbook.Names()
		if err != nil {
			return err
		}
		if *name == "" {
			_, err := fmt.Fprintln(stdout, strings.Join(names, "\n"))
			return err
		}
		text, ok := runbook.Text(*name)
		if !ok {
			if hint := nearest(*name, names); hint != "" {
				return usagef("there is no runbook %s; did you mean %s?", *name, hint)
			}
			return usagef("there is no runbook %s; dra-exporter runbook lists all", *name)
		}
		_, err = fmt.Fprint(stdout, text)
		return err
	}
}
