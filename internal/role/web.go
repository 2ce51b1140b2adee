// Package role wires the roles of the exporter: NodeRole reads a node, ClusterRole a cluster,
// and each serves its pages and pushes them. Options are values, independent of flags.
package role

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/kubeauth"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/runbook"
	"github.com/dra-exporter/dra-exporter/internal/web"
)

// WebOptions configure how a role is served, and who may read it.
type WebOptions struct {
	Toolkit     *toolkit.FlagConfig
	AddressFlag string // name of the flag of the addresses; empty: --web.listen-address
	MetricsPath string
	Pprof       bool
	NoProcess   bool     // leave out promhttp_*, process_* and go_*
	Created     bool     // lines _created in OpenMetrics
	Hosts       []string // names of this server
	Links       page.Links

	KubernetesAuth bool // the API server reviews requests
	Audiences      []string
}

type pageHandlers = map[string]http.Handler

// server has the parts of a role that its web server needs.
type server struct {
	api            *rest.Config // nil: without the API server
	registry       *prometheus.Registry
	filter         *metric.Filter // of the registry; the page is filtered already
	clock          clock.Clock
	page           func() *metric.Page // of the newest snapshot; nil before the first
	healthy, ready func() error
	pages          func(page.Visible) (pageHandlers, error)
}

func (o WebOptions) listen(s server, log *slog.Logger) (*web.Server, error) {
	var pages pageHandlers
	guard, err := o.guard(s, func(path string) bool { _, ok := pages[path]; return ok }, log)
	if err != nil {
		return nil, err
	}
	if pages, err = s.pages(visible(guard)); err != nil {
		return nil, fmt.Errorf("prepare the pages: %w", err)
	}
	more, err := runbook.Handlers()
	if err != nil {
		return nil, fmt.Errorf("prepare the runbooks: %w", err)
	}
	maps.Copy(pages, more)
	var instrument prometheus.Registerer
	if !o.NoProcess {
		instrument = s.registry
		addProcessMetrics(s.registry, s.filter)
	}
	config := web.Config{
		Flags: o.Toolkit, Log: log, MetricsPath: o.MetricsPath, Pages: pages, Pprof: o.Pprof, Hosts: o.Hosts,
		Page: s.page, Metrics: s.filter.Gatherer(s.registry), Registry: instrument, Created: o.Created,
		Healthy: s.healthy, Ready: s.ready, AddressFlag: o.AddressFlag,
	}
	if guard != nil {
		config.Admit = guard.Handler
	}
	return web.Listen(config)
}

// guard reviews requests by the API server; nil: all are admitted.
func (o WebOptions) guard(s server, isPage func(path string) bool, log *slog.Logger) (*kubeauth.Guard, error) {
	if !o.KubernetesAuth {
		return nil, nil
	}
	family := self.AccessReviews()
	reviews := prometheus.NewCounterVec(prometheus.CounterOpts{Name: family.Name, Help: family.Help}, family.Labels)
	if err := s.registry.Register(reviews); err != nil {
		return nil, fmt.Errorf("count reviews: %w", err)
	}
	guard, err := kubeauth.New(kubeauth.Options{
		Config: s.api, Audiences: o.Audiences, Clock: s.clock, Log: log, Page: isPage,
		Observe: func(review, outcome string) { reviews.WithLabelValues(review, outcome).Inc() },
	})
	if err != nil {
		return nil, fmt.Errorf("prepare --web.kubernetes-auth: %w", err)
	}
	return guard, nil
}

// visible returns the function that limits what a reader of the pages may see; nil: all
// see everything.
func visible(guard *kubeauth.Guard) page.Visible {
	if guard == nil {
		return nil
	}
	return func(r *http.Request, namespaces []string) (map[string]bool, bool, error) {
		visible, all, err := guard.Namespaces(r, namespaces)
		if err != nil {
			status, message := kubeauth.Answer(err)
			err = &page.Refusal{Status: status, Message: message}
		}
		return visible, all, err
	}
}

// messages returns those of sources that have one, by name.
func messages(statuses []source.Status) map[string]string {
	texts := make(map[string]string)
	for _, status := range statuses {
		if status.Message != "" {
			texts[status.Name] = status.Message
		}
	}
	return texts
}
