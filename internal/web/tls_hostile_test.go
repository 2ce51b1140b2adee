package web_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/dra-exporter/dra-exporter/internal/ratelog"
)

// startTLS serves with the configuration, in a folder with tls.crt and tls.key, and
// returns the address and a pool with the certificate.
func startTLS(t *testing.T, text string) (address, folder string, pool *x509.CertPool) {
	t.Helper()
	path, pool := selfSigned(t)
	folder = filepath.Dir(path)
	text = strings.ReplaceAll(text, "FOLDER", folder)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := testConfig(t)
	config.Flags.WebConfigFile = &path
	base, _ := serve(t, config)
	return strings.TrimPrefix(base, "http://"), folder, pool
}

// handshake returns the state of a new connection. The error of a server that requires a
// certificate arrives only with a read.
func handshake(t *testing.T, address string, config *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	connection, err := tls.Dial("tcp", address, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Write([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
		return tls.ConnectionState{}, err
	}
	if _, err := connection.Read(make([]byte, 1)); err != nil {
		return tls.ConnectionState{}, err
	}
	return connection.ConnectionState(), nil
}

// documentedConfig returns the web.yaml of docs/security.md, with the commented-out
// options if all is set.
func documentedConfig(t *testing.T, all bool) string {
	t.Helper()
	document, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(document), "```yaml\n# web.yaml")
	text, _, ended := strings.Cut(text, "```")
	if !found || !ended {
		t.Fatal("docs/security.md has no web.yaml")
	}
	_, text, _ = strings.Cut(text, "\n") // the rest of the comment
	folder := regexp.MustCompile(`cert_file: (/\S+)/tls.crt`).FindStringSubmatch(text)
	if folder == nil {
		t.Fatal("docs/security.md names no certificate")
	}
	text = strings.ReplaceAll(text, folder[1], "FOLDER")
	password := regexp.MustCompile(`prometheus: \S+`)
	if !password.MatchString(text) {
		t.Fatal("docs/security.md has no password")
	}
	text = password.ReplaceAllLiteralString(text, "prometheus: $2a$04$rPtQxd9njQK4VTYEp0hTX.2FtqxZALuzoSFuX5ka4DKdgOEE/Ux4O")
	if all {
		text = strings.ReplaceAll(text, "  # client_", "  client_")
	}
	return text
}

// TestDocumentedConfiguration checks the example of the documentation.
func TestDocumentedConfiguration(t *testing.T) {
	address, _, pool := startTLS(t, documentedConfig(t, false))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for authorization, status := range map[string]int{"": http.StatusUnauthorized, "Basic cHJvbWV0aGV1czpzZWNyZXQ=": http.StatusOK} {
		if got := do(t, client, http.MethodGet, "https://"+address+"/metrics", map[string]string{"Authorization": authorization}); got.status != status {
			t.Errorf("with %q it answers %d, want %d", authorization, got.status, status)
		}
	}
	if _, err := handshake(t, address, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}); err == nil { //nolint:gosec // the test expects a refusal
		t.Error("TLS 1.1 is accepted")
	}
}

// TestDocumentedClientCertificates checks that clients without a certificate of the
// documented CA are refused.
func TestDocumentedClientCertificates(t *testing.T) {
	path, pool := selfSigned(t)
	folder := filepath.Dir(path)
	authority, err := os.ReadFile(filepath.Join(folder, "tls.crt"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(documentedConfig(t, true), "FOLDER", folder)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "ca.crt"), authority, 0o600); err != nil {
		t.Fatal(err)
	}
	config := testConfig(t)
	config.Flags.WebConfigFile = &path
	base, _ := serve(t, config)
	address := strings.TrimPrefix(base, "http://")
	if _, err := handshake(t, address, &tls.Config{RootCAs: pool}); err == nil {
		t.Error("a client without a certificate gets a response")
	}
	unrelated, _ := selfSigned(t)
	for name, test := range map[string]struct {
		folder string
		fine   bool
	}{"of the CA": {folder, true}, "of another CA": {filepath.Dir(unrelated), false}} {
		certificate, err := tls.LoadX509KeyPair(filepath.Join(test.folder, "tls.crt"), filepath.Join(test.folder, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = handshake(t, address, &tls.Config{RootCAs: pool, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }})
		if (err == nil) != test.fine {
			t.Errorf("a client with a certificate %s: %v", name, err)
		}
	}
}

// TestReloadOfCertificatesAndPasswords checks that a renewed certificate and a changed
// password are used without a restart.
func TestReloadOfCertificatesAndPasswords(t *testing.T) {
	address, folder, pool := startTLS(t, webConfig)
	before, err := handshake(t, address, &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	renewed, newPool := selfSigned(t)
	for _, name := range []string{"tls.key", "tls.crt"} {
		if err := os.Rename(filepath.Join(filepath.Dir(renewed), name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := handshake(t, address, &tls.Config{RootCAs: pool}); err == nil {
		t.Error("the previous certificate is still used")
	}
	after, err := handshake(t, address, &tls.Config{RootCAs: newPool})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before.PeerCertificates[0].Raw, after.PeerCertificates[0].Raw) {
		t.Error("the certificate is the same")
	}

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: newPool}}
	defer transport.CloseIdleConnections()
	scraper := map[string]string{"Authorization": "Basic c2NyYXBlcjpzZWNyZXQ="}
	scrape := func() int {
		return do(t, &http.Client{Transport: transport}, http.MethodGet, "https://"+address+"/metrics", scraper).status
	}
	if status := scrape(); status != http.StatusOK {
		t.Errorf("the scraper gets %d", status)
	}
	other := strings.Replace(webConfig, "scraper:", "other:", 1)
	if err := os.WriteFile(filepath.Join(folder, "web.yml"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := scrape(); status != http.StatusUnauthorized {
		t.Errorf("a removed user gets %d", status)
	}
}

// TestPipesOfTheConfiguration replaces files of the web configuration by pipes while the
// server runs: it waits for none of them, neither in a handshake nor in a request on a
// connection that is open, and serves again afterwards.
func TestPipesOfTheConfiguration(t *testing.T) {
	address, folder, pool := startTLS(t, webConfig)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	scrape := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", http.NoBody)
		if err != nil {
			return err
		}
		request.SetBasicAuth("scraper", "secret")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if _, err = io.Copy(io.Discard, response.Body); err == nil && response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		return err
	}
	for _, name := range []string{"web.yml", "tls.crt", "tls.key"} {
		if err := scrape(); err != nil {
			t.Fatalf("before %s is a pipe: %v", name, err)
		}
		path := filepath.Join(folder, name)
		if err := errors.Join(os.Rename(path, path+".saved"), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, connection := range []string{"open", "new"} {
			if err := scrape(); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("on a connection that is %s while %s is a pipe: %v", connection, name, err)
			}
			transport.CloseIdleConnections()
		}
		if err := os.Rename(path+".saved", path); err != nil {
			t.Fatal(err)
		}
		if err := scrape(); err != nil {
			t.Errorf("after %s was a pipe: %v", name, err)
		}
	}
}

// TestRapidReset checks that a client that opens and immediately resets thousands of
// streams delays no response to other clients.
func TestRapidReset(t *testing.T) {
	address, _, pool := startTLS(t, "tls_server_config: {cert_file: FOLDER/tls.crt, key_file: FOLDER/tls.key}\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if sent := resetStreams(t, connection, 20_000); sent < 100 {
		t.Errorf("only %d streams were accepted", sent)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	if got := do(t, &http.Client{Transport: transport}, http.MethodGet, "https://"+address+"/metrics", nil); got.status != http.StatusOK || got.header == nil {
		t.Errorf("a scrape gets %d", got.status)
	}
}

// resetStreams opens and resets streams until the server closes the connection, and
// returns their number.
func resetStreams(t *testing.T, connection net.Conn, most int) int {
	t.Helper()
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(connection, connection)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	go func() { // the responses are ignored, but must be read
		for {
			if _, err := framer.ReadFrame(); err != nil {
				return
			}
		}
	}()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range most {
		block.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":path", "/"}, {":scheme", "https"}, {":authority", "x"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a buffer cannot fail
		}
		stream := uint32(2*i + 1)
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
			return i
		}
		if err := framer.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
			return i
		}
	}
	return most
}

// TestClientsCannotForgePanics checks that the data of a handshake is not logged as a
// panic, which is logged without a limit, and that panics are logged.
func TestClientsCannotForgePanics(t *testing.T) {
	path, pool := selfSigned(t)
	if err := os.WriteFile(path, []byte("tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	config := testConfig(t)
	config.Flags.WebConfigFile = &path
	config.Log = slog.New(slog.NewTextHandler(file, nil))
	config.Pages["/"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("ours") })
	base, _ := serve(t, config)
	address := strings.TrimPrefix(base, "http://")
	for range 50 {
		if _, err := handshake(t, address, &tls.Config{RootCAs: pool, NextProtos: []string{": panic serving ", "http: panic serving "}}); err == nil {
			t.Fatal("an unknown protocol is accepted")
		}
	}
	for _, protocol := range []string{"http/1.1", "h2"} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, NextProtos: []string{protocol}}, ForceAttemptHTTP2: protocol == "h2"}
		if response, err := (&http.Client{Transport: transport}).Get("https://" + address + "/"); err == nil {
			response.Body.Close()
			t.Errorf("a page that panics responds with %d by %s", response.StatusCode, protocol)
		}
		transport.CloseIdleConnections()
	}
	written := func() string {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, version := range []string{"http", "http2"} {
		for begun := time.Now(); !strings.Contains(written(), `level=ERROR msg="`+version+": panic serving "); time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("no panic of %s is logged:\n%.2000s", version, written())
			}
		}
	}
	if forged := strings.Count(written(), "unsupported application protocols"); forged == 0 || forged > ratelog.PerMinute {
		t.Errorf("%d handshakes are logged, want %d", forged, ratelog.PerMinute)
	}
}
