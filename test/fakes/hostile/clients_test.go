package hostile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/internal/web"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// clientsServer is the web server of a role, with the page of a dense node.
type clientsServer struct {
	address string
	pool    *x509.CertPool // nil: without TLS
	config  string         // the path of its web configuration
	log     *clientsLog
}

// clientsLog keeps the logged lines. It is safe for concurrent use.
type clientsLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *clientsLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *clientsLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.text.String()), "\n")
}

// A password with its hash, and the hash of another one.
const (
	clientsPassword  = "correct horse"
	clientsHash      = "$2a$08$L9KgOdOA7G5ap.Tuc.8l8OYViNTCFxvRaiBQWjipxbCe45SgR7iJa"
	clientsOtherHash = "$2a$04$CUSZ49Y1esfDGBeun2ujbOXmogUJ7iUc6fNSrL4b0j1BwCWrDKNie"
)

// clientsServe serves until the test ends. The configuration, if there is one,
// has FOLDER for the folder of the certificate, and HASH for the hash of the
// password.
func clientsServe(t *testing.T, configuration string) *clientsServer {
	t.Helper()
	s := &clientsServer{log: &clientsLog{}}
	if configuration != "" {
		s.config, s.pool = clientsCertificate(t)
		text := strings.NewReplacer("FOLDER", filepath.Dir(s.config), "HASH", clientsHash).Replace(configuration)
		if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, fine, systemd := metric.NewPage(metrictest.DenseRows()), func() error { return nil }, false
	server, err := web.Listen(web.Config{
		Flags:       &toolkit.FlagConfig{WebListenAddresses: &[]string{"127.0.0.1:0"}, WebSystemdSocket: &systemd, WebConfigFile: &s.config},
		Log:         slog.New(slog.NewTextHandler(s.log, nil)),
		MetricsPath: "/metrics", Page: func() *metric.Page { return page }, Metrics: prometheus.NewRegistry(),
		Registry: prometheus.NewRegistry(),
		Pages:    map[string]http.Handler{"/": http.HandlerFunc(clientsPage)},
		Healthy:  fine, Ready: fine,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s.address = server.Addresses()[0].String()
	return s
}

// clientsPage is larger than the kernel's buffers, so that a write blocks if
// the client does not read.
func clientsPage(w http.ResponseWriter, _ *http.Request) {
	line := bytes.Repeat([]byte("a large page "), 1000)
	for range 300 {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

// clientsCertificate writes a key and its certificate for 127.0.0.1.
func clientsCertificate(t *testing.T) (config string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dra-exporter"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder, public := t.TempDir(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	for name, content := range map[string][]byte{"tls.crt": public, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return filepath.Join(folder, "web.yaml"), pool
}

// url returns the URL of a path.
func (s *clientsServer) url(path string) string {
	if s.pool == nil {
		return "http://" + s.address + path
	}
	return "https://" + s.address + path
}

// client returns a client that keeps its connections, as Prometheus does.
func (s *clientsServer) client(t *testing.T) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.pool}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// get reads an answer to its end and returns its status and duration.
func (s *clientsServer) get(client *http.Client, path, password string) (status int, took time.Duration, err error) {
	begun := time.Now()
	request, err := http.NewRequest(http.MethodGet, s.url(path), http.NoBody)
	if err != nil {
		return 0, 0, err
	}
	if password != "" {
		request.SetBasicAuth("prometheus", password)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, time.Since(begun), err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, time.Since(begun), err
}

// scrape makes n scrapes, each of which must return a whole page. It logs the
// longest duration and the 99th percentile.
func (s *clientsServer) scrape(t *testing.T, client *http.Client, password string, n int) {
	t.Helper()
	var times []time.Duration
	for i := range n {
		status, took, err := s.get(client, "/metrics", password)
		if err != nil || status != http.StatusOK {
			t.Errorf("scrape %d of %d gets %d after %s: %v", i+1, n, status, took, err)
		}
		times = append(times, took)
		time.Sleep(10 * time.Millisecond)
	}
	slices.Sort(times)
	t.Logf("%d scrapes: median %s, 99th percentile %s, longest %s", n, times[n/2], times[min(n-1, n*99/100)], times[n-1])
}

// attack runs n attackers until the test or the returned function ends them.
// Each starts again when its connection is closed.
func (s *clientsServer) attack(t *testing.T, n int, one func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	for range n {
		attackers.Go(func() {
			for ctx.Err() == nil {
				one(ctx)
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
	stop = func() { cancel(); attackers.Wait() }
	t.Cleanup(stop)
	return stop
}

// clientsOtherAddress returns a dialer with another source address than that
// of legitimate clients, if the system has one.
func clientsOtherAddress() *net.Dialer {
	dialer := &net.Dialer{}
	if runtime.GOOS == "linux" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	}
	return dialer
}

// dial connects with a small receive window. The connection is closed when the
// context ends.
func (s *clientsServer) dial(ctx context.Context) (net.Conn, error) {
	connection, err := clientsOtherAddress().DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	_ = connection.(*net.TCPConn).SetReadBuffer(4 << 10)
	context.AfterFunc(ctx, func() { _ = connection.Close() })
	if s.pool == nil {
		return connection, nil
	}
	return tls.Client(connection, &tls.Config{RootCAs: s.pool, ServerName: "127.0.0.1"}), nil
}

// clientsHang waits, without reading, until the server has closed the
// connection.
func clientsHang(ctx context.Context, connection net.Conn) {
	for ctx.Err() == nil {
		if _, err := connection.Write([]byte("\r\n")); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// neverReads requests a page by HTTP/1 and does not read it.
func (s *clientsServer) neverReads(path string, waiting *atomic.Int64) func(context.Context) {
	return func(ctx context.Context) {
		connection, err := s.dial(ctx)
		if err != nil {
			return
		}
		defer connection.Close()
		if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path); err == nil {
			waiting.Add(1)
			clientsHang(ctx, connection)
		}
	}
}

// zeroWindow requests pages by HTTP/2 with a flow-control window of 0.
func (s *clientsServer) zeroWindow(path string, streams int, waiting *atomic.Int64) func(context.Context) {
	return func(ctx context.Context) {
		connection, err := (&tls.Dialer{NetDialer: clientsOtherAddress(), Config: &tls.Config{RootCAs: s.pool, NextProtos: []string{"h2"}}}).DialContext(ctx, "tcp", s.address)
		if err != nil {
			return
		}
		defer connection.Close()
		defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
		if _, err := connection.Write([]byte(http2.ClientPreface)); err != nil {
			return
		}
		framer := http2.NewFramer(connection, connection)
		if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
			return
		}
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for i := range streams {
			block.Reset()
			for _, field := range [][2]string{{":method", "GET"}, {":path", path}, {":scheme", "https"}, {":authority", s.address}} {
				_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // writing to a buffer cannot fail
			}
			if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
				return
			}
		}
		waiting.Add(1)
		for { // answer pings and settings, so that only the pages are blocked
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_ = framer.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					_ = framer.WritePing(true, f.Data)
				}
			}
		}
	}
}

// slowHeaders sends a request byte by byte and never completes it.
func (s *clientsServer) slowHeaders(ctx context.Context) {
	connection, err := s.dial(ctx)
	if err != nil {
		return
	}
	defer connection.Close()
	for _, b := range []byte("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + strings.Repeat("a", 1000)) {
		if _, err := connection.Write([]byte{b}); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// slowBody announces a body and sends none.
func (s *clientsServer) slowBody(ctx context.Context) {
	connection, err := s.dial(ctx)
	if err != nil {
		return
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"); err == nil {
		clientsHang(ctx, connection)
	}
}

// guesses sends wrong passwords, and counts the answers by status.
func (s *clientsServer) guesses(t *testing.T, answers *clientsAnswers) func(context.Context) {
	var guess atomic.Int64
	clients := sync.Pool{New: func() any { return s.client(t) }}
	return func(context.Context) {
		client := clients.Get().(*http.Client)
		defer clients.Put(client)
		status, _, err := s.get(client, "/metrics", fmt.Sprint("guess ", guess.Add(1)))
		if err == nil {
			answers.count(status)
		}
	}
}

type clientsAnswers struct {
	mu       sync.Mutex
	byStatus map[int]int
}

func (a *clientsAnswers) count(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byStatus == nil {
		a.byStatus = map[int]int{}
	}
	a.byStatus[status]++
}

func (a *clientsAnswers) of(status int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byStatus[status]
}

// clientsWait waits until enough attackers have their connections.
func clientsWait(t *testing.T, enough func() bool) {
	t.Helper()
	for begun := time.Now(); !enough(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the attack does not begin")
		}
	}
}

const (
	clientsTLS   = "tls_server_config: {cert_file: FOLDER/tls.crt, key_file: FOLDER/tls.key}\n"
	clientsUsers = clientsTLS + "basic_auth_users: {prometheus: HASH}\n"
)

// TestClientsThatNeverRead: clients that request pages and do not read them do
// not prevent scrapes of others, nor pages, which may have to be requested twice:
// clients on loopback share one limit.
func TestClientsThatNeverRead(t *testing.T) {
	for name, configuration := range map[string]string{"HTTP/1 and a large page": "", "HTTP/2 and a window of nothing": clientsTLS} {
		t.Run(name, func(t *testing.T) {
			server := clientsServe(t, configuration)
			var waiting atomic.Int64
			attacker := server.neverReads("/", &waiting)
			scraped := server.neverReads("/metrics", &waiting)
			if configuration != "" {
				attacker, scraped = server.zeroWindow("/", 8, &waiting), server.zeroWindow("/metrics", 8, &waiting)
			}
			server.attack(t, 36, attacker)
			server.attack(t, 20, scraped)
			clientsWait(t, func() bool { return waiting.Load() >= 50 })
			client := server.client(t)
			server.scrape(t, client, "", 30)
			for range 10 {
				status, took, err := server.get(client, "/", "")
				if err == nil && status == http.StatusServiceUnavailable { // after the Retry-After of the answer
					time.Sleep(time.Second)
					status, took, err = server.get(client, "/", "")
				}
				if err != nil || status != http.StatusOK {
					t.Errorf("the page gets %d after %s: %v", status, took, err)
				}
			}
		})
	}
}

// TestPasswordGuessing: clients that guess passwords cause few checks, and
// delay neither a client with the right password nor a request without one.
func TestPasswordGuessing(t *testing.T) {
	server := clientsServe(t, clientsUsers)
	prometheus, probe := server.client(t), server.client(t)
	server.scrape(t, prometheus, clientsPassword, 1)
	var answers clientsAnswers
	begun := time.Now()
	server.attack(t, 100, server.guesses(t, &answers))
	clientsWait(t, func() bool {
		return answers.of(http.StatusTooManyRequests) > 100 || answers.of(http.StatusUnauthorized) > 300
	})
	server.scrape(t, prometheus, clientsPassword, 30)
	for range 10 {
		if status, took, err := server.get(probe, "/-/healthy", ""); err != nil || status != http.StatusUnauthorized {
			t.Errorf("a request without a password gets %d after %s: %v", status, took, err)
		}
	}
	// The limit is ten immediately, then one a second.
	if checks, most := answers.of(http.StatusUnauthorized), 12+int(time.Since(begun).Seconds()); checks < 1 || checks > most {
		t.Errorf("the attackers had %d passwords checked, want at most %d", checks, most)
	}
	logged := 0
	for _, line := range server.log.lines() {
		if strings.Contains(line, "tries too many unknown passwords") && strings.Contains(line, "address=") {
			logged++
		}
	}
	if most := 10 * (1 + int(time.Since(begun)/time.Minute)); logged < 1 || logged > most {
		t.Errorf("the log reports the attackers %d times, want 1 to %d", logged, most)
	}
	// A changed password invalidates the cached result of the old one.
	text := strings.NewReplacer("FOLDER", filepath.Dir(server.config), "HASH", clientsOtherHash).Replace(clientsUsers)
	if err := os.WriteFile(server.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status, _, err := server.get(prometheus, "/metrics", clientsPassword); err != nil || status == http.StatusOK {
			t.Errorf("the password of before gets %d: %v", status, err)
		}
	}
}

// TestAllClientsTogether runs clients that do not read, slow headers, slow
// bodies and guessers at the same time.
func TestAllClientsTogether(t *testing.T) {
	server := clientsServe(t, clientsUsers)
	client := server.client(t)
	server.scrape(t, client, clientsPassword, 1)
	var (
		waiting atomic.Int64
		answers clientsAnswers
	)
	server.attack(t, 20, server.zeroWindow("/metrics", 8, &waiting))
	server.attack(t, 20, server.neverReads("/metrics", &waiting))
	server.attack(t, 20, server.slowHeaders)
	server.attack(t, 20, server.slowBody)
	server.attack(t, 50, server.guesses(t, &answers))
	clientsWait(t, func() bool { return waiting.Load() >= 40 && answers.of(http.StatusTooManyRequests) > 50 })
	server.scrape(t, client, clientsPassword, 30)
}

// TestProbesDuringAFlood: an address that opens one connection after the other, and reads
// an answer on each, closes none of the kubelet's, which has another address and a new
// connection for each probe.
func TestProbesDuringAFlood(t *testing.T) {
	server := clientsServe(t, "")
	var answered atomic.Int64
	server.attack(t, 20, func(ctx context.Context) {
		var held [16]net.Conn // many more than the server keeps, of all attackers
		defer func() {
			for _, one := range held {
				if one != nil {
					_ = one.Close()
				}
			}
		}()
		for i := 0; ctx.Err() == nil; i++ {
			connection, err := clientsOtherAddress().DialContext(ctx, "tcp", server.address)
			if err != nil {
				continue
			}
			_, _ = io.WriteString(connection, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n") // if it fails, there is no answer
			if response, err := http.ReadResponse(bufio.NewReader(connection), nil); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				answered.Add(1)
			}
			if last := held[i%len(held)]; last != nil {
				_ = last.Close()
			}
			held[i%len(held)] = connection
		}
	})
	clientsWait(t, func() bool { return answered.Load() > 500 })
	probes := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for i := range 100 {
		if status, took, err := server.get(probes, "/-/healthy", ""); err != nil || status != http.StatusOK {
			t.Errorf("probe %d gets %d after %s: %v", i, status, took, err)
		}
	}
	t.Logf("%d answers to the flood", answered.Load())
}

// TestFloodOfLogs: clients and a broken file cause a limited number of log
// lines.
func TestFloodOfLogs(t *testing.T) {
	server := clientsServe(t, clientsUsers)
	client := server.client(t)
	server.scrape(t, client, clientsPassword, 1)
	begun := time.Now()
	const most = 3*11 + 10 // three kinds of lines in a minute, and the lines of the start
	for range 100 {
		connection, err := net.Dial("tcp", server.address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(connection, "no handshake\n\x1b[2J\n")
		_, _ = io.Copy(io.Discard, connection)
		_ = connection.Close()
	}
	if err := os.WriteFile(server.config, []byte("basic_auth_users: {prometheus: "+strings.Repeat("a", 64<<10)+"}\nnonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if status, _, err := server.get(client, "/metrics", clientsPassword); err == nil && status == http.StatusOK {
			t.Fatal("a broken configuration lets requests in")
		}
	}
	lines := server.log.lines()
	if minutes := int(time.Since(begun)/time.Minute) + 1; len(lines) > most*minutes {
		t.Errorf("%d lines are logged, want %d at most", len(lines), most)
	}
	for _, line := range lines {
		if len(line) > 2048 || strings.Contains(line, "\x1b") {
			t.Errorf("a line has %d bytes: %.200q", len(line), line)
		}
	}
}
