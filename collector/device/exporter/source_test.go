package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/exposition"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeExporter serves a page over HTTP, and counts its requests.
type fakeExporter struct {
	*httptest.Server
	page     atomic.Pointer[string]
	requests atomic.Int64
	accept   atomic.Pointer[string]
	path     atomic.Pointer[string]
}

func serve(t *testing.T, page string) *fakeExporter {
	t.Helper()
	fake := &fakeExporter{}
	fake.set(page)
	fake.Server = httptest.NewServer(fake)
	t.Cleanup(fake.Close)
	return fake
}

func (f *fakeExporter) set(page string) { f.page.Store(&page) }

func (f *fakeExporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	accept := r.Header.Get("Accept")
	f.accept.Store(&accept)
	f.path.Store(&r.URL.Path)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = io.WriteString(w, *f.page.Load())
}

// fakeClock is turned by the test.
type fakeClock struct{ elapsed atomic.Int64 }

func (c *fakeClock) now() clock.Instant {
	elapsed := time.Hour + time.Duration(c.elapsed.Load())
	return clock.Instant{Wall: time.UnixMilli(1_800_000_000_000).Add(elapsed), Elapsed: elapsed}
}

func (c *fakeClock) turn(d time.Duration) { c.elapsed.Add(int64(d)) }

// open returns the reader of one exporter with the rules of npu.
func open(t *testing.T, url string, now clock.Clock, more string) *page {
	t.Helper()
	configs, err := Parse([]byte("exporters:\n- name: npu\n  url: "+url+"\n"+more+npu), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Exporters: configs, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	readers, err := s.Readers(t.Context())
	if err != nil || len(readers) != 1 || readers[0].Key() != "npu" || s.Name() != "exporter" {
		t.Fatalf("got %v, %v", readers, err)
	}
	p := readers[0].(*page)
	p.client.timeout = time.Minute // pages come on a slow machine, too
	return p
}

// The page is read at its interval. Reads between return the same values, which
// the caller may change.
func TestRead(t *testing.T) {
	fake, now := serve(t, "busy{id=\"a\"} 10\n"), &fakeClock{}
	p := open(t, fake.URL+"/metrics", now.now, "  interval: 5s\n  max_age: 30s\n")
	read := func(want string, requests int64) []device.Observation {
		t.Helper()
		got, err := p.Read(t.Context(), device.Fast)
		if lines := linesOf(got); err != nil || !slices.Equal(lines, []string{want}) {
			t.Errorf("got %v, %v; want %s", lines, err, want)
		}
		if n := fake.requests.Load(); n != requests {
			t.Errorf("%d requests, want %d", n, requests)
		}
		return got
	}
	first := read("a utilization 0.1", 1)
	if got, want := first[0].Readings[0].Measured, (device.Window{From: time.Hour - 30*time.Second, To: time.Hour}); got != want {
		t.Errorf("measured %v, want %v", got, want)
	}
	if got := *fake.accept.Load(); !strings.HasPrefix(got, "text/plain;version=0.0.4") {
		t.Errorf("accepts %q", got)
	}
	first[0].Readings[0].Value = 7
	fake.set("busy{id=\"a\"} 20\n")
	now.turn(4 * time.Second)
	second := read("a utilization 0.1", 1)
	if got := second[0].Readings[0].Measured.To; got != time.Hour {
		t.Errorf("measured at %v when it was not read", got)
	}
	now.turn(time.Second)
	read("a utilization 0.2", 2)
}

// openAll returns the readers of exporters at these addresses.
func openAll(t *testing.T, now clock.Clock, urls ...string) []device.Reader {
	t.Helper()
	text := "exporters:\n"
	for i, url := range urls {
		text += fmt.Sprintf("- name: npu-%d\n  url: %s\n  interval: 1s\n", i, url) + npu
	}
	configs, err := Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Exporters: configs, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range s.exporters {
		one.client.timeout = time.Minute
	}
	readers, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return readers
}

// Of exporters whose devices are too many together, those with the most are refused:
// also if they were read before.
func TestDevicesOfAllExporters(t *testing.T) {
	var urls []string
	for i := range 8 {
		page := &strings.Builder{}
		for n := range 1000 - 100*i {
			fmt.Fprintf(page, "busy{id=\"npu-%d-%d\"} 10\n", i, n)
		}
		urls = append(urls, serve(t, page.String()).URL)
	}
	now := &fakeClock{}
	readers := openAll(t, now.now, urls...)
	for range 2 {
		for _, r := range readers {
			_, _ = r.Read(t.Context(), device.Fast) // that of the next loop is the same
		}
		sum, refused := 0, ""
		for _, r := range readers {
			devices, err := r.Read(t.Context(), device.Fast)
			sum += device.Weight(devices)
			if err != nil {
				refused += " " + r.Key()
			}
			if err != nil && (!errors.Is(err, source.ErrRefused) || source.ReasonOf(err) != source.ReasonResourceExhausted || len(devices) > 0 || !strings.Contains(err.Error(), "exporter "+r.Key()+" at ")) {
				t.Errorf("%s: %d devices, %v", r.Key(), len(devices), err)
			}
		}
		if refused != " npu-0 npu-1" || sum > maxKept {
			t.Errorf("%s are refused, %d bytes are kept", refused, sum)
		}
		now.turn(time.Second)
	}
}

// Of exporters whose pages are too large together, the largest are refused for a while.
func TestPagesOfAllExporters(t *testing.T) {
	large := serve(t, "#"+strings.Repeat("x", maxPage-100)+"\nbusy{id=\"a\"} 10\n").URL
	small := serve(t, "busy{id=\"b\"} 10\n").URL
	now := &fakeClock{}
	readers := openAll(t, now.now, large, large, large, large, large, large, small)
	read := func() (failed int) {
		for i, r := range readers {
			switch _, err := r.Read(t.Context(), device.Fast); {
			case err != nil && (i == len(readers)-1 || !errors.Is(err, source.ErrRefused)):
				t.Errorf("%s: %v", r.Key(), err)
			case err != nil:
				failed++
			}
		}
		return failed
	}
	for i, want := range []func(int) bool{func(n int) bool { return n == 0 }, func(int) bool { return true }, func(n int) bool { return n > 0 }} {
		if failed := read(); !want(failed) {
			t.Errorf("second %d: %d are refused", i, failed)
		}
		now.turn(time.Second)
	}
	now.turn(workPeriod)
	if failed := read(); failed != 0 {
		t.Errorf("%d are refused in the next period", failed)
	}
}

// Of pages that hang before their end, those that have sent the most are given up.
func TestPagesThatHang(t *testing.T) {
	var urls []string
	for i := range 8 {
		hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "#"+strings.Repeat("x", maxPage-(i<<16)-100))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		t.Cleanup(hangs.Close)
		urls = append(urls, hangs.URL)
	}
	readers := openAll(t, clock.System(), append(urls, serve(t, "busy{id=\"b\"} 10\n").URL)...)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, len(readers))
	for _, r := range readers[:len(readers)-1] {
		go func() { _, err := r.Read(ctx, device.Fast); results <- err }()
	}
	const most = maxPages / (maxPage - 8<<16) // that can hang at a time
	for range len(urls) - most - 1 {
		if err := <-results; !errors.Is(err, source.ErrRefused) || source.ReasonOf(err) != source.ReasonResourceExhausted {
			t.Errorf("a page that hangs: %v", err)
		}
	}
	if _, err := readers[len(readers)-1].Read(ctx, device.Fast); err != nil {
		t.Errorf("the page that does not hang: %v", err)
	}
	cancel()
	for range most + 1 {
		<-results
	}
}

// A URL without a path is that of /metrics.
func TestPath(t *testing.T) {
	fake := serve(t, "busy{id=\"a\"} 10\n")
	for at, want := range map[string]string{fake.URL: "/metrics", fake.URL + "?x=y": "/metrics", fake.URL + "/": "/", fake.URL + "/gpu": "/gpu"} {
		if _, err := open(t, at, (&fakeClock{}).now, "").Read(t.Context(), device.Fast); err != nil || *fake.path.Load() != want {
			t.Errorf("%s requests %s, %v", at, *fake.path.Load(), err)
		}
	}
}

// A page that cannot be read gives no devices, until it can be read again.
func TestReadAfterFailure(t *testing.T) {
	now := &fakeClock{}
	fake := serve(t, "busy{id=\"a\"} 10\n")
	p := open(t, fake.URL, now.now, "")
	if got, err := p.Read(t.Context(), device.Slow); err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	fake.set("busy{id=\"a\" 10\n")
	for range 2 {
		now.turn(3 * time.Second)
		got, err := p.Read(t.Context(), device.Fast)
		if n := fake.requests.Load(); n == 2 && (len(got) > 0 || source.ReasonOf(err) != source.ReasonInvalid || !strings.Contains(err.Error(), "exporter npu at "+fake.URL+": parse the page")) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	fake.set("busy{id=\"a\"} 30\n")
	now.turn(5 * time.Second)
	if got, err := p.Read(t.Context(), device.Fast); err != nil || len(got) != 1 || fake.requests.Load() != 3 {
		t.Errorf("got %v, %v", got, err)
	}
}

// A required metric that the page lacks is named, with the time since when, beside
// what the page has.
func TestMissingMetric(t *testing.T) {
	now := &fakeClock{}
	fake := serve(t, "energy{id=\"a\"} 1e6\nbusy 5\n")
	configs, err := Parse([]byte(strings.Replace("exporters:\n- name: npu\n  url: "+fake.URL+"\n"+npu, "unit: percent}", "unit: percent, required: true}", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Exporters: configs, Clock: now.now})
	if err != nil {
		t.Fatal(err)
	}
	readers, _ := s.Readers(t.Context())
	since := now.now().Wall.UTC().Format(time.RFC3339)
	for range 2 {
		got, err := readers[0].Read(t.Context(), device.Fast)
		if len(got) != 1 || source.ReasonOf(err) != source.ReasonInvalid || !strings.Contains(err.Error(), "the page lacks busy of any device since "+since) {
			t.Errorf("got %v, %v", got, err)
		}
		now.turn(time.Minute)
	}
	fake.set("energy{id=\"a\"} 1e6\nbusy{id=\"a\"} 5\n")
	if got, err := readers[0].Read(t.Context(), device.Fast); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	fake.set("other 5\n")
	now.turn(time.Minute)
	if got, err := readers[0].Read(t.Context(), device.Fast); len(got) != 0 || err == nil || strings.Contains(err.Error(), since) || !strings.Contains(err.Error(), "the page lacks busy") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestNoDevice(t *testing.T) {
	p := open(t, serve(t, "busy 5\n").URL, (&fakeClock{}).now, "")
	if got, err := p.Read(t.Context(), device.Fast); len(got) != 0 || err == nil || !strings.Contains(err.Error(), "no series on the page is of a device that the rules identify") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "npu.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakeExporter{}
	fake.set("busy{id=\"a\"} 10\n")
	fake.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: fake, ReadHeaderTimeout: time.Second}}
	fake.Start()
	p := open(t, "unix://"+socket, (&fakeClock{}).now, "")
	if got, err := p.Read(t.Context(), device.Fast); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	fake.Close()
	p = open(t, "unix://"+socket, (&fakeClock{}).now, "")
	if got, err := p.Read(t.Context(), device.Fast); len(got) != 0 || source.ReasonOf(err) != source.ReasonUnavailable || !strings.Contains(err.Error(), socket) {
		t.Errorf("got %v, %v", got, err)
	}
}

// manyLabels is a series with so many labels.
func manyLabels(count int) string {
	var line strings.Builder
	line.WriteString(`busy{id="a"`)
	for i := range count {
		fmt.Fprintf(&line, ",l%d=\"\"", i)
	}
	return line.String() + "} 1\n"
}

// The work for a page of the largest size is bounded by its bytes: no more memory is
// allocated for series of many labels than for the same bytes in series of few.
func TestWorkIsLinear(t *testing.T) {
	names := map[string]bool{"busy": true}
	allocations := func(labels int) float64 {
		line := manyLabels(labels)
		page := strings.Repeat(line, 256<<10/len(line))
		return testing.AllocsPerRun(2, func() {
			if _, err := parsePage([]byte(page), names); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(4), allocations(exposition.MaxLabels-1); many > few {
		t.Errorf("%v allocations for series of many labels, %v for the same bytes in series of few", many, few)
	}
	page := "busy{id=\"a\"} 1\n" + strings.ReplaceAll(manyLabels(30_000), "busy", "other")
	if families, err := parsePage([]byte(page), names); err != nil || len(families["busy"].series) != 1 {
		t.Errorf("a metric that is not read: %v", err)
	}
}

// Exporters that do not serve a page: each has its error, and none takes longer
// than a page may take.
func TestWrongExporters(t *testing.T) {
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		want   string
		reason source.Reason
	}{
		"an error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }, "the exporter answers 500 Internal Server Error", source.ReasonInvalid},
		"a redirection": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}, "the exporter answers 302 Found", source.ReasonInvalid},
		"HTML": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html>")
		}, "the exporter answers with \"text/html; charset=utf-8\" instead of the text format: is the path right?", source.ReasonInvalid},
		"text that is no page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "busy is 5\n") }, "parse the page", source.ReasonInvalid},
		"a page that is cut":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "busy{id=\"a\"} 5") }, "the page ends within a line", source.ReasonInvalid},
		"a connection that ends": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "busy{id=\"a\"} 5\n")
		}, "read the page: unexpected EOF", source.ReasonOther},
		"compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			var body bytes.Buffer
			z := gzip.NewWriter(&body)
			_, _ = z.Write(bytes.Repeat([]byte("busy 1\n"), 1<<20))
			_ = z.Close()
			_, _ = w.Write(body.Bytes())
		}, `the exporter answers in the encoding "gzip", which was not accepted`, source.ReasonInvalid},
		"a flood": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("# some text\n", 1000)); err != nil {
					return
				}
			}
		}, "the page has more than 4194304 bytes", source.ReasonInvalid},
		"many series": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("busy{id=\"a\"} 5\n", maxSeries+1))
		}, "the page has 20001 series, more than 20000", source.ReasonInvalid},
		"a series of 30,000 labels": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, manyLabels(30_000))
		}, "parse the page: line 1: it has more than 65536 bytes", source.ReasonInvalid},
		"a series of many labels": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "# HELP busy busy\n"+manyLabels(5000))
		}, "parse the page: line 2: it has more than 128 labels", source.ReasonInvalid},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "the page did not come within 200ms", source.ReasonTimeout},
		"a drip": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "busy{id=\"a\"} 5\n")
				w.(http.Flusher).Flush()
				select {
				case <-time.After(10 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		}, "the page did not come within 200ms", source.ReasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.serve)
			defer server.Close()
			p := open(t, server.URL, clock.System(), "")
			if c.reason == source.ReasonTimeout {
				p.client.timeout = 200 * time.Millisecond
			}
			got, err := p.Read(t.Context(), device.Fast)
			if len(got) != 0 || err == nil || !strings.Contains(err.Error(), c.want) || source.ReasonOf(err) != c.reason {
				t.Errorf("got %v, %v (%s); want %s (%s)", got, err, source.ReasonOf(err), c.want, c.reason)
			}
		})
	}
}

// A counter that falls is given as it is: the exporter, or its hardware, has
// started again.
func TestCounterThatFalls(t *testing.T) {
	fake, now := serve(t, "joules{id=\"a\"} 100\n"), &fakeClock{}
	p := open(t, fake.URL, now.now, "")
	for _, value := range []float64{100, 3} {
		fake.set(fmt.Sprintf("joules{id=\"a\"} %v\n", value))
		got, err := p.Read(t.Context(), device.Fast)
		if err != nil || got[0].Readings[0].Value != value {
			t.Errorf("got %v, %v; want %v", got, err, value)
		}
		now.turn(time.Minute)
	}
}

func TestSameNames(t *testing.T) {
	config, err := Preset("nvidia-dcgm-exporter")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Exporters: []Config{config, config}, Clock: clock.System()}); err == nil || !strings.Contains(err.Error(), "two exporters have the name nvidia-dcgm-exporter") {
		t.Errorf("got %v", err)
	}
}

// A read that is not wanted any more ends.
func TestCancelledRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := open(t, server.URL, clock.System(), "")
	if _, err := p.Read(ctx, device.Fast); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
