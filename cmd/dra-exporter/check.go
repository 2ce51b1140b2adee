package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/config"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/collector/upstream"
	"github.com/dra-exporter/dra-exporter/internal/check"
	otlpsettings "github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// checkFlags are the flags of every check.
type checkFlags struct {
	output  outputFlag
	timeout time.Duration

	inherited    []string // flags of the exporter of this container that are used; nil: there is no exporter
	inheritError error
}

// addCheck adds the subcommand that reports what is missing, with remedies.
func addCheck(c *commands, stdout, stderr io.Writer) *checkFlags {
	command := c.app.Command("check", "Find what is missing or misconfigured here, with a remedy for each finding.").HelpLong(`  dra-exporter check                               # this node
  dra-exporter check cluster                       # the cluster of your kubeconfig
  dra-exporter check agent http://localhost:9420   # a running exporter, from outside
  dra-exporter check exporter unix:///tmp/gpu.example.com.sock   # the page of a driver`)
	flags := &checkFlags{}
	flags.output.addTo(command)
	command.Flag("timeout", "Time limit for all requests.").Default("20s").DurationVar(&flags.timeout)
	addCheckNode(c, command, flags, stdout, stderr)
	addCheckCluster(c, command, flags, stdout, stderr)
	addCheckAgent(c, command, flags, stdout, stderr)
	addCheckExporter(c, command, flags, stdout)
	return flags
}

// run makes a report and writes it. A failure in the report is an error.
func (f *checkFlags) run(ctx context.Context, stdout io.Writer, examine func(context.Context) (*check.Report, error)) error {
	if f.timeout <= 0 {
		return usagef("--timeout=%s is too short for a check", f.timeout)
	}
	report, err := examine(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped: %w", ctx.Err())
	}
	style := check.Style{Colour: terminal.Styled(stdout), Columns: terminal.Columns(stdout)}
	if err := f.output.write(stdout, "report", report.Document(), func() string { return report.Text(style) }); err != nil {
		return err
	}
	return report.Err()
}

// checkSettings reads the files that flags name and dials the collector. Only
// the cluster role sends traces.
func checkSettings(ctx context.Context, flagsError error, prices string, pushFlags *otlpsettings.Flags, traces bool, web *webFlags) check.CheckedSettings {
	settings := check.CheckedSettings{FlagsError: flagsError, Prices: prices, WebConfig: *web.toolkit.WebConfigFile}
	if prices != "" {
		_, settings.PricesError = price.Load(prices)
	}
	if settings.WebConfig != "" {
		settings.WebConfigError = toolkit.Validate(settings.WebConfig)
	}
	push, err := pushSettings(pushFlags)
	if err != nil {
		settings.PushError = errors.Unwrap(err)
		return settings
	}
	settings.PushWithheld = push.Withheld()
	var signals []check.PushedSignal
	if push.Metrics.On {
		signals = append(signals, check.PushedSignal{Name: "metrics", Endpoint: push.Metrics.Endpoint, Insecure: push.Metrics.Insecure})
	}
	if push.Traces.On && traces {
		signals = append(signals, check.PushedSignal{Name: "traces", Endpoint: push.Traces.Endpoint, Insecure: push.Traces.Insecure})
	}
	settings.Pushes = check.DialPushes(ctx, signals)
	return settings
}

// reviewAccess returns the permissions that the web flags need.
func reviewAccess(web *webFlags) []check.Permission {
	if !web.access.kubernetes {
		return nil
	}
	return check.ReviewAccess()
}

// nodeCheck runs the node role, without serving or pushing anything, until each
// source has been read or ctx ends.
type nodeCheck struct {
	common   *checkFlags
	flags    *nodeFlags
	agent    *agentFlags
	push     *otlpsettings.Flags
	web      *webFlags
	progress terminal.Progress

	options role.NodeOptions
	name    check.NodeName
	opened  error
	api     check.API
	probe   *check.Probe // nil: there is no API server
}

// addCheckNode adds the check of a node, with the node role's flags.
func addCheckNode(c *commands, parent *kingpin.CmdClause, common *checkFlags, stdout, stderr io.Writer) {
	command := parent.Command("node", "Check what the node role needs. Takes its flags; in the agent's container, those of the running agent are the default.").Default().
		HelpLong("  dra-exporter check node --node.name=gpu-1\n  kubectl -n dra-exporter exec ds/dra-exporter-node -- /dra-exporter check")
	n := &nodeCheck{common: common, flags: addNodeFlags(command), agent: addAgentFlags(command), push: addPushFlags(command), progress: terminal.Progress{To: stderr}}
	n.web = addWebFlags(command, nodeAddress, stderr)
	n.web.access.add(command)
	n.web.addClusterURL(command)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return common.run(ctx, stdout, n.examine) }
}

func (n *nodeCheck) examine(ctx context.Context) (*check.Report, error) {
	ctx, stop := context.WithTimeout(ctx, n.common.timeout)
	defer stop()
	log := discardLogs()
	host := check.ReadHost(buildVersion().Version, n.flags.procfs, n.flags.options.sysfs)
	host.Inherited, host.InheritError = n.common.inherited, n.common.inheritError
	host.Node = !check.FolderMissing(n.flags.socket)
	n.prepare(log)
	var settings check.CheckedSettings
	n.progress.During(ctx, terminal.Missing("addresses that flags name, and the API server"), func() {
		settings = n.settings(ctx)
		n.readAPI(ctx)
	})
	if n.probe != nil {
		defer n.probe.Close()
	}
	report := &check.Report{}
	report.Add(check.HostFindings(host)...)
	report.Add(check.SettingsFindings(settings)...)
	agent, err := newNode(n.agent, n.options, log)
	if settings.FlagsError != nil || err != nil {
		report.Add(check.SettingsFindings(check.CheckedSettings{FlagsError: err})...)
		report.Add(check.APIFindings(n.api, check.NodeRole)...)
		return report, nil
	}
	reading, end := context.WithCancel(context.WithoutCancel(ctx)) // until the report is made, also when the time is up
	var running role.Parts
	agent.Start(reading, &running)
	n.waitForSources(ctx, agent)
	report.Add(check.NodeFindings(n.known(host, agent))...)
	end()
	running.Wait(log)
	n.addRunningExporter(ctx, report)
	return report, nil
}

// prepare sets up what surrounds the agent as the node role does, but continues
// without what fails.
func (n *nodeCheck) prepare(log *slog.Logger) {
	n.options = role.NodeOptions{Name: n.flags.name, Clock: clock.System(), Socket: n.flags.socket, CDIDirs: n.flags.cdiDirs, Procfs: n.flags.procfs, Sysfs: n.flags.options.sysfs, Gate: &role.Gate{}}
	n.name = check.NodeName{Name: n.flags.name, APIPods: -1, KubeletPods: -1, Slices: -1}
	if n.flags.name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		_, n.name.Missing = n.flags.hostname()
		n.options.Name, n.name.Name, n.name.Guessed = host, host, true
	}
	n.api = check.API{Disabled: n.flags.alone}
	if !n.flags.alone {
		n.options.API, n.api.ConfigError = clusterConfig(n.flags.kubeconfig)
	}
	if n.options.API != nil {
		n.options.PodsAPI = n.flags.podsAPI
	}
	flags := *n.flags
	flags.options.profiling = flags.options.profiling && !n.leavesProfiling()
	n.opened = flags.open(&n.options, n.agent, log)
}

// leavesProfiling reports whether the profiling counters are left to the running
// agent: a GPU has them for one reader only, and DCGM's embedded engine reserves
// them. A host engine serves all of its clients.
func (n *nodeCheck) leavesProfiling() bool {
	return n.flags.options.profiling && n.common.inherited != nil && n.flags.options.hostEngine == ""
}

// settings leaves out a price list that cannot be used, so that the agent can be
// started without it.
func (n *nodeCheck) settings(ctx context.Context) check.CheckedSettings {
	err := n.agent.check()
	if err == nil && n.flags.alone && n.flags.podsAPI != "" {
		err = errPodsAPIAlone
	}
	settings := checkSettings(ctx, err, n.agent.prices, n.push, false, n.web)
	settings.Access = n.agent.access
	if settings.PricesError != nil {
		n.agent.prices = ""
	}
	return settings
}

// errPodsAPIAlone reports two flags of which one needs what the other forbids.
var errPodsAPIAlone = errors.New("--kubelet.pods-api needs the API server: remove --kubernetes.disable or this flag")

// readAPI reads the API server's version, permissions and this node.
func (n *nodeCheck) readAPI(ctx context.Context) {
	if n.options.API == nil {
		return
	}
	probe, err := check.NewProbe(n.options.API)
	if err != nil {
		n.api.ConfigError = err
		n.options.API = nil
		return
	}
	n.probe = probe
	n.api = probe.API(ctx, append(check.NodeAccess(n.options.PodsAPI != ""), reviewAccess(n.web)...))
	if n.api.VersionError != nil {
		return
	}
	n.name.Exists, n.name.Known = probe.Node(ctx, n.options.Name)
	n.name.APIPods = probe.PodsOnNode(ctx, n.options.Name)
}

// waitForSources returns when the role has read each source once and its devices twice:
// some quantities are the difference of two readings.
func (n *nodeCheck) waitForSources(ctx context.Context, node *role.NodeRole) {
	if !n.progress.Until(ctx, node.Unread, func() bool { return node.HasSnapshot() && len(node.Unread()) == 0 }) {
		return
	}
	second := time.NewTimer(min(2*n.agent.interval+n.agent.interval/2, n.common.timeout/2))
	defer second.Stop()
	select {
	case <-ctx.Done():
	case <-second.C:
	}
}

// known returns what the role has read.
func (n *nodeCheck) known(host check.Host, node *role.NodeRole) check.NodeParts {
	read := node.Known()
	known := check.NodeParts{
		Host: host, Facts: read.Facts, Socket: n.flags.socket, Listed: read.Listed, PodsSocket: n.flags.podsAPI, CDIDirs: n.flags.cdiDirs,
		Kubelet: read.Kubelet, CDI: read.CDI, PodsAPI: read.PodsAPI, Devices: read.Devices,
		Optional: n.options.Optional, OpenError: n.opened, Profiling: n.flags.options.profiling, Withheld: n.leavesProfiling(),
		API: n.api,
	}
	if host.Pod {
		known.PodName, _ = os.Hostname() // without a name, its claims are not checked
	}
	known.API.Statuses = read.API
	if n.probe != nil && n.api.VersionError == nil {
		known.Name = &n.name
	}
	for _, row := range read.Rows {
		if row.Family.Name == metric.ExporterProcessAttribution && row.Value == 1 {
			known.Sharing = row.Labels.Get("reason")
		}
	}
	return known
}

// addRunningExporter reads the exporter that this container runs, over the loopback
// interface, unless it needs TLS or a password.
func (n *nodeCheck) addRunningExporter(ctx context.Context, report *check.Report) {
	if n.common.inherited == nil || *n.web.toolkit.WebConfigFile != "" {
		return
	}
	for _, address := range *n.web.toolkit.WebListenAddresses {
		host, port, err := net.SplitHostPort(hostport.Bracketed(address))
		if err != nil {
			continue
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		address = (&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: n.web.path}).String()
		agent := check.Agent{URL: address, Asked: address}
		late, stop := context.WithTimeout(context.WithoutCancel(ctx), check.ProbeTimeout) // the check's own time may be up
		agentReader(config.DefaultHTTPClientConfig, n.progress).ReadAgent(late, &agent)
		stop()
		report.Add(check.Agents([]check.Agent{agent})...)
		return
	}
}

// clusterCheck reads what the cluster role reads, once.
type clusterCheck struct {
	common   *checkFlags
	flags    *clusterFlags
	push     *otlpsettings.Flags
	web      *webFlags
	progress terminal.Progress
}

// addCheckCluster adds the check of a cluster, with the cluster role's flags.
func addCheckCluster(c *commands, parent *kingpin.CmdClause, common *checkFlags, stdout, stderr io.Writer) {
	command := parent.Command("cluster", "Check what the cluster role needs. Takes its flags. Outside a pod and without --kubeconfig, it uses your own kubeconfig.").
		HelpLong("  dra-exporter check cluster\n  dra-exporter check cluster -o json")
	k := &clusterCheck{common: common, flags: &clusterFlags{}, progress: terminal.Progress{To: stderr}}
	k.flags.add(command)
	k.push = addPushFlags(command)
	k.web = addWebFlags(command, clusterAddress, stderr)
	k.web.access.add(command)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return common.run(ctx, stdout, k.examine) }
}

func (k *clusterCheck) examine(ctx context.Context) (*check.Report, error) {
	ctx, stop := context.WithTimeout(ctx, k.common.timeout)
	defer stop()
	log := discardLogs()
	report := &check.Report{}
	report.Add(check.InheritedFindings(k.common.inherited, k.common.inheritError)...)
	var settings check.CheckedSettings
	k.progress.During(ctx, terminal.Missing("addresses that flags name"), func() {
		settings = checkSettings(ctx, k.flags.check(), "", k.push, true, k.web)
	})
	report.Add(check.SettingsFindings(settings)...)
	config, err := k.connection()
	var probe *check.Probe
	if err == nil {
		probe, err = check.NewProbe(config)
	}
	if err != nil {
		report.Add(check.APIFindings(check.API{ConfigError: err}, check.ClusterRole)...)
		return report, nil
	}
	defer probe.Close()
	var api check.API
	k.progress.During(ctx, terminal.Missing("the API server"), func() {
		api = probe.API(ctx, append(check.ClusterAccess(), reviewAccess(k.web)...))
	})
	if api.VersionError != nil {
		report.Add(check.APIFindings(api, check.ClusterRole)...)
		return report, nil
	}
	cluster := check.ClusterFacts{Minor: api.Minor, Instances: probe.Instances(ctx)}
	known := upstream.NewClusterObjects(clock.System()().Wall, api.Version)
	if api.Statuses, err = k.read(ctx, config, log, &cluster, known); err != nil {
		return nil, err
	}
	report.Add(check.APIFindings(api, check.ClusterRole)...)
	report.Add(check.ClusterFindings(cluster)...)
	return report, nil
}

// connection returns the connection of the cluster role: --kubeconfig or the
// pod's service account. Without either it uses the user's kubeconfig.
func (k *clusterCheck) connection() (*rest.Config, error) {
	config, err := clusterConfig(k.flags.kubeconfig)
	if !errors.Is(err, errNotInPod) {
		return config, err
	}
	person := kubectlFlags{}
	config, _, err = person.connection()
	return config, err
}

// read lists all collections once, and looks for signs of known bugs in them.
func (k *clusterCheck) read(ctx context.Context, config *rest.Config, log *slog.Logger, cluster *check.ClusterFacts, known *upstream.ClusterObjects) ([]source.Status, error) {
	kept := inventory.New()
	reader, err := apiserver.NewClusterWatch(apiserver.ClusterWatchOptions{Config: config, Keeper: kept, Log: log, Clock: clock.System()})
	if err != nil {
		return nil, fmt.Errorf("prepare to read the API server: %w", err)
	}
	reading, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { reader.Run(reading) })
	k.progress.Until(ctx, func() []string { return source.Unread(reader.Statuses()) }, reader.Settled)
	for _, change := range reader.Drain() { // Synced describes what has been taken
		known.Apply(change)
	}
	statuses, synced := reader.Statuses(), reader.Synced()
	stop()
	running.Wait()
	_ = kept.EvaluateClasses(ctx, nil) // fails only when ctx ends; classes are then not counted
	cluster.Supply, cluster.SliceRead, cluster.ClassRead = kept.Supply(), synced.Slices, synced.Classes
	cluster.RuleServed = slices.ContainsFunc(statuses, func(s source.Status) bool { return s.Name == "devicetaintrules" && s.Up })
	known.Supply, known.PodsKnown = cluster.Supply, synced.Pods
	cluster.Bugs, cluster.BugsUnread = upstream.Find(known), unread(synced)
	return statuses, nil
}

// unread returns the resources that have signs of known bugs and could not be read.
func unread(synced apiserver.Synced) []string {
	var missing []string
	for _, resource := range []struct {
		name string
		read bool
	}{
		{"resourceclaims", synced.Claims}, {"pods", synced.Pods}, {"resourceslices", synced.Slices}, {"nodes", synced.Nodes}, {"events", synced.Events},
	} {
		if !resource.read {
			missing = append(missing, resource.name)
		}
	}
	return missing
}

// agentReader reads running exporters by the settings.
func agentReader(settings config.HTTPClientConfig, progress terminal.Progress) *check.AgentReader {
	return &check.AgentReader{
		HTTP: settings, UserAgent: "dra-exporter/" + buildVersion().Version, Resolve: net.DefaultResolver.LookupHost,
		Clock: clock.System(), Progress: progress,
	}
}

// addCheckAgent adds the check of exporters that run.
func addCheckAgent(c *commands, parent *kingpin.CmdClause, common *checkFlags, stdout, stderr io.Writer) {
	command := parent.Command("agent", "Check running exporters: every address of each name.").
		HelpLong("  dra-exporter check agent http://localhost:9420\n  dra-exporter check agent http://localhost:9420 http://localhost:9421")
	urls := command.Arg("URL", "Address of an exporter's metrics, such as http://localhost:9420; the default path is /metrics. Repeatable.").Required().Strings()
	httpConfig := command.Flag("http.config.file", "HTTP client configuration of Prometheus: TLS, basic authentication, tokens.").PlaceHolder("FILE").String()
	examine := func(ctx context.Context) (*check.Report, error) {
		settings := config.DefaultHTTPClientConfig
		if *httpConfig != "" {
			loaded, _, err := config.LoadHTTPConfigFile(*httpConfig)
			if err != nil {
				return nil, fmt.Errorf("--http.config.file: %w", err)
			}
			settings = *loaded
		}
		settings.FollowRedirects = false // a redirect could lead to another exporter
		ctx, stop := context.WithTimeout(ctx, common.timeout)
		defer stop()
		agents, err := agentReader(settings, terminal.Progress{To: stderr}).Read(ctx, *urls)
		if err != nil {
			return nil, err
		}
		report := &check.Report{}
		report.Add(check.Agents(agents)...)
		return report, nil
	}
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return common.run(ctx, stdout, examine) }
}
