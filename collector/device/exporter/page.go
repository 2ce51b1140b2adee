package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/exposition"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	maxPage     = 4 << 20 // bytes
	maxHeader   = 64 << 10
	maxSeries   = 20_000
	pageTimeout = 2 * time.Second
)

// client reads the page of one exporter. It is safe for concurrent use.
type client struct {
	url     string // that is requested
	http    *http.Client
	timeout time.Duration
}

// newClient returns a client of a page, whose path is /metrics if the URL has none. No
// proxy is used, and redirects are errors: they may lead to another node.
func newClient(at string) *client {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader}
	if socket, isSocket := strings.CutPrefix(at, "unix://"); isSocket {
		at = "http://localhost/metrics"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	if parsed, err := url.Parse(at); err == nil && parsed.Path == "" {
		parsed.Path = "/metrics"
		at = parsed.String()
	}
	return &client{
		url: at, timeout: pageTimeout,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// read requests the page. charge is called with the number of bytes of each part that
// has come; if it fails, so does the read.
func (c *client) read(ctx context.Context, charge func(bytes int) error) ([]byte, error) {
	ctx, end := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("the page did not come within %v", c.timeout))
	defer end()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, err
	}
	// Of the formats, only the text format has a decoder in the library.
	request.Header.Set("Accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1")
	response, err := c.http.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, ended(cause)
		}
		reason := source.ReasonUnavailable
		if source.ReasonOf(err) == source.ReasonPermission {
			reason = source.ReasonPermission
		}
		return nil, &source.Failure{Reason: reason, Err: fmt.Errorf("request the page: %w", err)}
	}
	defer response.Body.Close()
	if err := acceptable(response); err != nil {
		return nil, &source.Failure{Reason: source.ReasonInvalid, Err: err}
	}
	text, err := readBody(response.Body, charge)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, ended(cause)
	}
	return text, err
}

// ended is why a request was ended: because of its duration, or because it is refused.
func ended(cause error) error {
	if errors.Is(cause, source.ErrRefused) {
		return cause
	}
	return &source.Failure{Reason: source.ReasonTimeout, Err: cause}
}

// readBody reads a page within the limit of its bytes.
func readBody(body io.Reader, charge func(bytes int) error) ([]byte, error) {
	var text []byte
	for {
		if text = slices.Grow(text, 32<<10); len(text) > maxPage {
			return nil, invalid("the page has more than %d bytes", maxPage)
		}
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if refused := charge(n); refused != nil {
			return nil, refused
		}
		switch {
		case errors.Is(err, io.EOF) && len(text) <= maxPage:
			return text, nil
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read the page: %w", err)
		}
	}
}

// acceptable reports why a response is not a page of metrics.
func acceptable(response *http.Response) error {
	kind := response.Header.Get("Content-Type")
	switch {
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the exporter answers %s", source.Text(response.Status))
	case response.Header.Get("Content-Encoding") != "":
		return fmt.Errorf("the exporter answers in the encoding %q, which was not accepted", source.Text(response.Header.Get("Content-Encoding")))
	case strings.HasPrefix(kind, "text/html"), strings.HasPrefix(kind, "application/json"),
		strings.HasPrefix(kind, "application/vnd.google.protobuf"):
		return fmt.Errorf("the exporter answers with %q instead of the text format: is the path right?", source.Text(kind))
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &source.Failure{Reason: source.ReasonInvalid, Err: fmt.Errorf(format, args...)}
}

// family is what a page has of one metric.
type family struct {
	kind   string // its type, as the page states it first; empty: none
	series []exposition.Series
}

// parsePage parses a page in the text format, within limits. Lines of other metrics
// than the named ones are not parsed. OpenMetrics is read as far as it is the same:
// without exemplars and without time stamps.
func parsePage(text []byte, names map[string]bool) (map[string]*family, error) {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return nil, invalid("the page ends within a line")
	}
	families := make(map[string]*family, len(names))
	for name := range names {
		families[name] = &family{}
	}
	number, count := 0, 0
	for line := range strings.Lines(string(text)) {
		number++
		name := exposition.Name(line)
		if name != "" {
			count++
		}
		if !names[name] {
			if name, kind, ok := exposition.Type(line); ok && names[name] && families[name].kind == "" {
				families[name].kind = kind
			}
			continue
		}
		series, err := exposition.Parse(line)
		if err != nil {
			return nil, invalid("parse the page: line %d: %w", number, err)
		}
		if family := families[series.Name]; family != nil { // a line can begin with a label of that name
			family.series = append(family.series, series)
		}
	}
	if count > maxSeries {
		return nil, invalid("the page has %d series, more than %d", count, maxSeries)
	}
	return families, nil
}
