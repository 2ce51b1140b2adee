package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestSlowReaders checks that a client that reads slowly gets the whole page.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	config := testConfig(t)
	config.Pages["/"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
	base, _ := serve(t, config)
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

// TestDNSRebinding checks that a site whose name resolves to this machine is refused.
func TestDNSRebinding(t *testing.T) {
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
			if got, _ := sendRaw(t, base, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); got != status {
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
	if got, _ := sendRaw(t, base, "GET / HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n"); got != 200 {
		t.Errorf("with any host allowed the answer is %d", got)
	}
}

// TestResponsesOfDifferentUsers checks that each user gets their own page, and that
// users who are not admitted get none, although concurrent scrapes share a response.
func TestResponsesOfDifferentUsers(t *testing.T) {
	t.Parallel()
	type readerKey struct{}
	config := testConfig(t)
	config.Admit = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reader := r.Header.Get("Authorization")
			if reader == "" {
				http.Error(w, "unauthenticated", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), readerKey{}, reader)))
		})
	}
	config.Pages["/"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond) // so that others wait
		_, _ = io.WriteString(w, r.Context().Value(readerKey{}).(string))
	})
	whole, rendering := config.Metrics, make(chan struct{})
	config.Metrics = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		<-rendering
		return whole.Gather()
	})
	base, _ := serve(t, config)
	var readers sync.WaitGroup
	for i := range 24 {
		reader := fmt.Sprintf("reader-%d", i)
		readers.Go(func() {
			if got := get(t, base+"/", map[string]string{"Authorization": reader}); got.body != reader {
				t.Errorf("%s gets %d and the page of %q", reader, got.status, got.body)
			}
		})
		readers.Go(func() {
			if got := get(t, base+"/metrics", map[string]string{"Authorization": reader}); got.body != plainText {
				t.Errorf("%s gets %d and %q of a scrape", reader, got.status, got.body)
			}
		})
	}
	for _, path := range []string{"/", "/metrics"} {
		if got := get(t, base+path, nil); got.status != http.StatusUnauthorized || strings.Contains(got.body, "reader") || got.body == plainText {
			t.Errorf("a client that is not admitted gets %d and %q of %s", got.status, got.body, path)
		}
	}
	close(rendering)
	readers.Wait()
}
