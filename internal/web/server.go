// Package web serves the handlers that it is given: metrics, pages, probes,
// and on request the profiler. It knows no role. TLS, basic authentication
// and the kinds of listeners are those of Prometheus' exporter-toolkit.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"

	"github.com/dra-exporter/dra-exporter/internal/logging"
)

// Config says what to serve and where.
type Config struct {
	Flags *toolkit.FlagConfig // addresses, systemd sockets, TLS and basic authentication
	Log   *slog.Logger

	AddressFlag string                  // that the addresses are from, for errors; empty: --web.listen-address
	MetricsPath string                  // where Metrics are served
	Metrics     prometheus.Gatherer     // must be cheap and safe for concurrent use
	Registry    prometheus.Registerer   // counts scrapes by outcome; nil: nobody counts
	Pages       map[string]http.Handler // by path; "/" is the front page alone
	Healthy     func() error            // nil while the process needs no restart
	Ready       func() error            // nil once there is something to serve
	Pprof       bool                    // serve the profiler under /debug/pprof/

	AllowedHosts []string // host names by which pages may be requested, as --web.allowed-hosts has them
	CheckHosts   bool     // also where AllowedHosts is empty and the connection is not over the loopback interface
}

// Limits that keep slow, idle or greedy clients from holding the server.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second // of answers that are not rendered into memory
	stallTimeout      = 10 * time.Second // in which a client takes nothing of a page
	sendTimeout       = time.Minute      // in which a client has taken all of it
	idleTimeout       = 2 * time.Minute  // longer than a scrape interval, so that connections are kept
	maxHeaderBytes    = 64 << 10
	maxBody           = 64 << 10
	shutdownTimeout   = time.Second

	maxConnections         = 128
	maxConnectionsOfClient = 64
	socketWriteBuffer      = 64 << 10 // Linux takes twice as much

	// Requests that wait to be rendered, or are. Scrapes are rendered
	// together, so that it costs little to let many wait.
	maxScrapes          = 512
	maxScrapesOfClient  = 256
	maxRequests         = 32
	maxRequestsOfClient = 16
	maxProfiles         = 4
	maxRenders          = 4
	renderWait          = 5 * time.Second

	// Pages that are being written.
	maxWrites             = 512
	maxWritesOfConnection = 4
	maxWrittenBytes       = 8 << 20
)

// http2Limits bound what one HTTP/2 connection may hold.
func http2Limits() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          8,
		MaxReadFrameSize:              16 << 10,
		MaxReceiveBufferPerConnection: 64 << 10,
		MaxReceiveBufferPerStream:     32 << 10, // bodies of requests are not read
		MaxDecoderHeaderTableSize:     4 << 10,
		MaxEncoderHeaderTableSize:     4 << 10,
		SendPingTimeout:               30 * time.Second,
		PingTimeout:                   stallTimeout,
		WriteByteTimeout:              stallTimeout,
	}
}

// Server serves one Config on any number of listeners.
type Server struct {
	config      Config
	handler     http.Handler
	listeners   []net.Listener
	connections *connections
	passwords   *passwords
	errors      *log.Logger  // of net/http
	toolkit     *slog.Logger // of the exporter-toolkit
}

// Listen opens the listeners. An error names the flag or the file that is at
// fault. A server that is not served must be closed.
func Listen(config Config) (*Server, error) {
	if err := CheckFile(config.Flags); err != nil {
		return nil, err
	}
	if err := CheckAllowedHosts(config.AllowedHosts); err != nil {
		return nil, err
	}
	handler, err := newHandler(config)
	if err != nil {
		return nil, err
	}
	listeners, err := listen(config.Flags, cmp.Or(config.AddressFlag, "--web.listen-address"))
	if err != nil {
		return nil, err
	}
	passwords := newPasswords(logging.Limit(config.Log, logging.Passwords))
	return &Server{
		config: config, handler: passwords.behind(handler), listeners: listeners, passwords: passwords,
		connections: newConnections(maxConnections, maxConnectionsOfClient),
		errors:      newErrorLog(config.Log), toolkit: logging.Limit(config.Log, logging.WebConfig),
	}, nil
}

// CheckFile reads the file of --web.config.file, if there is one.
func CheckFile(flags *toolkit.FlagConfig) error {
	file := *flags.WebConfigFile
	if file == "" {
		return nil
	}
	if err := toolkit.Validate(file); err != nil {
		return fmt.Errorf("read --web.config.file %s: %w", file, err)
	}
	return nil
}

// Addresses are those that the server listens on, in the order of the flags,
// with the ports that the system chose where a flag gives port 0.
func (s *Server) Addresses() []net.Addr {
	addresses := make([]net.Addr, len(s.listeners))
	for i, listener := range s.listeners {
		addresses[i] = listener.Addr()
	}
	return addresses
}

// Close closes the listeners of a server that is not served.
func (s *Server) Close() error { return closeAll(s.listeners) }

// Serve answers requests until ctx ends, then lets those in flight finish
// for a second and returns nil. It returns earlier, with an error, if one of
// the listeners fails.
func (s *Server) Serve(ctx context.Context) error {
	serving, ctx := errgroup.WithContext(ctx)
	for _, listener := range s.listeners {
		// A server of its own for each listener: the toolkit wraps the
		// handler of the server that it is given, once a listener.
		server := s.newServer()
		serving.Go(func() error {
			err := toolkit.Serve(s.connections.limit(listener), server, s.config.Flags, s.toolkit)
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		})
		serving.Go(func() error {
			<-ctx.Done()
			s.shutDown(server)
			return nil
		})
	}
	return serving.Wait()
}

func (s *Server) newServer() *http.Server {
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       -1, // connections have it
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          s.errors,
		HTTP2:             http2Limits(),
		ConnContext:       withConnection,
	}
	// The toolkit puts its handler, which checks passwords, in the place of
	// ours before it serves. This is called after that and before the first
	// request, so that passwords are limited before they are checked.
	server.BaseContext = func(net.Listener) context.Context {
		server.Handler = s.passwords.before(server.Handler)
		return context.Background()
	}
	return server
}

// shutDown waits for the requests in flight as long as they may take, and
// cuts off the rest.
func (s *Server) shutDown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		s.config.Log.Warn("requests in flight are cut off", "error", err.Error())
		_ = server.Close() // its listener is closed already
	}
}
