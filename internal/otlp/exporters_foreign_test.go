package otlp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// exportBoth exports metrics and spans once and returns what came of each.
func exportBoth(t *testing.T, s settings.Settings) (metrics, spans error) {
	t.Helper()
	metricExporter, err := newMetricExporter(s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = metricExporter.Shutdown(t.Context()) }()
	spanExporter, err := newSpanExporter(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = spanExporter.Shutdown(t.Context()) }()
	return metricExporter.Export(t.Context(), oneGauge()), spanExporter.ExportSpans(t.Context(), oneSpan())
}

// A login page, or a web server that answers everything with its first page, has
// accepted nothing.
func TestWebPageIsNoSuccess(t *testing.T) {
	body := "<html>log in</html>"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, body)
	}))
	defer server.Close()
	settings := load(t, settings.Flags{Endpoint: server.URL})
	metrics, spans := exportBoth(t, settings)
	for _, err := range []error{metrics, spans} {
		if err == nil || retryable(err) || !strings.Contains(err.Error(), "web page") {
			t.Errorf("a web page is answered, and the export says %v", err)
		}
	}
	body = ""
	if metrics, spans = exportBoth(t, settings); errors.Join(metrics, spans) != nil {
		t.Errorf("an empty answer: %v, %v", metrics, spans)
	}
}

// What answers with headers without end is cut off early.
func TestHeadersAreBounded(t *testing.T) {
	address := answeringTo(t, func(connection net.Conn, _ int) bool {
		_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\n")
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(connection, "X-%d: %s\r\n", i, strings.Repeat("y", 1000)); err != nil {
				return false
			}
		}
	})
	settings := load(t, settings.Flags{Endpoint: "http://" + address}, "OTEL_EXPORTER_OTLP_TIMEOUT=500")
	metrics, spans := exportBoth(t, settings)
	for _, err := range []error{metrics, spans} {
		if err == nil || !strings.Contains(err.Error(), "headers exceeded 65536 bytes") {
			t.Errorf("headers without end: %v", err)
		}
	}
}

// A collector that closes a connection because it was idle, just as it is used
// again, gets the request again: nothing has failed.
func TestIdleConnectionIsClosed(t *testing.T) {
	address := answeringTo(t, func(connection net.Conn, request int) bool {
		if request > 1 {
			return false
		}
		_, err := io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		return err == nil
	})
	settings := load(t, settings.Flags{Endpoint: "http://" + address})
	spans, err := newSpanExporter(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = spans.Shutdown(t.Context()) }()
	for i := range 3 {
		if err := spans.ExportSpans(t.Context(), oneSpan()); err != nil {
			t.Errorf("export %d: %v", i+1, err)
		}
	}
}

// answeringTo is a server whose function is called after each request of a
// connection, with its number there; false closes the connection.
func answeringTo(t *testing.T, answer func(connection net.Conn, request int) bool) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	serve := func(connection net.Conn) {
		defer connection.Close()
		reader := bufio.NewReader(connection)
		for n := 1; ; n++ {
			request, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			if request.Header.Values("Idempotency-Key") != nil {
				t.Error("a header for the transport alone has been sent")
			}
			if _, err := io.Copy(io.Discard, request.Body); err != nil || !answer(connection, n) {
				return
			}
		}
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(connection)
		}
	}()
	return listener.Addr().String()
}

// However short the delay that a collector asks for, it is not called constantly.
func TestRetriesAreNotAFlood(t *testing.T) {
	collector := startCollector(t, otelcollector.Options{})
	collector.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.ResourceExhausted, RetryAfter: time.Nanosecond}))
	settings := load(t, settings.Flags{Endpoint: "http://" + collector.GRPC(), Protocol: settings.ProtocolGRPC}, "OTEL_EXPORTER_OTLP_TIMEOUT=2500")
	exporter, err := newMetricExporter(settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exporter.Shutdown(t.Context()) }()
	if err := exporter.Export(t.Context(), oneGauge()); err == nil {
		t.Error("the collector refuses, and the export does not say so")
	}
	if requests := collector.Counts().Requests; requests < 2 || requests > 4 {
		t.Errorf("the collector had %d requests in 2.5 s", requests)
	}
}

// A collector that refuses an export and does not answer the next attempt is
// reported as one that refuses.
func TestRefusalIsReportedAfterATimeout(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		collector := startCollector(t, otelcollector.Options{})
		exporter, err := newMetricExporter(load(t, settings.Flags{Endpoint: "http://" + collector.Address(protocol), Protocol: protocol}, "OTEL_EXPORTER_OTLP_TIMEOUT=5000"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = exporter.Shutdown(t.Context()) }()
		var attempts atomic.Int32
		collector.Answer(func(otelcollector.Request) otelcollector.Answer {
			if attempts.Add(1) == 1 {
				return otelcollector.Answer{Code: codes.Unavailable, Message: "being restarted"}
			}
			return otelcollector.Answer{Hang: true}
		})
		if err := exporter.Export(t.Context(), oneGauge()); err == nil || !strings.Contains(err.Error(), "being restarted") || strings.Contains(err.Error(), "no answer") {
			t.Errorf("after %d attempts: %v", attempts.Load(), err)
		}
	})
}

// The error of a timeout has the timeout that applied.
func TestSaysHowLongItHasWaited(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		collector := startCollector(t, otelcollector.Options{})
		endpoint := settings.Flags{Endpoint: "http://" + collector.Address(protocol), Protocol: protocol}
		refusing := load(t, settings.Flags{Endpoint: "http://127.0.0.1:1", Protocol: protocol}, "OTEL_EXPORTER_OTLP_TIMEOUT=1500")
		if metrics, _ := exportBoth(t, refusing); !strings.Contains(metrics.Error(), "connection refused") || strings.Contains(metrics.Error(), "no answer") {
			t.Errorf("without a listener: %v", metrics)
		}
		collector.Answer(otelcollector.Always(otelcollector.Answer{Hang: true}))
		for _, variables := range [][]string{{"OTEL_EXPORTER_OTLP_TIMEOUT=400"}, {"OTEL_METRIC_EXPORT_TIMEOUT=400"}} {
			if metrics, _ := exportBoth(t, load(t, endpoint, append(variables, "OTEL_BSP_EXPORT_TIMEOUT=1")...)); !strings.Contains(metrics.Error(), "no answer within 400ms") &&
				!strings.Contains(metrics.Error(), "no answer in time") && !strings.Contains(metrics.Error(), "code = Canceled") { // the server may be quicker to end it
				t.Errorf("%s: %v", variables, metrics)
			}
		}
		p := startPushing(t, protocol, func(s *setting) { s.Settings.Metrics.Timeout = time.Hour })
		p.arrives(t, 1)
		p.collector.Answer(otelcollector.Always(otelcollector.Answer{Hang: true}))
		p.finish()
		if strings.Contains(p.logged.String(), "1h0m0s") {
			t.Errorf("what waited a second at the end is said to have waited for an hour:\n%s", p.logged)
		}
	})
}

// A request for a certificate explains no failure after a successful export.
func TestCertificateIsNotBlamedForEver(t *testing.T) {
	c := connection{signal: settings.SignalSettings{Timeout: time.Minute}}
	c.certificateRequested.Store(true)
	end := func(err error) error { return c.export(t.Context(), func(context.Context) error { return err }) }
	broken := errors.New("unexpected EOF")
	if err := end(broken); !strings.Contains(err.Error(), "certificate") {
		t.Errorf("the certificate was asked for: %v", err)
	}
	if err := end(nil); err != nil {
		t.Error(err)
	}
	if err := end(broken); strings.Contains(err.Error(), "certificate") {
		t.Errorf("the certificate was good: %v", err)
	}
}

// A host may be called like a scheme of gRPC's names.
func TestTargetsAreHosts(t *testing.T) {
	for endpoint, want := range map[string]string{"unix:4317": "dns:///unix:4317", "[::1]:4317": "dns:///[::1]:4317", "unix:///run/a.sock": "unix:///run/a.sock"} {
		if got := (&connection{signal: settings.SignalSettings{Endpoint: endpoint}}).grpcTarget(); got != want {
			t.Errorf("%s is dialled as %s, want %s", endpoint, got, want)
		}
	}
}

// The error of a collector without a pipeline for a signal gets advice.
func TestSaysHowToSwitchASignalOff(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		collector := startCollector(t, otelcollector.Options{})
		collector.Answer(func(request otelcollector.Request) otelcollector.Answer {
			return otelcollector.Answer{Code: codes.Unimplemented, Status: http.StatusNotFound, Message: "unknown service"}
		})
		metrics, spans := exportBoth(t, load(t, settings.Flags{Endpoint: "http://" + collector.Address(protocol), Protocol: protocol}))
		for _, err := range []error{metrics, spans} {
			if err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_EXPORTER=none") {
				t.Errorf("%v", err)
			}
		}
	})
}
