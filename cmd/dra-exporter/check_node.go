package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/config"
	"k8s.io/klog/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
)

// addCheckNode adds the check of a node, with the node role's flags.
func (c *commands) addCheckNode(parent *kingpin.CmdClause, common *checkFlags, stdout, stderr io.Writer) {
	command := parent.Command("node", "Check what the node role needs, here: takes its flags, and reads what it reads. In the agent's container the running agent's flags are taken over.").Default()
	d := &nodeDoctor{common: common, flags: addNodeFlags(command), agent: addAgentFlags(command), push: addPushFlags(command), stderr: stderr}
	d.web = addWebFlags(command, nodeAddress, stderr)
	d.web.access.add(command)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return common.run(ctx, stdout, d.examine) }
}

// nodeDoctor runs the parts of the node role, without serving or pushing
// anything, until all is known or the time is up.
type nodeDoctor struct {
	common *checkFlags
	flags  *nodeFlags
	agent  *agentFlags
	push   *otlp.Flags
	web    *webFlags
	stderr io.Writer

	around surroundings
	name   check.NodeName
	opened error
	api    check.API
	probe  *probe // nil: there is no API server to ask
}

func (d *nodeDoctor) examine(ctx context.Context) (*check.Report, error) {
	ctx, stop := context.WithTimeout(ctx, d.common.timeout)
	defer stop()
	log := slog.New(slog.DiscardHandler) // what fails is in the report
	klog.SetSlogLogger(log)
	host := readHost(d.flags.procfs, d.flags.options.sysfs)
	host.Inherited, host.InheritError = d.common.inherited, d.common.inheritError
	d.prepare(log)
	var settings check.Settings
	meanwhile(ctx, d.stderr, awaiting("addresses that flags name, and the API server"), func() {
		settings = d.settings(ctx)
		d.look(ctx)
	})
	if d.probe != nil {
		defer d.probe.close()
	}
	_, err := os.Stat(filepath.Dir(d.flags.socket))
	host.Node = !errors.Is(err, os.ErrNotExist)
	report := &check.Report{}
	report.Add(check.HostFindings(host)...)
	report.Add(check.SettingsFindings(settings)...)
	agent, err := newAgent(d.agent, d.around, log)
	if settings.FlagsError != nil || err != nil {
		report.Add(check.SettingsFindings(check.Settings{FlagsError: err})...)
		report.Add(check.APIFindings(d.api, nodeRole)...)
		return report, nil
	}
	reading, end := context.WithCancel(context.WithoutCancel(ctx)) // until it is judged, also when the time is up
	var running sync.WaitGroup
	agent.start(reading, &running)
	agent.observe(ctx, d.common.timeout, d.stderr)
	d.judge(report, host, agent)
	end()
	running.Wait()
	d.running(ctx, report)
	return report, nil
}

// nodeRole is the ClusterRole of the shipped manifests.
const nodeRole = "dra-exporter-node"

// prepare finds out where the agent lives, as it would itself, but goes on
// without what cannot be had.
func (d *nodeDoctor) prepare(log *slog.Logger) {
	d.around = surroundings{node: d.flags.name, clock: clock.System(), socket: d.flags.socket, cdiDirs: d.flags.cdiDirs, procfs: d.flags.procfs, processes: &gate{}}
	d.name = check.NodeName{Name: d.flags.name, APIPods: -1, KubeletPods: -1, Slices: -1}
	if d.flags.name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		_, d.name.Missing = d.flags.hostname()
		d.around.node, d.name.Name, d.name.Guessed = host, host, true
	}
	d.api = check.API{Disabled: d.flags.alone}
	if !d.flags.alone {
		d.around.cluster, d.api.ConfigError = clusterConfig(d.flags.kubeconfig)
	}
	if d.around.cluster != nil {
		d.around.podsAPI = d.flags.podsAPI
	}
	flags := *d.flags
	flags.options.profiling = flags.options.profiling && !d.withheld()
	d.opened = flags.open(&d.around, d.agent, log)
}

// withheld reports whether the profiling counters are left to the running
// agent: one reader of a GPU can have them, and DCGM's embedded engine takes
// them. A host engine gives all of its clients the same.
func (d *nodeDoctor) withheld() bool {
	return d.flags.options.profiling && d.common.inherited != nil && d.flags.options.hostEngine == ""
}

// settings tries the files and addresses that flags name. A price list that
// cannot be used is told, and then left out, so that the rest can be tried.
func (d *nodeDoctor) settings(ctx context.Context) check.Settings {
	wrong := d.agent.check()
	if wrong == nil && d.flags.alone && d.flags.podsAPI != "" {
		wrong = errPodsAPIAlone
	}
	settings := readSettings(ctx, wrong, d.agent.prices, d.push, false, d.web)
	if settings.PricesError != nil {
		d.agent.prices = ""
	}
	return settings
}

// look asks the API server about itself.
func (d *nodeDoctor) look(ctx context.Context) {
	if d.around.cluster == nil {
		return
	}
	probe, err := newProbe(d.around.cluster)
	if err != nil {
		d.api.ConfigError = err
		d.around.cluster = nil
		return
	}
	d.probe = probe
	d.api = probe.look(ctx, append(nodeAccess(d.around.podsAPI != ""), reviewAccess(d.web)...))
	if d.api.VersionError != nil {
		return
	}
	d.name.Exists, d.name.Known = probe.node(ctx, d.around.node)
	d.name.APIPods = probe.onNode(ctx, d.around.node)
}

// observe waits until the agent has read everything once, and has taken a
// second look at its devices: some quantities are a difference of two.
func (a *agent) observe(ctx context.Context, timeout time.Duration, stderr io.Writer) {
	settled := wait(ctx, stderr, a.untried, func() bool { return a.runner.Latest() != nil && len(a.untried()) == 0 })
	if !settled {
		return
	}
	second := time.NewTimer(min(2*a.flags.interval+a.flags.interval/2, timeout/2))
	defer second.Stop()
	select {
	case <-ctx.Done():
	case <-second.C:
	}
}

// untried names the sources of which nothing is known yet. Where no pod names
// a claim, no claim is ever read.
func (a *agent) untried() []string {
	return slices.DeleteFunc(unread(a.statuses()), func(name string) bool {
		return name == node.SourceClaims && len(a.cluster.Latest().Unread) == 0
	})
}

// running asks the exporter that this container runs, over the loopback
// interface. One that wants TLS or a password is left alone.
func (d *nodeDoctor) running(ctx context.Context, report *check.Report) {
	if d.common.inherited == nil || *d.web.toolkit.WebConfigFile != "" {
		return
	}
	for _, address := range *d.web.toolkit.WebListenAddresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		address = (&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: d.web.path}).String()
		agent := check.Agent{URL: address, Asked: address}
		late, stop := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout) // the check's own time may be up
		ask(late, &agent, config.DefaultHTTPClientConfig)
		stop()
		report.Add(check.Agents([]check.Agent{agent})...)
		return
	}
}

// judge turns what is known into findings, area by area.
func (d *nodeDoctor) judge(report *check.Report, host check.Host, agent *agent) {
	facts := agent.gather()
	kubelet := d.kubelet(host, agent)
	report.Add(check.KubeletFindings(kubelet)...)
	if agent.pods != nil {
		report.Add(check.PodsAPIFindings(d.flags.podsAPI, agent.pods.Status())...)
	}
	report.Add(check.CDIFindings(d.cdi(agent))...)
	if agent.cluster != nil {
		d.api.Statuses = agent.cluster.Statuses()
	}
	report.Add(check.APIFindings(d.api, nodeRole)...)
	if d.probe != nil && d.api.VersionError == nil {
		if kubelet.Answered {
			d.name.KubeletPods = len(kubelet.Listing.Pods)
		}
		report.Add(check.NodeNameFindings(d.name)...)
	}
	report.Add(check.SourceFindings(check.Sources{
		Statuses: agent.sampler.Statuses(), Optional: d.around.optional, OpenError: d.opened, Samples: facts.Samples,
		PCI: host.PCI, Published: facts.Cluster.Published, Profiling: d.flags.options.profiling, Withheld: d.withheld(),
	})...)
	report.Add(check.MatchingFindings(matchingOf(facts))...)
	report.Add(check.SharingFindings(check.Sharing{State: sharingState(agent)})...)
}

// errPodsAPIAlone says that one flag needs what another forbids.
var errPodsAPIAlone = errors.New("--kubelet.pods-api needs the API server: leave out --kubernetes.disable, or this flag")

// kubelet looks at the way to the socket, and at what came of it.
func (d *nodeDoctor) kubelet(host check.Host, agent *agent) check.Kubelet {
	found := check.Kubelet{Socket: d.flags.socket, UID: host.UID, Container: host.Container, Status: agent.kubelet.Status()}
	_, err := os.Stat(filepath.Dir(d.flags.socket))
	found.FolderError = withoutPath(err)
	info, err := os.Stat(d.flags.socket)
	found.SocketError = withoutPath(err)
	found.IsSocket = err == nil && info.Mode()&os.ModeSocket != 0
	listing, answered := agent.kubelet.Latest()
	found.Answered, found.Listing = answered, listing.Resources
	if agent.cluster != nil {
		found.Using = usingClaims(agent.cluster.Latest())
	}
	return found
}

func (d *nodeDoctor) cdi(agent *agent) check.CDI {
	devices := agent.cdi.Latest()
	found := check.CDI{Status: agent.cdi.Status(), Devices: len(devices)}
	for _, dir := range d.flags.cdiDirs {
		_, err := os.ReadDir(dir)
		found.Folders = append(found.Folders, check.Folder{Path: dir, Error: withoutPath(err)})
	}
	known := make(map[string]bool, len(devices))
	for _, device := range devices {
		known[device.Name] = true
	}
	listing, _ := agent.kubelet.Latest()
	for _, assignment := range listing.Resources.Assignments {
		if len(assignment.CDIDevices) == 0 {
			continue
		}
		found.Held++
		for _, name := range assignment.CDIDevices {
			if known[name] {
				found.Known++
				break
			}
		}
	}
	return found
}
