package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device/exporter"
	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/source"
	otlpsettings "github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/kubelet"
)

// nodeFlags are the flags of the node role only.
type nodeFlags struct {
	name       string
	kubeconfig string
	alone      bool // without the API server
	socket     string
	podsAPI    string // socket of the kubelet's Pods API; empty: pods are watched at the API server
	cdiDirs    []string
	sources    []string
	options    sourceFlags
	procfs     string
}

const podsAPIHelp = "Watch the pods of this node through the kubelet's Pods API (Kubernetes 1.37 and newer) on this socket, instead of the API server: usually " + kubelet.DefaultPodsSocket + "."

// addNode adds the subcommand of the node role, which runs on every node.
func addNode(c *commands, stderr io.Writer) {
	command := c.app.Command("node", "Run the node role: devices, the claims that hold them, and their use.").HelpLong(`  dra-exporter node --node.name="$NODE_NAME"                 # in a pod of the node
  dra-exporter node --node.name=gpu-1 --kubernetes.disable   # only the kubelet and CDI files
  dra-exporter node --node.name=gpu-1 --device.source=dcgm --dcgm.host-engine=localhost:5555`)
	flags := addNodeFlags(command)
	agent := addAgentFlags(command)
	push := addPushFlags(command)
	web := addWebFlags(command, nodeAddress, stderr)
	web.access.add(command)
	web.addClusterURL(command)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runNode(ctx, flags, agent, push, web) }
}

// nodeAddress is the address on which the node role listens by default.
const nodeAddress = ":9420"

func addNodeFlags(command flagSet) *nodeFlags {
	flags := &nodeFlags{}
	command.Flag("node.name", "Name of this node at the API server.").Envar("NODE_NAME").StringVar(&flags.name)
	command.Flag("kubeconfig", "Path to a kubeconfig. Default: the pod's own service account.").StringVar(&flags.kubeconfig)
	command.Flag("kubernetes.disable", "Do not use the API server, only the kubelet and CDI files.").BoolVar(&flags.alone)
	command.Flag("kubelet.pod-resources-socket", "The kubelet's PodResources socket.").Default(kubelet.DefaultSocket).StringVar(&flags.socket)
	command.Flag("kubelet.pods-api", podsAPIHelp).PlaceHolder("SOCKET").StringVar(&flags.podsAPI)
	command.Flag("cdi.dir", "Directory of CDI specifications. Repeatable.").Default("/etc/cdi", "/var/run/cdi").StringsVar(&flags.cdiDirs)
	command.Flag("device.source", sourceHelp()).Default(sourceAuto).HintOptions(sourceNames()...).EnumsVar(&flags.sources, sourceNames()...)
	command.Flag("simulated.config", "YAML file of the simulated source.").StringVar(&flags.options.simulatedConfig)
	command.Flag("nvml.library", "Path of NVIDIA's libnvidia-ml.so.1, if the dynamic linker does not find it.").StringVar(&flags.options.nvmlLibrary)
	command.Flag("dcgm.host-engine", "DCGM host engine: HOST:PORT or unix:///PATH. Without it, --device.source=dcgm starts one in this process.").StringVar(&flags.options.hostEngine)
	command.Flag("dcgm.library", "Path of DCGM's libdcgm.so.4, if the dynamic linker does not find it.").StringVar(&flags.options.dcgmLibrary)
	command.Flag("device.profiling", "Read engine activity from the GPUs' profiling counters, which allow one reader at a time.").BoolVar(&flags.options.profiling)
	command.Flag("device.nvlink-links", "Also read each NVLink separately, with the device at its other end.").BoolVar(&flags.options.nvlinks)
	command.Flag("exporter.dir", "Directory of the sockets on which DRA drivers serve metrics of their devices; see docs/plugins.md. Empty: none is read.").Default(exporter.DefaultFolder).StringVar(&flags.options.exporterFolder)
	command.Flag("exporter.driver", "DRA driver that serves metrics of its devices at this address, as on a socket. Repeatable.").PlaceHolder("DRIVER=URL").StringsVar(&flags.options.exporterDrivers)
	command.Flag("exporter.preset", exporterPresetHelp()).PlaceHolder("NAME[=URL]").HintOptions(exporter.Presets()...).StringsVar(&flags.options.exporterPresets)
	command.Flag("exporter.config", "YAML file of exporters on this node, with the rules by which their metrics are read.").PlaceHolder("FILE").StringVar(&flags.options.exporterConfig)
	command.Flag("tpu.metrics", "Address of the metric service of libtpu, usually localhost:8431, where the agent can reach it. Repeatable.").PlaceHolder("HOST:PORT").StringsVar(&flags.options.tpuMetrics)
	command.Flag("neuron.monitor", "Output of AWS' neuron-monitor: unix:///SOCKET, or a file with its newest document.").PlaceHolder("PLACE").StringVar(&flags.options.neuronMonitor)
	command.Flag("neuron.cores-per-device", "NeuronCores of a device as neuron-monitor counts them, if the logical NeuronCore configuration is not 1.").PlaceHolder("N").IntVar(&flags.options.neuronCores)
	command.Flag("path.procfs", "Mount point of procfs.").Default("/proc").StringVar(&flags.procfs)
	command.Flag("path.sysfs", "Mount point of sysfs.").Default("/sys").StringVar(&flags.options.sysfs)
	return flags
}

func runNode(ctx context.Context, flags *nodeFlags, agentFlags *agentFlags, pushFlags *otlpsettings.Flags, webFlags *webFlags) error {
	if err := agentFlags.check(); err != nil {
		return err
	}
	if err := agentFlags.files(webFlags); err != nil {
		return err
	}
	push, err := pushSettings(pushFlags)
	if err != nil {
		return err
	}
	log := webFlags.logger()
	defer ratelog.Flush(log)
	options, err := flags.roleOptions(agentFlags, log)
	if err != nil {
		return err
	}
	options.Push = push
	var more []string
	if flags.options.profiling { // whoever reads these counters wants them
		more = []string{metric.DeviceEngineActiveRatio, metric.DeviceSMOccupancyRatio}
	}
	if options.Filter, err = agentFlags.filter(more...); err != nil {
		return err
	}
	role.LimitMemory(role.NodeMemoryShare, log)
	node, err := newNode(agentFlags, options, log)
	if err != nil {
		return err
	}
	server, err := webFlags.server(options.API, node.Server, log)
	if err != nil {
		return err
	}
	onHangup(ctx, node.Reload)
	log.Info("watching this node", "node", options.Name, "version", buildVersion().Version)
	return node.Run(ctx, server)
}

// newNode wires the node role by the options and by the flags of what it reads.
func newNode(flags *agentFlags, options role.NodeOptions, log *slog.Logger) (*role.NodeRole, error) {
	var err error
	if options.Config, err = flags.config(options.Name); err != nil {
		return nil, err
	}
	if options.Derive, err = flags.derive(options.Config); err != nil {
		return nil, err
	}
	if options.Workloads, err = workloadsBy(flags.workloads); err != nil {
		return nil, err
	}
	options.SlowInterval, options.RestartAfter = flags.slowInterval, flags.restartAfter
	options.Release, options.ReleaseFile = flags.release, flags.releaseFile
	options.Processes, options.HideSerials, options.PriceFile = flags.processes, !flags.serials, flags.prices
	return role.NewNodeRole(options, log)
}

// roleOptions returns the options that describe the place where the role runs.
func (f *nodeFlags) roleOptions(agent *agentFlags, log *slog.Logger) (role.NodeOptions, error) {
	options := role.NodeOptions{Name: f.name, Clock: clock.System(), Socket: f.socket, PodsAPI: f.podsAPI, CDIDirs: f.cdiDirs, Procfs: f.procfs, Sysfs: f.options.sysfs, Gate: &role.Gate{}}
	if f.alone && f.podsAPI != "" {
		return options, usagef("--kubelet.pods-api needs the API server for claims: remove --kubernetes.disable or this flag")
	}
	err := f.open(&options, agent, log) // errors of flags are reported before missing sources
	if err != nil {
		return options, err
	}
	if options.Name == "" {
		if options.Name, err = f.hostname(); err != nil {
			return options, err
		}
	}
	if !f.alone {
		options.API, err = clusterConfig(f.kubeconfig)
		if errors.Is(err, errNotInPod) {
			err = fmt.Errorf("%w; or set --kubernetes.disable to run without it", err)
		}
		if err != nil {
			return options, err
		}
	}
	return options, nil
}

// open opens the device sources.
func (f *nodeFlags) open(options *role.NodeOptions, agent *agentFlags, log *slog.Logger) error {
	sources := f.options
	sources.processes = options.Gate.Open
	sources.interval, sources.slow, sources.clock, sources.log = agent.interval, agent.slowInterval, options.Clock, log
	sources.extensions = agent.extensions
	var err error
	options.Sources, options.Optional, err = openSources(f.sources, sources)
	return err
}

// hostname returns the host name as the node's name, for a node without an API
// server.
func (f *nodeFlags) hostname() (string, error) {
	if !f.alone {
		return "", usagef("the node's name is unknown: set --node.name, or NODE_NAME from the pod's spec.nodeName")
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("find this host's name (or set --node.name): %w", err)
	}
	return name, nil
}

// errNotInPod means that there is no service account to reach an API server by.
var errNotInPod = errors.New("no API server: this is not a pod; set --kubeconfig")

// maxKubeconfig is the size of the kubeconfig of a role, in bytes.
const maxKubeconfig = 4 << 20

// clusterConfig reads the kubeconfig of a role, or the service account of the pod.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		if err := checkKubeconfig(kubeconfig); err != nil {
			return nil, fmt.Errorf("read --kubeconfig: %w", err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read --kubeconfig: %w", err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errNotInPod
	}
	if err != nil {
		return nil, fmt.Errorf("read the pod's service account: %w", err)
	}
	return config, nil
}

// checkKubeconfig refuses a kubeconfig that is not a regular file, or that names such a
// file: client-go would wait for it. What else is wrong, client-go says.
func checkKubeconfig(path string) error {
	text, err := hostfile.Read(path, maxKubeconfig)
	if err != nil {
		return err
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return err
	}
	var files []string
	for _, cluster := range config.Clusters {
		files = append(files, cluster.CertificateAuthority)
	}
	for _, user := range config.AuthInfos {
		files = append(files, user.ClientCertificate, user.ClientKey, user.TokenFile)
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(path), file)
		}
		if err := hostfile.Check(file); source.ReasonOf(err) == source.ReasonInvalid {
			return err
		}
	}
	return nil
}
