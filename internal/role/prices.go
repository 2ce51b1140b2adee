package role

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// logNothingToReload logs that SIGHUP is ignored.
func logNothingToReload(log *slog.Logger) {
	log.Info("SIGHUP is ignored: there is no file to reload; the web configuration, its certificates and tokens are read at each use, flags only at the start")
}

// priceList is the list of --cost.prices. It can be reloaded.
type priceList struct {
	path  string
	load  func(path string) (*price.Prices, error)
	clock clock.Clock
	log   *slog.Logger

	latest atomic.Pointer[price.Prices]

	successful, lastSuccess prometheus.Gauge
}

// newPriceList returns a list that has been read.
func newPriceList(path string, read *price.Prices, registry prometheus.Registerer, now clock.Clock, log *slog.Logger) (*priceList, error) {
	gauge := func(family *metric.Family) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: family.Name, Help: family.Help, Unit: family.Unit})
	}
	families := self.NewReload()
	list := &priceList{
		path: path, load: price.Load, clock: now, log: log,
		successful: gauge(families.Successful), lastSuccess: gauge(families.LastSuccess),
	}
	list.set(read)
	for _, collector := range []prometheus.Collector{list.successful, list.lastSuccess} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of the price list: %w", err)
		}
	}
	return list, nil
}

func (l *priceList) set(read *price.Prices) {
	l.latest.Store(read)
	l.successful.Set(1)
	l.lastSuccess.Set(float64(l.clock().Wall.UnixMilli()) / 1000)
}

// prices returns the current list; nil without one.
func (l *priceList) prices() *price.Prices {
	if l == nil {
		return nil
	}
	return l.latest.Load()
}

// reloadTimeout is how long a read of the file may take before the reload counts as
// failed.
const reloadTimeout = 10 * time.Second

// loaded is the result of a read of the file.
type loaded struct {
	list *price.Prices
	err  error
}

// reload reads the file again, until ctx ends. If it is invalid, or cannot be read in
// time, the previous list stays in use. A late one is used when it comes.
func (l *priceList) reload(ctx context.Context) {
	found, ok := source.Await(ctx, reloadTimeout, func() {
		l.keep(fmt.Errorf("read the price list: no answer within %s; the server of its file system hangs", reloadTimeout))
	}, func() loaded {
		list, err := l.load(l.path)
		return loaded{list, err}
	})
	if !ok {
		return
	}
	read, err := found.list, found.err
	if previous := l.latest.Load(); err == nil && read.Currency != previous.Currency {
		err = fmt.Errorf("the currency changed to %s from %s: their costs cannot be added up; restart the exporter to change it", read.Currency, previous.Currency)
	}
	if err != nil {
		l.keep(err)
		return
	}
	l.set(read)
	l.log.Info("the price list was reloaded", "file", l.path, "prices", len(read.Rules))
}

// keep reports why the previous list stays in use.
func (l *priceList) keep(err error) {
	l.successful.Set(0)
	l.log.Error("the price list was not reloaded; the previous list stays in use", "file", l.path, "error", err)
}
