package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	promslogflag "github.com/prometheus/common/promslog/flag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/exporter"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/internal/demo"
	otlpsettings "github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/internal/web"
)

// addDemo adds the subcommand of the demo, which needs neither a GPU nor a
// cluster.
func addDemo(c *commands, stdout, stderr io.Writer) {
	command := c.app.Command("demo", "Run both roles over a simulated cluster: no GPU, no Kubernetes.").HelpLong(`  dra-exporter demo
  dra-exporter demo --web.listen-address=127.0.0.1:8000 --cluster.listen-address=127.0.0.1:8001`)
	flags := &demoFlags{}
	command.Flag("cluster.listen-address", "Address of the cluster role; the first node's agent has --web.listen-address.").Default("127.0.0.1:9421").StringVar(&flags.cluster)
	command.Flag("training.listen-address", "Address of the second node's agent. Empty: none.").Default("127.0.0.1:9422").StringVar(&flags.training)
	addDCGMFlag(command, &flags.dcgm)
	flags.exported.add(command)
	command.Flag("seed", "Seed of the simulation: the same seed gives the same simulation.").Default("1").Uint64Var(&flags.seed)
	flags.push = addPushFlags(command)
	flags.web = addWebFlags(command, "127.0.0.1:9420", stderr)
	command.GetFlag(promslogflag.LevelFlagName).Default("error") // simulated faults look like real ones, and the tour stays on the screen
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runDemo(ctx, flags, stdout) }
}

// demoFlags are the flags of the demo.
type demoFlags struct {
	web      *webFlags
	cluster  string // address of the cluster role
	training string // of the second node's agent
	dcgm     string
	seed     uint64

	exported filterFlags
	filter   *metric.Filter // by these flags, for both roles
	push     *otlpsettings.Flags
}

// checkAddresses refuses addresses without a port. The second node may have none.
func (f *demoFlags) checkAddresses() error {
	for name, address := range map[string]*string{"cluster": &f.cluster, "training": &f.training} {
		*address = hostport.Bracketed(*address)
		if _, _, err := net.SplitHostPort(*address); err != nil && (name == "cluster" || *address != "") {
			return usagef("--%s.listen-address=%s is not HOST:PORT", name, hostport.Redacted(*address))
		}
	}
	return nil
}

// runDemo runs both real roles; only their environment is simulated.
func runDemo(ctx context.Context, flags *demoFlags, stdout io.Writer) (err error) {
	// Closing the terminal ends the demo, which then removes its files.
	ctx, hungUp := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer hungUp()
	if err := flags.checkAddresses(); err != nil {
		return err
	}
	if flags.filter, err = flags.exported.filter(slices.Concat(nodeFamilies(), clusterFamilies())); err != nil {
		return err
	}
	push, err := pushSettings(flags.push)
	if err != nil {
		return err
	}
	log := flags.web.logger()
	defer ratelog.Flush(log)
	directory, err := os.MkdirTemp("", "dra-exporter-demo-")
	if err != nil {
		return fmt.Errorf("create a folder for the simulated node: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	now := clock.System()
	simulated, err := demo.Start(ctx, demo.Options{Dir: directory, Clock: now, Log: log, Seed: flags.seed})
	if err != nil {
		return fmt.Errorf("start the simulated node: %w", err)
	}
	defer simulated.Close()
	kubeconfig := filepath.Join(directory, "kubeconfig")
	if err := demo.WriteKubeconfig(kubeconfig, simulated.Config()); err != nil {
		return err
	}
	node, err := demoNode(simulated, flags, push, now, log)
	if err != nil {
		return err
	}
	program, _ := os.Executable() // without it, no command is shown
	cluster, err := demoCluster(simulated, flags, demo.ExplainCommand(flags.cluster, program, kubeconfig), push, now, log)
	if err != nil {
		return errors.Join(err, node.server.Close())
	}
	roles := []demoRole{node, cluster}
	tour := demo.Tour{
		Program: os.Args[0], Kubeconfig: kubeconfig, Prometheus: simulated.RecordedWeek(), Metrics: flags.web.path,
		Node: node.server.Addresses()[0], Cluster: cluster.server.Addresses()[0],
	}
	if flags.training != "" {
		training, err := demoTrainingNode(simulated, flags, push, now, log)
		if err != nil {
			return errors.Join(err, node.server.Close(), cluster.server.Close())
		}
		roles, tour.Training = append(roles, training), training.server.Addresses()[0]
	}
	return runRoles(ctx, simulated, roles, tour, stdout)
}

// runRoles runs the simulation and the roles until ctx or one of them ends, and prints
// the tour once all are ready.
func runRoles(ctx context.Context, simulated *demo.Simulation, roles []demoRole, tour demo.Tour, stdout io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	tour.PrintAddresses(stdout)
	var running errgroup.Group
	running.Go(func() error {
		if untilReady(ctx, roles) {
			tour.Print(stdout)
		}
		return nil
	})
	running.Go(func() error {
		defer stop() // if one ends, all end
		return simulated.Run(ctx)
	})
	for _, started := range roles {
		running.Go(func() error {
			defer stop()
			return started.serve(ctx, started.server)
		})
	}
	return running.Wait()
}

// demoRole is one role of the demo and its server.
type demoRole struct {
	server *web.Server
	serve  func(context.Context, *web.Server) error
	ready  func() error
}

func demoNode(simulated *demo.Simulation, flags *demoFlags, push otlpsettings.Settings, now clock.Clock, log *slog.Logger) (demoRole, error) {
	sources, err := demoSources(simulated, now, log)
	if err != nil {
		return demoRole{}, err
	}
	return demoAgent(simulated.AgentNode, simulated.Config(), sources, flags, *flags.web, push, now, log)
}

func demoTrainingNode(simulated *demo.Simulation, flags *demoFlags, push otlpsettings.Settings, now clock.Clock, log *slog.Logger) (demoRole, error) {
	node := simulated.TrainingNode()
	return demoAgent(node, simulated.Config(), []device.Source{node.Source()}, flags, *flags.web.at(flags.training, "--training.listen-address"), push, now, log)
}

// demoAgent is the agent of a node.
func demoAgent(simulated *demo.AgentNode, api *rest.Config, sources []device.Source, flags *demoFlags, serve webFlags, push otlpsettings.Settings, now clock.Clock, log *slog.Logger) (demoRole, error) {
	options := role.NodeOptions{
		Name: simulated.NodeName(), Clock: now, Sources: sources,
		Socket: simulated.KubeletSocket(), CDIDirs: []string{simulated.CDIDir()}, Procfs: simulated.Procfs(), API: api,
		Gate: &role.Gate{}, Push: push, Filter: flags.filter,
	}
	simulated.ListProcesses(options.Gate.Open)
	agent := demoAgentFlags(simulated.PriceList(), flags.dcgm)
	agent.exported = flags.exported
	node, err := newNode(agent, options, log.With("role", "node"))
	if err != nil {
		return demoRole{}, err
	}
	if _, port, err := net.SplitHostPort(flags.cluster); err == nil && port != "0" { // otherwise the port is not known yet
		serve.links.Cluster = "http://" + flags.cluster
	}
	server, err := serve.server(options.API, node.Server, log)
	return demoRole{server, node.Run, node.Ready}, err
}

// demoSources returns the sources of the agent of the demo: the simulated hardware,
// and, as on a real node, the pages of a driver and of an exporter.
func demoSources(simulated *demo.Simulation, now clock.Clock, log *slog.Logger) ([]device.Source, error) {
	intel, err := exporter.Preset("intel-xpumd=" + simulated.IntelExporter())
	if err != nil {
		return nil, err
	}
	pages, err := exporter.New(exporter.Options{Exporters: []exporter.Config{intel}, Folder: simulated.SocketDir(), Clock: now, Log: log})
	if err != nil {
		return nil, err
	}
	return []device.Source{simulated.Source(), pages}, nil
}

func demoCluster(simulated *demo.Simulation, flags *demoFlags, explain string, push otlpsettings.Settings, now clock.Clock, log *slog.Logger) (demoRole, error) {
	options := (&clusterFlags{budget: 0.25, shapes: 50, maxSeries: 30000}).options(simulated.Config(), push, now)
	options.Explain, options.Filter = explain, flags.filter
	cluster, err := role.NewClusterRole(options, log.With("role", "cluster"))
	if err != nil {
		return demoRole{}, err
	}
	server, err := flags.web.at(flags.cluster, "--cluster.listen-address").server(options.API, cluster.Server, log)
	return demoRole{server, cluster.Run, cluster.Ready}, err
}

// demoAgentFlags returns the defaults of the node role, with a longer grace
// period, so that users see claims end, with the teams of the pods and with
// prices.
func demoAgentFlags(prices, dcgm string) *agentFlags {
	return &agentFlags{
		interval: time.Second, slowInterval: 30 * time.Second, grace: time.Minute,
		idle: 0.01, restartAfter: 10 * time.Minute, maxSeries: 20000,
		healthHold: 30 * time.Second, throttle: 0.25,
		processes: true, serials: true, podLabels: []string{"team"}, prices: prices, dcgm: dcgm,
	}
}

// untilReady waits until all are ready; it returns false if ctx ends before.
func untilReady(ctx context.Context, roles []demoRole) bool {
	const pause = 50 * time.Millisecond
	for _, started := range roles {
		for started.ready() != nil {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(pause):
			}
		}
	}
	return true
}
