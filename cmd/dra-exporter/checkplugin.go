package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device/plugin"
	"github.com/dra-exporter/dra-exporter/internal/check"
)

// addCheckPlugin adds the check of a server of device metrics, for authors of
// drivers.
func addCheckPlugin(c *commands, parent *kingpin.CmdClause, common *checkFlags, stdout io.Writer) {
	command := parent.Command("plugin", "Check whether a driver's device metrics comply with the specification.").
		HelpLong("  dra-exporter check plugin unix:///var/run/dra-exporter/plugins/gpu.example.com.sock")
	address := command.Arg("socket", "unix:///FOLDER/<driver>.sock").Required().String()
	duration := command.Flag("duration", "How long to read each of two streams.").Default("12s").Duration()
	c.byName[command.FullCommand()] = func(ctx context.Context) error {
		path, isSocket := strings.CutPrefix(*address, "unix://")
		switch {
		case !isSocket || !filepath.IsAbs(path):
			return usagef("%s is not the address of a socket: unix:///FOLDER/<driver>.sock", *address)
		case *duration < time.Second || *duration > time.Hour:
			return usagef("--duration=%s is not between 1s and 1h", *duration)
		}
		return common.run(ctx, stdout, func(ctx context.Context) (*check.Report, error) {
			report := &check.Report{}
			report.Add(check.Plugin(path, plugin.Examine(ctx, path, plugin.ExamineOptions{Duration: *duration, Clock: clock.System()}))...)
			return report, nil
		})
	}
}
