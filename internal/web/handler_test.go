package web_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

type response struct {
	status int
	header http.Header
	body   string
}

// get sends a request without the transparent gzip of http.Client.
func get(t *testing.T, url string, headers map[string]string) response {
	t.Helper()
	return do(t, http.DefaultClient, http.MethodGet, url, headers)
}

func do(t *testing.T, client *http.Client, method, url string, headers map[string]string) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Error(err)
		return response{}
	}
	request.Header.Set("Accept-Encoding", "identity")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return response{}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return response{answer.StatusCode, answer.Header, string(body)}
}

const plainText = "# HELP dra_test A test\n# TYPE dra_test gauge\ndra_test 42\n"

func TestMetricsFormats(t *testing.T) {
	base, _ := serve(t, testConfig(t))
	protobuf := "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	unpack := func(body string) string {
		reader, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	decode := func(body string) string {
		var family dto.MetricFamily
		if err := expfmt.NewDecoder(strings.NewReader(body), expfmt.NewFormat(expfmt.TypeProtoDelim)).Decode(&family); err != nil {
			return err.Error()
		}
		var text bytes.Buffer
		if _, err := expfmt.MetricFamilyToText(&text, &family); err != nil {
			return err.Error()
		}
		return text.String()
	}
	asIs := func(body string) string { return body }
	for _, test := range []struct {
		name, accept, encoding, contentType, contentEncoding string
		read                                                 func(string) string
		want                                                 string
	}{
		{"text", "", "identity", "text/plain; version=0.0.4", "", asIs, plainText},
		{"gzip", "", "gzip", "text/plain; version=0.0.4", "gzip", unpack, plainText},
		{"OpenMetrics", "application/openmetrics-text;version=1.0.0", "identity", "application/openmetrics-text; version=1.0.0", "",
			asIs, strings.Replace(plainText, "42", "42.0", 1) + "# EOF\n"},
		{"protobuf", protobuf, "identity", "application/vnd.google.protobuf", "", decode, plainText},
		{"protobuf in gzip", protobuf, "gzip", "application/vnd.google.protobuf", "gzip",
			func(body string) string { return decode(unpack(body)) }, plainText},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := get(t, base+"/metrics", map[string]string{"Accept": test.accept, "Accept-Encoding": test.encoding})
			if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), test.contentType) ||
				got.header.Get("Content-Encoding") != test.contentEncoding {
				t.Errorf("status %d, header %v", got.status, got.header)
			}
			if text := test.read(got.body); text != test.want {
				t.Errorf("body %q, want %q", text, test.want)
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	config := testConfig(t)
	config.Ready = func() error { return errors.New("no sample yet\nand more that is not shown") }
	config.Pages["/api/v1/claims"] = http.NotFoundHandler()
	base, _ := serve(t, config)
	for _, test := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/", 200, "<p>the page</p>"},
		{"HEAD", "/", 200, ""},
		{"POST", "/", 405, "Method Not Allowed\n"},
		{"GET", "/metrics", 200, plainText},
		{"HEAD", "/metrics", 200, ""},
		{"DELETE", "/metrics", 405, "Method Not Allowed\n"},
		{"GET", "/metrics/", 404, "404 page not found\n"},
		{"GET", "/unknown", 404, "404 page not found\n"},
		{"GET", "/-/healthy", 200, "ok\n"},
		{"GET", "/-/ready", 503, "no sample yet\n"},
		{"PUT", "/-/ready", 405, "Method Not Allowed\n"},
		{"GET", "/debug/pprof/", 404, "404 page not found\n"},
		{"GET", "/debug/pprof/heap", 404, "404 page not found\n"},
	} {
		got := do(t, http.DefaultClient, test.method, base+test.path, nil)
		if got.status != test.status || got.body != test.body {
			t.Errorf("%s %s answers %d %q, want %d %q", test.method, test.path, got.status, got.body, test.status, test.body)
		}
		if got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s may be sniffed", test.method, test.path)
		}
	}
	policy := get(t, base+"/", nil).header
	if csp := policy.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
		!strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the policy of a page is %q", csp)
	}
}

func TestPprofOnRequest(t *testing.T) {
	config := testConfig(t)
	config.Pprof = true
	base, _ := serve(t, config)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/symbol"} {
		if got := get(t, base+path, nil); got.status != http.StatusOK || got.body == "" {
			t.Errorf("%s answers %d %q", path, got.status, got.body)
		}
	}
	if got := get(t, base+"/debug/pprof/cmdline", nil); got.status != http.StatusNotFound {
		t.Errorf("the command line is shown: %d %q", got.status, got.body)
	}
}

// TestOverload checks that an overloaded server refuses pages and scrapes immediately,
// and that its probes still respond.
func TestOverload(t *testing.T) {
	for _, path := range []string{"/metrics", "/"} {
		t.Run(path, func(t *testing.T) {
			config := testConfig(t)
			release := make(chan struct{})
			config.Metrics = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { <-release; return nil, nil })
			config.Pages["/"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })
			base, _ := serve(t, config)

			const requests = 48
			statuses := make(chan int, requests)
			var clients sync.WaitGroup
			for range requests {
				clients.Go(func() { statuses <- get(t, base+path, nil).status })
			}
			if status := <-statuses; status != http.StatusServiceUnavailable {
				t.Errorf("the first answer of an overloaded server is %d", status)
			}
			if got := get(t, base+"/-/healthy", nil); got.status != http.StatusOK {
				t.Errorf("the overloaded server's probe answers %d", got.status)
			}
			close(release)
			clients.Wait()
			if got := get(t, base+path, nil); got.status != http.StatusOK {
				t.Errorf("after the load it answers %d", got.status)
			}
		})
	}
}

// TestIncompletePage checks that a gatherer with an error still returns a page, and that
// the beginning and the end of the error are logged.
func TestIncompletePage(t *testing.T) {
	config := testConfig(t)
	var (
		log     bytes.Buffer
		whole   = config.Metrics
		failure error
	)
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	config.Registry = prometheus.NewRegistry()
	config.Page = func() *metric.Page { return metric.NewPage(nil) } // a new one for each scrape
	config.Metrics = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, _ := whole.Gather()
		return families, failure
	})
	base, stop := serve(t, config)
	for _, failure = range []error{nil, errors.New("half is missing"), errors.New("half is missing"), nil, nil} {
		if got := get(t, base+"/metrics", nil); got.status != http.StatusOK || got.body != plainText {
			t.Errorf("with error %v: %d %q", failure, got.status, got.body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "half is missing"); n != 1 {
		t.Errorf("the error is logged %d times", n)
	}
	if n := strings.Count(log.String(), "complete again"); n != 1 {
		t.Errorf("the recovery is logged %d times", n)
	}
}
