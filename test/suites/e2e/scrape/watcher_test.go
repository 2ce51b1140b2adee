package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestWatcher(t *testing.T) {
	var value, down atomic.Int64
	value.Store(10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() == 1 {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "dra_exporter_build_info 1\n# TYPE dra_x_total counter\ndra_x_total %d\n", value.Load())
	}))
	defer server.Close()
	target := func(context.Context) (string, error) { return server.URL, nil }
	w := Watch(t.Context(), 5*time.Millisecond, target, CountersRise(time.Minute))

	next := func() *Page {
		t.Helper()
		page, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	if row, err := next().One("dra_x_total", nil); err != nil || row.Value != 10 {
		t.Fatalf("the page has %v, %v", row, err)
	}
	check := w.CheckRule(func(*Page) []error { return nil })
	next()
	if pages, err := check.End(); pages == 0 || err != nil || w.Broken() != nil {
		t.Fatalf("a good page: %d pages, %v, %v", pages, err, w.Broken())
	}

	check = w.CheckRule(func(*Page) []error { return []error{errors.New("no page is good enough")} })
	value.Store(9)
	next()
	if _, err := check.End(); err == nil {
		t.Error("the vigil saw nothing wrong")
	}
	if w.Broken() == nil {
		t.Error("the watcher did not notice that a counter fell")
	}

	check = w.CheckRule(func(*Page) []error { return nil })
	down.Store(1)
	for _, err := check.End(); err == nil; _, err = check.End() {
		check = w.CheckRule(func(*Page) []error { return nil })
		time.Sleep(10 * time.Millisecond)
	}
}
