package otlp

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// TestForeignTextIsMadeUTF8: bytes from wherever do not make a whole request
// impossible.
func TestForeignTextIsMadeUTF8(t *testing.T) {
	const foreign, want = "a\xffb", "a\uFFFDb"
	point := metricdata.DataPoint[float64]{Attributes: attribute.NewSet(attribute.String(foreign, foreign)), Exemplars: []metricdata.Exemplar[float64]{
		{FilteredAttributes: []attribute.KeyValue{attribute.String(foreign, foreign)}},
	}}
	bytes, err := proto.Marshal(newEncoder().request(&metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: foreign, Version: foreign, SchemaURL: foreign},
		Metrics: []metricdata.Metrics{{Name: foreign, Description: foreign, Unit: foreign,
			Data: metricdata.Gauge[float64]{DataPoints: []metricdata.DataPoint[float64]{point}}}},
	}}}))
	if err != nil {
		t.Fatal(err)
	}
	var request collectorpb.ExportMetricsServiceRequest
	if err := proto.Unmarshal(bytes, &request); err != nil {
		t.Fatal(err)
	}
	got := request.GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics()[0]
	kv := got.GetGauge().GetDataPoints()[0].GetAttributes()[0]
	if got.GetName() != want || got.GetDescription() != want || kv.GetKey() != want || kv.GetValue().GetStringValue() != want {
		t.Errorf("arrived as %v", got)
	}
}

// TestExporterEvictsAndShutsDown: attributes that two pushes did not use are
// evicted, and after Shutdown the exporter returns an error.
func TestExporterEvictsAndShutsDown(t *testing.T) {
	collector := startCollector(t, otelcollector.Options{})
	for _, protocol := range []string{settings.ProtocolGRPC, settings.ProtocolHTTP} {
		exporter, err := newMetricExporter(settings.Settings{Metrics: settings.SignalSettings{Protocol: protocol, Endpoint: collector.Address(protocol),
			Path: "/v1/metrics", Insecure: true, Timeout: patience}})
		if err != nil {
			t.Fatal(err)
		}
		if err := exporter.Export(t.Context(), oneGauge()); err != nil {
			t.Error(err)
		}
		for push, want := range []int{1, 0} {
			if err := exporter.ForceFlush(t.Context()); err != nil {
				t.Error(err)
			}
			if got := exporter.encoder.attributes.Len(); got != want {
				t.Errorf("%d sets are left %d pushes later, want %d", got, push+1, want)
			}
		}
		if err := exporter.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if exporter.Shutdown(t.Context()) == nil || exporter.Export(t.Context(), oneGauge()) == nil {
			t.Errorf("%s: it works after Shutdown", protocol)
		}
	}
}
