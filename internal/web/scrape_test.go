package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// numbered returns a page that says which one it is, at its beginning and its end.
func numbered(number, rows int) *metric.Page {
	first, middle, last := &metric.Family{Name: "dra_a", Help: "A"}, &metric.Family{Name: "dra_b_total", Help: "B", Type: metric.Counter}, &metric.Family{Name: "dra_c", Help: "C"}
	all := []metric.Row{{Family: first, Labels: metric.NewLabels(nil), Value: float64(number)}}
	for i := range rows {
		labels := metric.NewLabels([]string{"i"}, strconv.Itoa(i))
		all = append(all, metric.Row{Family: middle, Labels: labels, Value: float64(number * i), Start: time.Unix(1e9, 0)})
	}
	return metric.NewPage(append(all, metric.Row{Family: last, Labels: metric.NewLabels(nil), Value: float64(number)}))
}

// liveFamily gathers a gauge that counts how often it was gathered.
func liveFamily(name string, count *atomic.Int64) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		value, help := float64(count.Add(1)), "Live"
		return []*dto.MetricFamily{{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &value}}}}}, nil
	})
}

func handlerOf(t testing.TB, config Config) http.Handler {
	t.Helper()
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	config.MetricsPath = "/metrics"
	handler, err := newHandler(config)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// scrapeOnce returns the response of a handler, decompressed by the standard library.
func scrapeOnce(t testing.TB, handler http.Handler, accept, encoding string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", encoding)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	if got := response.Header().Get("Content-Length"); response.Code == http.StatusOK && got != strconv.Itoa(response.Body.Len()) {
		t.Errorf("the length is %s of %d", got, response.Body.Len())
	}
	if response.Header().Get("Content-Encoding") == "gzip" {
		response.Body = bytes.NewBuffer(unpacked(t, response.Body.Bytes()))
	}
	return response
}

// unpacked decompresses a single gzip stream without anything after it.
func unpacked(t testing.TB, packed []byte) []byte {
	t.Helper()
	from := bytes.NewReader(packed)
	reader, err := gzip.NewReader(from)
	if err != nil {
		t.Error(err)
		return nil
	}
	reader.Multistream(false)
	text, err := io.ReadAll(reader)
	if err != nil || from.Len() > 0 {
		t.Errorf("error %v, and %d bytes after the stream", err, from.Len())
	}
	return text
}

// TestScrapeOfPageAndLiveMetrics compares responses with what expfmt writes, in all
// formats, and twice: also the one that is ready.
func TestScrapeOfPageAndLiveMetrics(t *testing.T) {
	const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
	for _, accept := range []string{
		"", "*/*", "text/html", "text/plain;version=0.0.4", "text/plain;version=0.0.4;escaping=dots",
		"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4", "application/openmetrics-text;version=0.0.1",
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8", "application/openmetrics-text;version=2.0.0", protobuf + "delimited",
	} {
		for _, encoding := range []string{"identity", "gzip"} {
			for _, created := range []bool{false, true} {
				// So that no time passes between the two.
				synctest.Test(t, func(t *testing.T) { testScrapeTwice(t, accept, encoding, created) })
			}
		}
	}
}

func testScrapeTwice(t *testing.T, accept, encoding string, created bool) {
	t.Helper()
	var gathered atomic.Int64
	page, live := numbered(7, 3000), liveFamily("live", &gathered)
	handler := handlerOf(t, Config{Page: func() *metric.Page { return page }, Metrics: live, Created: created})
	format := expfmt.NegotiateAccept(http.Header{"Accept": {accept}}, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	for range 2 {
		response := scrapeOnce(t, handler, accept, encoding)
		header := response.Header()
		if response.Code != http.StatusOK || header.Get("Content-Type") != string(format) || (header.Get("Content-Encoding") == "gzip") != (encoding == "gzip") ||
			strings.Join(header.Values("Vary"), ",") != "Accept-Encoding,Accept" {
			t.Errorf("%s: %d, %v", accept, response.Code, header)
		}
		if got, want := response.Body.String(), encoded(t, format, created, page); got != want {
			t.Errorf("%s, %s, created %v: %d bytes, not %d: …%q, not …%q", accept, encoding, created, len(got), len(want), got[max(0, len(got)-200):], want[max(0, len(want)-200):])
		}
	}
	if got := gathered.Load(); got != 1 {
		t.Errorf("%s: the live metrics were gathered %d times", accept, got)
	}
}

// encoded returns the page and one live metric of value 1, encoded by expfmt.
func encoded(t testing.TB, format expfmt.Format, created bool, page *metric.Page) string {
	t.Helper()
	var (
		text    bytes.Buffer
		options []expfmt.EncoderOption
		first   atomic.Int64
	)
	if created {
		options = append(options, expfmt.WithCreatedLines())
	}
	encoder := expfmt.NewEncoder(&text, format, options...)
	for _, gatherer := range []prometheus.Gatherer{page, liveFamily("live", &first)} {
		families, err := gatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := encoder.(expfmt.Closer).Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestSelectedFamilies checks that name[] selects families of the page and live ones.
func TestSelectedFamilies(t *testing.T) {
	var gathered atomic.Int64
	page := numbered(7, 3)
	handler := handlerOf(t, Config{Page: func() *metric.Page { return page }, Metrics: liveFamily("live", &gathered)})
	for query, want := range map[string]string{
		"?name[]=dra_c":               "# HELP dra_c C\n# TYPE dra_c gauge\ndra_c 7\n",
		"?name[]=live&name[]=dra_c":   "# HELP dra_c C\n# TYPE dra_c gauge\ndra_c 7\n# HELP live Live\n# TYPE live gauge\nlive ",
		"?name[]=nothing":             "",
		"?another=parameter&name[]=a": "",
	} {
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics"+query, nil))
		if got := response.Body.String(); response.Code != http.StatusOK || !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %d %q, not %q", query, response.Code, got, want)
		}
	}
}

// TestLiveMetricsAreShared checks for how long responses are shared, and that the page
// is encoded once.
func TestLiveMetricsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gathered atomic.Int64
		page := numbered(1, 10)
		handler := handlerOf(t, Config{Page: func() *metric.Page { return page }, Metrics: liveFamily("live", &gathered)})
		expect := func(accept, encoding, want string) {
			t.Helper()
			if got := scrapeOnce(t, handler, accept, encoding).Body.String(); !strings.Contains(got, "\nlive "+want+"\n") {
				t.Errorf("live metrics are not %s: %q", want, got[strings.Index(got, "\nlive "):])
			}
		}
		const openMetrics = "application/openmetrics-text;version=1.0.0"
		expect("", "gzip", "1")
		time.Sleep(liveAge - time.Millisecond)
		expect("", "gzip", "1")
		expect(openMetrics, "identity", "1.0") // gathered with the others
		time.Sleep(time.Millisecond)
		expect("", "gzip", "2")
		expect(openMetrics, "identity", "2.0")
		page = numbered(2, 10)
		expect("", "gzip", "3") // another snapshot
	})
}

// TestPageIsEncodedOnce checks that responses share the blocks of the page, and how many
// encodings are kept.
func TestPageIsEncodedOnce(t *testing.T) {
	page, formats := numbered(1, 3000), expfmt.DefaultOpenMetricsAcceptedFormats()
	s := newScrapes(Config{Log: slog.New(slog.DiscardHandler), Page: func() *metric.Page { return page }, Metrics: prometheus.NewRegistry()},
		newRenderLimiter(1, 10, 10), newWrites(10, 10, 1<<20), func(next http.Handler) http.Handler { return next })
	synctest.Test(t, func(t *testing.T) {
		get := func(key encodingKey) *rendered {
			t.Helper()
			response, err := s.response(page, key, httptest.NewRequest(http.MethodGet, "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			return response
		}
		for _, key := range []encodingKey{{expfmt.FmtText, false}, {expfmt.FmtText, true}} {
			first := get(key)
			if get(key) != first {
				t.Error("a scrape does not get the response that is ready")
			}
			time.Sleep(liveAge)
			second := get(key)
			if second == first || second.page != first.page {
				t.Error("the page was encoded again for other live metrics")
			}
		}
		for _, format := range formats {
			for _, compressed := range []bool{false, true} {
				time.Sleep(time.Millisecond)
				get(encodingKey{format, compressed})
			}
		}
		kept := s.findEncodings(page).byKey
		if _, newest := kept[encodingKey{formats[len(formats)-1], true}]; len(kept) != maxEncodings || !newest {
			t.Errorf("%d encodings are kept, the newest %v", len(kept), newest)
		}
	})
	if s.slots.requests != 0 || len(s.slots.free) != 0 {
		t.Errorf("%d requests and %d slots are left", s.slots.requests, len(s.slots.free))
	}
}

// TestScrapesWait checks that requests share the response that another one makes, that a
// request after a new snapshot gets its page although an older one is being made, and
// that no request waits for longer than renderWait.
func TestScrapesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			page     atomic.Pointer[metric.Page]
			gathered atomic.Int64
			proceed  = make(chan struct{})
			live     = liveFamily("live", &gathered)
		)
		page.Store(numbered(1, 10))
		handler := handlerOf(t, Config{Page: page.Load, Metrics: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			if _, open := <-proceed; !open {
				return live.Gather()
			}
			return nil, nil
		})})
		var clients sync.WaitGroup
		var served, busy atomic.Int64
		scrapers := func(want string) {
			for range 50 {
				clients.Go(func() {
					response := scrapeOnce(t, handler, "", "gzip")
					switch {
					case response.Code == http.StatusServiceUnavailable:
						busy.Add(1)
					case response.Code != http.StatusOK || !strings.Contains(response.Body.String(), "\ndra_c "+want+"\n"):
						t.Errorf("a scrape of page %s: %d %q", want, response.Code, response.Body.String())
					default:
						served.Add(1)
					}
				})
			}
			synctest.Wait()
		}
		scrapers("1")
		page.Store(numbered(2, 10))
		scrapers("2")
		time.Sleep(renderWait)
		synctest.Wait()
		if served.Load() != 0 || busy.Load() != 98 { // two are making the responses
			t.Errorf("%d scrapes were served, %d refused", served.Load(), busy.Load())
		}
		scrapers("2")
		close(proceed)
		clients.Wait()
		if served.Load() != 52 || gathered.Load() != 2 {
			t.Errorf("%d scrapes were served, of %d gatherings", served.Load(), gathered.Load())
		}
	})
}

// TestNothingGathered checks that a page without anything is an error, and that the next
// scrape tries again.
func TestNothingGathered(t *testing.T) {
	failing, registry := true, prometheus.NewRegistry()
	handler := handlerOf(t, Config{Registry: registry, Metrics: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		if failing {
			return nil, errors.New("the collector is broken")
		}
		return nil, nil
	})})
	page := numbered(1, 1)
	incomplete := handlerOf(t, Config{Registry: registry, Page: func() *metric.Page { return page }, Metrics: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return nil, errors.New("the collector is broken")
	})})
	if got := scrapeOnce(t, handler, "", "gzip"); got.Code != http.StatusInternalServerError || !strings.Contains(got.Body.String(), "the collector is broken") {
		t.Errorf("%d %q", got.Code, got.Body.String())
	}
	if got := scrapeOnce(t, incomplete, "", "gzip"); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "dra_c 1") {
		t.Errorf("%d %q", got.Code, got.Body.String())
	}
	want := "# HELP promhttp_metric_handler_errors_total Total number of internal errors encountered by the promhttp metric handler.\n" +
		"# TYPE promhttp_metric_handler_errors_total counter\n" +
		"promhttp_metric_handler_errors_total{cause=\"encoding\"} 0\npromhttp_metric_handler_errors_total{cause=\"gathering\"} 2\n"
	if got := metrictest.Text(t, registry); !strings.Contains(got, want) {
		t.Errorf("the errors are %q", got)
	}
	failing = false
	time.Sleep(liveAge)
	if got := scrapeOnce(t, handler, "", "gzip"); got.Code != http.StatusOK || got.Body.String() != "" {
		t.Errorf("afterwards %d %q", got.Code, got.Body.String())
	}
}

// TestFamilyOfBothSides checks that a family that both the page and the live metrics have
// is shown twice, and logged once.
func TestFamilyOfBothSides(t *testing.T) {
	var log bytes.Buffer
	var gathered atomic.Int64
	handler := handlerOf(t, Config{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Page: func() *metric.Page { return numbered(1, 1) }, Metrics: liveFamily("dra_c", &gathered),
	})
	for range 3 {
		if got := scrapeOnce(t, handler, "", "identity").Body.String(); strings.Count(got, "# TYPE dra_c gauge\n") != 2 {
			t.Errorf("the page is %q", got)
		}
	}
	if got := log.String(); strings.Count(got, "gather dra_c: two sides have a family of this name") != 1 {
		t.Errorf("the log is %q", got)
	}
}

// TestAllocationsOfScrapes checks that a scrape of a response that is ready allocates
// little, whatever the page's size.
func TestAllocationsOfScrapes(t *testing.T) {
	const scrapes, limit = 200, 16 << 10
	page := metric.NewPage(metrictest.DenseRows())
	handler := handlerOf(t, Config{Page: func() *metric.Page { return page }, Metrics: prometheus.NewRegistry()})
	for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0", string(expfmt.FmtProtoDelim)} {
		for _, encoding := range []string{"identity", "gzip"} {
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			request.Header.Set("Accept", accept)
			request.Header.Set("Accept-Encoding", encoding)
			synctest.Test(t, func(t *testing.T) { // so that the response remains ready
				handler.ServeHTTP(&countingWriter{header: http.Header{}}, request)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range scrapes {
					handler.ServeHTTP(&countingWriter{header: http.Header{}}, request)
				}
				runtime.ReadMemStats(&after)
				if each := (after.TotalAlloc - before.TotalAlloc) / scrapes; each > limit {
					t.Errorf("%s, %s: each scrape allocates %d bytes", accept, encoding, each)
				}
			})
		}
	}
}

// TestManyScrapers scrapes a server by 50 clients that accept gzip while there are new
// snapshots. Each response is a whole page that is not older than the request.
func TestManyScrapers(t *testing.T) {
	const scrapers, each, rows = 50, 20, 500
	var newest atomic.Int64
	var page atomic.Pointer[metric.Page]
	publish := func() {
		next := newest.Load() + 1
		page.Store(numbered(int(next), rows))
		newest.Store(next)
	}
	publish()
	file, systemd := "", false
	registry := prometheus.NewRegistry()
	server, err := Listen(Config{
		Flags: &toolkit.FlagConfig{WebListenAddresses: &[]string{"127.0.0.1:0"}, WebSystemdSocket: &systemd, WebConfigFile: &file},
		Log:   slog.New(slog.DiscardHandler), MetricsPath: "/metrics", Page: page.Load, Metrics: registry, Registry: registry,
		Healthy: func() error { return nil }, Ready: func() error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	base := "http://" + server.Addresses()[0].String()
	var clients sync.WaitGroup
	for c := range scrapers {
		clients.Go(func() {
			transport := &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			for i := range each {
				if c == 0 {
					publish()
				}
				oldest := newest.Load()
				status, text := scrapeOver(t, &http.Client{Transport: transport}, base, i%2 == 0)
				var first, last int64
				_, _ = fmt.Sscanf(after(text, "\ndra_a "), "%d", &first)
				_, _ = fmt.Sscanf(after(text, "\ndra_c "), "%d", &last)
				if status != http.StatusOK || first != last || first < oldest || strings.Count(text, "\ndra_b_total{") != rows ||
					!strings.Contains(text, "\npromhttp_metric_handler_requests_total") {
					t.Errorf("status %d, page %d to %d of at least %d, %d bytes", status, first, last, oldest, len(text))
					return
				}
			}
		})
	}
	clients.Wait()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func after(text, prefix string) string {
	_, rest, _ := strings.Cut(text, prefix)
	return rest
}

func scrapeOver(t *testing.T, client *http.Client, base string, openMetrics bool) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/metrics", nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.Header.Set("Accept-Encoding", "gzip")
	if openMetrics {
		request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	}
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	packed, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("status %d, %v: %q", response.StatusCode, err, packed)
		return response.StatusCode, ""
	}
	return response.StatusCode, string(unpacked(t, packed))
}
