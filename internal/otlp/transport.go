package otlp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

const (
	dialTimeout = 5 * time.Second
	// mostReconnectDelay is the longest wait between two attempts to connect by
	// gRPC, whose default is two minutes: a collector that returns is found soon.
	mostReconnectDelay = 10 * time.Second
	// idleTimeout is longer than the usual interval, so that pushes share a
	// connection.
	idleTimeout = 90 * time.Second
	// responseHeaderBytes bounds the headers of a response: those of a collector
	// are few, and any other server must not fill our memory.
	responseHeaderBytes = 64 << 10
	// pingTimeout is how long a peer may take to respond to a ping.
	pingTimeout = 10 * time.Second
)

// connection is how the exporter of one signal reaches the collector.
type connection struct {
	signal    settings.SignalSettings
	userAgent string

	certificateRequested atomic.Bool // by the collector, since the last successful export
}

// newConnection replaces a user agent with control characters, which every
// request would refuse.
func newConnection(signal settings.SignalSettings, userAgent string) *connection {
	if userAgent == "" || strings.ContainsFunc(userAgent, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		userAgent = "dra-exporter"
	}
	return &connection{signal: signal, userAgent: userAgent}
}

// export calls the function with the signal's timeout, and explains its error.
func (c *connection) export(ctx context.Context, call func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.signal.Timeout)
	defer cancel()
	late := "no answer within " + c.signal.Timeout.String()
	deadline, _ := limited.Deadline()
	if given, ok := ctx.Deadline(); ok && !deadline.Before(given) { // at the end there is less time
		late = "no answer in time"
	}
	err := call(limited)
	if err == nil {
		// The collector accepted the certificate: a later failure has another cause.
		c.certificateRequested.Store(false)
		return nil
	}
	return explain(limited, err, late, c.signal, c.certificateRequested.Load())
}

// grpcTarget is the endpoint as gRPC needs it. Without the scheme, gRPC would
// mistake a host such as "dns" in "dns:4317" for the scheme of a resolver.
func (c *connection) grpcTarget() string {
	if strings.HasPrefix(c.signal.Endpoint, settings.UnixScheme) {
		return c.signal.Endpoint
	}
	return "dns:///" + c.signal.Endpoint
}

// dialOptions are all options of a gRPC connection; they override what the SDK
// reads from the environment. Proxies are those of HTTPS_PROXY and NO_PROXY.
func (c *connection) dialOptions() []grpc.DialOption {
	transport := insecure.NewCredentials()
	if !c.signal.Insecure {
		transport = credentials.NewTLS(c.tlsConfig())
	}
	compressor := "" // none, also if the environment has another one
	if c.signal.Gzip {
		compressor = grpcgzip.Name
	}
	return []grpc.DialOption{
		grpc.WithUserAgent(c.userAgent),
		grpc.WithMaxHeaderListSize(responseHeaderBytes),
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.UseCompressor(compressor), grpc.MaxCallRecvMsgSize(responseBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: mostReconnectDelay},
			MinConnectTimeout: dialTimeout,
		}),
		// A collector whose node is gone does not close the connection. One ping for
		// an export without a response is as often as servers accept it.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: max(c.signal.Timeout, pingTimeout), Timeout: pingTimeout}),
	}
}

// httpClient is a client without a timeout of its own: an export's context has
// that. A response other than success is a *responseRefusal error, even a
// redirection: following it would turn most exports into a GET and send headers
// elsewhere.
//
// One request at a time does not need HTTP/2, whose connections stay open when a
// collector disappears; with HTTP/1.1 the first timeout closes them.
func (c *connection) httpClient() *http.Client {
	config := c.tlsConfig()
	if config != nil {
		config.NextProtos = []string{"http/1.1"} // a gRPC server refuses that
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Client{Transport: &refusingTransport{userAgent: c.userAgent, inner: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: dialTimeout,
		Protocols:           protocols,

		MaxResponseHeaderBytes: responseHeaderBytes,
		MaxIdleConns:           2,
		IdleConnTimeout:        idleTimeout,
		ExpectContinueTimeout:  time.Second,
	}}}
}

// tlsConfig is the TLS configuration, nil for plaintext, that records whether
// the server requested a client certificate. A refusal of the certificate often
// does not arrive: with TLS 1.3 the server closes the connection after the
// client has completed the handshake.
func (c *connection) tlsConfig() *tls.Config {
	if c.signal.TLS == nil {
		return nil
	}
	config, certificate := c.signal.TLS.Clone(), c.signal.TLS.GetClientCertificate
	config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		c.certificateRequested.Store(true)
		if certificate == nil {
			return &tls.Certificate{}, nil
		}
		return certificate(request)
	}
	return config
}

// refusingTransport sets the user agent, for which the SDK has an option with
// gRPC alone, and returns every response but a success as a *responseRefusal
// error. It also marks requests as repeatable: if the collector closes a kept
// connection at that moment, it is unknown whether it accepted the request, and
// collectors close connections that were idle for a minute, the usual interval.
type refusingTransport struct {
	userAgent string
	inner     *http.Transport
}

// RoundTrip sends a copy of the request, as a transport must not change it. Its
// error is a *responseRefusal if the status is not 2xx, or the response is a
// web page: servers and proxies without OTLP respond so to everything.
func (t *refusingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", t.userAgent)
	request.Header["Idempotency-Key"] = nil // for the inner transport; it is not sent
	response, err := t.inner.RoundTrip(request)
	// An empty body is no web page, whatever its type.
	if err != nil || response.StatusCode/100 == 2 && (response.ContentLength == 0 ||
		!strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/html")) {
		return response, err
	}
	defer response.Body.Close()
	return nil, &responseRefusal{
		Status:     response.StatusCode,
		RetryAfter: retryAfterHeader(response.Header),
		Message:    responseMessage(response),
	}
}

// CloseIdleConnections lets http.Client reach the inner transport.
func (t *refusingTransport) CloseIdleConnections() { t.inner.CloseIdleConnections() }

// retryAfterHeader decodes Retry-After, in seconds or as a date, which is
// compared with the server's own Date: its clock may differ from ours. It is 0
// if that fails.
func retryAfterHeader(header http.Header) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// responseMessage decodes the body: the message of a google.rpc.Status, as in
// OTLP, or text.
func responseMessage(response *http.Response) string {
	if location := response.Header.Get("Location"); location != "" {
		return "redirected to " + oneLine(location)
	}
	// What was read before an error is as good a message.
	body, _ := io.ReadAll(io.LimitReader(response.Body, messageBytes))
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/x-protobuf") {
		decoded := status.New(codes.Unknown, "").Proto()
		if proto.Unmarshal(body, decoded) != nil {
			return ""
		}
		return oneLine(decoded.GetMessage())
	}
	return oneLine(string(bytes.TrimSpace(body)))
}

// metricSender sends a request of metrics to the collector, once. Its error is
// that of gRPC or HTTP, or a PartialSuccess.
type metricSender interface {
	send(ctx context.Context, request *collectorpb.ExportMetricsServiceRequest) error
	close() error
}

// newMetricSender connects when something is sent, not before.
func newMetricSender(c *connection) (metricSender, error) {
	if c.signal.Protocol != settings.ProtocolGRPC {
		return &httpSender{
			client: c.httpClient(), url: c.signal.URL(), headers: c.signal.Headers, gzip: c.signal.Gzip,
		}, nil
	}
	client, err := grpc.NewClient(c.grpcTarget(), c.dialOptions()...)
	if err != nil {
		return nil, err
	}
	return &grpcSender{
		client: client, service: collectorpb.NewMetricsServiceClient(client), headers: metadata.New(c.signal.Headers),
	}, nil
}

// grpcSender sends by gRPC.
type grpcSender struct {
	client  *grpc.ClientConn
	service collectorpb.MetricsServiceClient
	headers metadata.MD
}

func (s *grpcSender) send(ctx context.Context, request *collectorpb.ExportMetricsServiceRequest) error {
	response, err := s.service.Export(metadata.NewOutgoingContext(ctx, s.headers), request)
	if err != nil {
		return err
	}
	return responseError(response)
}

func (s *grpcSender) close() error { return s.client.Close() }

// httpSender sends by HTTP. The client returns an error for each response other
// than success.
type httpSender struct {
	client  *http.Client
	url     string
	headers map[string]string
	gzip    bool
}

func (s *httpSender) send(ctx context.Context, message *collectorpb.ExportMetricsServiceRequest) error {
	body, err := proto.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode metrics: %w", err)
	}
	if s.gzip {
		if body, err = compress(body); err != nil {
			return fmt.Errorf("compress metrics: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range s.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	if s.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return decodeResponse(response)
}

func (s *httpSender) close() error {
	s.client.CloseIdleConnections()
	return nil
}

// decodeResponse decodes the response to a successful request.
func decodeResponse(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, responseBytes+1))
	if len(body) > responseBytes {
		return fmt.Errorf("read the collector's answer: it has more than %d bytes", responseBytes)
	}
	if err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/x-protobuf") {
		return err
	}
	var message collectorpb.ExportMetricsServiceResponse
	if err := proto.Unmarshal(body, &message); err != nil {
		return fmt.Errorf("decode the collector's answer: %w", err)
	}
	return responseError(&message)
}

// compress uses the fastest level, which already reduces repetitive labels to a
// tenth.
func compress(body []byte) ([]byte, error) {
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = writer.Write(body)
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, err
	}
	return compressed.Bytes(), nil
}
