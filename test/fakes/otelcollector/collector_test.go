package otelcollector_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

func start(t *testing.T, options otelcollector.Options) *otelcollector.Collector {
	t.Helper()
	collector, err := otelcollector.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(collector.Close)
	return collector
}

func dial(t *testing.T, target string, secret credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(secret))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func message(url string) *collectormetrics.ExportMetricsServiceRequest {
	return &collectormetrics.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{{SchemaUrl: url}}}
}

func post(t *testing.T, client *http.Client, url string, body []byte, header http.Header) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := client.Do(request)
	if err != nil {
		return nil, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, answer
}

func marshal(t *testing.T, message proto.Message) []byte {
	t.Helper()
	body, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestTakesByGRPC(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	collector := start(t, otelcollector.Options{})
	defer collector.Close()
	connection := dial(t, collector.GRPC(), insecure.NewCredentials())
	defer connection.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", "blue")
	if _, err := collectormetrics.NewMetricsServiceClient(connection).Export(ctx, message("m"), grpc.UseCompressor(grpcgzip.Name)); err != nil {
		t.Fatal(err)
	}
	spans := &collectortrace.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{SchemaUrl: "s"}}}
	if _, err := collectortrace.NewTraceServiceClient(connection).Export(ctx, spans); err != nil {
		t.Fatal(err)
	}
	requests := collector.Requests()
	if len(requests) != 2 || requests[0].Header.Get("Tenant") != "blue" || requests[0].Compression != "gzip" || requests[0].Bytes == 0 || requests[1].Compression != "" {
		t.Errorf("requests %+v", requests)
	}
	if got := collector.Metrics(); len(got) != 1 || got[0].SchemaUrl != "m" {
		t.Errorf("metrics %v", got)
	}
	if got := collector.Spans(); len(got) != 1 || got[0].SchemaUrl != "s" {
		t.Errorf("spans %v", got)
	}
}

func TestTakesByHTTP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	collector := start(t, otelcollector.Options{TracesPath: "/own"})
	defer collector.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var squeezed bytes.Buffer
	writer := gzip.NewWriter(&squeezed)
	if _, err := writer.Write(marshal(t, message("m"))); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	base := "http://" + collector.HTTP()
	if response, _ := post(t, client, base+"/v1/metrics", squeezed.Bytes(), http.Header{"Content-Encoding": {"gzip"}}); response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	spans := marshal(t, &collectortrace.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{SchemaUrl: "s"}}})
	if response, _ := post(t, client, base+"/own", spans, http.Header{}); response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	for url, want := range map[string]int{base + "/v1/traces": http.StatusNotFound, base + "/own": http.StatusBadRequest} {
		if response, _ := post(t, client, url, []byte{0xff}, http.Header{}); response.StatusCode != want {
			t.Errorf("%s: %s, want %d", url, response.Status, want)
		}
	}
	if got := collector.Metrics(); len(got) != 1 || got[0].SchemaUrl != "m" {
		t.Errorf("metrics %v", got)
	}
	if got := collector.Spans(); len(got) != 1 || got[0].SchemaUrl != "s" {
		t.Errorf("spans %v", got)
	}
	if got := collector.Requests()[0]; got.Compression != "gzip" || got.Bytes != squeezed.Len() {
		t.Errorf("%d bytes in %q, sent %d", got.Bytes, got.Compression, squeezed.Len())
	}
}

func TestRefuses(t *testing.T) {
	collector := start(t, otelcollector.Options{})
	collector.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.ResourceExhausted, Message: "full", RetryAfter: 1500 * time.Millisecond}))
	metrics := collectormetrics.NewMetricsServiceClient(dial(t, collector.GRPC(), insecure.NewCredentials()))
	_, err := metrics.Export(t.Context(), message("m"))
	refusal := status.Convert(err)
	if refusal.Code() != codes.ResourceExhausted || refusal.Message() != "full" || len(refusal.Details()) != 1 {
		t.Fatalf("error %v", err)
	}
	if info, ok := refusal.Details()[0].(*errdetails.RetryInfo); !ok || info.RetryDelay.AsDuration() != 1500*time.Millisecond {
		t.Errorf("details %v", refusal.Details())
	}
	response, body := post(t, http.DefaultClient, "http://"+collector.HTTP()+"/v1/metrics", marshal(t, message("m")), http.Header{})
	said := &rpcstatus.Status{}
	if err := proto.Unmarshal(body, said); err != nil || said.Message != "full" {
		t.Errorf("body %q: %v", body, err)
	}
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "2" {
		t.Errorf("%s, Retry-After %q", response.Status, response.Header.Get("Retry-After"))
	}
	if len(collector.Metrics()) != 0 || collector.Counts() != (otelcollector.Counts{Requests: 2, MostInFlight: 1}) {
		t.Errorf("took %v, counts %+v", collector.Metrics(), collector.Counts())
	}
}

func TestRejectsAPart(t *testing.T) {
	collector := start(t, otelcollector.Options{})
	collector.Answer(otelcollector.Always(otelcollector.Answer{Rejected: 3, Message: "too old"}))
	metrics := collectormetrics.NewMetricsServiceClient(dial(t, collector.GRPC(), insecure.NewCredentials()))
	response, err := metrics.Export(t.Context(), message("m"))
	if err != nil || response.GetPartialSuccess().GetRejectedDataPoints() != 3 {
		t.Errorf("%v, %v", response, err)
	}
	_, body := post(t, http.DefaultClient, "http://"+collector.HTTP()+"/v1/metrics", marshal(t, message("m")), http.Header{})
	decoded := &collectormetrics.ExportMetricsServiceResponse{}
	if err := proto.Unmarshal(body, decoded); err != nil || decoded.GetPartialSuccess().GetErrorMessage() != "too old" {
		t.Errorf("%v, %v", decoded, err)
	}
	if len(collector.Metrics()) != 2 {
		t.Errorf("took %v", collector.Metrics())
	}
}

func TestHangsUntilReleased(t *testing.T) {
	collector := start(t, otelcollector.Options{})
	collector.Answer(otelcollector.Always(otelcollector.Answer{Hang: true}))
	metrics := collectormetrics.NewMetricsServiceClient(dial(t, collector.GRPC(), insecure.NewCredentials()))
	impatient, leave := context.WithCancel(t.Context())
	outcome := make(chan error, 1)
	go func() {
		_, err := metrics.Export(impatient, message("left"))
		outcome <- err
	}()
	hanging := func(c *otelcollector.Collector) bool { return c.Counts().InFlight == 1 }
	collector.Await(t.Context(), hanging)
	leave()
	if err := <-outcome; status.Code(err) != codes.Canceled {
		t.Errorf("the client that left: %v", err)
	}
	collector.Await(t.Context(), func(c *otelcollector.Collector) bool { return c.Counts().InFlight == 0 })
	go func() {
		_, err := metrics.Export(t.Context(), message("stayed"))
		outcome <- err
	}()
	collector.Await(t.Context(), hanging)
	collector.Release()
	if err := <-outcome; err != nil {
		t.Errorf("the client that stayed: %v", err)
	}
	if got := collector.Metrics(); len(got) != 1 || got[0].SchemaUrl != "stayed" {
		t.Errorf("took %v", got)
	}
}

func TestBreaksConnections(t *testing.T) {
	collector := start(t, otelcollector.Options{})
	collector.Answer(otelcollector.Always(otelcollector.Answer{Break: true}))
	metrics := collectormetrics.NewMetricsServiceClient(dial(t, collector.GRPC(), insecure.NewCredentials()))
	if _, err := metrics.Export(t.Context(), message("m")); status.Code(err) != codes.Unavailable {
		t.Errorf("gRPC: %v", err)
	}
	if response, _ := post(t, http.DefaultClient, "http://"+collector.HTTP()+"/v1/metrics", marshal(t, message("m")), http.Header{}); response != nil {
		t.Errorf("HTTP: %s", response.Status)
	}
	if got := collector.Metrics(); len(got) != 2 {
		t.Errorf("of two whose answers were lost it took %v", got)
	}
}

func TestDiesAndReturns(t *testing.T) {
	collector := start(t, otelcollector.Options{})
	address, url := collector.GRPC(), "http://"+collector.HTTP()+"/v1/metrics"
	collector.Stop()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(request); !errors.Is(err, syscall.ECONNREFUSED) { //nolint:bodyclose // there is none
		t.Fatalf("while it is dead: %v", err)
	}
	if err := collector.Restart(); err != nil {
		t.Fatal(err)
	}
	if collector.GRPC() != address {
		t.Errorf("it returned at %s instead of %s", collector.GRPC(), address)
	}
	if response, _ := post(t, http.DefaultClient, url, marshal(t, message("m")), http.Header{}); response.StatusCode != http.StatusOK {
		t.Errorf("after its return: %s", response.Status)
	}
}

func TestServesTLS(t *testing.T) {
	authority, err := otelcollector.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := authority.Server()
	if err != nil {
		t.Fatal(err)
	}
	collector := start(t, otelcollector.Options{TLS: secret})
	trusting := &tls.Config{RootCAs: authority.Pool()}
	connection := dial(t, collector.GRPC(), credentials.NewTLS(trusting))
	if _, err := collectormetrics.NewMetricsServiceClient(connection).Export(t.Context(), message("m")); err != nil {
		t.Errorf("gRPC: %v", err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	response, _ := post(t, client, "https://"+collector.HTTP()+"/v1/metrics", marshal(t, message("m")), http.Header{})
	if response == nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("HTTP: %+v", response)
	}
}

func TestKeepsTheNewest(t *testing.T) {
	collector := start(t, otelcollector.Options{Keep: 2})
	metrics := collectormetrics.NewMetricsServiceClient(dial(t, collector.GRPC(), insecure.NewCredentials()))
	for _, url := range []string{"1", "2", "3", "4"} {
		if _, err := metrics.Export(t.Context(), message(url)); err != nil {
			t.Fatal(err)
		}
	}
	got := collector.Metrics()
	if len(got) != 2 || got[0].SchemaUrl != "3" || got[1].SchemaUrl != "4" {
		t.Errorf("kept %v", got)
	}
	if counts := collector.Counts(); counts.Taken != 4 {
		t.Errorf("counts %+v", counts)
	}
}

func TestListensOnASocket(t *testing.T) {
	path := t.TempDir() + "/otlp.sock"
	collector := start(t, otelcollector.Options{Socket: path})
	metrics := collectormetrics.NewMetricsServiceClient(dial(t, "unix://"+collector.GRPC(), insecure.NewCredentials()))
	if _, err := metrics.Export(t.Context(), message("m")); err != nil || collector.Counts().Taken != 1 {
		t.Errorf("error %v, counts %+v", err, collector.Counts())
	}
}
