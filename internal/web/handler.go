package web

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The paths of the probes, as in Prometheus' own servers.
const (
	healthyPath = "/-/healthy"
	readyPath   = "/-/ready"
	pprofPath   = "/debug/pprof/"
)

// newHandler routes GET and HEAD; other methods get 405, other paths 404.
func newHandler(config Config) (http.Handler, error) {
	if err := checkMetricsPath(config); err != nil {
		return nil, err
	}
	mux, compressed, admitted := http.NewServeMux(), newGzipMiddleware(), config.Admit
	if admitted == nil {
		admitted = func(next http.Handler) http.Handler { return next }
	}
	written := newWrites(maxWrites, maxWritesOfConnection, maxWrittenBytes)
	var scrape http.Handler = newScrapes(config, newRenderLimiter(renderSlots(), maxScrapes, maxScrapesOfClient), written, compressed)
	if config.Registry != nil {
		scrape = promhttp.InstrumentMetricHandler(config.Registry, scrape)
	}
	mux.Handle("GET "+exactPattern(config.MetricsPath), admitted(scrape))
	mux.Handle("GET "+healthyPath, probe(config.Healthy))
	mux.Handle("GET "+readyPath, probe(config.Ready))

	// One limit for all pages together, because it protects the process.
	pages := newRenderLimiter(renderSlots(), maxRequests, maxRequestsOfClient)
	for path, page := range config.Pages {
		mux.Handle("GET "+exactPattern(path), admitted(pages.buffered(written, compressed(withPolicy(page)))))
	}
	if config.Pprof { // without the command line, which may contain secrets and which profiles do not need
		profiles := newRenderLimiter(maxProfiles, maxProfiles, maxProfiles)
		for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
			mux.Handle("GET "+pprofPath+path, admitted(profiles.direct(profile)))
		}
	}
	return countRequests(checkHost(config.Hosts, withNoSniff(discardBody(mux)))), nil
}

// checkMetricsPath validates the path, which is set by a flag. The code sets the other
// paths.
func checkMetricsPath(config Config) error {
	at := config.MetricsPath
	_, ok := config.Pages[at]
	switch {
	case !strings.HasPrefix(at, "/") || path.Clean(at) != at || strings.ContainsAny(at, "{} \t?#%"):
		return fmt.Errorf("--web.telemetry-path %q is not a clean absolute path such as /metrics", at)
	case ok || at == healthyPath || at == readyPath || strings.HasPrefix(at+"/", pprofPath):
		return fmt.Errorf("--web.telemetry-path %q is the path of another page: choose one such as /metrics", at)
	}
	return nil
}

// exactPattern returns the pattern that matches only the path.
func exactPattern(path string) string {
	if strings.HasSuffix(path, "/") {
		return path + "{$}"
	}
	return path
}

// probe responds with 200, or 503 with the first line of the error.
func probe(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if err := check(); err != nil {
			reason, _, _ := strings.Cut(err.Error(), "\n")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, reason)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
