package otlp

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// scopeName is the instrumentation scope of metrics and spans.
const scopeName = "github.com/dra-exporter/dra-exporter"

// rowNaming converts the rows of a snapshot to gauges and sums with the time of
// the snapshot; its model may be nil. It may keep state between calls, and is not safe
// for concurrent use. The caller may change what it returns, except for the attribute
// sets.
type rowNaming interface {
	Metrics(rows []metric.Row, node *model.Node, at time.Time) []metricdata.Metrics
}

// producer assembles a push: the converted rows of the newest snapshot, and the
// live metrics. It is safe for concurrent use.
type producer struct {
	Options

	mu        sync.Mutex
	naming    rowNaming
	stale     *staleSeries
	liveError bool // the live metrics could not be gathered last time, and that was logged
}

// newProducer returns a producer for a reader of OpenTelemetry's SDK. Of the
// options it uses Snapshot, Live, Clock, Log and, of the settings,
// ExponentialHistograms.
func newProducer(naming rowNaming, options Options) *producer {
	return &producer{Options: options, naming: naming, stale: newStaleSeries()}
}

// Produce returns one scope with everything that the scrape has, and markers for
// series that have ended; or nothing before the first snapshot. Rows have the
// time of their snapshot, live metrics that of the call: a snapshot may be pushed
// twice, and a value that has changed in between must not have the old time.
//
// The error is always nil: the reader exports nothing if there is one.
func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows, node, at := p.Snapshot()
	if at.IsZero() {
		return nil, nil
	}
	converted := p.naming.Metrics(rows, node, at)
	live, now := p.liveMetrics()
	metrics := p.stale.add(converted, live, pushTimes{rows: at, live: now, elapsed: p.Clock().Elapsed})
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: scopeName}, Metrics: metrics}}, nil
}

// delivered records that the collector accepted what Produce returned last: its
// stale markers need not be sent again.
func (p *producer) delivered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stale.delivered()
}

// liveMetrics returns those of the registry, and when they were gathered. If
// gathering fails, it returns what was gathered.
func (p *producer) liveMetrics() ([]metricdata.Metrics, time.Time) {
	if p.Live == nil {
		return nil, time.Time{}
	}
	families, err := p.Live.Gather()
	if err != nil && !p.liveError {
		p.Log.Warn("some live metrics cannot be pushed", "err", err)
	}
	p.liveError = err != nil
	now := p.Clock().Wall
	return conversion{at: now, exponential: p.Settings.ExponentialHistograms}.metrics(families), now
}
