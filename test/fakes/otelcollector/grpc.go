package otelcollector

import (
	"context"
	"net"
	"net/http"
	"sync"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // the server takes compressed messages
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// serveGRPC serves until the returned function has been called, which returns
// when no call is being answered any more.
func (c *Collector) serveGRPC(life context.Context, listener net.Listener) (stop func()) {
	options := []grpc.ServerOption{grpc.StatsHandler(wires{}), grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(c.options.LargestMessage)}
	if c.options.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.options.TLS.Clone())))
	}
	server := grpc.NewServer(options...)
	collectormetrics.RegisterMetricsServiceServer(server, metricsService{collector: c, life: life})
	collectortrace.RegisterTraceServiceServer(server, traceService{collector: c, life: life})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(&breakable{Listener: listener}) // ends with an error only when it is stopped
	}()
	return func() {
		server.Stop()
		<-done
	}
}

type metricsService struct {
	collectormetrics.UnimplementedMetricsServiceServer
	collector *Collector
	life      context.Context // of the server
}

func (s metricsService) Export(ctx context.Context, message *collectormetrics.ExportMetricsServiceRequest) (*collectormetrics.ExportMetricsServiceResponse, error) {
	request := described(ctx, "metrics")
	request.Metrics = message.GetResourceMetrics()
	answer, err := s.collector.answerGRPC(s.life, ctx, request)
	return metricsResponse(answer), err
}

type traceService struct {
	collectortrace.UnimplementedTraceServiceServer
	collector *Collector
	life      context.Context // of the server
}

func (s traceService) Export(ctx context.Context, message *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	request := described(ctx, "traces")
	request.Spans = message.GetResourceSpans()
	answer, err := s.collector.answerGRPC(s.life, ctx, request)
	return traceResponse(answer), err
}

func (c *Collector) answerGRPC(life, ctx context.Context, request Request) (Answer, error) {
	answer, ok := c.treat(life, ctx, request)
	switch {
	case !ok:
		return answer, status.FromContextError(context.Canceled).Err()
	case answer.Break:
		wireOf(ctx).connection.Close()
		return answer, status.Error(codes.Unavailable, "the connection is closed")
	case !answer.refuses():
		return answer, nil
	}
	refusal := status.New(answer.Code, answer.Message)
	if answer.RetryAfter > 0 {
		detailed, err := refusal.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(answer.RetryAfter)})
		if err != nil {
			return answer, err
		}
		refusal = detailed
	}
	return answer, refusal.Err()
}

func metricsResponse(answer Answer) *collectormetrics.ExportMetricsServiceResponse {
	response := &collectormetrics.ExportMetricsServiceResponse{}
	if answer.Rejected != 0 || answer.Message != "" {
		response.PartialSuccess = &collectormetrics.ExportMetricsPartialSuccess{
			RejectedDataPoints: answer.Rejected, ErrorMessage: answer.Message}
	}
	return response
}

func traceResponse(answer Answer) *collectortrace.ExportTraceServiceResponse {
	response := &collectortrace.ExportTraceServiceResponse{}
	if answer.Rejected != 0 || answer.Message != "" {
		response.PartialSuccess = &collectortrace.ExportTracePartialSuccess{
			RejectedSpans: answer.Rejected, ErrorMessage: answer.Message}
	}
	return response
}

// described returns the metadata of the call of a context.
func described(ctx context.Context, signal string) Request {
	header := http.Header{}
	if arrived, ok := metadata.FromIncomingContext(ctx); ok {
		for name, values := range arrived {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	wire := wireOf(ctx)
	wire.mu.Lock()
	defer wire.mu.Unlock()
	return Request{Signal: signal, Protocol: "grpc", Header: header, Compression: wire.compression, Bytes: wire.bytes}
}

// wire is what only the transport knows of a call.
type wire struct {
	connection net.Conn

	mu          sync.Mutex
	compression string
	bytes       int
}

type wireKey struct{}

func wireOf(ctx context.Context) *wire { return ctx.Value(wireKey{}).(*wire) }

type connectionKey struct{}

// wires is a stats handler that fills in the wire of each call.
type wires struct{}

func (wires) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if address, ok := info.RemoteAddr.(*remote); ok {
		return context.WithValue(ctx, connectionKey{}, address.connection)
	}
	return ctx
}

func (wires) HandleConn(context.Context, stats.ConnStats) {}

func (wires) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	connection, _ := ctx.Value(connectionKey{}).(net.Conn)
	return context.WithValue(ctx, wireKey{}, &wire{connection: connection})
}

func (wires) HandleRPC(ctx context.Context, event stats.RPCStats) {
	wire := wireOf(ctx)
	wire.mu.Lock()
	defer wire.mu.Unlock()
	switch event := event.(type) {
	case *stats.InHeader:
		if event.Compression != "identity" {
			wire.compression = event.Compression
		}
	case *stats.InPayload:
		wire.bytes = event.CompressedLength
	}
}

// breakable accepts connections whose remote address leads back to them, so
// that a call can close its own.
type breakable struct{ net.Listener }

func (b *breakable) Accept() (net.Conn, error) {
	accepted, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: accepted}, nil
}

type connection struct{ net.Conn }

func (c *connection) RemoteAddr() net.Addr {
	return &remote{Addr: c.Conn.RemoteAddr(), connection: c.Conn}
}

type remote struct {
	net.Addr
	connection net.Conn
}
