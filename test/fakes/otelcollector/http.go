package otelcollector

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// mostBody is what the real collector takes by HTTP, after decompression.
const mostBody = 20 << 20

// serveHTTP serves until the returned function has been called, which returns
// when no request is being answered any more.
func (c *Collector) serveHTTP(life context.Context, listener net.Listener) (stop func()) {
	if c.options.TLS != nil {
		// As the real collector: HTTP/2 where the client would have it.
		settings := c.options.TLS.Clone()
		settings.NextProtos = []string{"h2", "http/1.1"}
		listener = tls.NewListener(listener, settings)
	}
	answering := &gate{}
	handler := func(take func(body []byte, request *Request) error, respond func(Answer) proto.Message) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !answering.enter() {
				panic(http.ErrAbortHandler)
			}
			defer answering.inside.Done()
			c.handle(life, w, r, take, respond)
		})
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+cmp.Or(c.options.MetricsPath, "/v1/metrics"), handler(takeMetrics,
		func(answer Answer) proto.Message { return metricsResponse(answer) }))
	mux.Handle("POST "+cmp.Or(c.options.TracesPath, "/v1/traces"), handler(takeSpans,
		func(answer Answer) proto.Message { return traceResponse(answer) }))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with an error only when it is stopped
	}()
	return func() {
		_ = server.Close() // what it could not close is gone
		<-done
		answering.shut()
	}
}

// gate lets handlers in until it is shut, and waits for those inside.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}

func takeMetrics(body []byte, request *Request) error {
	message := &collectormetrics.ExportMetricsServiceRequest{}
	err := proto.Unmarshal(body, message)
	request.Signal, request.Metrics = "metrics", message.GetResourceMetrics()
	return err
}

func takeSpans(body []byte, request *Request) error {
	message := &collectortrace.ExportTraceServiceRequest{}
	err := proto.Unmarshal(body, message)
	request.Signal, request.Spans = "traces", message.GetResourceSpans()
	return err
}

// handle reads one request and answers it. It breaks the connection by a panic
// that net/http takes for what it is.
func (c *Collector) handle(life context.Context, w http.ResponseWriter, r *http.Request, take func([]byte, *Request) error, respond func(Answer) proto.Message) {
	if r.Header.Get("Content-Type") != "application/x-protobuf" {
		refuse(w, http.StatusUnsupportedMediaType, Answer{Code: codes.InvalidArgument, Message: "unsupported content type"})
		return
	}
	request := Request{Protocol: "http/protobuf", Header: r.Header.Clone(), Compression: r.Header.Get("Content-Encoding")}
	body, err := read(r, &request)
	if err == nil {
		err = take(body, &request)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, Answer{Code: codes.InvalidArgument, Message: err.Error()})
		return
	}
	answer, ok := c.treat(life, r.Context(), request)
	switch {
	case !ok || answer.Break:
		panic(http.ErrAbortHandler)
	case answer.refuses():
		refuse(w, cmp.Or(answer.Status, paired(answer.Code)), answer)
	default:
		write(w, http.StatusOK, respond(answer))
	}
}

// read returns the message and notes its size as it came.
func read(r *http.Request, request *Request) ([]byte, error) {
	counted := &counter{Reader: r.Body}
	defer func() { request.Bytes = counted.bytes }()
	var reader io.Reader = counted
	switch request.Compression {
	case "":
	case "gzip":
		inflated, err := gzip.NewReader(counted)
		if err != nil {
			return nil, err
		}
		reader = inflated
	default:
		return nil, errors.New("unsupported compression " + strconv.Quote(request.Compression))
	}
	body, err := io.ReadAll(io.LimitReader(reader, mostBody+1))
	if err == nil && len(body) > mostBody {
		err = errors.New("request body too large")
	}
	return body, err
}

type counter struct {
	io.Reader
	bytes int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += n
	return n, err
}

// refuse answers as the specification would have it: with a google.rpc.Status
// as the body.
func refuse(w http.ResponseWriter, code int, answer Answer) {
	if answer.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(answer.RetryAfter.Seconds()))))
	}
	write(w, code, status.New(answer.Code, answer.Message).Proto())
}

func write(w http.ResponseWriter, code int, message proto.Message) {
	body, err := proto.Marshal(message)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that left reads nothing
}

// paired is the HTTP status that a collector answers for a status of gRPC.
func paired(code codes.Code) int {
	switch code {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unimplemented:
		return http.StatusNotFound
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
