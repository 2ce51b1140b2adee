//go:build linux

package otlp

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
	"github.com/dra-exporter/dra-exporter/test/fakes/otlptest"
)

// densePush are the options of a push of the dense node: rows of the real
// reducer, of which two snapshots take turns, and the live metrics.
func densePush(b *testing.B) (options Options, rows int) {
	b.Helper()
	n := otlptest.NewNode(snapshotTime())
	for range 3 { // the first have no rates yet
		n.Tick()
	}
	var (
		snapshots [2][]metric.Row
		models    [2]*model.Node
		turn      int
	)
	for i := range snapshots {
		snapshots[i], models[i] = n.Tick(), n.Model
	}
	histogram, registry := phases(), prometheus.NewRegistry()
	registry.MustRegister(histogram, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()))
	for i := range 100 {
		histogram.WithLabelValues("a").Observe(float64(i) / 1000)
	}
	return Options{
		Snapshot: func() ([]metric.Row, *model.Node, time.Time) {
			turn = 1 - turn
			return snapshots[turn], models[turn], snapshotTime()
		},
		Live: registry, Registry: registry, Clock: clock.System(), Log: slog.New(slog.DiscardHandler),
	}, len(snapshots[0])
}

// BenchmarkProduce is our part of a push.
func BenchmarkProduce(b *testing.B) {
	options, rows := densePush(b)
	producer := newProducer(naming.NewPrometheus(), options)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := producer.Produce(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows), "rows")
}

// BenchmarkPush is a whole push, to a collector in a process of its own: the
// processor time of this process, the kernel's for it included, what it
// allocates, and what it keeps between pushes.
func BenchmarkPush(b *testing.B) {
	collector := collectorProcess(b)
	for _, naming := range []string{settings.NamingPrometheus, settings.NamingSemconv} {
		for _, protocol := range []string{settings.ProtocolGRPC, settings.ProtocolHTTP} {
			for _, compression := range []string{"none", "gzip"} {
				name := fmt.Sprintf("%s/%s/%s", naming, strings.ReplaceAll(protocol, "/", "-"), compression)
				b.Run(name, func(b *testing.B) {
					benchmarkPush(b, naming, protocol, compression, collector[protocol])
				})
			}
		}
	}
}

func benchmarkPush(b *testing.B, naming, protocol, compression, endpoint string) {
	variables := map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": compression, "OTEL_TRACES_EXPORTER": "none"}
	loaded, err := settings.Load(settings.Flags{Endpoint: "http://" + endpoint, Protocol: protocol, Naming: naming},
		func(name string) (string, bool) { value, found := variables[name]; return value, found })
	if err != nil {
		b.Fatal(err)
	}
	options, rows := densePush(b)
	options.Settings, options.Identity = loaded, Identity{Version: "1.0.0", Node: "node-a", Instance: "node-a"}
	before := heap()
	pusher, err := New(b.Context(), options)
	if err != nil {
		b.Fatal(err)
	}
	reader := pusher.newReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(pusher.resource), sdkmetric.WithReader(reader))
	pusher.push(b.Context(), reader) // connects, and fills the caches
	kept := heap() - before
	sent, used := pointsSent(b, options), processorTime(b)
	b.ReportAllocs()
	for b.Loop() {
		pusher.push(b.Context(), reader)
	}
	b.ReportMetric((processorTime(b)-used).Seconds()*1000/float64(b.N), "processor-ms/op")
	b.ReportMetric(kept/(1<<20), "kept-MiB")
	if points := int(pointsSent(b, options)-sent) / b.N; points < rows {
		b.Fatalf("%d of %d rows were taken in each push", points, rows)
	}
	if err := provider.Shutdown(context.WithoutCancel(b.Context())); err != nil {
		b.Error(err)
	}
}

// pointsSent is the exporter's own count.
func pointsSent(b *testing.B, options Options) float64 {
	b.Helper()
	families, err := options.Live.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "dra_exporter_otlp_sent_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// heap is what lives, in bytes.
func heap() float64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return float64(memory.HeapAlloc)
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// collectorVariable is set in the process that is the collector.
const collectorVariable = "DRA_EXPORTER_TEST_COLLECTOR"

// collectorProcess starts this test's binary once more, as a simulated
// collector, and returns its addresses by protocol.
func collectorProcess(b *testing.B) map[string]string {
	b.Helper()
	command := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestAsCollector$")
	command.Env = append(os.Environ(), collectorVariable+"=1")
	input, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	addresses := map[string]string{}
	for lines := bufio.NewScanner(output); len(addresses) < 2 && lines.Scan(); {
		if protocol, address, found := strings.Cut(lines.Text(), " at "); found {
			addresses[protocol] = address
		}
	}
	if len(addresses) < 2 {
		b.Fatal("the collector does not say where it listens")
	}
	return addresses
}

// TestAsCollector is no test but that process. It ends with its input, so that
// it does not outlive the benchmark however that ends.
func TestAsCollector(t *testing.T) {
	if os.Getenv(collectorVariable) == "" {
		t.Skip("the collector of BenchmarkPush")
	}
	collector, err := otelcollector.Start(otelcollector.Options{Keep: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer collector.Close()
	for _, protocol := range []string{settings.ProtocolGRPC, settings.ProtocolHTTP} {
		_, _ = fmt.Fprintln(os.Stdout, protocol+" at "+collector.Address(protocol))
	}
	bufio.NewScanner(os.Stdin).Scan()
}
