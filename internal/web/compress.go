package web

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// newCompression returns what makes handlers answer in gzip to clients that
// accept it. It takes the place of promhttp's compression, which costs more
// than all the rest of a scrape: at this level and with this implementation
// it takes a quarter of that time, and the answer is a quarter larger.
func newCompression() func(http.Handler) http.Handler {
	writers := &sync.Pool{New: func() any {
		writer, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant of the same package
		}
		return writer
	}}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Vary", "Accept-Encoding")
			if !acceptsGzip(r.Header.Get("Accept-Encoding")) {
				next.ServeHTTP(w, r)
				return
			}
			response := &gzipResponse{ResponseWriter: w, writer: writers.Get().(*gzip.Writer)}
			defer writers.Put(response.writer)
			next.ServeHTTP(response, r)
			response.finish()
		})
	}
}

// acceptsGzip reads an Accept-Encoding header as RFC 9110, section 12.5.3,
// describes it, but for the order of preference: gzip is taken if it may be.
func acceptsGzip(header string) bool {
	accepted := false
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		weight, weighted := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		wanted := !weighted || err == nil && q > 0
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip":
			return wanted
		case "*":
			accepted = wanted
		}
	}
	return accepted
}

// gzipResponse compresses what a handler writes. A handler that writes
// nothing sends nothing.
type gzipResponse struct {
	http.ResponseWriter
	writer  *gzip.Writer
	started bool
}

func (g *gzipResponse) WriteHeader(status int) {
	if !g.started {
		g.started = true
		g.writer.Reset(g.ResponseWriter)
		g.Header().Set("Content-Encoding", "gzip")
		g.Header().Del("Content-Length")
	}
	g.ResponseWriter.WriteHeader(status)
}

func (g *gzipResponse) Write(p []byte) (int, error) {
	if !g.started {
		g.WriteHeader(http.StatusOK)
	}
	return g.writer.Write(p)
}

func (g *gzipResponse) finish() {
	if g.started {
		_ = g.writer.Close() // fails only if the client left
	}
}
