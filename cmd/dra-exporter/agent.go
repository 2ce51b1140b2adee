package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/cdi"
	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/web"
	"github.com/dra-exporter/dra-exporter/kubelet"
)

// surroundings is where an agent lives: on a real node, or in the demo.
type surroundings struct {
	node     string
	clock    clock.Clock
	sources  []device.Source
	optional map[string]bool // sources whose library may be missing
	socket   string
	podsAPI  string // empty: pods are watched at the API server
	cdiDirs  []string
	procfs   string
	cluster  *rest.Config // nil: without the API server

	processes *gate // that sources ask whether to list them; nil: none does
	push      otlp.Settings
}

// agent is the node role, wired: every source, the reducer, and the pages.
type agent struct {
	flags    *agentFlags
	around   surroundings
	clock    clock.Clock
	log      *slog.Logger
	registry *prometheus.Registry

	sampler *device.Sampler
	kubelet *kubelet.Client
	cdi     *cdi.Reader
	cgroup  *cgroup.Reader      // nil: processes are not asked for
	cluster *apiserver.Node     // nil: without the API server
	pods    *kubelet.PodWatcher // nil: the API server tells of pods
	runner  *node.Runner
	push    *otlp.Pusher // nil: nothing is pushed
	prices  *priceList   // nil: without
	wake    chan struct{}

	listingSince clock.Instant // since when sources may list processes; the runner's alone
}

func newAgent(flags *agentFlags, around surroundings, log *slog.Logger) (*agent, error) {
	a := &agent{flags: flags, around: around, clock: around.clock, log: log, wake: make(chan struct{}, 1)}
	if a.around.processes == nil {
		a.around.processes = &gate{}
	}
	registry, observe := liveMetrics()
	a.registry = registry
	a.sampler = device.NewSampler(device.Options{
		Sources: around.sources, Optional: around.optional, Interval: flags.interval, SlowInterval: flags.slowInterval, Clock: a.clock, Log: log,
		Observe: func(source string, seconds float64) { observe.WithLabelValues(source).Observe(seconds) },
	})
	a.kubelet = kubelet.New(kubelet.Options{Socket: around.socket, Log: log, Clock: a.clock, Observe: observe.WithLabelValues(kubelet.SourceName).Observe})
	a.cdi = cdi.New(cdi.Options{Dirs: around.cdiDirs, Log: log, Clock: a.clock, Observe: observe.WithLabelValues(cdi.SourceName).Observe})
	if flags.processes {
		a.cgroup = cgroup.New(cgroup.Options{Procfs: around.procfs, PIDs: a.pids, Log: log, Clock: a.clock, Observe: observe.WithLabelValues(cgroup.SourceName).Observe})
	}
	if around.cluster != nil {
		cluster, err := apiserver.New(apiserver.Options{
			Config: around.cluster, Node: around.node, PodLabels: flags.podLabels, PodsFed: around.podsAPI != "", Log: log, Clock: a.clock,
			Observe: func(source string) func(float64) { return observe.WithLabelValues(source).Observe },
		})
		if err != nil {
			return nil, fmt.Errorf("prepare to read the API server: %w", err)
		}
		a.cluster = cluster
	}
	if around.cluster != nil && around.podsAPI != "" {
		log.Info("following pods by the kubelet's Pods API", "socket", around.podsAPI)
		a.pods = kubelet.NewPodWatcher(kubelet.PodsOptions{
			Socket: around.podsAPI, To: a.cluster.PodFeed(), Log: log, Clock: a.clock, Observe: observe.WithLabelValues(kubelet.PodsSourceName).Observe,
		})
	}
	config, err := flags.config(around.node)
	if err != nil {
		return nil, err
	}
	if config.Prices != nil {
		if a.prices, err = newPriceList(flags.prices, config.Prices, registry, a.clock, log); err != nil {
			return nil, err
		}
	}
	derive, err := flags.derive(config)
	if err != nil {
		return nil, err
	}
	inputs := node.Inputs{Gather: a.gather, Settled: a.settled, Wake: a.wake, Derive: derive}
	a.runner = node.NewRunner(config, inputs, a.clock, log)
	around.push.Traces.On = false // claims' ways are followed by the cluster role
	a.push, err = pushed{settings: around.push, node: around.node, instance: around.node, snapshot: a.shown, live: registry}.pusher(a.clock, log)
	return a, err
}

// gather takes what every source knows now. Nothing in it waits.
func (a *agent) gather() node.Facts {
	listing, _ := a.kubelet.Latest()
	facts := node.Facts{
		Samples:  a.sampler.Latest(),
		Listing:  listing.Resources,
		ListedAt: listing.At,
		CDI:      a.cdi.Latest(),
		Sources:  a.statuses(),

		Processes: a.processes(),
		Prices:    a.prices.prices(),
	}
	if a.cluster != nil {
		known := a.cluster.Latest()
		facts.Cluster = node.Cluster{
			Enabled: true, Fresh: known.PodsFresh, SlicesFresh: known.SlicesFresh,
			Pods: known.Pods, PluginPods: known.PluginPods, Claims: known.Claims, Unread: known.Unread, Published: known.Published,
		}
	}
	return facts
}

// statuses leaves out an optional source whose library was never there.
func (a *agent) statuses() []source.Status {
	var statuses []source.Status
	for _, status := range a.sampler.Statuses() {
		if a.around.optional[status.Name] && status.NeverFound() {
			continue
		}
		statuses = append(statuses, status)
	}
	statuses = append(statuses, a.kubelet.Status(), a.cdi.Status())
	if a.cgroup != nil {
		statuses = append(statuses, a.cgroup.Status())
	}
	if a.cluster != nil {
		statuses = append(statuses, a.cluster.Statuses()...)
	}
	if a.pods != nil {
		statuses = append(statuses, a.pods.Status())
	}
	return statuses
}

// settled reports whether every source has been read once, or has failed.
// Claims are read one by one, after the pods that name them.
func (a *agent) settled() bool {
	claimsDown := false
	for _, status := range a.statuses() {
		tried := !status.LastSuccess.IsZero() || status.Errors > 0
		if status.Name == node.SourceClaims {
			claimsDown = tried && !status.Up
		} else if !tried {
			return false
		}
	}
	return (a.cluster == nil || claimsDown || len(a.cluster.Latest().Unread) == 0) && a.processesSettled()
}

// run serves until the context ends. A source that hangs does not hold it up.
func (a *agent) run(ctx context.Context, server *web.Server) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	a.start(ctx, &running)
	if a.push != nil {
		running.Go(func() { a.push.Run(ctx) })
	}
	return server.Serve(ctx)
}

// start has everything read, until the context ends.
func (a *agent) start(ctx context.Context, running *sync.WaitGroup) {
	running.Go(func() { a.sampler.Run(ctx) })
	running.Go(func() { a.kubelet.Run(ctx) })
	running.Go(func() { a.cdi.Run(ctx) })
	if a.cgroup != nil {
		running.Go(func() { a.cgroup.Run(ctx) })
	}
	running.Go(func() { a.runner.Run(ctx) })
	running.Go(func() { a.listen(ctx) })
	if a.cluster != nil {
		running.Go(func() { a.cluster.Run(ctx) }) // its failures are in its statuses
	}
	if a.pods != nil {
		running.Go(func() { a.pods.Run(ctx) })
	}
}

// listen turns every change into a step, and a change of a pod into a List.
// New readings wait for the owners of their processes, so that one step sees
// both, unless the lookup of earlier ones hangs.
func (a *agent) listen(ctx context.Context) {
	var clusterChanged, podChanged, ownersChanged <-chan struct{}
	if a.cluster != nil {
		clusterChanged, podChanged = a.cluster.Changed(), a.cluster.PodChanged()
	}
	if a.cgroup != nil {
		ownersChanged = a.cgroup.Changed()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-podChanged:
			a.kubelet.Poke()
			continue
		case <-a.sampler.Changed():
			if a.cgroup != nil {
				a.cgroup.Poke()
				if a.cgroup.Status().HungSince.IsZero() {
					continue
				}
			}
		case <-ownersChanged:
		case <-a.kubelet.Changed():
			a.cdi.Poke()
			a.tellListed()
		case <-a.cdi.Changed():
		case <-clusterChanged:
		}
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// tellListed helps to find the claims of pods that the kubelet tells of: it
// lists their names, and does not say them of the pods.
func (a *agent) tellListed() {
	if listing, known := a.kubelet.Latest(); known && a.pods != nil {
		a.cluster.PodFeed().Listed(listing.Resources.Assignments)
	}
}

// reload reads again what can be read again.
func (a *agent) reload() {
	if a.prices == nil {
		nothingToReload(a.log)
		return
	}
	a.prices.reload()
	select {
	case a.wake <- struct{}{}:
	default: // a step is due already
	}
}

// server opens the listeners, so that a wrong address or configuration is
// told before anything runs.
func (a *agent) server(flags *webFlags, log *slog.Logger) (*web.Server, error) {
	access, err := flags.access.access(a.around.cluster, a.registry, a.clock, log)
	if err != nil {
		return nil, err
	}
	pages, err := page.Handlers(page.Config{
		Node: a.around.node, MetricsPath: flags.path, Rows: a.rows, Log: log,
		Now: func() time.Time { return a.clock().Wall }, Troubles: func() map[string]string { return troubles(a.statuses()) },
		Visible: access.visible(),
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the pages: %w", err)
	}
	return web.Listen(access.admit(web.Config{
		Flags: flags.toolkit, Log: log, MetricsPath: flags.path, Pages: pages, Pprof: flags.pprof, Hosts: flags.hosts,
		Metrics: metric.Concat(gatherer(a.page), a.registry), Registry: a.registry,
		Healthy: a.healthy, Ready: a.ready,
	}))
}

func (a *agent) page() prometheus.Gatherer {
	if latest := a.runner.Latest(); latest != nil {
		return latest.Page
	}
	return metric.NewPage(nil)
}

func (a *agent) rows() []metric.Row {
	if latest := a.runner.Latest(); latest != nil {
		return latest.Rows
	}
	return nil
}

// shown is all that the newest page shows, and of when it is.
func (a *agent) shown() ([]metric.Row, time.Time) {
	if latest := a.runner.Latest(); latest != nil {
		return latest.Shown, latest.At.Wall
	}
	return nil, time.Time{}
}

func (a *agent) ready() error {
	if a.runner.Latest() == nil {
		return errors.New("no snapshot yet")
	}
	return nil
}

// healthy fails when a call into a device's library has hung for so long
// that only a restart of the process can free it. A kubelet or an API server
// that hangs is not cured by a restart of ours.
func (a *agent) healthy() error {
	now := a.clock()
	for _, status := range a.sampler.Statuses() {
		if hung := status.HungFor(now); a.flags.restartAfter > 0 && hung > a.flags.restartAfter {
			return fmt.Errorf("a read of %s has hung for %s", status.Name, hung.Round(time.Second))
		}
	}
	return nil
}
