package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/otlp/simulated"
)

// collectorAnswers are what a hostile collector answers by HTTP, until the end.
func collectorAnswers(end <-chan struct{}) map[string]http.HandlerFunc {
	endless := func(status int, kind string, block []byte, pause time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			for r.Context().Err() == nil {
				if _, err := w.Write(block); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				time.Sleep(pause)
			}
		}
	}
	large := bytes.Repeat([]byte("A\x1b[2J\n"), 64<<10)
	return map[string]http.HandlerFunc{
		"a success without end": endless(http.StatusOK, "application/x-protobuf", large, 0),
		"a success of no kind":  endless(http.StatusOK, "", large, 0),
		"a failure without end": endless(http.StatusInternalServerError, "text/plain", large, 0),
		"a success in drips":    endless(http.StatusOK, "application/x-protobuf", []byte("A"), 100*time.Millisecond),
		"a failure in drips":    endless(http.StatusBadRequest, "application/json", []byte("A"), 100*time.Millisecond),
		"no answer":             func(http.ResponseWriter, *http.Request) { <-end },
		"a body that it never reads": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-end // the context does not end while the body is not read
		},
		"redirections": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/"+strings.Repeat("x", 32<<10), http.StatusTemporaryRedirect)
		},
		"again in a thousand years": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "2147483647")
			http.Error(w, "later", http.StatusServiceUnavailable)
		},
		"headers without end": func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("h", 1000))
			}
			w.WriteHeader(http.StatusOK)
		},
	}
}

// Whatever a collector answers by HTTP, pushes to it take little memory and few
// goroutines, say little, and end with the exporter.
func TestCollectorByHTTP(t *testing.T) {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	for name, answer := range collectorAnswers(end) {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer func() { go server.Close() }() // it waits for the answers
			defer server.CloseClientConnections()
			collectorPush(t, "http/protobuf", server.URL)
		})
	}
}

// The same by gRPC.
func TestCollectorByGRPC(t *testing.T) {
	long := strings.Repeat("A\x1b[2J ", 1<<18)
	for name, answer := range map[string]simulated.Answer{
		"a failure of many words":   {Code: codes.Unavailable, Message: long},
		"words in place of a trace": {Rejected: 1, Message: long},
		"no answer":                 {Hang: true},
		"no connection that lasts":  {Code: codes.Unavailable, Break: true},
		"again in a hundred years":  {Code: codes.ResourceExhausted, Message: "later", RetryAfter: 100 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			collector, err := simulated.Start(simulated.Options{Keep: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer collector.Close()
			collector.Answer(simulated.Always(answer))
			collectorPush(t, "grpc", "http://"+collector.GRPC())
		})
	}
}

// collectorPush pushes metrics and more traces than are queued for a while.
func collectorPush(t *testing.T, protocol, endpoint string) {
	t.Helper()
	settings, err := otlp.Load(otlp.Flags{Endpoint: endpoint, Protocol: protocol, Interval: time.Second}, func(name string) (string, bool) {
		value, found := map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "500", "OTEL_BSP_SCHEDULE_DELAY": "10"}[name]
		return value, found
	})
	if err != nil {
		t.Fatal(err)
	}
	settings.Interval = 100 * time.Millisecond // less than a user may have
	log, registry, rows := &clientsLog{}, prometheus.NewRegistry(), metrictest.DenseRows()
	before := collectorHeap()
	goroutines := runtime.NumGoroutine()
	pusher, err := otlp.New(t.Context(), otlp.Options{
		Settings: settings, Identity: otlp.Identity{Version: "1", Instance: "cluster"},
		Snapshot: func() ([]metric.Row, time.Time) { return rows, time.Now() },
		Live:     registry, Registry: registry, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); pusher.Run(ctx) }()
	var most int
	for i := range 10 {
		pusher.Trace(collectorTraces(i*2000, 2000))
		time.Sleep(100 * time.Millisecond)
		most = max(most, runtime.NumGoroutine())
	}
	if grown := (collectorHeap() - before) >> 20; grown > 48 {
		t.Errorf("%d MiB more are held", grown)
	}
	if most-goroutines > 60 { // those of the server among them
		t.Errorf("%d goroutines were there at once, %d before", most, goroutines)
	}
	stop()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
	lines := log.lines()
	if len(lines) > 20 {
		t.Errorf("%d lines are logged:\n%.2000s", len(lines), strings.Join(lines, "\n"))
	}
	for _, line := range lines {
		if len(line) > 2048 || strings.Contains(line, "\x1b") {
			t.Errorf("a line has %d bytes: %.200q", len(line), line)
		}
	}
	if protocol != "grpc" || len(lines) > 1 {
		t.Logf("%s", strings.Join(lines, "\n"))
	}
}

// collectorTraces are traces of as many claims.
func collectorTraces(from, count int) []trace.Trace {
	begin := trace.Moment{At: time.Now().Add(-time.Minute), Evidence: trace.EvidenceWatch}
	end := trace.Moment{At: time.Now(), Evidence: trace.EvidenceWatch}
	traces := make([]trace.Trace, count)
	for i := range traces {
		name := fmt.Sprint("claim-", from+i)
		traces[i] = trace.Trace{
			Claim: trace.Claim{Namespace: "lab", Name: name, UID: "uid-" + name, Class: "gpu"},
			Pod:   trace.Pod{Name: name, UID: "pod-" + name, Node: "node-a"},
			Spans: []trace.Span{{Phase: trace.PhaseReady, Attempt: 1, Begin: begin, End: end, Message: strings.Repeat("m", 500)}},
		}
	}
	return traces
}

func collectorHeap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers held
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
