package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/internal/series"
)

// addSeries adds the subcommand that says what a fleet costs in series.
func addSeries(c *commands, stdout io.Writer) {
	command := c.app.Command("series", "How many series a fleet has: scraped at each level, recorded by each set, samples a second and bytes a day.").HelpLong(`  dra-exporter series --nodes=100
  dra-exporter series --nodes=1000 --devices=8 --claims=6 --sets=core,capacity -o json`)
	var nodes series.Nodes
	var level, sets string
	var interval time.Duration
	output := &outputFlag{}
	command.Flag("nodes", "Nodes with GPUs.").Default("1").IntVar(&nodes.Count)
	command.Flag("devices", "GPUs of each node.").Default("8").IntVar(&nodes.Devices)
	command.Flag("claims", "Claims on each node, each of one GPU.").Default("8").IntVar(&nodes.Claims)
	command.Flag("sets", "Sets of the recording rules, separated by commas.").Default("core").StringVar(&sets)
	command.Flag("metrics.level", "Level of both roles: lean, default or full.").Default("default").EnumVar(&level, metric.Levels()...)
	command.Flag("interval", "Interval of scrapes, and of rules without one of their own.").Default("30s").DurationVar(&interval)
	output.addTo(command)
	c.byName[command.FullCommand()] = func(context.Context) error {
		if interval < time.Second {
			return usagef("--interval=%s is shorter than a second", interval)
		}
		counts, err := series.ReadCounts()
		if err != nil {
			return err
		}
		chosen := strings.FieldsFunc(sets, func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(chosen)
		chosen = slices.Compact(chosen)
		if err := counts.Check(nodes, level, chosen); err != nil {
			return usagef("%w", err)
		}
		volume := counts.Estimate(nodes, level, chosen, interval)
		return output.write(stdout, "report", volume, volume.Text)
	}
}
