package otlp

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// files are an authority and a client's certificate and key of its own.
type files struct {
	authority            *otelcollector.Authority
	ca, certificate, key string // paths
}

func newFiles(t *testing.T) files {
	t.Helper()
	authority, err := otelcollector.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	f := files{authority, filepath.Join(directory, "ca.pem"), filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")}
	write(t, f.ca, authority.PEM())
	f.sign(t, authority)
	return f
}

func (f files) sign(t *testing.T, authority *otelcollector.Authority) {
	t.Helper()
	certificate, key, err := authority.Sign("agent")
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.certificate, certificate)
	write(t, f.key, key)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// pairs name the files by variables.
func (f files) pairs() []string {
	return []string{"OTEL_EXPORTER_OTLP_CERTIFICATE=" + f.ca,
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" + f.certificate, "OTEL_EXPORTER_OTLP_CLIENT_KEY=" + f.key}
}

func TestCertificatesRefused(t *testing.T) {
	f, other := newFiles(t), newFiles(t)
	text := filepath.Join(t.TempDir(), "text")
	write(t, text, []byte("not PEM"))
	for name, test := range map[string]struct {
		variables []string
		want      []string
	}{
		"no PEM":      {[]string{"CERTIFICATE=" + text}, []string{"OTEL_EXPORTER_OTLP_CERTIFICATE=", text, "BEGIN CERTIFICATE"}},
		"a key":       {[]string{"CERTIFICATE=" + f.key}, []string{"no certificate in PEM"}},
		"other's key": {[]string{"CLIENT_CERTIFICATE=" + f.certificate, "CLIENT_KEY=" + other.key}, []string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=", "OTEL_EXPORTER_OTLP_CLIENT_KEY=", "does not match"}},
		"mixed up":    {[]string{"CLIENT_CERTIFICATE=" + f.key, "CLIENT_KEY=" + f.certificate}, []string{"may have been switched"}},
		"by signal":   {[]string{"CERTIFICATE=" + f.ca, "TRACES_CERTIFICATE=" + text}, []string{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE="}},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range test.variables {
				test.variables[i] = "OTEL_EXPORTER_OTLP_" + test.variables[i]
			}
			_, err := settings.Load(settings.Flags{Endpoint: "https://c"}, environment(test.variables...))
			if err == nil {
				t.Fatal("taken")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			// Plaintext needs none of them.
			load(t, settings.Flags{Endpoint: "http://c"}, test.variables...)
		})
	}
}

// Each mismatch of client and collector has an error with advice, and
// a client certificate that was replaced is used from the next handshake on.
func TestTLS(t *testing.T) {
	f, other := newFiles(t), newFiles(t)
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		for name, test := range map[string]struct {
			server []string // names in its certificate; nil: plaintext
			mutual bool
			scheme string
			pairs  []string
			want   []string // empty: accepted
		}{
			"plain":            {nil, false, "http", f.pairs(), nil},
			"trusted":          {[]string{"127.0.0.1"}, false, "https", f.pairs()[:1], nil},
			"mutual":           {[]string{"127.0.0.1"}, true, "https", f.pairs(), nil},
			"other authority":  {[]string{"127.0.0.1"}, false, "https", other.pairs(), []string{"unknown authority", "OTEL_EXPORTER_OTLP_CERTIFICATE"}},
			"system's":         {[]string{"127.0.0.1"}, false, "https", nil, []string{"unknown authority", "OTEL_EXPORTER_OTLP_CERTIFICATE"}},
			"other name":       {[]string{"c.example"}, false, "https", f.pairs(), []string{"127.0.0.1", "certificate"}},
			"no client's":      {[]string{"127.0.0.1"}, true, "https", f.pairs()[:1], []string{"requires a client certificate", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"}},
			"other client's":   {[]string{"127.0.0.1"}, true, "https", append(f.pairs()[:1], other.pairs()[1:]...), []string{"check that the collector trusts the authority of the client certificate"}},
			"TLS to plaintext": {nil, false, "https", f.pairs(), []string{"does not use TLS at this port"}},
			"plaintext to TLS": {[]string{"127.0.0.1"}, false, "http", nil, []string{"uses TLS at this port, use https://"}},
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				options := otelcollector.Options{}
				if test.server != nil {
					options.TLS = serverTLS(t, f, test.mutual, test.server...)
				}
				collector := startCollector(t, options)
				settings := load(t, settings.Flags{Endpoint: test.scheme + "://" + collector.Address(protocol), Protocol: protocol},
					append(slices.Clone(test.pairs), "OTEL_EXPORTER_OTLP_TIMEOUT=30000")...)
				checkExport(t, settings, test.want)
			})
		}
	}
}

func serverTLS(t *testing.T, f files, mutual bool, names ...string) *tls.Config {
	t.Helper()
	config, err := f.authority.Server(names...)
	if err != nil {
		t.Fatal(err)
	}
	if mutual {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, f.authority.Pool()
	}
	return config
}

// checkExport wants both signals accepted, or spans, which are not retried,
// refused with these texts on one line.
func checkExport(t *testing.T, s settings.Settings, want []string) {
	t.Helper()
	if len(want) == 0 {
		if err := export(t, s); err != nil {
			t.Error(err)
		}
		return
	}
	exporter, err := newSpanExporter(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	err = exporter.ExportSpans(t.Context(), oneSpan())
	if shut := exporter.Shutdown(t.Context()); err == nil || shut != nil {
		t.Fatalf("export: %v, shutdown: %v", err, shut)
	}
	for _, text := range append(want, "") {
		if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q does not say %q on one line", err, text)
		}
	}
}

// The client uses another protocol than the port.
func TestWrongPort(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			f, options := newFiles(t), otelcollector.Options{}
			if scheme == "https" {
				options.TLS = serverTLS(t, f, false, "127.0.0.1")
			}
			collector := startCollector(t, options)
			pairs := append(f.pairs(), "OTEL_EXPORTER_OTLP_TIMEOUT=30000")
			wrong := []string{"uses gRPC at this port"}
			if scheme == "https" {
				wrong = nil // a Go server sends nothing: only the port could decide
			}
			checkExport(t, load(t, settings.Flags{Endpoint: scheme + "://" + collector.GRPC(), Protocol: "http/protobuf"}, pairs...), append(wrong, "Post"))
			checkExport(t, load(t, settings.Flags{Endpoint: scheme + "://" + collector.HTTP(), Protocol: "grpc"}, pairs...), []string{"uses HTTP at this port"})
			checkExport(t, load(t, settings.Flags{Endpoint: scheme + "://" + collector.HTTP() + "/elsewhere", Protocol: "http/protobuf"}, pairs...), []string{"404", "check the path"})
		})
	}
}

// A certificate that is replaced while we run is shown at the next handshake;
// while the files do not fit each other, the last that did is.
func TestClientCertificateRotates(t *testing.T) {
	f, next := newFiles(t), newFiles(t)
	collector := startCollector(t, otelcollector.Options{TLS: serverTLS(t, f, true, "127.0.0.1")})
	f.sign(t, next.authority) // of an authority that the collector does not know
	settings := load(t, settings.Flags{Endpoint: "https://" + collector.HTTP()}, append(f.pairs(), "OTEL_EXPORTER_OTLP_TIMEOUT=30000")...)
	checkExport(t, settings, []string{"trusts the authority of the client certificate"})
	f.sign(t, f.authority)
	checkExport(t, settings, nil)
	write(t, f.key, []byte("half written"))
	checkExport(t, settings, nil)
}

// If an error has several causes, the port decides.
func TestAdviceByPort(t *testing.T) {
	for endpoint, want := range map[string]string{"c:4317": "uses gRPC at this port", "c:4318": ""} {
		signal := settings.SignalSettings{Protocol: settings.ProtocolHTTP, Endpoint: endpoint}
		got := advise(errors.New(`Post "https://c/v1/metrics": EOF`), signal, false)
		if (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", endpoint, got)
		}
	}
}
