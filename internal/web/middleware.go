package web

import (
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// withoutBody reads what a client sends as a body, which no request of ours has,
// before the request is answered. Otherwise net/http would read it when the
// answer is written, however slowly it comes.
func withoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)) // a longer one ends the connection
		}
		next.ServeHTTP(w, r)
	})
}

// contentPolicy lets a page load its own style and script and fetch itself,
// and nothing else from anywhere; no other site may frame it.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func withPolicy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func withoutSniffing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// logging passes on what the gatherer returns, and logs its error when it is
// another one than at the scrape before. What goes wrong later, while a page
// is written, is a client that left.
func logging(gatherer prometheus.Gatherer, log *slog.Logger) prometheus.Gatherer {
	var (
		mu   sync.Mutex
		last string
	)
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := gatherer.Gather()
		text := ""
		if err != nil {
			text = err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case text == last:
		case err != nil:
			log.Warn("the metrics page is incomplete", "error", text)
		default:
			log.Info("the metrics page is complete again")
		}
		last = text
		return families, err
	})
}
