package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/web"
)

// clusterFlags are those of the cluster role alone.
type clusterFlags struct {
	kubeconfig string
	budget     float64
	maxSeries  int
}

// addCluster adds the subcommand that runs once in a cluster.
func (c *commands) addCluster(stderr io.Writer) {
	command := c.app.Command("cluster", "Run once in a cluster: how long do claims wait, why are they pending, what is left, what is stuck?")
	flags := &clusterFlags{}
	flags.add(command)
	push := addPushFlags(command)
	web := addWebFlags(command, clusterAddress, stderr)
	web.access.add(command)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runCluster(ctx, flags, push, web) }
}

// clusterAddress is where the cluster role listens by default.
const clusterAddress = ":9421"

func (f *clusterFlags) add(command *kingpin.CmdClause) {
	command.Flag("kubeconfig", "Path to a kubeconfig. Without it, the pod's own service account.").StringVar(&f.kubeconfig)
	command.Flag("pending.budget", "Share of a core that finding out why claims are pending may take.").Default("0.25").Float64Var(&f.budget)
	command.Flag("metrics.max-series", "Most series of one family on a page; what is dropped is counted. 0 disables.").Default("30000").IntVar(&f.maxSeries)
}

// check refuses what could not work. The message names the flag.
func (f *clusterFlags) check() error {
	switch {
	case !(f.budget > 0 && f.budget <= 1):
		return fmt.Errorf("--pending.budget=%v is no share of a core: more than 0, 1 at most", f.budget)
	case f.maxSeries < 0:
		return fmt.Errorf("--metrics.max-series=%d is negative", f.maxSeries)
	default:
		return nil
	}
}

const (
	gcPercent = 50
	// clusterInstance is the instance label that the shipped scrape
	// configurations give the cluster role.
	clusterInstance = "cluster"
	// restInterval is the time between two steps in which nothing has changed:
	// what a page tells of without a change is how old its sources are.
	restInterval = 5 * time.Second
)

func runCluster(ctx context.Context, flags *clusterFlags, pushFlags *otlp.Flags, webFlags *webFlags) error {
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
	config, err := clusterConfig(flags.kubeconfig)
	if err != nil {
		return err
	}
	// What is kept of a large cluster is nearly all of the heap: letting as much
	// garbage lie beside it, as is the default, doubles the process.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	limitMemory(clusterMemoryShare, log)
	watcher, err := newWatcher(flags, config, push, clock.System(), log)
	if err != nil {
		return err
	}
	server, err := watcher.server(webFlags, log)
	if err != nil {
		return err
	}
	onHangup(ctx, func() { nothingToReload(log) })
	log.Info("watching the cluster", "version", buildVersion().Version)
	return watcher.run(ctx, server)
}

// watcher is the cluster role, wired: the API server, the inventory and the
// judge over it, the reducer, and the pages.
type watcher struct {
	config   *rest.Config
	clock    clock.Clock
	registry *prometheus.Registry

	cluster   *apiserver.Cluster
	inventory *inventory.Inventory
	judge     *diagnosis.Diagnoser
	runner    *cluster.Runner
	push      *otlp.Pusher // nil: nothing is pushed
	wake      chan struct{}
	explain   string // the command that the page offers, as in page.Config
}

func newWatcher(flags *clusterFlags, config *rest.Config, push otlp.Settings, now clock.Clock, log *slog.Logger) (*watcher, error) {
	registry, observe := liveMetrics()
	w := &watcher{config: config, clock: now, registry: registry, inventory: inventory.New(), wake: make(chan struct{}, 1), explain: "dra-exporter explain"}
	var err error
	w.cluster, err = apiserver.NewCluster(apiserver.ClusterOptions{
		Config: config, Keeper: w.inventory, Log: log, Clock: now,
		Observe: func(source string) func(float64) { return observe.WithLabelValues(source).Observe },
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to read the API server: %w", err)
	}
	w.judge = diagnosis.New(diagnosis.Options{Inventory: w.inventory, Clock: now, Log: log, Budget: flags.budget})
	w.runner, err = cluster.NewRunner(
		cluster.Config{Version: buildVersion(), Interval: restInterval, MaxSeries: flags.maxSeries, Traces: push.Traces.On},
		cluster.Inputs{
			Take: w.cluster.Take, Synced: w.cluster.Synced,
			Supply: w.inventory.Supply, Verdicts: w.judge.Verdicts, Costs: w.judge.Costs, Ask: w.judge.Ask,
			Statuses: w.cluster.Statuses, Settled: w.cluster.Settled, Wake: w.wake, Traced: w.traced, Sampled: w.sampled,
		}, registry, now, log)
	if err != nil {
		return nil, err
	}
	w.push, err = pushed{settings: push, instance: clusterInstance, snapshot: w.shown, live: registry}.pusher(now, log)
	return w, err
}

// traced gives traces that have ended away to be pushed.
func (w *watcher) traced(traces []trace.Trace) {
	if w.push != nil {
		w.push.Trace(traces)
	}
}

// sampled reports whether the trace will be pushed, so that others may point to it.
func (w *watcher) sampled(id trace.ID) bool { return w.push != nil && w.push.Sampled(id) }

// shown is all that the newest page shows, and of when it is.
func (w *watcher) shown() ([]metric.Row, time.Time) {
	if latest := w.runner.Latest(); latest != nil {
		return latest.Rows, latest.At.Wall
	}
	return nil, time.Time{}
}

// run serves until the context ends.
func (w *watcher) run(ctx context.Context, server *web.Server) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { w.cluster.Run(ctx) })   // its failures are in its statuses
	running.Go(func() { _ = w.judge.Run(ctx) }) // it ends with the context alone
	running.Go(func() { w.runner.Run(ctx) })
	running.Go(func() { w.listen(ctx) })
	if w.push != nil {
		running.Go(func() { w.push.Run(ctx) })
	}
	return server.Serve(ctx)
}

// listen turns every change, and every new verdict, into a step.
func (w *watcher) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.cluster.Changed():
		case <-w.judge.Changed():
		}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// server opens the listeners, so that a wrong address or configuration is
// told before anything runs.
func (w *watcher) server(flags *webFlags, log *slog.Logger) (*web.Server, error) {
	access, err := flags.access.access(w.config, w.registry, w.clock, log)
	if err != nil {
		return nil, err
	}
	pages, err := page.ClusterHandlers(page.Config{
		MetricsPath: flags.path, Rows: w.rows, Log: log, Explain: w.explain,
		Now: func() time.Time { return w.clock().Wall }, Troubles: func() map[string]string { return troubles(w.cluster.Statuses()) },
		Visible: access.visible(),
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the pages: %w", err)
	}
	return web.Listen(access.admit(web.Config{
		Flags: flags.toolkit, Log: log, MetricsPath: flags.path, Pages: pages, Pprof: flags.pprof, Hosts: flags.hosts,
		Metrics: metric.Concat(gatherer(w.page), w.registry), Registry: w.registry,
		Healthy: w.healthy, Ready: w.ready, AddressFlag: flags.address,
	}))
}

func (w *watcher) page() prometheus.Gatherer {
	if latest := w.runner.Latest(); latest != nil {
		return latest.Page
	}
	return metric.NewPage(nil)
}

func (w *watcher) rows() []metric.Row {
	if latest := w.runner.Latest(); latest != nil {
		return latest.Rows
	}
	return nil
}

func (w *watcher) ready() error {
	if w.runner.Latest() == nil {
		return errors.New("no snapshot yet: the API server's objects are still being listed")
	}
	return nil
}

// stuckAfter is how old the newest snapshot may be. One is made every five
// seconds at least, whether anything changes or not.
const stuckAfter = 5 * time.Minute

// healthy fails when no snapshot is made any more, which only a restart of the
// process can cure. An API server that hangs is not cured by that.
func (w *watcher) healthy() error {
	latest := w.runner.Latest()
	if latest == nil {
		return nil
	}
	if age := w.clock().Since(latest.At); age > stuckAfter {
		return fmt.Errorf("the newest snapshot is %s old", age.Round(time.Second))
	}
	return nil
}
