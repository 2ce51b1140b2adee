package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device/exporter"
	"github.com/dra-exporter/dra-exporter/internal/check"
)

// addCheckExporter adds the check of a driver's page, for authors of drivers.
func addCheckExporter(c *commands, parent *kingpin.CmdClause, common *checkFlags, stdout io.Writer) {
	command := parent.Command("exporter", "Check whether the page of a DRA driver complies with the specification, docs/plugins.md.").
		HelpLong(`  dra-exporter check exporter unix:///var/run/dra-exporter/plugins/gpu.example.com.sock
  dra-exporter check exporter --driver=gpu.example.com http://localhost:9100/metrics`)
	address := command.Arg("url", "unix:///FOLDER/<driver>.sock, or http://HOST:PORT/PATH with --driver.").Required().String()
	driver := command.Flag("driver", "Name of the DRA driver. Default: the one that the socket is named after.").PlaceHolder("DRIVER").String()
	duration := command.Flag("duration", "How long to read the page, once a second.").Default("5s").Duration()
	c.byName[command.FullCommand()] = func(ctx context.Context) error {
		switch {
		case *driver == "" && !strings.HasPrefix(*address, "unix://"):
			return usagef("--driver is missing: %s does not name the driver", *address)
		case *duration < time.Second || *duration > time.Hour:
			return usagef("--duration=%s is not between 1s and 1h", *duration)
		}
		return common.run(ctx, stdout, func(ctx context.Context) (*check.Report, error) {
			x, err := exporter.Examine(ctx, *address, exporter.ExamineOptions{Driver: *driver, Duration: *duration, Interval: time.Second, Clock: clock.System()})
			if err != nil {
				return nil, usagef("%w", err)
			}
			report := &check.Report{}
			report.Add(check.Exporter(*address, x)...)
			return report, nil
		})
	}
}
