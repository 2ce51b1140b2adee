package check

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

	"github.com/prometheus/common/config"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// AgentReader reads running exporters over HTTP.
type AgentReader struct {
	HTTP      config.HTTPClientConfig
	UserAgent string
	Resolve   func(ctx context.Context, name string) ([]string, error) // a name to its addresses
	Clock     clock.Clock
	Progress  terminal.Progress
}

// Read reads all addresses that the URLs resolve to, at once but not too many. A
// URL that is none is an error; whatever else fails is in the Agent.
func (r *AgentReader) Read(ctx context.Context, urls []string) ([]Agent, error) {
	var agents []Agent
	for _, given := range urls {
		resolved, err := r.resolve(ctx, given)
		if err != nil {
			return nil, err
		}
		agents = append(agents, resolved...)
	}
	r.readAll(ctx, agents)
	return agents, nil
}

// readAll reads the page of each, and whether it is ready.
func (r *AgentReader) readAll(ctx context.Context, agents []Agent) {
	var answered atomic.Int64
	progress := func() []string {
		return []string{fmt.Sprintf("%d of %d exporters have answered", answered.Load(), len(agents))}
	}
	r.Progress.During(ctx, progress, func() {
		forEach(agents, func(agent *Agent) {
			defer answered.Add(1)
			r.ReadAgent(ctx, agent)
		})
	})
}

// forEach calls do for each agent without an error, for 16 at a time.
func forEach(agents []Agent, do func(*Agent)) {
	const parallel = 16
	free, all := make(chan struct{}, parallel), sync.WaitGroup{}
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

// resolve returns an agent for each address of the URL's name: the name of a
// headless Service has the addresses of its pods. A name that cannot be resolved
// is an agent with that error; a URL that is none is an error.
func (r *AgentReader) resolve(ctx context.Context, given string) ([]Agent, error) {
	spelled := given
	if !strings.Contains(spelled, "://") {
		spelled = "http://" + spelled
	}
	parsed, err := url.Parse(hostport.Bracketed(spelled))
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, errors.New("an exporter's URL is http://HOST:PORT or https://HOST:PORT, with a path or without") // without the text, which may hold a password
	}
	if parsed.Path == "" || parsed.Path == "/" {
		parsed.Path = "/metrics"
	}
	agent := Agent{URL: hostport.Redacted(parsed.String())}
	address := parsed.String()
	names, err := r.Resolve(ctx, parsed.Hostname())
	if err != nil {
		agent.Error = fmt.Errorf("find the address of %s: %w", parsed.Hostname(), err)
		return []Agent{agent}, nil
	}
	slices.Sort(names)
	var agents []Agent
	for _, name := range oneFamily(slices.Compact(names)) {
		agent.Asked = address
		agent.Address = name
		agents = append(agents, agent)
	}
	if len(agents) == 1 {
		agents[0].Address = ""
	}
	return agents, nil
}

// oneFamily returns the IPv4 addresses, or the IPv6 ones where there are no others:
// with dual stack each pod has one of each.
func oneFamily(addresses []string) []string {
	four := slices.DeleteFunc(slices.Clone(addresses), func(address string) bool { return strings.Contains(address, ":") })
	if len(four) > 0 {
		return four
	}
	return addresses
}

// ReadAgent reads the page of one agent, and whether it is ready.
func (r *AgentReader) ReadAgent(ctx context.Context, agent *Agent) {
	client, err := r.client(agent)
	if err != nil {
		agent.Error = err
		return
	}
	defer client.CloseIdleConnections()
	agent.At = r.Clock().Wall
	agent.Error = r.fetch(ctx, client, agent.Asked, func(body io.Reader) error {
		var err error
		agent.Page, err = decodePage(body)
		return err
	})
	if agent.Error != nil {
		agent.Error = r.adviseMetricsPath(ctx, client, agent.Asked, agent.Error)
		return
	}
	agent.Ready = r.readiness(ctx, client, agent.Asked)
}

// client connects to the agent's own address, whatever else its name resolves to.
func (r *AgentReader) client(agent *Agent) (*http.Client, error) {
	dialer := &net.Dialer{Timeout: DialTimeout}
	address := agent.Address
	dial := func(ctx context.Context, network, asked string) (net.Conn, error) {
		if address != "" {
			if _, port, err := net.SplitHostPort(asked); err == nil {
				asked = net.JoinHostPort(address, port)
			}
		}
		return dialer.DialContext(ctx, network, asked)
	}
	client, err := config.NewClientFromConfig(r.HTTP, "check", config.WithDialContextFunc(dial), config.WithKeepAlivesDisabled())
	if err != nil {
		return nil, fmt.Errorf("--http.config.file: %w", err)
	}
	follow := client.CheckRedirect // nil: up to ten; not nil: --http.config.file follows none
	client.CheckRedirect = func(next *http.Request, sent []*http.Request) error {
		if last := sent[len(sent)-1].URL; next.URL.Hostname() != last.Hostname() || next.URL.Scheme != last.Scheme && next.URL.Scheme != "https" {
			return fmt.Errorf("it redirects to another server, %s://%s, which is refused", next.URL.Scheme, next.URL.Host)
		}
		if follow != nil {
			return follow(next, sent)
		}
		if len(sent) >= mostRedirects {
			return fmt.Errorf("it redirects more than %d times", mostRedirects)
		}
		return nil
	}
	return client, nil
}

const mostRedirects = 10

// adviseMetricsPath adds to the error of an address without an exporter's page that
// the page is at /metrics, where it is.
func (r *AgentReader) adviseMetricsPath(ctx context.Context, client *http.Client, asked string, err error) error {
	refused := (*refusedError)(nil)
	address, wrong := url.Parse(asked)
	noPage := errors.Is(err, errNoExporter) || errors.As(err, &refused) && refused.code == http.StatusNotFound
	if wrong != nil || address.Path == "/metrics" || !noPage {
		return err
	}
	address.Path, address.RawPath, address.RawQuery = "/metrics", "", ""
	var page Page
	read := func(body io.Reader) (err error) {
		page, err = decodePage(body)
		return err
	}
	if r.fetch(ctx, client, address.String(), read) != nil {
		return err
	}
	role := "the cluster role"
	if page.Node {
		role = "a node agent"
	}
	return fmt.Errorf("%w; %s has its page at /metrics of that address, which is the default path", err, role)
}

// readiness reads /-/ready beside the page first: a proxy or an ingress may serve
// the exporter below a path. If that is not found, it reads /-/ready at the root,
// where the exporter has it wherever its page is. In the other order, the root's
// answer could be that of another program.
func (r *AgentReader) readiness(ctx context.Context, client *http.Client, page string) error {
	address, err := url.Parse(page)
	if err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	folder := path.Dir(address.Path)
	for {
		address.Path, address.RawPath = path.Join(folder, "/-/ready"), ""
		err := r.fetch(ctx, client, address.String(), func(io.Reader) error { return nil })
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
	// DialTimeout bounds how long a connection may take to open.
	DialTimeout = 5 * time.Second

	pageBytes = 256 << 20 // most of one page
)

// fetch passes the body of an answer of status 200 to read. Errors are without the
// URL.
func (r *AgentReader) fetch(ctx context.Context, client *http.Client, address string, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("User-Agent", r.UserAgent)
	answer, err := client.Do(request)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // the URL is the heading of the findings, and may have a password
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 200)) // an incomplete text is better than none
		return &refusedError{answer.StatusCode, answer.Status + ": " + cmp.Or(strings.TrimSpace(string(text)), "no message")}
	}
	return read(io.LimitReader(answer.Body, pageBytes))
}
