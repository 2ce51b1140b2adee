package otlp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/proto"

	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
	"github.com/dra-exporter/dra-exporter/test/fakes/otlptest"
)

// TestSameAsTheSDK: what arrives of ours is, message for message, what arrives
// of the SDK's exporters for the same metrics.
func TestSameAsTheSDK(t *testing.T) {
	collector := startCollector(t, otelcollector.Options{})
	for _, protocol := range []string{settings.ProtocolGRPC, settings.ProtocolHTTP} {
		for _, compressed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s compressed %t", protocol, compressed), func(t *testing.T) {
				settings := settings.Settings{Metrics: settings.SignalSettings{
					On: true, Protocol: protocol, Endpoint: collector.Address(protocol), Path: "/v1/metrics",
					Insecure: true, Gzip: compressed, Timeout: patience,
				}}
				ours, err := newMetricExporter(settings)
				if err != nil {
					t.Fatal(err)
				}
				theirs := oracle(t, protocol, collector)
				for i, metrics := range manyMetrics() {
					got, want := arrived(t, collector, ours, metrics), arrived(t, collector, theirs, metrics)
					if !proto.Equal(got, want) {
						t.Fatalf("request %d arrives as\n%v\nand by the SDK as\n%v", i, got, want)
					}
					if err := ours.ForceFlush(t.Context()); err != nil {
						t.Error(err)
					}
				}
				for _, exporter := range []sdkmetric.Exporter{ours, theirs} {
					if err := exporter.Shutdown(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

func oracle(t *testing.T, protocol string, collector *otelcollector.Collector) (exporter sdkmetric.Exporter) {
	t.Helper()
	var err error
	if protocol == settings.ProtocolGRPC {
		exporter, err = otlpmetricgrpc.New(t.Context(), otlpmetricgrpc.WithEndpoint(collector.GRPC()), otlpmetricgrpc.WithInsecure())
	} else {
		exporter, err = otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpoint(collector.HTTP()), otlpmetrichttp.WithInsecure(),
			otlpmetrichttp.WithHTTPClient(newConnection(settings.SignalSettings{Insecure: true}, "oracle").httpClient()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return exporter
}

// arrived is the one message that the collector gets.
func arrived(t *testing.T, collector *otelcollector.Collector, exporter sdkmetric.Exporter, metrics *metricdata.ResourceMetrics) proto.Message {
	t.Helper()
	collector.Forget()
	if err := exporter.Export(t.Context(), metrics); err != nil {
		t.Fatal(err)
	}
	messages := collector.Metrics()
	if len(messages) != 1 {
		t.Fatalf("%d messages arrived", len(messages))
	}
	return messages[0]
}

// manyMetrics are pages of the dense node in both namings, with live metrics,
// and random ones of all kinds.
func manyMetrics() (all []*metricdata.ResourceMetrics) {
	who := resource.NewWithAttributes("https://example.com/schema", attribute.String("service.name", "dra-exporter"),
		attribute.Int("process.pid", 7), attribute.Bool("yes", true), attribute.Float64("share", 0.5))
	node, prometheusNaming, semconvNaming := otlptest.NewNode(snapshotTime()), naming.NewPrometheus(), naming.NewSemConv()
	for range 2 {
		rows := node.Tick()
		for _, naming := range []rowNaming{prometheusNaming, semconvNaming} {
			all = append(all, &metricdata.ResourceMetrics{Resource: who, ScopeMetrics: []metricdata.ScopeMetrics{
				{Scope: instrumentation.Scope{Name: scopeName}, Metrics: naming.Metrics(rows, node.Model, node.Now.Wall)},
			}})
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		all = append(all, &metricdata.ResourceMetrics{Resource: who, ScopeMetrics: []metricdata.ScopeMetrics{
			{Scope: instrumentation.Scope{Name: "a", Version: "1", SchemaURL: "https://example.com", Attributes: randomSet(random)},
				Metrics: randomMetrics(random)},
			{Metrics: randomMetrics(random)},
		}})
	}
	return append(all, oneGauge(), &metricdata.ResourceMetrics{Resource: resource.Empty()})
}

func randomMetrics(random *rand.Rand) (all []metricdata.Metrics) {
	for i, data := range []metricdata.Aggregation{
		metricdata.Gauge[float64]{DataPoints: randomPoints(random)},
		metricdata.Sum[float64]{DataPoints: randomPoints(random), Temporality: metricdata.CumulativeTemporality, IsMonotonic: true},
		metricdata.Sum[float64]{DataPoints: randomPoints(random), Temporality: metricdata.DeltaTemporality},
		metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{
			{Attributes: randomSet(random), StartTime: randomTime(random), Time: randomTime(random), Count: 3, Sum: random.NormFloat64(),
				Bounds: []float64{0, 1}, BucketCounts: []uint64{0, 2, 1}, Min: metricdata.NewExtrema(0.5), Max: metricdata.NewExtrema(2.0),
				Exemplars: randomExemplars(random)},
			{Attributes: randomSet(random), Count: 0, BucketCounts: []uint64{0}},
		}, Temporality: metricdata.CumulativeTemporality},
		metricdata.ExponentialHistogram[float64]{DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{
			{Attributes: randomSet(random), StartTime: randomTime(random), Time: randomTime(random), Count: 9, Sum: random.NormFloat64(),
				Scale: -2, ZeroCount: 1, ZeroThreshold: 1e-9, Min: metricdata.NewExtrema(0.5),
				PositiveBucket: metricdata.ExponentialBucket{Offset: -7, Counts: []uint64{1, 0, 3}},
				NegativeBucket: metricdata.ExponentialBucket{Offset: 4, Counts: []uint64{4}}, Exemplars: randomExemplars(random)},
			{},
		}, Temporality: metricdata.DeltaTemporality},
		metricdata.Summary{DataPoints: []metricdata.SummaryDataPoint{
			{Attributes: randomSet(random), StartTime: randomTime(random), Time: randomTime(random), Count: 9, Sum: random.NormFloat64(),
				QuantileValues: []metricdata.QuantileValue{{Quantile: 0, Value: 1}, {Quantile: 1, Value: math.Inf(1)}}},
		}},
	} {
		all = append(all, metricdata.Metrics{Name: fmt.Sprintf("metric_%d", i), Description: "Größe", Unit: "By", Data: data})
	}
	return all
}

func randomPoints(random *rand.Rand) []metricdata.DataPoint[float64] {
	points := make([]metricdata.DataPoint[float64], random.IntN(4))
	for i := range points {
		points[i] = metricdata.DataPoint[float64]{
			Attributes: randomSet(random), StartTime: randomTime(random), Time: randomTime(random),
			Value: random.NormFloat64() * 1e6, Exemplars: randomExemplars(random),
		}
	}
	return points
}

func randomExemplars(random *rand.Rand) (list []metricdata.Exemplar[float64]) {
	for range random.IntN(3) {
		list = append(list, metricdata.Exemplar[float64]{
			FilteredAttributes: []attribute.KeyValue{attribute.String("pod", "a")}, Time: randomTime(random),
			Value: float64(random.IntN(100)), TraceID: []byte("0123456789abcdef"), SpanID: []byte("01234567"),
		})
	}
	return list
}

func randomTime(random *rand.Rand) time.Time {
	return []time.Time{{}, snapshotTime(), time.Unix(0, 1), time.Unix(-1, 0)}[random.IntN(4)]
}

func randomSet(random *rand.Rand) attribute.Set {
	var list []attribute.KeyValue
	for i := range random.IntN(13) { // more than ten are kept in another way
		name := fmt.Sprintf("label_%d", i)
		switch random.IntN(5) {
		case 0:
			list = append(list, attribute.Bool(name, random.IntN(2) == 0))
		case 1:
			list = append(list, attribute.Int(name, random.IntN(10)-5))
		case 2:
			list = append(list, attribute.Float64(name, random.NormFloat64()))
		default:
			list = append(list, attribute.String(name, []string{"", "a", "Größe", "with \"quotes\""}[random.IntN(4)]))
		}
	}
	return attribute.NewSet(list...)
}
