package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/headroom"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/explain"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/web"
)

const (
	// clusterInstance is the instance label that the shipped scrape configurations
	// give the cluster role.
	clusterInstance = "cluster"
	// restInterval is the time between two steps if nothing has changed: the ages of
	// sources still change.
	restInterval = 5 * time.Second
	// stuckAfter is the age of the newest snapshot at which the role is unhealthy.
	stuckAfter = 5 * time.Minute
)

// ClusterOptions configure a ClusterRole, in a real cluster or in the demo.
type ClusterOptions struct {
	API       *rest.Config
	Version   self.Build
	Budget    float64 // share of a core for diagnoses and the headroom
	Shapes    int     // that claims request, for the headroom
	MaxSeries int     // of one family; 0: no limit
	Explain   string  // the command that the page offers, as in page.Config
	Clock     clock.Clock
	Push      settings.Settings
	Filter    *metric.Filter    // what scrapes and pushes have; nil: everything
	Workloads *decode.Workloads // determines the workloads of pods; nil: by known frameworks
	Topology  *decode.Topology  // determines the domains of nodes; nil: by known labels
}

// ClusterRole is the cluster role: the API server, the inventory and the diagnoser over
// it, the reducer, and the pages.
type ClusterRole struct {
	options  ClusterOptions
	log      *slog.Logger
	registry *prometheus.Registry

	cluster   *apiserver.ClusterWatch
	inventory *inventory.Inventory
	diagnoser *diagnosis.Diagnoser
	headroom  *headroom.Planner
	runner    *cluster.Runner
	live      *explain.Live
	push      *otlp.Pusher // nil: nothing is pushed
	wake      chan struct{}
}

// NewClusterRole wires the role and starts nothing.
func NewClusterRole(options ClusterOptions, log *slog.Logger) (*ClusterRole, error) {
	live := newLiveMetrics()
	registry := live.registry
	c := &ClusterRole{options: options, log: log, registry: registry, inventory: inventory.New(), wake: make(chan struct{}, 1)}
	var err error
	c.cluster, err = apiserver.NewClusterWatch(apiserver.ClusterWatchOptions{
		Config: options.API, Keeper: c.inventory, Log: log, Clock: options.Clock, Workloads: options.Workloads, Topology: options.Topology,
		Observe: live.observeRead,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to read the API server: %w", err)
	}
	c.headroom = headroom.New(headroom.Options{Inventory: c.inventory, Clock: options.Clock, Shapes: options.Shapes, Ready: c.knowsDevices, KnowsNodes: c.knowsNodes})
	c.diagnoser = diagnosis.New(diagnosis.Options{Inventory: c.inventory, Clock: options.Clock, Log: log, Budget: options.Budget, Background: c.headroom.Work})
	c.runner, err = cluster.NewRunner(
		cluster.Config{Version: options.Version, Interval: restInterval, MaxSeries: options.MaxSeries, Traces: options.Push.Traces.On},
		cluster.Inputs{
			Drain: c.cluster.Drain, Synced: c.cluster.Synced,
			Supply: c.inventory.Supply, Headroom: c.headroom.Latest, Diagnoses: c.diagnoser.Diagnoses, Work: c.diagnoser.Work, SetQuestions: c.diagnoser.SetQuestions,
			Statuses: c.cluster.Statuses, Settled: c.cluster.Settled, Wake: c.wake, ObserveStep: live.observeStep, Traced: c.pushTraces, Sampled: c.isSampled,
			Filter: options.Filter,
		}, registry, options.Clock, log)
	if err != nil {
		return nil, err
	}
	c.live = &explain.Live{
		Running: clusterread.Running{
			Latest: c.runner.Latest, Objects: c.runner.Objects, Statuses: c.cluster.Statuses,
			Inventory: c.inventory, Diagnoser: c.diagnoser, Clock: options.Clock,
		},
		Budget: options.Budget,
	}
	c.push, err = pushConfig{settings: options.Push, version: options.Version.Version, instance: clusterInstance, snapshot: c.snapshot, live: registry, filter: options.Filter}.pusher(options.Clock, log)
	return c, err
}

// knowsDevices reports whether claims, slices and classes have been listed.
func (c *ClusterRole) knowsDevices() bool {
	synced := c.cluster.Synced()
	return synced.Claims && synced.Slices && synced.Classes
}

// knowsNodes reports whether nodes, and all pods on them, have been listed.
func (c *ClusterRole) knowsNodes() bool {
	synced := c.cluster.Synced()
	return synced.Nodes && synced.Pods
}

// pushTraces pushes traces that have ended.
func (c *ClusterRole) pushTraces(traces []trace.Trace) {
	if c.push != nil {
		c.push.Trace(traces)
	}
}

// isSampled reports whether the trace will be pushed, so that exemplars may refer to it.
func (c *ClusterRole) isSampled(id trace.ID) bool { return c.push != nil && c.push.Sampled(id) }

// snapshot returns the rows of the newest page, and its time. None of them is of a device.
func (c *ClusterRole) snapshot() ([]metric.Row, *model.Node, time.Time) {
	if latest := c.runner.Latest(); latest != nil {
		return latest.Shown(), nil, latest.At.Wall
	}
	return nil, nil, time.Time{}
}

// Run serves until the context ends. What hangs is abandoned after a bounded time.
func (c *ClusterRole) Run(ctx context.Context, server *web.Server) error {
	ctx, stop := context.WithCancel(ctx)
	var running Parts
	defer running.Wait(c.log)
	defer stop()
	running.Go("API server", func() { c.cluster.Run(ctx) })      // its statuses have its errors
	running.Go("diagnoses", func() { _ = c.diagnoser.Run(ctx) }) // its only error is the end of the context
	running.Go("reducer", func() { c.runner.Run(ctx) })
	running.Go("steps", func() { c.triggerSteps(ctx) })
	if c.push != nil {
		running.Go("push by OTLP", func() { c.push.Run(ctx) })
	}
	return server.Serve(ctx)
}

// triggerSteps triggers a step for each change and each new diagnosis.
func (c *ClusterRole) triggerSteps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.cluster.Changed():
		case <-c.diagnoser.Changed():
		}
		select {
		case c.wake <- struct{}{}:
		default: // a step is due already
		}
	}
}

// Reload logs that there is no file to read again.
func (c *ClusterRole) Reload(context.Context) { logNothingToReload(c.log) }

// Server opens the listeners, so that a wrong address or configuration fails before
// anything runs.
func (c *ClusterRole) Server(options WebOptions, log *slog.Logger) (*web.Server, error) {
	return options.listen(server{
		api: c.options.API, registry: c.registry, filter: c.options.Filter, clock: c.options.Clock, page: c.page, healthy: c.healthy, ready: c.Ready,
		pages: func(visible page.Visible) (pageHandlers, error) {
			return page.ClusterHandlers(page.Config{
				MetricsPath: options.MetricsPath, Cluster: c.model, Log: log, Explain: c.options.Explain, Links: options.Links, Explanation: c.explain,
				Now: func() time.Time { return c.options.Clock().Wall }, Messages: func() map[string]string { return messages(c.cluster.Statuses()) },
				Visible: visible,
			})
		},
	}, log)
}

// model returns the newest model; nil before the first.
func (c *ClusterRole) model() *model.Cluster {
	if latest := c.runner.Latest(); latest != nil {
		return latest.Model
	}
	return nil
}

func (c *ClusterRole) page() *metric.Page {
	if latest := c.runner.Latest(); latest != nil {
		return latest.Page()
	}
	return nil
}

// explain explains an object for the pages.
func (c *ClusterRole) explain(ctx context.Context, object page.ExplainedObject) (*page.Explanation, error) {
	report, err := c.live.Report(ctx, clusterread.Subject{Kind: clusterread.Kind(object.Kind), Namespace: object.Namespace, Name: object.Name}, object.NamespaceOnly)
	if missing := (*explain.NotFoundError)(nil); errors.As(err, &missing) {
		return nil, &page.Refusal{Status: http.StatusNotFound, Message: missing.Error()}
	}
	if err != nil {
		return nil, err
	}
	answer := report.Answer()
	return &page.Explanation{
		Pending: len(report.Pending) > 0, Conclusion: answer.Conclusion, Remedies: answer.Remedies, Events: answer.Events, Report: report.Text(false), Evidence: answer.Evidence,
	}, nil
}

// Ready fails until a snapshot has been published.
func (c *ClusterRole) Ready() error {
	if c.runner.Latest() == nil {
		return errors.New("no snapshot yet: the API server's objects are still being listed")
	}
	return nil
}

// healthy fails if the newest snapshot is older than stuckAfter, which only a restart
// of the process can resolve. A restart does not help against an API server that hangs.
func (c *ClusterRole) healthy() error {
	latest := c.runner.Latest()
	if latest == nil {
		return nil
	}
	if age := c.options.Clock().Since(latest.At); age > stuckAfter {
		return fmt.Errorf("the newest snapshot is %s old", age.Round(time.Second))
	}
	return nil
}
