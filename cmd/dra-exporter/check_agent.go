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
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	pause      time.Duration // between the two pages of an exporter that are compared
	stderr     io.Writer
}

func (c *commands) addCheckAgent(parent *kingpin.CmdClause, common *checkFlags, stdout, stderr io.Writer) {
	command := parent.Command("agent", "Ask running exporters how they are: each address that a name stands for.")
	flags := &checkAgentFlags{lookup: net.DefaultResolver.LookupHost, pause: 2 * time.Second, stderr: stderr}
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
	askAll(ctx, agents, settings, f.stderr)
	askAgain(ctx, agents, settings, f.pause, f.stderr)
	report := &check.Report{}
	report.Add(check.Agents(agents)...)
	return report, nil
}

// askAll asks all that have an address at once, but not too many, and tells a
// person who waits how far it is.
func askAll(ctx context.Context, agents []check.Agent, settings config.HTTPClientConfig, stderr io.Writer) {
	var answered atomic.Int64
	progress := func() []string {
		return []string{fmt.Sprintf("%d of %d exporters have answered", answered.Load(), len(agents))}
	}
	meanwhile(ctx, stderr, progress, func() {
		each(agents, func(agent *check.Agent) {
			defer answered.Add(1)
			ask(ctx, agent, settings)
		})
	})
	room := mostKept
	for i := range agents {
		if room -= 2 * agents[i].Page.Size(); room < 0 { // for this page and the next
			agents[i].Page = agents[i].Page.WithoutNumbers()
		}
	}
}

// askAgain asks those that have answered for a second page, a pause later.
func askAgain(ctx context.Context, agents []check.Agent, settings config.HTTPClientConfig, pause time.Duration, stderr io.Writer) {
	if !slices.ContainsFunc(agents, func(a check.Agent) bool { return a.Error == nil }) {
		return
	}
	meanwhile(ctx, stderr, awaiting(fmt.Sprintf("a second page of each exporter, %s after the first", pause)), func() {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		each(agents, func(agent *check.Agent) {
			agent.Again = answerOf(ctx, agent, settings)
			if agent.Page.Size() == 0 {
				agent.Again.Page = agent.Again.Page.WithoutNumbers()
			}
		})
	})
}

// each does something with all that have an address and no error, with some at
// once.
func each(agents []check.Agent, do func(*check.Agent)) {
	const atOnce = 16
	free, all := make(chan struct{}, atOnce), sync.WaitGroup{}
	for i := range agents {
		all.Go(func() {
			if agents[i].Error != nil {
				return
			}
			free <- struct{}{}
			defer func() { <-free }()
			do(&agents[i])
		})
	}
	all.Wait()
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
		return nil, errors.New("an exporter's URL is http://HOST:PORT or https://HOST:PORT, with a path or without") // without the text, which may hold a password
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

// ask asks one agent how it is.
func ask(ctx context.Context, agent *check.Agent, settings config.HTTPClientConfig) {
	client, err := clientOf(agent, settings)
	if err != nil {
		agent.Error = err
		return
	}
	defer client.CloseIdleConnections()
	answer := answerOf(ctx, agent, settings)
	agent.Page, agent.At, agent.Took, agent.Error = answer.Page, answer.At, answer.Took, answer.Error
	if agent.Error != nil {
		agent.Error = misplaced(ctx, client, agent.Asked, agent.Error)
		return
	}
	agent.Ready = readiness(ctx, client, agent.Asked)
}

// answerOf reads the page of one agent.
func answerOf(ctx context.Context, agent *check.Agent, settings config.HTTPClientConfig) check.Answer {
	client, err := clientOf(agent, settings)
	if err != nil {
		return check.Answer{Error: err}
	}
	defer client.CloseIdleConnections()
	answer := check.Answer{At: time.Now()}
	answer.Error = fetch(ctx, client, agent.Asked, func(body io.Reader) error {
		var err error
		answer.Page, err = check.DecodePage(body)
		return err
	})
	answer.Took = time.Since(answer.At)
	return answer
}

// clientOf asks one agent at its own address, whatever others its name stands
// for.
func clientOf(agent *check.Agent, settings config.HTTPClientConfig) (*http.Client, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	address := agent.Address
	dial := func(ctx context.Context, network, asked string) (net.Conn, error) {
		if address != "" {
			if _, port, err := net.SplitHostPort(asked); err == nil {
				asked = net.JoinHostPort(address, port)
			}
		}
		return dialer.DialContext(ctx, network, asked)
	}
	client, err := config.NewClientFromConfig(settings, "check", config.WithDialContextFunc(dial), config.WithKeepAlivesDisabled())
	if err != nil {
		return nil, fmt.Errorf("--http.config.file: %w", err)
	}
	return client, nil
}

// misplaced adds where an exporter has its page to the error of an address that
// leads to another one.
func misplaced(ctx context.Context, client *http.Client, asked string, err error) error {
	refused := (*refusedError)(nil)
	address, wrong := url.Parse(asked)
	elsewhere := errors.Is(err, check.ErrNoExporter) || errors.As(err, &refused) && refused.code == http.StatusNotFound
	if wrong != nil || address.Path == "/metrics" || !elsewhere {
		return err
	}
	address.Path, address.RawPath, address.RawQuery = "/metrics", "", ""
	var page check.Page
	read := func(body io.Reader) (err error) {
		page, err = check.DecodePage(body)
		return err
	}
	if fetch(ctx, client, address.String(), read) != nil {
		return err
	}
	role := "the cluster role"
	if page.Node {
		role = "a node agent"
	}
	return fmt.Errorf("%w; %s has its page at /metrics of that address, which is asked for where no path is given", err, role)
}

// readiness asks for /-/ready beside the page, where a proxy or an ingress puts
// all that the exporter serves below a path of its own; where there is none, at
// the root, where the exporter has it wherever its page is. The other way round,
// the root's answer could be another program's.
func readiness(ctx context.Context, client *http.Client, page string) error {
	address, err := url.Parse(page)
	if err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	folder := path.Dir(address.Path)
	for {
		address.Path, address.RawPath = path.Join(folder, "/-/ready"), ""
		err := fetch(ctx, client, address.String(), func(io.Reader) error { return nil })
		if refused := (*refusedError)(nil); folder == "/" || !errors.As(err, &refused) || refused.code != http.StatusNotFound {
			return err
		}
		folder = "/"
	}
}

// refusedError is an answer of another status than 200.
type refusedError struct {
	code int
	text string
}

func (e *refusedError) Error() string { return e.text }

const (
	dialTimeout = 5 * time.Second
	// mostOfPage bounds what a foreign page may take.
	mostOfPage = 256 << 20
	// mostKept bounds what is kept of all pages until they are compared.
	mostKept = 512 << 20
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
		return &refusedError{answer.StatusCode, answer.Status + ": " + cmp.Or(strings.TrimSpace(string(said)), "no words")}
	}
	return read(io.LimitReader(answer.Body, mostOfPage))
}
