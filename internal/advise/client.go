package advise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	promconfig "github.com/prometheus/common/config"

	"github.com/dra-exporter/dra-exporter/collector/hostport"
)

// maxAnswer limits the answer to a query, bytes: a few hundred for each requester.
const maxAnswer = 64 << 20

// NewClient returns a client of the Prometheus at the URL. The file, if any, is a
// configuration of an HTTP client as promtool's --http.config.file: credentials, TLS,
// a proxy.
func NewClient(address, configFile string) (Querier, error) {
	address = hostport.Bracketed(address)
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no URL", hostport.Redacted(address)) // the error may have a part of a password
	case parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "":
		return nil, fmt.Errorf("%q is no URL of Prometheus: give its scheme and host, as in http://localhost:9090", hostport.Redacted(address))
	}
	config := promconfig.DefaultHTTPClientConfig
	if configFile != "" {
		read, _, err := promconfig.LoadHTTPConfigFile(configFile)
		if err != nil {
			return nil, fmt.Errorf("read the configuration of the HTTP client %s: %w", configFile, err)
		}
		config = *read
	}
	transport, err := promconfig.NewRoundTripperFromConfig(config, "dra-exporter")
	if err != nil {
		return nil, fmt.Errorf("configure the HTTP client: %w", err)
	}
	return newClient(address, transport)
}

func newClient(address string, transport http.RoundTripper) (Querier, error) {
	client, err := api.NewClient(api.Config{Address: address, RoundTripper: limited{transport}})
	if err != nil {
		return nil, fmt.Errorf("configure the client: %w", err)
	}
	return v1.NewAPI(client), nil
}

// limited refuses answers that are too long, and redirects to other servers: the next
// request would carry the credentials there.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if target, err := response.Location(); err == nil && response.StatusCode/100 == 3 &&
		(target.Hostname() != request.URL.Hostname() || target.Scheme != request.URL.Scheme && target.Scheme != "https") {
		return nil, errors.Join(&redirectError{target}, response.Body.Close())
	}
	response.Body = &limitedBody{ReadCloser: response.Body, left: maxAnswer}
	return response, nil
}

// redirectError refuses a redirect.
type redirectError struct{ to *url.URL }

func (e *redirectError) Error() string {
	return fmt.Sprintf("it redirects to another server, %s://%s, which is refused", e.to.Scheme, e.to.Host)
}

type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(buffer []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d MiB: select a namespace", maxAnswer>>20)
	}
	n, err := b.ReadCloser.Read(buffer[:min(len(buffer), b.left)])
	b.left -= n
	return n, err
}

// explained adds to the error of a query what to do about it.
func explained(err error) error {
	var failed *v1.Error
	var redirected *redirectError
	switch text := err.Error(); {
	case errors.As(err, &redirected):
		return fmt.Errorf("query Prometheus: %w; if that is the Prometheus, give its URL", redirected)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("query Prometheus: %w; a longer --timeout or a shorter --window may help", err)
	case !errors.As(err, &failed):
		return fmt.Errorf("query Prometheus: %w", err)
	case failed.Type == v1.ErrClient && (strings.Contains(text, "401") || strings.Contains(text, "403")):
		return fmt.Errorf("query Prometheus: %w; give credentials with --http.config.file", err)
	case failed.Type == v1.ErrBadResponse || failed.Type == v1.ErrClient:
		return fmt.Errorf("query Prometheus: %w; is this the URL of a Prometheus, without /api/v1?", err)
	default:
		return fmt.Errorf("query Prometheus: %w", err)
	}
}
