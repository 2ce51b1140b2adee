package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/top"
)

// topWay is the way to the exporters.
type topWay struct {
	asker  *top.Asker
	list   func(context.Context) (top.Listing, error)
	relist func(context.Context) (top.Listing, error) // nil where nothing changes
}

// way is by addresses, or else through the API server.
func (f *topFlags) way(now clock.Clock) (*topWay, error) {
	asker := &top.Asker{Clock: now, Namespaces: f.namespaces, Timeout: f.timeout, Parallel: parallel}
	if len(f.urls) > 0 {
		client, err := f.agentClient()
		if err != nil {
			return nil, err
		}
		asker.Client = client
		listing := f.listing()
		return &topWay{asker: asker, list: func(context.Context) (top.Listing, error) { return listing, nil }}, nil
	}
	connected, _, err := f.connection()
	if err != nil {
		return nil, fmt.Errorf("%w; or --url to ask agents directly", err)
	}
	client, server, err := proxyClient(connected)
	if err != nil {
		return nil, err
	}
	asker.Client = client
	found := &top.Cluster{
		Client: client, Server: server, Namespace: f.exporters, Selector: f.selector, Wanted: f.wanted(), Timeout: max(f.timeout, 30*time.Second),
	}
	return &topWay{asker: asker, list: found.List, relist: found.List}, nil
}

// listing is of the addresses. Their names have no passwords.
func (f *topFlags) listing() top.Listing {
	var listing top.Listing
	named := func(base *url.URL) top.Agent {
		return top.Agent{Name: base.Host + strings.TrimSuffix(base.Path, "/"), Base: base}
	}
	for _, base := range f.urls {
		listing.Agents = append(listing.Agents, named(base))
	}
	if f.cluster != nil {
		cluster := named(f.cluster)
		listing.Cluster = &cluster
	}
	return listing
}

// agentClient asks agents directly, as --http.config.file says.
func (f *topFlags) agentClient() (*http.Client, error) {
	settings := &config.DefaultHTTPClientConfig
	if f.client != "" {
		var err error
		if settings, _, err = config.LoadHTTPConfigFile(f.client); err != nil {
			return nil, fmt.Errorf("read --http.config.file: %w", err)
		}
	}
	client, err := config.NewClientFromConfig(*settings, "top")
	if err != nil {
		return nil, fmt.Errorf("use --http.config.file: %w", err)
	}
	client.CheckRedirect = top.NoRedirects
	return client, nil
}

// proxyClient speaks to the API server with the person's credentials.
func proxyClient(connected *rest.Config) (*http.Client, *url.URL, error) {
	shared, err := rest.HTTPClientFor(connected)
	if err != nil {
		return nil, nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	client := &http.Client{Transport: shared.Transport, Timeout: shared.Timeout, CheckRedirect: top.NoRedirects} // shared may be http.DefaultClient
	server, _, err := rest.DefaultServerUrlFor(connected)
	if err != nil {
		return nil, nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return client, server, nil
}

// addresses is a flag of several.
type addresses struct{ to *[]*url.URL }

func (a addresses) String() string { return "" }

// IsCumulative tells kingpin that the flag may be given several times.
func (a addresses) IsCumulative() bool { return true }

func (a addresses) Set(text string) error {
	parsed, err := parseAddress(text)
	if err != nil {
		return err
	}
	for _, known := range *a.to {
		if known.Host == parsed.Host && known.Path == parsed.Path {
			return fmt.Errorf("%s is there twice", parsed.Redacted())
		}
	}
	*a.to = append(*a.to, parsed)
	return nil
}

// address is a flag of one.
type address struct{ to **url.URL }

func (a address) String() string { return "" }

func (a address) Set(text string) error {
	parsed, err := parseAddress(text)
	if err == nil {
		*a.to = parsed
	}
	return err
}

// parseAddress takes HOST:PORT as well. What is wrong is said without the text,
// which may hold a password.
func parseAddress(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("an address is http://HOST:PORT or https://HOST:PORT")
	}
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, fmt.Errorf("%s is no address: http://HOST:PORT or https://HOST:PORT", parsed.Redacted())
	}
	return parsed, nil
}
