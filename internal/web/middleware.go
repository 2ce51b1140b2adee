package web

import (
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// discardBody reads the body of a request before the response; the handlers need none.
// Otherwise net/http reads it when the response is written, however slowly the client
// sends it.
func discardBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)) // a longer one ends the connection
		}
		next.ServeHTTP(w, r)
	})
}

// contentPolicy allows a page to load only its own style and script, and to fetch from and
// send its form to its own origin only. No other site may frame it.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

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

func withNoSniff(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// completeness logs errors of gatherers that differ from the error before. Errors while
// a page is written are not logged: the client has disconnected. It is safe for
// concurrent use.
type completeness struct {
	log *slog.Logger

	mu   sync.Mutex
	last string
}

// watch returns the result of the gatherer, and logs its error.
func (c *completeness) watch(gatherer prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := gatherer.Gather()
		text := ""
		if err != nil {
			text = err.Error()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case text == c.last:
		case err != nil:
			c.log.Warn("the metrics page is incomplete", "error", text)
		default:
			c.log.Info("the metrics page is complete again")
		}
		c.last = text
		return families, err
	})
}
