package otlp

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
)

const (
	dialTimeout = 5 * time.Second
	// redialAfter is the longest wait between two attempts to connect by gRPC,
	// whose own would be two minutes: a collector that is back is found soon.
	redialAfter = 10 * time.Second
	// idleTimeout outlasts the usual interval, so that pushes share a
	// connection.
	idleTimeout = 90 * time.Second
	// answerHeader is how many bytes of headers an answer may have: those of a
	// collector are few, and what is not a collector must not fill our memory.
	answerHeader = 64 << 10
	// pingTimeout is how long a silent peer may stay silent when asked.
	pingTimeout = 10 * time.Second
)

// target is the endpoint as gRPC wants it. Left to itself it would take a host
// whose name is also a scheme of its own ("dns:4317") for that.
func (s Signal) target() string {
	if strings.HasPrefix(s.Endpoint, unixScheme) {
		return s.Endpoint
	}
	return "dns:///" + s.Endpoint
}

// dialOptions are everything about a gRPC connection; they go before what the
// SDK makes of the environment. Proxies are those of HTTPS_PROXY and NO_PROXY.
func (s Signal) dialOptions(agent string, asked *atomic.Bool) []grpc.DialOption {
	trust := insecure.NewCredentials()
	if !s.Insecure {
		trust = credentials.NewTLS(s.listening(asked))
	}
	compressor := "" // none, also where the environment says another
	if s.Gzip {
		compressor = gzip.Name
	}
	return []grpc.DialOption{
		grpc.WithUserAgent(agent),
		grpc.WithMaxHeaderListSize(answerHeader),
		grpc.WithTransportCredentials(trust),
		grpc.WithDefaultCallOptions(grpc.UseCompressor(compressor), grpc.MaxCallRecvMsgSize(answerBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: redialAfter},
			MinConnectTimeout: dialTimeout,
		}),
		// A collector whose node is gone does not say so. One ping for an
		// export that is not answered is as often as servers stand it.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: max(s.Timeout, pingTimeout), Timeout: pingTimeout}),
	}
}

// httpClient is a client for one signal, without a timeout of its own: an
// export's context has that. An answer that is no success is an
// *answer error; redirections are such, for they would make a GET of most
// exports and take headers elsewhere.
//
// One request at a time needs no HTTP/2, whose connections outlive a collector
// that is gone without a word; by HTTP/1.1 the first timeout ends them.
func (s Signal) httpClient(agent string, asked *atomic.Bool) *http.Client {
	config := s.listening(asked)
	if config != nil {
		config.NextProtos = []string{"http/1.1"} // a gRPC server says then that it is none
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: dialTimeout,
		Protocols:           protocols,

		MaxResponseHeaderBytes: answerHeader,
		MaxIdleConns:           2,
		IdleConnTimeout:        idleTimeout,
		ExpectContinueTimeout:  time.Second,
	}
	return &http.Client{Transport: newAnswers(&named{agent: agent, inner: transport})}
}

// listening is the TLS configuration, nil for plaintext, that notes whether the
// server has asked for a client's certificate. What a server then thinks of it
// often does not arrive: by TLS 1.3 it closes the connection after the
// handshake is over for the client.
func (s Signal) listening(asked *atomic.Bool) *tls.Config {
	if s.TLS == nil {
		return nil
	}
	config, own := s.TLS.Clone(), s.TLS.GetClientCertificate
	config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked.Store(true)
		if own == nil {
			return &tls.Certificate{}, nil
		}
		return own(request)
	}
	return config
}

// named says who asks: the SDK has an option for that with gRPC alone. It also
// says that a request may be made twice: of a kept connection that the
// collector closes at that moment nobody knows whether it has taken something,
// and collectors close those that are idle for a minute, the usual interval.
type named struct {
	agent string
	inner *http.Transport
}

// RoundTrip sends a copy of the request, as a transport must not change it.
func (n *named) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", n.agent)
	request.Header["Idempotency-Key"] = nil // for the transport: it is not sent
	return n.inner.RoundTrip(request)
}

// CloseIdleConnections lets http.Client reach the transport.
func (n *named) CloseIdleConnections() { n.inner.CloseIdleConnections() }
