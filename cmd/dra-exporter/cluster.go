package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/alecthomas/kingpin/v2"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	otlpsettings "github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/internal/web"
)

// clusterFlags are the flags of the cluster role only.
type clusterFlags struct {
	kubeconfig string
	budget     float64
	series     string // as given: a number, or autoSeries
	maxSeries  int    // of one family; 0: no limit
	shapes     int    // of requests, for the headroom
	workloads  []string
	topology   []string
	exported   filterFlags
}

// autoSeries has the memory limit decide how many series a family may have.
const autoSeries = "auto"

// addCluster adds the subcommand of the cluster role, which runs once in a
// cluster.
func addCluster(c *commands, stderr io.Writer) {
	command := c.app.Command("cluster", "Run the cluster role: pending claims, phases, capacity and anomalies.").HelpLong(`  dra-exporter cluster                                # in a pod of the cluster
  dra-exporter cluster --kubeconfig=$HOME/.kube/config`)
	flags := &clusterFlags{}
	flags.add(command)
	push := addPushFlags(command)
	web := addWebFlags(command, clusterAddress, stderr)
	web.access.add(command)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runCluster(ctx, flags, push, web) }
}

// clusterAddress is the address on which the cluster role listens by default.
const clusterAddress = ":9421"

func (f *clusterFlags) add(command *kingpin.CmdClause) {
	command.Flag("kubeconfig", "Path to a kubeconfig. Default: the pod's own service account.").StringVar(&f.kubeconfig)
	command.Flag("pending.budget", "Share of a core for the diagnosis of pending claims and the headroom.").Default("0.25").Float64Var(&f.budget)
	command.Flag("headroom.shapes", "Number of the most frequent requests of claims and templates for which the headroom is computed, beside 1, 2, 4 and 8 devices of each class.").Default("50").IntVar(&f.shapes)
	command.Flag("metrics.max-series", "Maximum number of series of one family; dropped series are counted. 0 disables the limit; auto follows Go's memory limit.").Default(autoSeries).StringVar(&f.series)
	addWorkloadFlag(command, &f.workloads)
	command.Flag("labels.topology", "Label of nodes that names their domain at a level of the topology: link_domain, rack or block; see docs/topology.md. Repeatable.").PlaceHolder("LEVEL=KEY").StringsVar(&f.topology)
	f.exported.add(command)
}

// maxShapes bounds --headroom.shapes: each is searched on every node that is unlike all
// others.
const maxShapes = 1000

// check refuses invalid values. The message names the flag.
func (f *clusterFlags) check() error {
	switch {
	case !(f.budget > 0 && f.budget <= 1):
		return usagef("--pending.budget=%v is not a share of a core: it must be more than 0, and at most 1", f.budget)
	case f.shapes < 0 || f.shapes > maxShapes:
		return usagef("--headroom.shapes=%d must be from 0 to %d", f.shapes, maxShapes)
	case f.series != autoSeries:
		limit, err := strconv.Atoi(f.series)
		if err != nil || limit < 0 {
			return usagef("--metrics.max-series=%q must be a number of series, 0 for no limit, or %s", f.series, autoSeries)
		}
		f.maxSeries = limit
	}
	if _, err := workloadsBy(f.workloads); err != nil {
		return err
	}
	if _, err := f.nodeTopology(); err != nil {
		return err
	}
	_, err := f.exported.filter(clusterFamilies())
	return err
}

// nodeTopology returns what determines the domains of nodes. The message of an error
// names the flag.
func (f *clusterFlags) nodeTopology() (*decode.Topology, error) {
	topology, err := decode.NewTopology(f.topology...)
	if err != nil {
		return nil, usagef("--labels.topology: %w", err)
	}
	return topology, nil
}

const gcPercent = 50

func runCluster(ctx context.Context, flags *clusterFlags, pushFlags *otlpsettings.Flags, webFlags *webFlags) error {
	if err := flags.check(); err != nil {
		return err
	}
	if err := web.CheckFile(webFlags.toolkit); err != nil {
		return err
	}
	push, err := pushSettings(pushFlags)
	if err != nil {
		return err
	}
	log := webFlags.logger()
	defer ratelog.Flush(log)
	config, err := clusterConfig(flags.kubeconfig)
	if err != nil {
		return err
	}
	// The state of a large cluster is nearly all of the heap: as much garbage
	// beside it, the default, would double the process.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	role.LimitMemory(role.ClusterMemoryShare, log)
	if flags.series == autoSeries {
		flags.maxSeries = role.SeriesLimit(log)
	}
	options := flags.options(config, push, clock.System())
	if options.Workloads, err = workloadsBy(flags.workloads); err != nil {
		return err
	}
	if options.Topology, err = flags.nodeTopology(); err != nil {
		return err
	}
	if options.Filter, err = flags.exported.filter(clusterFamilies()); err != nil {
		return err
	}
	cluster, err := role.NewClusterRole(options, log)
	if err != nil {
		return err
	}
	server, err := webFlags.server(config, cluster.Server, log)
	if err != nil {
		return err
	}
	onHangup(ctx, cluster.Reload)
	log.Info("watching the cluster", "version", buildVersion().Version)
	return cluster.Run(ctx, server)
}

// options returns the options of the cluster role.
func (f *clusterFlags) options(config *rest.Config, push otlpsettings.Settings, now clock.Clock) role.ClusterOptions {
	return role.ClusterOptions{
		API: config, Version: buildVersion(), Budget: f.budget, Shapes: f.shapes, MaxSeries: f.maxSeries,
		Explain: "dra-exporter explain", Clock: now, Push: push,
	}
}
