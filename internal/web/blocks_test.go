package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// slowClient reads a block only when others had time to write to it.
type slowClient struct {
	httptest.ResponseRecorder
	pause time.Duration
	// From this number on, each Write fails, but still reads the block after it has
	// returned, as HTTP/2 may do. 0: none fails.
	fails   int
	written int
	late    sync.WaitGroup
}

func (c *slowClient) Write(block []byte) (int, error) {
	if c.written++; c.written == c.fails {
		c.late.Go(func() {
			time.Sleep(2 * c.pause)
			_, _ = c.ResponseRecorder.Write(block)
		})
		return 0, errors.New("the client has disconnected")
	}
	time.Sleep(c.pause)
	return c.ResponseRecorder.Write(block)
}

// TestBlocksInUseAreNotUsedAgain scrapes pages that are replaced all the time, by
// clients that are slow, fail, or ask for different formats, and compares every byte
// that they have read.
func TestBlocksInUseAreNotUsedAgain(t *testing.T) {
	const clients, pages, rows = 24, 40, 2000
	formats := []expfmt.Format{expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0}
	var (
		all    [pages]*metric.Page
		wanted [pages][2]string
		newest atomic.Int64
		slow   atomic.Int64
	)
	for number := range all {
		all[number] = numbered(number, rows)
		for i, format := range formats {
			var text bytes.Buffer
			if err := all[number].Encode(&text, format, false); err != nil {
				t.Fatal(err)
			}
			wanted[number][i] = text.String() + []string{"", "# EOF\n"}[i]
		}
	}
	handler := handlerOf(t, Config{Page: func() *metric.Page { return all[newest.Load()] }, Metrics: prometheus.NewRegistry()})
	scrape := func(client, turn int) {
		format, compressed := (client+turn)%len(formats), client%3 == 0
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Accept", string(formats[format]))
		if compressed {
			request.Header.Set("Accept-Encoding", "gzip")
		}
		reader := &slowClient{ResponseRecorder: *httptest.NewRecorder(), pause: time.Duration(client%5) * 300 * time.Microsecond}
		if client%4 == 1 && !compressed {
			reader.fails = 1 + turn%4
		}
		handler.ServeHTTP(reader, request)
		reader.late.Wait()
		got := reader.Body.Bytes()
		if compressed {
			got = unpacked(t, got)
		}
		var number int
		if _, err := fmt.Sscanf(after(string(got), "\ndra_a "), "%d", &number); err != nil || number >= pages {
			t.Errorf("no page begins with %q", got[:min(len(got), 100)])
			return
		}
		want := wanted[number][format]
		if reader.fails > 0 {
			want = want[:min(len(want), len(got))]
		}
		if string(got) != want {
			t.Errorf("client %d, %s: the %d bytes are not those of page %d", client, formats[format], len(got), number)
		}
		if int64(number) < newest.Load() {
			slow.Add(1)
		}
	}
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for turn := 0; newest.Load() < pages-1; turn++ {
				scrape(client, turn)
				if client == 0 {
					newest.Add(1)
				}
			}
		})
	}
	running.Wait()
	if slow.Load() == 0 {
		t.Error("no page was replaced while it was read")
	}
}

// TestAllocationsOfNewPages checks that a new page is stored in the blocks of the page
// before.
func TestAllocationsOfNewPages(t *testing.T) {
	const scrapes = 50
	rows := metrictest.DenseRows()
	handler := handlerOf(t, Config{Page: func() *metric.Page { return metric.NewPage(rows) }, Metrics: prometheus.NewRegistry()})
	for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0"} {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Accept", accept)
		client := &countingWriter{header: http.Header{}}
		handler.ServeHTTP(client, request)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range scrapes {
			handler.ServeHTTP(&countingWriter{header: http.Header{}}, request)
		}
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / scrapes; each > 64<<10 {
			t.Errorf("%s: a page of %d bytes allocates %d", accept, client.bytes, each)
		}
	}
}
