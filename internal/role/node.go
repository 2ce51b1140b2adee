package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/cdi"
	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
	"github.com/dra-exporter/dra-exporter/collector/devicerelease"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/web"
	"github.com/dra-exporter/dra-exporter/kubelet"
)

// NodeOptions configure a NodeRole, on a real host or in the demo.
type NodeOptions struct {
	Name   string
	Config node.Config // without the name
	Derive func(node.Snapshot) []metric.Row

	SlowInterval time.Duration
	RestartAfter time.Duration // Healthy fails after a read has hung for so long; 0: never, nor does the role end if a driver was replaced
	Release      devicerelease.Options
	ReleaseFile  string // whose existence releases the devices; empty: none
	Processes    bool   // split devices by processes where they are visible
	HideSerials  bool   // show no serial number of hardware
	PriceFile    string // that Config.Prices are from

	Clock     clock.Clock
	Sources   []device.Source
	Optional  map[string]bool // sources whose library may be missing
	Gate      *Gate           // enables lists of processes in the sources; nil: no source has them
	Socket    string          // of the kubelet's PodResources API
	PodsAPI   string          // socket; empty: pods are watched at the API server
	CDIDirs   []string
	Procfs    string
	Sysfs     string            // where the locations of PCI functions are read; empty: nowhere
	API       *rest.Config      // nil: without the API server
	Workloads *decode.Workloads // determines the workloads of pods; nil: by known frameworks
	Push      settings.Settings
	Filter    *metric.Filter // what scrapes and pushes have; nil: everything
}

// NodeRole is the node role: every source, the reducer, and the pages.
type NodeRole struct {
	options  NodeOptions
	log      *slog.Logger
	registry *prometheus.Registry

	sampler *device.Sampler
	kubelet *kubelet.Client
	cdi     *cdi.Reader
	places  *sysfs.LocationReader // nil: only slices have the locations of devices
	cgroup  *cgroup.Reader        // nil: processes are not split
	cluster *apiserver.NodeWatch  // nil: without the API server
	pods    *kubelet.PodWatcher   // nil: pods are watched at the API server
	runner  *node.Runner
	release *releases
	push    *otlp.Pusher // nil: nothing is pushed
	prices  *priceList   // nil: without
	history *page.History
	wake    chan struct{}
	pace    *samplingPace

	processes processes

	claimsNamed atomic.Bool // the claims of the kubelet's first List were given to the feed of pods
	gathered    bool        // a step has begun with all claims read; only used by the runner
	complete    atomic.Bool // and has been published
}

// NewNodeRole wires the role and starts nothing.
func NewNodeRole(options NodeOptions, log *slog.Logger) (*NodeRole, error) {
	options.Config.Node = options.Name
	if options.Gate == nil {
		options.Gate = &Gate{}
	}
	n := &NodeRole{options: options, log: log, wake: make(chan struct{}, 1), history: page.NewHistory()}
	now, config := options.Clock, options.Config
	live := newLiveMetrics()
	registry := live.registry
	n.registry = registry
	n.sampler = device.NewSampler(device.Options{
		Sources: options.Sources, Optional: options.Optional, Interval: config.Interval, SlowInterval: options.SlowInterval,
		HideSerials: options.HideSerials, Clock: now, Log: log,
		Observe: func(source string, seconds float64) { live.observeRead(source)(seconds) },
	})
	n.pace = &samplingPace{interval: config.Interval, always: options.Derive != nil, clock: now}
	n.processes = processes{enabled: options.Processes, gate: options.Gate, clock: now, interval: config.Interval, sampler: n.sampler}
	n.kubelet = kubelet.New(kubelet.Options{Socket: options.Socket, Log: log, Clock: now, Observe: live.observeRead(kubelet.SourceName)})
	n.cdi = cdi.New(cdi.Options{Dirs: options.CDIDirs, Log: log, Clock: now, Observe: live.observeRead(cdi.SourceName)})
	if options.Sysfs != "" {
		n.places = sysfs.NewLocationReader(options.Sysfs, log)
	}
	if options.Processes {
		n.cgroup = cgroup.New(cgroup.Options{Procfs: options.Procfs, PIDs: n.processes.pids, Log: log, Clock: now, Observe: live.observeRead(cgroup.SourceName)})
	}
	if options.API != nil {
		cluster, err := apiserver.New(apiserver.Options{
			Config: options.API, Node: options.Name, PodLabels: config.PodLabels, NodeLabels: options.Release.Labels, Workloads: options.Workloads, PodsFed: options.PodsAPI != "", Log: log, Clock: now,
			Observe: live.observeRead,
		})
		if err != nil {
			return nil, fmt.Errorf("prepare to read the API server: %w", err)
		}
		n.cluster = cluster
	}
	if options.API != nil && options.PodsAPI != "" {
		log.Info("watching pods through the kubelet's Pods API", "socket", options.PodsAPI)
		n.pods = kubelet.NewPodWatcher(kubelet.PodsOptions{
			Socket: options.PodsAPI, To: n.cluster.PodFeed(), Log: log, Clock: now, Observe: live.observeRead(kubelet.PodsSourceName),
		})
	}
	labels := func() (map[string]string, bool) { return nil, true }
	if n.cluster != nil {
		labels = n.cluster.Labels
	}
	n.release = &releases{
		file: options.ReleaseFile, sysfs: options.Sysfs, policy: devicerelease.New(options.Release), idle: options.Release.Idle, labels: labels,
		sampler: n.sampler, clock: now, log: log,
	}
	n.processes.kubelet, n.processes.cgroup, n.processes.cluster = n.kubelet, n.cgroup, n.cluster
	var err error
	if config.Prices != nil {
		if n.prices, err = newPriceList(options.PriceFile, config.Prices, registry, now, log); err != nil {
			return nil, err
		}
	}
	inputs := node.Inputs{
		Gather:  func() node.Facts { n.gathered = n.gathered || n.claimsRead(); return n.gather() },
		Settled: n.allRead, Wake: n.wake, Derive: options.Derive, Filter: options.Filter,
		ObserveStep: func(took time.Duration) {
			n.complete.Store(n.gathered)
			n.sampler.SetPace(n.pace.next(n.model()))
			live.observeStep(took)
		},
	}
	n.runner = node.NewRunner(config, inputs, now, log)
	options.Push.Traces.On = false // traces are the cluster role's
	n.push, err = pushConfig{settings: options.Push, version: config.Version.Version, node: options.Name, instance: options.Name, snapshot: n.snapshot, live: registry, filter: options.Filter}.pusher(now, log)
	return n, err
}

// gather returns the latest values of every source. It does not block. Statuses come
// first: what a source that has been read has is then in the values.
func (n *NodeRole) gather() node.Facts {
	statuses := n.statuses()
	listing, _ := n.kubelet.Latest()
	facts := node.Facts{
		Samples:  n.sampler.Latest(),
		Listing:  listing.Resources,
		ListedAt: listing.At,
		CDI:      n.cdi.Latest(),
		Sources:  statuses,

		Access:    n.release.access(),
		Processes: n.processes.update(),
		Prices:    n.prices.prices(),
	}
	if n.places != nil {
		facts.Locations = n.places.Latest()
	}
	if n.cluster != nil {
		known := n.cluster.Latest()
		facts.Cluster = node.APIFacts{
			Enabled: true, Fresh: known.PodsFresh, SlicesFresh: known.SlicesFresh,
			Pods: known.Pods, PluginPods: known.PluginPods, Claims: known.Claims, Unread: known.Unread, Published: known.Published,
		}
	}
	n.release.facts.Store(&facts)
	return facts
}

// statuses returns the statuses of all sources, without optional ones whose library was
// never found.
func (n *NodeRole) statuses() []source.Status {
	var statuses []source.Status
	for _, status := range n.sampler.Statuses() {
		if n.options.Optional[status.Name] && status.NeverFound() {
			continue
		}
		statuses = append(statuses, status)
	}
	statuses = append(statuses, n.kubelet.Status(), n.cdi.Status())
	if n.cgroup != nil {
		statuses = append(statuses, n.cgroup.Status())
	}
	if n.cluster != nil {
		statuses = append(statuses, n.cluster.Statuses()...)
	}
	if n.pods != nil {
		statuses = append(statuses, n.pods.Status())
	}
	return statuses
}

// allRead reports whether every source has been read once, or has failed.
func (n *NodeRole) allRead() bool {
	if n.release.starting() {
		return false
	}
	for _, status := range n.statuses() {
		if !status.Tried() && status.Name != node.SourceClaims {
			return false
		}
	}
	return n.claimsRead() && (n.claimsDown() || len(n.cluster.Latest().Unread) == 0) && n.processes.allListed()
}

// claimsRead reports whether the claims of all pods are known by name, and have been
// read, or why not is reported: their source has failed, the source of the pods that
// name them, or the read of a single claim.
func (n *NodeRole) claimsRead() bool {
	if n.cluster == nil {
		return true
	}
	for _, status := range n.statuses() {
		pods := status.Name == node.SourcePods || status.Name == kubelet.PodsSourceName
		if pods && !status.Tried() {
			return false
		}
	}
	_, listed := n.kubelet.Latest()
	named := n.pods == nil || !listed || n.claimsNamed.Load()
	return n.claimsDown() || named && n.cluster.ClaimsTried()
}

// claimsDown reports whether claims cannot be read at all.
func (n *NodeRole) claimsDown() bool {
	if n.cluster == nil {
		return true
	}
	return slices.ContainsFunc(n.cluster.Statuses(), func(s source.Status) bool {
		return s.Name == node.SourceClaims && s.Tried() && !s.Up
	})
}

// LatestValues has the latest values of all sources, for a check of the role.
type LatestValues struct {
	Facts   node.Facts
	Listed  bool // the kubelet has responded
	Kubelet source.Status
	CDI     source.Status
	PodsAPI *source.Status  // nil: not used
	API     []source.Status // nil: without the API server
	Devices []source.Status
	Rows    []metric.Row // of the newest snapshot
}

// Known returns the latest values.
func (n *NodeRole) Known() LatestValues {
	_, listed := n.kubelet.Latest()
	known := LatestValues{Facts: n.gather(), Listed: listed, Kubelet: n.kubelet.Status(), CDI: n.cdi.Status(), Devices: n.sampler.Statuses(), Rows: n.rows()}
	if n.pods != nil {
		status := n.pods.Status()
		known.PodsAPI = &status
	}
	if n.cluster != nil {
		known.API = n.cluster.Statuses()
	}
	return known
}

// Unread returns the names of sources that have neither been read nor failed. Claims
// are not read if no pod names one.
func (n *NodeRole) Unread() []string {
	return slices.DeleteFunc(source.Unread(n.statuses()), func(name string) bool {
		return name == node.SourceClaims && len(n.cluster.Latest().Unread) == 0
	})
}

// HasSnapshot reports whether there is a snapshot.
func (n *NodeRole) HasSnapshot() bool { return n.runner.Latest() != nil }

// Run serves until the context ends, or fails when only another process can read the
// devices. What hangs is abandoned after a bounded time.
func (n *NodeRole) Run(ctx context.Context, server *web.Server) error {
	ctx, stop := context.WithCancelCause(ctx)
	var running Parts
	defer running.Wait(n.log)
	defer stop(nil)
	n.Start(ctx, &running)
	if n.options.RestartAfter > 0 {
		running.Go("libraries", func() { n.watchLibraries(ctx, stop) })
	}
	running.Go("history", func() { n.history.Run(ctx, n.model, func() time.Duration { return n.options.Clock().Elapsed }) })
	if n.push != nil {
		running.Go("push by OTLP", func() { n.push.Run(ctx) })
	}
	err := server.Serve(ctx)
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// Start reads all sources until the context ends, as parts.
func (n *NodeRole) Start(ctx context.Context, running *Parts) {
	n.release.prepare()
	running.Go("devices", func() { n.sampler.Run(ctx) })
	running.Go("release", func() { n.release.run(ctx) })
	if n.options.ReleaseFile != "" {
		running.Go("release file", func() { n.release.watchFile(ctx) })
	}
	running.Go(kubelet.SourceName, func() { n.kubelet.Run(ctx) })
	running.Go(cdi.SourceName, func() { n.cdi.Run(ctx) })
	if n.places != nil {
		running.Go("sysfs", func() { n.places.Run(ctx) })
	}
	if n.cgroup != nil {
		running.Go(cgroup.SourceName, func() { n.cgroup.Run(ctx) })
	}
	running.Go("reducer", func() { n.runner.Run(ctx) })
	running.Go("steps", func() { n.triggerSteps(ctx) })
	if n.cluster != nil {
		running.Go("API server", func() { n.cluster.Run(ctx) }) // its statuses have its errors
	}
	if n.pods != nil {
		running.Go(kubelet.PodsSourceName, func() { n.pods.Run(ctx) })
	}
}

// triggerSteps triggers a step for each change, and a List for a change of a pod. New
// readings trigger a step once the owners of their processes have been looked up, so
// that one step has both, unless the lookup of earlier ones hangs.
func (n *NodeRole) triggerSteps(ctx context.Context) {
	var clusterChanged, podChanged, ownersChanged, placesChanged <-chan struct{}
	if n.places != nil {
		placesChanged = n.places.Changed()
	}
	if n.cluster != nil {
		clusterChanged, podChanged = n.cluster.Changed(), n.cluster.PodChanged()
	}
	if n.cgroup != nil {
		ownersChanged = n.cgroup.Changed()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-podChanged:
			n.kubelet.RequestList()
			n.pace.noteNeed()
			continue
		case <-n.sampler.Changed():
			if n.cgroup != nil {
				n.cgroup.Refresh()
				if n.cgroup.Status().HungSince.IsZero() {
					continue
				}
			}
		case <-ownersChanged:
		case <-n.kubelet.Changed():
			n.cdi.Refresh()
			// The Pods API names pods without their claims, which the List names.
			if listing, ok := n.kubelet.Latest(); ok && n.pods != nil {
				n.cluster.PodFeed().Listed(listing.Resources.Assignments)
				n.claimsNamed.Store(true)
			}
		case <-n.cdi.Changed():
		case <-placesChanged:
		case <-clusterChanged:
			n.pace.noteNeed() // devices may change hands
		}
		n.triggerStep()
	}
}

func (n *NodeRole) triggerStep() {
	select {
	case n.wake <- struct{}{}:
	default: // a step is due already
	}
}

// Reload reads the price list again, until the context ends.
func (n *NodeRole) Reload(ctx context.Context) {
	if n.prices == nil {
		logNothingToReload(n.log)
		return
	}
	n.prices.reload(ctx)
	n.triggerStep()
}

// Server opens the listeners, so that a wrong address or configuration fails before
// anything runs.
func (n *NodeRole) Server(options WebOptions, log *slog.Logger) (*web.Server, error) {
	return options.listen(server{
		api: n.options.API, registry: n.registry, filter: n.options.Filter, clock: n.options.Clock, page: n.page, healthy: n.healthy, ready: n.Ready,
		pages: func(visible page.Visible) (pageHandlers, error) {
			return page.Handlers(page.Config{
				Node: n.options.Name, MetricsPath: options.MetricsPath, Model: func() *model.Node { n.pace.noteNeed(); return n.model() }, Log: log,
				Now: func() time.Time { return n.options.Clock().Wall }, Messages: func() map[string]string { return messages(n.statuses()) },
				Visible: visible, Links: options.Links, History: n.history,
			})
		},
	}, log)
}

// model returns the newest model; nil before the first.
func (n *NodeRole) model() *model.Node {
	if latest := n.runner.Latest(); latest != nil {
		return latest.Model
	}
	return nil
}

func (n *NodeRole) page() *metric.Page {
	n.pace.noteScrape()
	if latest := n.runner.Latest(); latest != nil {
		return latest.Page()
	}
	return nil
}

func (n *NodeRole) rows() []metric.Row {
	if latest := n.runner.Latest(); latest != nil {
		return latest.Rows()
	}
	return nil
}

// snapshot returns the rows of the newest page, the model behind it, and its time.
func (n *NodeRole) snapshot() ([]metric.Row, *model.Node, time.Time) {
	if latest := n.runner.Latest(); latest != nil {
		return latest.Shown(), latest.Model, latest.At.Wall
	}
	return nil, nil, time.Time{}
}

// Ready fails until a snapshot has been published that lacks no claim for being
// unread. A source that has failed does not keep it from being ready, nor one that
// fails later. Before, the page is served as far as it is known.
func (n *NodeRole) Ready() error {
	switch {
	case n.runner.Latest() == nil:
		return errors.New("no snapshot yet")
	case !n.complete.Load():
		return errors.New("not all claims of the node's pods have been read yet")
	default:
		return nil
	}
}

// healthy fails if a call into a device's library has hung for longer than
// RestartAfter, because only a restart of the process can end it. A restart does not
// help against a kubelet or an API server that hangs.
func (n *NodeRole) healthy() error {
	now := n.options.Clock()
	for _, status := range n.sampler.Statuses() {
		if hung := status.HungFor(now); n.options.RestartAfter > 0 && hung > n.options.RestartAfter {
			return fmt.Errorf("a read of %s has hung for %s", status.Name, hung.Round(time.Second))
		}
	}
	return nil
}

// replacedLimit is for how long a library may be that of another driver than the one
// that is loaded, before the process ends.
const replacedLimit = 15 * time.Second

// watchLibraries ends the role if the driver of a library was replaced: only another
// process can open the new library.
func (n *NodeRole) watchLibraries(ctx context.Context, end context.CancelCauseFunc) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(clock.UntilNext(time.Second))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := n.options.Clock()
		for _, status := range n.sampler.Statuses() {
			if status.EndedFor(now) > replacedLimit && !status.Released {
				end(fmt.Errorf("end, so that another process opens the library of the new driver: %s: %s", status.Name, status.Message))
			}
		}
	}
}
