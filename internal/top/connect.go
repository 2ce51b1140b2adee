package top

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/common/config"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/hostport"
)

// ListingOf lists exporters by their addresses; cluster may be nil. Their names are
// without passwords.
func ListingOf(agents []*url.URL, cluster *url.URL) AgentList {
	var listing AgentList
	named := func(base *url.URL) Agent {
		return Agent{Name: base.Host + strings.TrimSuffix(base.Path, "/"), Base: base}
	}
	for _, base := range agents {
		listing.Agents = append(listing.Agents, named(base))
	}
	if cluster != nil {
		agent := named(cluster)
		listing.Cluster = &agent
	}
	return listing
}

// AgentClient connects to agents by the HTTP client configuration of the file; an
// empty path is the default configuration.
func AgentClient(file string) (*http.Client, error) {
	settings := &config.DefaultHTTPClientConfig
	if file != "" {
		var err error
		if settings, _, err = config.LoadHTTPConfigFile(file); err != nil {
			return nil, fmt.Errorf("read --http.config.file: %w", err)
		}
	}
	client, err := config.NewClientFromConfig(*settings, "top")
	if err != nil {
		return nil, fmt.Errorf("use --http.config.file: %w", err)
	}
	client.CheckRedirect = noRedirects
	return client, nil
}

// ProxyClient connects to the API server with the user's credentials. It
// returns the server's address as well.
func ProxyClient(connection *rest.Config) (*http.Client, *url.URL, error) {
	shared, err := rest.HTTPClientFor(connection)
	if err != nil {
		return nil, nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	client := &http.Client{Transport: shared.Transport, Timeout: shared.Timeout, CheckRedirect: noRedirects} // shared may be http.DefaultClient
	server, _, err := rest.DefaultServerUrlFor(connection)
	if err != nil {
		return nil, nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return client, server, nil
}

// noRedirects keeps an agent from redirecting requests with the API server's token to
// another server.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// ParseAddress parses an exporter's address; HOST:PORT is http. Errors are without
// the text, which may hold a password.
func ParseAddress(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	parsed, err := url.Parse(hostport.Bracketed(text))
	if err != nil {
		return nil, errors.New("an address is http://HOST:PORT or https://HOST:PORT")
	}
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, fmt.Errorf("%s is not an address: use http://HOST:PORT or https://HOST:PORT", hostport.Redacted(text))
	}
	return parsed, nil
}
