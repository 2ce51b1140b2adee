package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/config"

	"github.com/dra-exporter/dra-exporter/internal/check"
)

// checkAgentFlags say which running exporters to ask, and how.
type checkAgentFlags struct {
	urls       []string
	httpConfig string
	lookup     func(ctx context.Context, name string) ([]string, error)
}

func (c *commands) addCheckAgent(parent *kingpin.CmdClause, common *checkFlags, stdout io.Writer) {
	command := parent.Command("agent", "Ask running exporters how they are: each address that a name stands for.")
	flags := &checkAgentFlags{lookup: net.DefaultResolver.LookupHost}
	command.Arg("URL", "Address of an exporter's metrics, such as http://localhost:9420; without a path /metrics is asked for. Repeatable.").Required().StringsVar(&flags.urls)
	command.Flag("http.config.file", "HTTP client configuration of Prometheus: TLS, basic authentication, tokens.").PlaceHolder("FILE").StringVar(&flags.httpConfig)
	c.byName[command.FullCommand()] = func(ctx context.Context) error {
		return common.run(ctx, stdout, func(ctx context.Context) (*check.Report, error) { return flags.examine(ctx, common.timeout) })
	}
}

// examine asks all that the URLs stand for at once, but not too many.
func (f *checkAgentFlags) examine(ctx context.Context, timeout time.Duration) (*check.Report, error) {
	settings := config.DefaultHTTPClientConfig
	if f.httpConfig != "" {
		loaded, _, err := config.LoadHTTPConfigFile(f.httpConfig)
		if err != nil {
			return nil, fmt.Errorf("--http.config.file: %w", err)
		}
		settings = *loaded
	}
	settings.FollowRedirects = false // it might lead to another one than was asked
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	var agents []check.Agent
	for _, given := range f.urls {
		found, err := f.addressesOf(ctx, given)
		if err != nil {
			return nil, err
		}
		agents = append(agents, found...)
	}
	const atOnce = 16
	free, asked := make(chan struct{}, atOnce), sync.WaitGroup{}
	for i := range agents {
		asked.Go(func() {
			if agents[i].Error != nil {
				return
			}
			free <- struct{}{}
			defer func() { <-free }()
			ask(ctx, &agents[i], settings)
		})
	}
	asked.Wait()
	report := &check.Report{}
	report.Add(check.Agents(agents)...)
	return report, nil
}

// addressesOf finds all addresses that the URL's name stands for: a headless
// Service's name stands for each of its pods. A name that cannot be found is
// an agent with that error; a URL that is none is an error.
func (f *checkAgentFlags) addressesOf(ctx context.Context, given string) ([]check.Agent, error) {
	spelled := given
	if !strings.Contains(spelled, "://") {
		spelled = "http://" + spelled
	}
	parsed, err := url.Parse(spelled)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("%q is no URL of an exporter: http://HOST:PORT is expected", given)
	}
	if parsed.Path == "" || parsed.Path == "/" {
		parsed.Path = "/metrics"
	}
	agent := check.Agent{URL: parsed.Redacted()}
	address := parsed.String()
	names, err := f.lookup(ctx, parsed.Hostname())
	if err != nil {
		agent.Error = fmt.Errorf("find the address of %s: %w", parsed.Hostname(), err)
		return []check.Agent{agent}, nil
	}
	slices.Sort(names)
	var agents []check.Agent
	for _, name := range preferred(slices.Compact(names)) {
		agent.Asked = address
		agent.Address = name
		agents = append(agents, agent)
	}
	if len(agents) == 1 {
		agents[0].Address = ""
	}
	return agents, nil
}

// preferred are the addresses of one family: with two, each pod has one of each.
func preferred(addresses []string) []string {
	four := slices.DeleteFunc(slices.Clone(addresses), func(address string) bool { return strings.Contains(address, ":") })
	if len(four) > 0 {
		return four
	}
	return addresses
}

// ask asks one agent, at its own address whatever others its name stands for.
func ask(ctx context.Context, agent *check.Agent, settings config.HTTPClientConfig) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if agent.Address != "" {
			if _, port, err := net.SplitHostPort(address); err == nil {
				address = net.JoinHostPort(agent.Address, port)
			}
		}
		return dialer.DialContext(ctx, network, address)
	}
	client, err := config.NewClientFromConfig(settings, "check", config.WithDialContextFunc(dial), config.WithKeepAlivesDisabled())
	if err != nil {
		agent.Error = fmt.Errorf("--http.config.file: %w", err)
		return
	}
	defer client.CloseIdleConnections()
	agent.At = time.Now()
	agent.Error = fetch(ctx, client, agent.Asked, func(body io.Reader) error {
		var err error
		agent.Page, err = check.DecodePage(body)
		return err
	})
	if agent.Error != nil {
		return
	}
	ready, err := url.Parse(agent.Asked)
	if err == nil {
		ready.Path = "/-/ready"
		err = fetch(ctx, client, ready.String(), func(io.Reader) error { return nil })
	}
	agent.Ready = err
}

const (
	dialTimeout = 5 * time.Second
	// mostOfPage bounds what a foreign page may take.
	mostOfPage = 256 << 20
)

// fetch reads an answer of status 200. An error is without the URL, and says
// what an exporter wants to know.
func fetch(ctx context.Context, client *http.Client, address string, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("User-Agent", "dra-exporter/"+buildVersion().Version)
	answer, err := client.Do(request)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which is the heading, and may have a password
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 200)) // better than nothing, where it fails
		return fmt.Errorf("%s: %s", answer.Status, cmp.Or(strings.TrimSpace(string(said)), "no words"))
	}
	return read(io.LimitReader(answer.Body, mostOfPage))
}
