package web

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// The paths of the probes, as the Prometheus family spells them.
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
	mux, compressed, admitted := http.NewServeMux(), newCompression(), config.Admit
	if admitted == nil {
		admitted = func(next http.Handler) http.Handler { return next }
	}
	written := newWrites(maxWrites, maxWritesOfConnection, maxWrittenBytes)
	scrapes := newBatches(newSlots(renderSlots(), maxScrapes, maxScrapesOfClient))
	scrape := scrapes.buffered(written, scrapeKey, compressed(metricsHandler(config)))
	if config.Registry != nil {
		scrape = promhttp.InstrumentMetricHandler(config.Registry, scrape)
	}
	mux.Handle("GET "+exact(config.MetricsPath), admitted(scrape))
	mux.Handle("GET "+healthyPath, probe(config.Healthy))
	mux.Handle("GET "+readyPath, probe(config.Ready))

	// One limit for all of them together: it is the process that is guarded.
	pages := newSlots(renderSlots(), maxRequests, maxRequestsOfClient)
	for path, page := range config.Pages {
		mux.Handle("GET "+exact(path), admitted(pages.buffered(written, compressed(withPolicy(page)))))
	}
	if config.Pprof { // without the command line, which may have secrets, and which no profile needs
		profiles := newSlots(maxProfiles, maxProfiles, maxProfiles)
		for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
			mux.Handle("GET "+pprofPath+path, admitted(profiles.direct(profile)))
		}
	}
	return knownHosts(config.Hosts, withoutSniffing(withoutBody(mux))), nil
}

// checkMetricsPath refuses what a user could get wrong; the other paths are
// chosen by the code.
func checkMetricsPath(config Config) error {
	at := config.MetricsPath
	_, page := config.Pages[at]
	switch {
	case !strings.HasPrefix(at, "/") || path.Clean(at) != at || strings.ContainsAny(at, "{} \t?#%"):
		return fmt.Errorf("--web.telemetry-path %q is not a clean absolute path such as /metrics", at)
	case page || at == healthyPath || at == readyPath || strings.HasPrefix(at+"/", pprofPath):
		return fmt.Errorf("--web.telemetry-path %q is the path of another page: choose one such as /metrics", at)
	}
	return nil
}

// exact is the pattern that matches the path and nothing beneath it.
func exact(path string) string {
	if strings.HasSuffix(path, "/") {
		return path + "{$}"
	}
	return path
}

func metricsHandler(config Config) http.Handler {
	return promhttp.HandlerFor(logging(config.Metrics, config.Log), promhttp.HandlerOpts{
		// Half a page is better than none: what failed is in the log.
		ErrorHandling:                       promhttp.ContinueOnError,
		Registry:                            config.Registry,
		DisableCompression:                  true, // ours costs less
		EnableOpenMetrics:                   true,
		EnableOpenMetricsTextCreatedSamples: true,
		AcceptedFormats:                     expfmt.DefaultOpenMetricsAcceptedFormats(),
	})
}

// scrapeKey is the same for scrapes that get the same page: what promhttp
// negotiates, and the compression. There are few, whatever clients request.
// Scrapes of some families alone (name[]) have none.
func scrapeKey(r *http.Request) string {
	if r.URL.RawQuery != "" {
		return ""
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	return fmt.Sprint(acceptsGzip(r.Header.Get("Accept-Encoding")), " ", format)
}

// probe answers 200, or 503 with the first line of the error.
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
