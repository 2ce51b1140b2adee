package otlp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// scopeName is who says what is pushed, as OpenTelemetry asks it of everything
// that makes metrics and spans.
const scopeName = "github.com/dra-exporter/dra-exporter"

// producer puts a push together: the rows of the newest snapshot, spelt by a
// naming, and the live metrics. It is safe for concurrent use.
type producer struct {
	snapshot    func() ([]metric.Row, time.Time)
	live        prometheus.Gatherer
	exponential bool
	clock       clock.Clock
	log         *slog.Logger

	mu       sync.Mutex
	naming   naming
	vanished *vanished
	silent   bool // the last look at the live metrics failed, and was told
}

// newProducer returns what a reader of OpenTelemetry's SDK asks for metrics at
// each push. Of the options it takes Snapshot, Live, Clock, Log and, of the
// settings, ExponentialHistograms.
func newProducer(naming naming, options Options) *producer {
	return &producer{
		naming: naming, vanished: newVanished(), snapshot: options.Snapshot, live: options.Live,
		exponential: options.Settings.ExponentialHistograms, clock: options.Clock, log: options.Log,
	}
}

// Produce returns one scope with everything that the scrape has, and, without a
// value, what it had before and has no more; or nothing before the first
// snapshot. Rows have the time of their snapshot, live metrics
// that of the call: a snapshot may be pushed twice, and a value that has
// changed meanwhile must not come with the time of the old one.
//
// The error is always nil. A reader that is given one exports nothing, not
// even what is beside the error.
func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows, at := p.snapshot()
	if at.IsZero() {
		return nil, nil
	}
	spelled := p.naming.metrics(rows, at)
	live, now := p.liveMetrics()
	metrics := p.vanished.add(spelled, live, pushTimes{rows: at, live: now})
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: scopeName}, Metrics: metrics}}, nil
}

// taken says that the collector has what Produce returned last: it need not be
// told again which series are no more.
func (p *producer) taken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vanished.told()
}

// liveMetrics are those of the registry, and the time at which they were
// gathered. What a gatherer that fails has gathered all the same is taken.
func (p *producer) liveMetrics() ([]metricdata.Metrics, time.Time) {
	if p.live == nil {
		return nil, time.Time{}
	}
	families, err := p.live.Gather()
	if err != nil && !p.silent {
		p.log.Warn("some live metrics cannot be pushed", "err", err)
	}
	p.silent = err != nil
	now := p.clock().Wall
	return liveConversion{at: now, exponential: p.exponential}.metrics(families), now
}
