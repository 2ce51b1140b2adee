package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/internal/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig serves one gauge, one page and probes that succeed.
func testConfig(t testing.TB) web.Config {
	t.Helper()
	name, help, kind, value := "dra_test", "A test", dto.MetricType_GAUGE, 42.0
	families := []*dto.MetricFamily{{Name: &name, Help: &help, Type: &kind,
		Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &value}}}}}
	fine := func() error { return nil }
	file, systemd := "", false
	return web.Config{
		Flags: &toolkit.FlagConfig{
			WebListenAddresses: &[]string{"127.0.0.1:0"}, WebSystemdSocket: &systemd, WebConfigFile: &file},
		Log:         slog.New(slog.DiscardHandler),
		MetricsPath: "/metrics",
		Metrics:     prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil }),
		Pages: map[string]http.Handler{"/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<p>the page</p>")
		})},
		Healthy: fine, Ready: fine,
	}
}

// serve runs the server until the test ends or stop is called. stop returns the error of
// Serve.
func serve(t *testing.T, config web.Config) (base string, stop func() error) {
	t.Helper()
	server, err := web.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + server.Addresses()[0].String(), stop
}

func TestListenRefuses(t *testing.T) {
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*web.Config)
		want   []string
	}{
		{"a port in use", func(c *web.Config) { c.Flags.WebListenAddresses = &[]string{"127.0.0.1:0", occupied.Addr().String()} },
			[]string{"--web.listen-address", occupied.Addr().String(), "address already in use"}},
		{"no address", func(c *web.Config) { c.Flags.WebListenAddresses = &[]string{} }, []string{"--web.listen-address"}},
		{"a URL with a password", func(c *web.Config) { c.Flags.WebListenAddresses = &[]string{"http://me:secret@fd00::1:9420"} },
			[]string{"--web.listen-address", "http://xxxxx@fd00::1:9420", "neither HOST:PORT nor vsock://:PORT"}},
		{"an address of another machine, without brackets", func(c *web.Config) { c.Flags.WebListenAddresses = &[]string{"2001:db8::1:9420"} },
			[]string{"--web.listen-address", "2001:db8::1:9420", "listen tcp [2001:db8::1]:9420"}},
		{"a vsock without port", func(c *web.Config) { c.Flags.WebListenAddresses = &[]string{"vsock://:x"} },
			[]string{"--web.listen-address", "vsock://:x"}},
		{"no socket of systemd", func(c *web.Config) { *c.Flags.WebSystemdSocket = true }, []string{"--web.systemd-socket"}},
		{"a missing file", func(c *web.Config) { *c.Flags.WebConfigFile = folder + "/missing.yml" },
			[]string{"--web.config.file", "missing.yml", "no such file"}},
		{"passwords and tokens", func(c *web.Config) {
			*c.Flags.WebConfigFile = write("both.yml", "basic_auth_users: {a: $2a$04$CUSZ49Y1esfDGBeun2ujbOXmogUJ7iUc6fNSrL4b0j1BwCWrDKNie}\n")
			c.Admit = func(next http.Handler) http.Handler { return next }
		}, []string{"--web.config.file", "both.yml", "basic_auth_users", "--web.kubernetes-auth"}},
		{"a host with a port", func(c *web.Config) { c.Hosts = []string{"gpus.example.com", "gpus.example.com:8443"} },
			[]string{"--web.allowed-host=gpus.example.com:8443"}},
		{"a host with a scheme", func(c *web.Config) { c.Hosts = []string{"https://gpus.example.com"} }, []string{"--web.allowed-host=https://"}},
		{"a host in capitals", func(c *web.Config) { c.Hosts = []string{"GPUs.example.com"} }, []string{"--web.allowed-host=GPUs.", "lower case"}},
		{"a pattern of hosts", func(c *web.Config) { c.Hosts = []string{"*.example.com"} }, []string{"--web.allowed-host=*."}},
		{"an empty host", func(c *web.Config) { c.Hosts = []string{""} }, []string{"--web.allowed-host="}},
		{"an unknown field", func(c *web.Config) { *c.Flags.WebConfigFile = write("field.yml", "tls_server: {}\n") },
			[]string{"--web.config.file", "field.yml", "tls_server"}},
		{"a missing certificate", func(c *web.Config) {
			*c.Flags.WebConfigFile = write("tls.yml", "tls_server_config: {cert_file: no.crt, key_file: no.key}\n")
		}, []string{"--web.config.file", "tls.yml", "no.crt"}},
		{"a password in the clear", func(c *web.Config) {
			*c.Flags.WebConfigFile = write("users.yml", "basic_auth_users: {scraper: secret}\n")
		}, []string{"--web.config.file", "users.yml"}},
		{"a pipe of a configuration", func(c *web.Config) { *c.Flags.WebConfigFile = pipe }, []string{"--web.config.file", pipe, "not a regular file"}},
		{"a pipe of a key", func(c *web.Config) {
			*c.Flags.WebConfigFile = write("pipe.yml", "tls_server_config: {cert_file: no.crt, key_file: "+pipe+"}\n")
		}, []string{"--web.config.file", pipe, "not a regular file"}},
		{"a relative path", func(c *web.Config) { c.MetricsPath = "metrics" }, []string{"--web.telemetry-path", `"metrics"`}},
		{"a pattern", func(c *web.Config) { c.MetricsPath = "/{x}" }, []string{"--web.telemetry-path"}},
		{"the page's path", func(c *web.Config) { c.MetricsPath = "/" }, []string{"--web.telemetry-path", "another page"}},
		{"a probe's path", func(c *web.Config) { c.MetricsPath = "/-/ready" }, []string{"--web.telemetry-path", "another page"}},
		{"the profiler's path", func(c *web.Config) { c.MetricsPath = "/debug/pprof" }, []string{"--web.telemetry-path", "another page"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := testConfig(t)
			test.change(&config)
			server, err := web.Listen(config)
			if err == nil {
				_ = server.Close()
				t.Fatal("it listens nevertheless")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestSeveralAddresses(t *testing.T) {
	config := testConfig(t)
	config.Flags.WebListenAddresses = &[]string{"127.0.0.1:0", "127.0.0.1:0"}
	server, err := web.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	for _, address := range server.Addresses() {
		if response := get(t, "http://"+address.String()+"/metrics", nil); response.status != http.StatusOK {
			t.Errorf("%s answers %d", address, response.status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServeFails checks that Serve returns the error of a listener.
func TestServeFails(t *testing.T) {
	server, err := web.Listen(testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	err = server.Serve(t.Context())
	if !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), server.Addresses()[0].String()) {
		t.Errorf("error %v", err)
	}
}

func TestShutdownAbortsSlowRequests(t *testing.T) {
	var (
		config  = testConfig(t)
		arrived = make(chan struct{})
		release = make(chan struct{})
	)
	config.Pages["/slow"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	})
	base, stop := serve(t, config)
	answered := make(chan error, 1)
	go func() {
		response, err := http.Get(base + "/slow")
		if err == nil {
			response.Body.Close()
		}
		answered <- err
	}()
	<-arrived
	if err := stop(); err != nil { // does not return if it waits for the request
		t.Error(err)
	}
	if err := <-answered; err == nil {
		t.Error("the slow request was answered")
	}
	close(release)
}

func TestShutdownWaitsForQuickRequests(t *testing.T) {
	var (
		config  = testConfig(t)
		arrived = make(chan struct{})
		release = make(chan struct{})
	)
	config.Pages["/quick"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(w, "done")
	})
	base, stop := serve(t, config)
	answered := make(chan response, 1)
	go func() { answered <- get(t, base+"/quick", nil) }()
	<-arrived
	time.AfterFunc(10*time.Millisecond, func() { close(release) })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := <-answered; got.body != "done" {
		t.Errorf("the request in flight got %q", got.body)
	}
}
