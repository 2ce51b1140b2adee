package otlp

import (
	"context"
	"math"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

const (
	// mostPoints is how many data points one request has. Collectors take
	// messages of 4 MiB by gRPC; points of ours have 200 to 500 bytes, and 1.5 KiB
	// where namespaces, claims and pods have the longest names there can be. A
	// quarter of what would fit takes 5 MiB less memory while it is sent.
	mostPoints = 1024
	// firstLook is how often it is looked whether there is a snapshot.
	firstLook = 100 * time.Millisecond
	// never is an interval at which nothing ever happens.
	never = time.Duration(math.MaxInt64)
)

// runMetrics pushes once there is a snapshot, then at the interval, and at the
// end of ctx once more.
func (p *Pusher) runMetrics(ctx context.Context) {
	if !p.awaitSnapshot(ctx) {
		_ = p.shutMetrics(ctx) // nothing was pushed: it has nothing to say
		return
	}
	reader := p.newReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(p.resource), sdkmetric.WithReader(reader))
	for ctx.Err() == nil {
		began := p.options.Clock()
		p.push(ctx, reader)
		wait(ctx, p.untilNext(began))
	}
	// This cancels a push that is under way, and makes the last one. Its
	// failure has been counted and logged like any other's.
	ending, cancel := ended(ctx, lastFlush)
	defer cancel()
	_ = provider.Shutdown(ending)
	p.metrics.end()
}

// awaitSnapshot reports whether there is a snapshot; false: ctx has ended
// before. Without one there is nothing to push, not even live metrics: they
// would show an exporter that sees no devices.
func (p *Pusher) awaitSnapshot(ctx context.Context) bool {
	for {
		if _, at := p.options.Snapshot(); !at.IsZero() {
			return true
		}
		if !wait(ctx, firstLook) {
			return false
		}
	}
}

// newReader makes the SDK's reader, which collects, splits into requests and
// exports. It is asked to by push alone, never by its own ticker: its first
// push would come an interval too late, it does not know for how long a
// collector would be left alone, and what it has to say goes to a global. Its timeout is
// one of each request.
func (p *Pusher) newReader() *sdkmetric.PeriodicReader {
	naming := newPrometheusNaming()
	if p.options.Settings.Naming == namingSemconv {
		naming = newSemconvNaming()
	}
	producer := newProducer(naming, p.options)
	p.taken = producer.taken
	rounds := &rounds{Producer: producer, begin: p.metrics.begin}
	return sdkmetric.NewPeriodicReader(p.metrics, sdkmetric.WithProducer(rounds), sdkmetric.WithInterval(never),
		sdkmetric.WithTimeout(p.options.Settings.Timeout), sdkmetric.WithMaxExportBatchSize(mostPoints))
}

// push collects and exports, and returns when that is done or ctx ends.
func (p *Pusher) push(ctx context.Context, reader *sdkmetric.PeriodicReader) {
	// Without a deadline the reader would set one for the whole push, after
	// which it would go on behind our back.
	waiting, cancel := context.WithTimeout(ctx, never)
	defer cancel()
	err := reader.ForceFlush(waiting)
	if ctx.Err() != nil {
		return // it may be cut off: the last push says how things are
	}
	if err != nil {
		p.options.Log.Warn("metrics cannot be collected for a push", "err", err)
	}
	if p.metrics.end() {
		p.taken()
	}
}

// untilNext is how long to wait after a push. Pushes are as far apart as the
// interval says; those that a slow one has missed are left out. A collector
// that asks to be left alone is, for some minutes at most.
func (p *Pusher) untilNext(began clock.Instant) time.Duration {
	interval := p.options.Settings.Interval
	took := p.options.Clock().Since(began)
	return max(interval-took%interval, p.metrics.rest())
}

// shutMetrics closes the exporter where no reader has been made of it.
func (p *Pusher) shutMetrics(ctx context.Context) error {
	if p.metrics == nil {
		return nil
	}
	ending, cancel := ended(ctx, closing)
	defer cancel()
	return p.metrics.Shutdown(ending)
}

// rounds tells when a collection begins, whoever has asked for it.
type rounds struct {
	sdkmetric.Producer
	begin func()
}

func (r *rounds) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	r.begin()
	return r.Producer.Produce(ctx)
}

// wait waits for so long, and reports false if ctx ended before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
