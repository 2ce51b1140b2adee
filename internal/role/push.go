package role

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

// pushConfig configures the pusher of a role.
type pushConfig struct {
	settings settings.Settings
	version  string
	node     string // of the node role
	instance string // as in the labels of its scrapes
	snapshot func() ([]metric.Row, *model.Node, time.Time)
	live     *prometheus.Registry
	filter   *metric.Filter
}

// pusher returns nil if nothing is pushed.
func (p pushConfig) pusher(now clock.Clock, log *slog.Logger) (*otlp.Pusher, error) {
	if !p.settings.On() {
		if p.settings.Withheld() {
			log.Warn("OTLP push is disabled", "settings", p.settings)
		}
		return nil, nil
	}
	pusher, err := otlp.New(context.Background(), otlp.Options{
		Settings: p.settings, Identity: otlp.Identity{Version: p.version, Node: p.node, Instance: p.instance},
		Snapshot: p.snapshot, Live: p.filter.Gatherer(p.live), Registry: p.live, Clock: now, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to push by OTLP: %w", err)
	}
	log.Info("pushing by OTLP", "settings", p.settings)
	return pusher, nil
}
