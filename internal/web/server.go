// Package web serves metrics, pages, probes, and optionally the profiler. It is
// independent of the roles. TLS, basic authentication and the kinds of listeners are
// those of Prometheus' exporter-toolkit.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log" //nolint:depguard // http.Server needs such a logger
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
)

// Config configures a Server.
type Config struct {
	Flags *toolkit.FlagConfig // addresses, systemd sockets, TLS and basic authentication
	Log   *slog.Logger

	AddressFlag string                  // name of the flag of the addresses, for errors; empty: --web.listen-address
	MetricsPath string                  // where Page and Metrics are served
	Page        func() *metric.Page     // of the newest snapshot; nil, or returning nil: there is none
	Metrics     prometheus.Gatherer     // what is not part of snapshots; gathered once a second at most
	Created     bool                    // OpenMetrics has lines _created
	Registry    prometheus.Registerer   // for counts of scrapes by outcome; nil: they are not counted
	Pages       map[string]http.Handler // by path; "/" matches only the front page
	Healthy     func() error            // nil while the process needs no restart
	Ready       func() error            // nil once there is something to serve
	Pprof       bool                    // serve the profiler under /debug/pprof/

	// Hosts are names that are allowed in the Host header of requests over the
	// loopback interface, besides addresses and names of a cluster. "*": any.
	Hosts []string

	// Admit is a middleware before everything except the probes, and before all
	// limits: it responds to requests that it does not admit. It cannot be used with
	// the passwords of a web configuration. Nil: all are admitted.
	Admit func(http.Handler) http.Handler
}

// Server serves one Config on any number of listeners.
type Server struct {
	config    Config
	handler   http.Handler
	listeners []net.Listener
	passwords *passwords
}

// Listen opens the listeners. An error names the flag or the file that caused it. A server that is not served must be closed.
func Listen(config Config) (*Server, error) {
	if err := CheckFile(config.Flags); err != nil {
		return nil, err
	}
	if err := checkHosts(config.Hosts); err != nil {
		return nil, err
	}
	if err := checkPasswords(config); err != nil {
		return nil, err
	}
	handler, err := newHandler(config)
	if err != nil {
		return nil, err
	}
	passwords, err := newPasswords(limited(config.Log, "passwords"))
	if err != nil {
		return nil, err
	}
	listeners, err := listen(config.Flags, cmp.Or(config.AddressFlag, "--web.listen-address"))
	if err != nil {
		return nil, err
	}
	return &Server{config: config, handler: passwords.behind(handler), listeners: listeners, passwords: passwords}, nil
}

// CheckFile reads the file of --web.config.file, if there is one.
func CheckFile(flags *toolkit.FlagConfig) error {
	file := *flags.WebConfigFile
	if file == "" {
		return nil
	}
	files, err := configFiles(file)
	if err == nil {
		err = checkRegular(files)
	}
	if err != nil {
		return fmt.Errorf("read --web.config.file: %w", err)
	}
	if err := toolkit.Validate(file); err != nil {
		return fmt.Errorf("read --web.config.file %s: %w", file, err)
	}
	return nil
}

// maxConfig is the size of the web configuration, in bytes.
const maxConfig = 1 << 20

// configFiles returns the web configuration and the files that it names.
func configFiles(file string) ([]string, error) {
	text, err := hostfile.Read(file, maxConfig)
	if err != nil {
		return nil, err
	}
	var named struct {
		TLS struct {
			Certificate string `yaml:"cert_file"`
			Key         string `yaml:"key_file"`
			Authorities string `yaml:"client_ca_file"`
		} `yaml:"tls_server_config"`
	}
	files := []string{file}
	if yaml.Unmarshal(text, &named) != nil {
		return files, nil // the toolkit says what is wrong
	}
	for _, path := range []string{named.TLS.Certificate, named.TLS.Key, named.TLS.Authorities} {
		switch {
		case path == "":
		case filepath.IsAbs(path):
			files = append(files, path)
		default:
			files = append(files, filepath.Join(filepath.Dir(file), path))
		}
	}
	return files, nil
}

// checkRegular refuses files that are not regular, for which the toolkit would wait.
// What is missing, or may not be read, is the toolkit's to report.
func checkRegular(files []string) error {
	for _, path := range files {
		if err := hostfile.Check(path); source.ReasonOf(err) == source.ReasonInvalid {
			return err
		}
	}
	return nil
}

// regular returns the check of the web configuration before each use, which has the
// toolkit read its files again; nil without one.
func (s *Server) regular() func() error {
	file := *s.config.Flags.WebConfigFile
	if file == "" {
		return nil
	}
	files, err := configFiles(file)
	if err != nil {
		files = []string{file}
	}
	log := limited(s.config.Log, "web configuration")
	return func() error {
		err := checkRegular(files)
		if err != nil {
			log.Error("requests are refused: the web configuration cannot be read", "error", err.Error())
		}
		return err
	}
}

// checkPasswords refuses passwords with Admit: both need the Authorization header, so
// that no request could satisfy both.
func checkPasswords(config Config) error {
	file := *config.Flags.WebConfigFile
	if file == "" || config.Admit == nil {
		return nil
	}
	text, err := hostfile.Read(file, maxConfig)
	if err != nil {
		return fmt.Errorf("read --web.config.file: %w", err)
	}
	var users struct {
		Passwords map[string]string `yaml:"basic_auth_users"`
	}
	if err := yaml.Unmarshal(text, &users); err != nil {
		return fmt.Errorf("read --web.config.file %s: %w", file, err)
	}
	if len(users.Passwords) > 0 {
		return fmt.Errorf("--web.config.file %s has basic_auth_users, which cannot be used with --web.kubernetes-auth: both need the Authorization header, so remove one", file)
	}
	return nil
}

// Addresses returns the addresses of the listeners in the order of the flags. Port 0
// of a flag is replaced by the port that the system has chosen.
func (s *Server) Addresses() []net.Addr {
	addresses := make([]net.Addr, len(s.listeners))
	for i, listener := range s.listeners {
		addresses[i] = listener.Addr()
	}
	return addresses
}

// Close closes the listeners of a server that is not served.
func (s *Server) Close() error { return closeAll(s.listeners) }

// Serve handles requests until ctx ends, then waits for those in flight for a second
// and returns nil. It returns earlier, with an error, if one of the listeners fails.
func (s *Server) Serve(ctx context.Context) error {
	serving, ctx := errgroup.WithContext(ctx)
	connections := newConnections(maxConnections, maxConnectionsOfClient)
	connections.check = s.regular()
	for _, listener := range s.listeners {
		// Each listener needs its own server, because the toolkit wraps the server's
		// handler for each listener.
		server := s.newServer()
		serving.Go(func() error {
			err := toolkit.Serve(connections.limit(listener), server, s.config.Flags, limited(s.config.Log, "web configuration"))
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
		IdleTimeout:       -1, // connection implements it
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(&errorLog{clients: limited(s.config.Log, "connections"), ours: s.config.Log}, "", 0),
		HTTP2:             http2Limits(),
		ConnContext:       withConnection,
	}
	// The server calls BaseContext before it accepts connections, and after the
	// toolkit has wrapped its handler.
	server.BaseContext = func(net.Listener) context.Context {
		if *s.config.Flags.WebConfigFile != "" {
			server.Handler = s.passwords.before(server.Handler)
		}
		return context.Background()
	}
	return server
}

// errorLog logs net/http's errors. Clients can cause any number of them, so they are
// limited, except for panics, which are defects of the exporter.
type errorLog struct{ clients, ours *slog.Logger }

func (e *errorLog) Write(line []byte) (int, error) {
	text := strings.TrimRight(string(line), "\n")
	// Only the beginning is checked, because data of clients comes after it.
	if strings.HasPrefix(text, "http: panic serving ") || strings.HasPrefix(text, "http2: panic serving ") {
		e.ours.Error(text)
	} else {
		e.clients.Warn(text)
	}
	return len(line), nil
}

// limited returns the log for lines of which a client can cause any number.
func limited(log *slog.Logger, kind string) *slog.Logger {
	return slog.New(ratelog.Limit(log.Handler(), kind))
}

// shutDown waits for requests in flight for shutdownTimeout, and aborts the others.
func (s *Server) shutDown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		s.config.Log.Warn("requests in flight are aborted", "error", err.Error())
		_ = server.Close() // its listener is closed already
	}
}
