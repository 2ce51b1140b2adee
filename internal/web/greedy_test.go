package web_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/dra-exporter/dra-exporter/internal/web"
)

// largeConfig serves metrics and a page of about this many bytes.
func largeConfig(t *testing.T, size int) web.Config {
	t.Helper()
	config := testConfig(t)
	name, help, kind, label := "dra_test", "A test", dto.MetricType_GAUGE, "n"
	family := &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
	for i := range size / 1000 {
		value, text := float64(i), fmt.Sprintf("%0980d", i)
		family.Metric = append(family.Metric, &dto.Metric{Label: []*dto.LabelPair{{Name: &label, Value: &text}}, Gauge: &dto.Gauge{Value: &value}})
	}
	families := []*dto.MetricFamily{family}
	config.Metrics = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil })
	config.Pages["/"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
	return config
}

// Clients that ask for a large page and never read keep nobody from being
// answered, however many they are and whatever they ask for.
func TestClientsThatNeverRead(t *testing.T) {
	t.Parallel()
	const size = 6 << 20 // more than the system's buffers take, and 12 of them more than there is room for
	for _, path := range []string{"/metrics", "/"} {
		t.Run(path, func(t *testing.T) {
			base, _ := serve(t, largeConfig(t, size))
			for range 12 { // fewer than are rendered at once
				connection := dial(t, base)
				if _, err := io.WriteString(connection, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
			}
			for range 5 {
				if got := get(t, base+path, nil); got.status != http.StatusOK || len(got.body) < size*9/10 {
					t.Errorf("beside them a client gets %d and %d bytes", got.status, len(got.body))
				}
			}
		})
	}
}

// The same by HTTP/2, where a client may open streams and take nothing of what
// comes in them.
func TestStreamsWithoutAWindow(t *testing.T) {
	t.Parallel()
	path, pool := selfSigned(t)
	text := "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := largeConfig(t, 300_000)
	config.Flags.WebConfigFile = &path
	base, _ := serve(t, config)
	address := strings.TrimPrefix(base, "http://")
	for range 10 {
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		openStreams(t, connection, 10)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	for range 10 {
		if got := do(t, &http.Client{Transport: transport}, http.MethodGet, "https://"+address+"/metrics", nil); got.status != http.StatusOK {
			t.Errorf("beside them a scrape gets %d %.100s", got.status, got.body)
		}
	}
}

// openStreams asks for the metrics in streams whose window is 0.
func openStreams(t *testing.T, connection net.Conn, count int) {
	t.Helper()
	if _, err := connection.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(connection, connection)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range count {
		block.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":path", "/metrics"}, {":scheme", "https"}, {":authority", "x"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a buffer takes all
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// A client that reads slowly and steadily gets all of it.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	base, _ := serve(t, largeConfig(t, size))
	connection := dial(t, base)
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	total, buffer := 0, make([]byte, 256<<10)
	for {
		n, err := connection.Read(buffer)
		total += n
		if err != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if total < size {
		t.Errorf("it gets %d bytes of %d", total, size)
	}
}

// Somebody who guesses passwords gets no more checks than an address may have,
// and whoever scrapes with the right one is answered each time.
func TestGuessedPasswords(t *testing.T) {
	t.Parallel()
	path, _ := selfSigned(t)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), 9) // some tens of milliseconds
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("basic_auth_users: {scraper: "+string(hash)+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := testConfig(t)
	config.Flags.WebConfigFile = &path
	base, _ := serve(t, config)
	scrape := func(user, password string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(user, password)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	if status := scrape("scraper", "secret"); status != http.StatusOK {
		t.Fatalf("the first scrape gets %d", status)
	}
	var guessing sync.WaitGroup
	var checked, refused, others atomic.Int64
	for i := range 50 {
		guessing.Go(func() {
			for j := range 10 {
				switch status := scrape("scraper", fmt.Sprintf("guess-%d-%d", i, j)); status {
				case http.StatusUnauthorized:
					checked.Add(1)
				case http.StatusTooManyRequests, http.StatusServiceUnavailable:
					refused.Add(1)
				default:
					others.Add(1)
				}
			}
		})
	}
	for range 20 {
		if status := scrape("scraper", "secret"); status != http.StatusOK {
			t.Errorf("beside guesses the scraper gets %d", status)
		}
		if got := get(t, base+"/-/healthy", nil); got.status != http.StatusUnauthorized {
			t.Errorf("without a password the answer is %d", got.status)
		}
	}
	guessing.Wait()
	if checked.Load() > 60 || refused.Load() < 400 || others.Load() > 0 {
		t.Errorf("of 500 guesses %d were checked, %d refused, %d something else", checked.Load(), refused.Load(), others.Load())
	}
	// A password that is changed counts at once, whatever was remembered.
	if err := os.WriteFile(path, []byte("basic_auth_users: {other: "+string(hash)+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := scrape("scraper", "secret"); status != http.StatusUnauthorized {
		t.Errorf("a user that was taken out gets %d", status)
	}
}

// A site whose name is made to stand for this machine reads nothing.
func TestRebinding(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	config.Hosts = []string{"gpus.example.com"}
	base, _ := serve(t, config)
	port := base[strings.LastIndex(base, ":"):]
	for host, status := range map[string]int{
		"127.0.0.1" + port: 200, "[::1]" + port: 200, "10.1.2.3:9420": 200, "localhost" + port: 200, "LOCALHOST.": 200, "node-a": 200,
		"dra-exporter.monitoring.svc:9420": 200, "dra-exporter.monitoring.svc.cluster.local": 200, "node-a.local": 200,
		"gpus.example.com": 200, "gpus.example.com:8443": 200,
		"evil.example.com": 421, "evil.example.com" + port: 421, "localhost.evil.com": 421, "127.0.0.1.evil.com": 421, "x.svc.evil.com": 421,
	} {
		for _, path := range []string{"/", "/metrics"} {
			if got, _ := answered(t, base, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); got != status {
				t.Errorf("%s of %s gives %d, not %d", path, host, got, status)
			}
		}
	}
	for origin, status := range map[string]int{base: 200, "http://evil.example.com": 403, "null": 403} {
		if got := get(t, base+"/", map[string]string{"Origin": origin}); got.status != status {
			t.Errorf("a page of %s gets %d", origin, got.status)
		}
	}
	config = testConfig(t)
	config.Hosts = []string{"*"}
	base, _ = serve(t, config)
	if got, _ := answered(t, base, "GET / HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n"); got != 200 {
		t.Errorf("with any host allowed the answer is %d", got)
	}
}

// Connections that cannot shake hands, and a configuration that cannot be read,
// do not fill the log.
func TestQuietLog(t *testing.T) {
	t.Parallel()
	path, pool := selfSigned(t)
	text := "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := testConfig(t)
	config.Flags.WebConfigFile = &path
	log := &lockedBuffer{}
	config.Log = slog.New(slog.NewTextHandler(log, nil))
	base, stop := serve(t, config)
	for range 300 {
		connection := dial(t, base)
		if _, err := io.WriteString(connection, "no handshake\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, connection) // until the server has had enough
		connection.Close()
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	secure := "https://" + strings.TrimPrefix(base, "http://") + "/metrics"
	if got := do(t, client, http.MethodGet, secure, nil); got.status != http.StatusOK {
		t.Errorf("a scrape gets %d", got.status)
	}
	if err := os.WriteFile(path, []byte("}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if got := do(t, client, http.MethodGet, secure, nil); got.status != http.StatusInternalServerError {
			t.Fatalf("without a configuration a scrape gets %d", got.status)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if lines := strings.Count(log.String(), "\n"); lines < 12 || lines > 25 {
		t.Errorf("the log has %d lines:\n%s", lines, log)
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
