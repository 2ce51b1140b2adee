package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// TestPageSize asks a server for objects of changing sizes: all come once, in
// order, in pages within the limit, but for objects that exceed it alone.
func TestPageSize(t *testing.T) {
	sizes := func(i int) int {
		switch {
		case i < 600:
			return 1000
		case i < 700:
			return 1 << 20
		case i == 700:
			return pageLimit + 1000
		default:
			return 300
		}
	}
	const count = 2000
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _ := strconv.Atoi(r.URL.Query().Get("first"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		for i := first; i < min(first+limit, count); i++ {
			if _, err := w.Write(make([]byte, sizes(i))); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: limitingTransport{http.DefaultTransport}}
	pages, requests := &pageSize{}, 0
	for next := 0; next < count; {
		var got, asked int
		err := pages.request(t.Context(), func(ctx context.Context, limit int64) (int, error) {
			requests++
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?first=%d&limit=%d", server.URL, next, limit), nil)
			if err != nil {
				return 0, err
			}
			answer, err := client.Do(request)
			if err != nil {
				return 0, err
			}
			defer func() { _ = answer.Body.Close() }()
			body, err := io.ReadAll(answer.Body)
			got, asked = len(body), min(int(limit), count-next)
			return asked, err
		})
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for i := next; i < next+asked; i++ {
			want += sizes(i)
		}
		if got != want || asked > 1 && got > pageLimit {
			t.Errorf("%d objects from %d: %d bytes, want %d", asked, next, got, want)
		}
		next += asked
	}
	if requests > 60 {
		t.Errorf("%d requests", requests)
	}
}

// TestPageSizeGivesUp when the server fails, and when the context ends.
func TestPageSizeGivesUp(t *testing.T) {
	broken := errors.New("broken")
	calls := 0
	err := (&pageSize{}).request(t.Context(), func(context.Context, int64) (int, error) { calls++; return 0, broken })
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = (&pageSize{}).request(ctx, func(context.Context, int64) (int, error) { cancel(); return 0, errPageTooLong })
	if !errors.Is(err, errPageTooLong) {
		t.Errorf("%v", err)
	}
	if err := (&pageSize{}).request(t.Context(), func(_ context.Context, limit int64) (int, error) {
		if limit == 1 {
			return 0, nil
		}
		return 0, errPageTooLong
	}); err != nil {
		t.Errorf("one object alone: %v", err)
	}
}
