package otlp_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// One row is pushed to a collector.
func ExamplePusher() {
	collector, err := otelcollector.Start(otelcollector.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer collector.Close()
	pushed, err := settings.Load(settings.Flags{Endpoint: "http://" + collector.GRPC(), Protocol: settings.ProtocolGRPC, Naming: settings.NamingPrometheus},
		func(string) (string, bool) { return "", false })
	if err != nil {
		fmt.Println(err)
		return
	}
	power := &metric.Family{Name: "dra_device_power_watts", Help: "Power drawn by the whole device", Unit: "watts", Type: metric.Gauge, Labels: []string{"uuid"}}
	rows := []metric.Row{{Family: power, Labels: metric.NewLabels(power.Labels, "GPU-0"), Value: 412.5}}
	registry, at := prometheus.NewRegistry(), time.Now()
	pusher, err := otlp.New(context.Background(), otlp.Options{
		Settings: pushed, Identity: otlp.Identity{Version: "1.0.0", Node: "node-a", Instance: "node-a"},
		Snapshot: func() ([]metric.Row, *model.Node, time.Time) { return rows, nil, at },
		Live:     registry, Registry: registry, Clock: clock.System(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { pusher.Run(ctx) })
	collector.Await(ctx, func(c *otelcollector.Collector) bool { return c.Counts().Taken > 0 })
	stop()
	running.Wait()
	for _, pushed := range collector.Metrics()[0].GetScopeMetrics()[0].GetMetrics() {
		if pushed.GetName() == power.Name {
			fmt.Println(pushed.GetName(), pushed.GetUnit(), pushed.GetGauge().GetDataPoints()[0].GetAsDouble())
		}
	}
	// Output: dra_device_power_watts W 412.5
}
