package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/words"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/top"
)

// exporterFlags select the agents that are read.
type exporterFlags struct {
	kubectlFlags
	exporters string // their namespace
	selector  string
	urls      []*url.URL
	cluster   *url.URL
	client    string // file
	timeout   time.Duration
}

// addTo adds the flags that are the same in each command that reads agents.
func (f *exporterFlags) addTo(command *kingpin.CmdClause) {
	f.kubectlFlags.addTo(command)
	command.Flag("exporter-namespace", "Namespace of the exporters' pods. Default: all namespaces.").StringVar(&f.exporters)
	command.Flag("exporter-selector", "Labels of the exporters' pods.").Default(top.DefaultSelector).StringVar(&f.selector)
	command.Flag("url", "Address of a node agent, such as http://localhost:9420, read directly instead of through the API server. Repeatable.").SetValue(addresses{&f.urls})
	command.Flag("http.config.file", "HTTP client configuration for addresses that are read directly, in the format of promtool: passwords, tokens, certificates.").StringVar(&f.client)
	command.Flag("timeout", "Time limit of one request.").Default("5s").DurationVar(&f.timeout)
}

// check refuses invalid values. The message names the flag.
func (f *exporterFlags) check() error {
	switch {
	case f.timeout <= 0:
		return usagef("--timeout=%s is too short for a request", f.timeout)
	case f.client != "" && len(f.urls) == 0:
		return usagef("--http.config.file is for --url; the API server uses the kubeconfig")
	case len(f.urls) == 0:
		return nil
	}
	for _, other := range []struct{ flag, value string }{{"kubeconfig", f.kubeconfig}, {"context", f.context}, {"exporter-namespace", f.exporters}} {
		if other.value != "" {
			return usagef("--%s is for the API server, and --url reads agents directly: remove one of the two", other.flag)
		}
	}
	return nil
}

// topFlags select the agents, and what to show.
type topFlags struct {
	exporterFlags
	namespaces []string
	nodes      []string
	once       bool
	output     outputFlag
	sort       string
	reverse    bool
	interval   time.Duration
}

// parallel is how many agents are read at a time: enough for a thousand nodes,
// little load for an API server.
const parallel = 32

// addTop adds the subcommand that shows the usage of all claims.
func addTop(c *commands, stdout, stderr io.Writer) {
	command := c.app.Command("top", "Show how claims use their devices, continuously.").HelpLong(`  dra-exporter top                                 # the whole cluster
  dra-exporter top -n team-ml --sort=idle          # one namespace, the longest idle time first
  dra-exporter top --url localhost:9420 --once     # one agent, once`)
	flags := &topFlags{}
	flags.addTo(command)
	command.Flag("cluster-url", "Address of the cluster role, used with --url.").SetValue(addressFlag{&flags.cluster})
	command.Flag("namespace", "Show only claims of this namespace. Repeatable.").Short('n').StringsVar(&flags.namespaces)
	command.Flag("node", "Show only this node. Repeatable.").StringsVar(&flags.nodes)
	command.Flag("once", "Print the table once. This is the default if the output is not a terminal.").BoolVar(&flags.once)
	command.Flag("output", "table or json. json is printed once.").Short('o').Default("table").EnumVar(&flags.output.format, "table", "json")
	command.Flag("sort", "Sort key: "+strings.Join(sortNames(), ", ")+".").Default(string(top.ByUtilization)).EnumVar(&flags.sort, sortNames()...)
	command.Flag("reverse", "Reverse the order.").Short('r').BoolVar(&flags.reverse)
	command.Flag("interval", "Time between two rounds of requests.").Default("2s").DurationVar(&flags.interval)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runTop(ctx, flags, stdout, stderr) }
}

func sortNames() []string {
	names := words.Names(top.Keys(), func(key top.Key) string { return string(key) })
	return names
}

// check refuses invalid values. The message names the flag.
func (f *topFlags) check() error {
	switch {
	case f.interval < 500*time.Millisecond:
		return usagef("--interval=%s is too short: the minimum is 500ms", f.interval)
	case f.cluster != nil && len(f.urls) == 0:
		return usagef("--cluster-url needs --url: the cluster role reports pending claims only")
	}
	return f.exporterFlags.check()
}

func (f *topFlags) wanted() top.Wanted { return top.Wanted{Namespaces: f.namespaces, Nodes: f.nodes} }

func (f *topFlags) order() top.Order { return top.Order{Key: top.Key(f.sort), Reversed: f.reverse} }

// runTop fails if no agent could be read.
func runTop(ctx context.Context, flags *topFlags, stdout, stderr io.Writer) error {
	if err := flags.check(); err != nil {
		return err
	}
	client := &top.Client{Clock: clock.System(), Namespaces: flags.namespaces, Timeout: flags.timeout, Parallel: parallel}
	list, err := flags.connect(client, flags.wanted())
	if err != nil {
		return err
	}
	listing, err := listAgents(ctx, list, len(flags.urls) > 0, stderr)
	if err != nil {
		return err
	}
	if screen, ok := top.OpenTerminal(os.Stdin, stdout); ok && !flags.once && flags.output.format == "table" {
		client.Devices = true
		watch := &top.Watch{Client: client, First: listing, Interval: flags.interval, Relist: 30 * time.Second, Rest: 10 * time.Second}
		if len(flags.urls) == 0 {
			watch.List = list
		}
		return screen.Show(ctx, &top.Live{Watch: watch, Clock: client.Clock, Wanted: flags.wanted(), Order: flags.order()})
	}
	return printTop(ctx, flags, client, listing, stdout, stderr)
}

// connect prepares to read agents: at their addresses, or else through the API
// server. It returns how to list them.
func (f *exporterFlags) connect(client *top.Client, wanted top.Wanted) (list func(context.Context) (top.AgentList, error), err error) {
	if len(f.urls) > 0 {
		if client.HTTP, err = top.AgentClient(f.client); err != nil {
			return nil, err
		}
		listing := top.ListingOf(f.urls, f.cluster)
		return func(context.Context) (top.AgentList, error) { return listing, nil }, nil
	}
	connection, _, err := f.connection()
	if err != nil {
		return nil, fmt.Errorf("%w; or set --url to read agents directly", err)
	}
	proxy, server, err := top.ProxyClient(connection)
	if err != nil {
		return nil, err
	}
	client.HTTP = proxy
	cluster := &top.ClusterAgents{
		Client: proxy, Server: server, Namespace: f.exporters, Selector: f.selector, Wanted: wanted, Timeout: max(f.timeout, 30*time.Second),
	}
	return cluster.List, nil
}

// listAgents lists the agents, with progress on a terminal; direct: they are read at
// addresses, not through the API server.
func listAgents(ctx context.Context, list func(context.Context) (top.AgentList, error), direct bool, stderr io.Writer) (listing top.AgentList, err error) {
	terminal.Progress{To: stderr}.During(ctx, terminal.Missing("the exporters' pods at the API server"), func() { listing, err = list(ctx) })
	if err != nil {
		return listing, withAdvice(err, direct)
	}
	return listing, nil
}

// readAgents reads all agents once, with progress on a terminal.
func readAgents(ctx context.Context, client *top.Client, listing top.AgentList, stderr io.Writer) (*top.Fleet, error) {
	fleet, progress := top.NewFleet(), top.NewProgress(client.Clock, stderr)
	client.Round(ctx, listing, func(change top.FleetChange) {
		change(fleet)
		progress.Report(fleet)
	})
	progress.Clear()
	return fleet, ctx.Err()
}

// printTop reads all agents once and prints the result. It fails if none
// answers.
func printTop(ctx context.Context, flags *topFlags, client *top.Client, listing top.AgentList, stdout, stderr io.Writer) error {
	fleet, err := readAgents(ctx, client, listing, stderr)
	if err != nil {
		return err
	}
	reading := fleet.Reading(client.Clock().Wall, flags.wanted())
	err = flags.output.write(stdout, "table", top.NewDocument(reading, flags.order()), func() string {
		return strings.Join(top.Draw(reading, flags.order(), top.LookOf(stdout)), "\n") + "\n"
	})
	if err != nil {
		return err
	}
	if reading.Answered == 0 {
		return withAdvice(fleet.Failure(), len(flags.urls) > 0)
	}
	return nil
}

// withAdvice adds advice to the common errors of a first use; direct: agents are
// read at addresses, not through the API server.
func withAdvice(err error, direct bool) error {
	var refused *top.StatusError
	switch {
	case errors.Is(err, top.ErrNoAgents):
		return fmt.Errorf("%w; check that dra-exporter is installed there: --exporter-namespace, --exporter-selector and --node select the agents, --url reads an agent directly", err)
	case errors.Is(err, top.ErrClusterRole):
		return fmt.Errorf("%w; --url is for node agents (port 9420), --cluster-url for the cluster role (port 9421)", err)
	case errors.As(err, &refused) && refused.Code == 404 && direct:
		return fmt.Errorf("%w; --url is the address of a node agent without the path of a page, such as http://HOST:9420", err)
	case errors.Is(err, syscall.ECONNREFUSED) && direct:
		return fmt.Errorf("%w; check that a node agent listens there: its port is 9420, or the one of --web.listen-address", err)
	case errors.As(err, &refused) && slices.Contains([]int{401, 403}, refused.Code):
		return fmt.Errorf("%w; through the API server you need permission to list pods and to get pods/proxy in the exporters' namespace (--exporter-namespace, docs/top.md), or read agents directly with --url", err)
	default:
		return err
	}
}

// addresses is a flag of several addresses of exporters.
type addresses struct{ to *[]*url.URL }

func (a addresses) String() string { return "" }

// IsCumulative makes kingpin accept the flag several times.
func (a addresses) IsCumulative() bool { return true }

func (a addresses) Set(text string) error {
	parsed, err := top.ParseAddress(text)
	if err != nil {
		return err
	}
	for _, known := range *a.to {
		if known.Host == parsed.Host && known.Path == parsed.Path {
			return fmt.Errorf("%s is set twice", hostport.Redacted(parsed.String()))
		}
	}
	*a.to = append(*a.to, parsed)
	return nil
}

// address is a flag of one address.
type addressFlag struct{ to **url.URL }

func (a addressFlag) String() string { return "" }

func (a addressFlag) Set(text string) error {
	parsed, err := top.ParseAddress(text)
	if err == nil {
		*a.to = parsed
	}
	return err
}
