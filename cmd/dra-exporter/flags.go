package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/devicerelease"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/internal/dcgmnames"
	otlpsettings "github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/web"
)

// webFlags configure how a role is served, and how it logs.
type webFlags struct {
	toolkit *toolkit.FlagConfig
	address string // the flag that the addresses are from; empty: --web.listen-address
	path    string
	pprof   bool
	bare    bool // without metrics of the process
	created bool // with lines _created in OpenMetrics
	access  accessFlags
	hosts   []string
	links   page.Links
	log     *promslog.Config
}

// at returns the flags with the address of another flag.
func (f *webFlags) at(address, flag string) *webFlags {
	other, listen := *f, *f.toolkit
	other.address = flag
	listen.WebListenAddresses, listen.WebSystemdSocket = &[]string{address}, new(bool)
	other.toolkit = &listen
	return &other
}

// server opens the listeners of a role, whose Server is given. config is nil without
// the API server.
func (f *webFlags) server(config *rest.Config, open func(role.WebOptions, *slog.Logger) (*web.Server, error), log *slog.Logger) (*web.Server, error) {
	if err := f.access.check(config); err != nil {
		return nil, err
	}
	if err := f.checkLinks(); err != nil {
		return nil, err
	}
	return open(role.WebOptions{
		Toolkit: f.toolkit, AddressFlag: f.address, MetricsPath: f.path, Pprof: f.pprof, NoProcess: f.bare, Created: f.created, Hosts: f.hosts, Links: f.links,
		KubernetesAuth: f.access.kubernetes, Audiences: f.access.audiences,
	}, log)
}

// flagSet is implemented by an application and by a command.
type flagSet interface {
	Flag(name, help string) *kingpin.FlagClause
}

func addWebFlags(command flagSet, defaultAddress string, stderr io.Writer) *webFlags {
	f := &webFlags{log: &promslog.Config{Writer: stderr}}
	f.toolkit = kingpinflag.AddFlags(command, defaultAddress)
	command.Flag("web.telemetry-path", "Path of the metrics.").Default("/metrics").StringVar(&f.path)
	command.Flag("web.allowed-host", "Allowed Host header of requests over the loopback interface, besides addresses and names of a cluster; * allows any. Repeatable.").PlaceHolder("NAME").StringsVar(&f.hosts)
	command.Flag("web.enable-pprof", "Serve Go's profiler under /debug/pprof/.").BoolVar(&f.pprof)
	command.Flag("web.disable-exporter-metrics", "Leave out the metrics of the process: promhttp_*, process_* and go_*.").BoolVar(&f.bare)
	command.Flag("web.grafana-url", "Base URL of Grafana with the project's dashboards, to which the pages link.").PlaceHolder("URL").StringVar(&f.links.Grafana)
	command.Flag("web.runbook-url", "Base URL of the runbooks, to which the pages link; NAME.md of the alert is appended. Default: this program's own. Empty: no links.").Default(ownRunbooks).StringVar(&f.links.Runbooks)
	command.Flag("metrics.created", "Show the start of each counter in OpenMetrics as a series, _created, which Prometheus stores. Protobuf always has the start.").BoolVar(&f.created)
	addLogFlags(command, f.log)
	return f
}

// ownRunbooks is where this program serves the runbooks, as seen from its other pages.
const ownRunbooks = "runbooks"

// addClusterURL adds the flag of the node role for the link to the cluster role.
func (f *webFlags) addClusterURL(command flagSet) {
	command.Flag("web.cluster-url", "Base URL of the cluster role's page, to which the node's page links.").PlaceHolder("URL").StringVar(&f.links.Cluster)
}

// checkLinks refuses what is not an address of a web page. The message names the flag.
func (f *webFlags) checkLinks() error {
	for _, base := range []struct {
		flag    string
		address *string
	}{
		{"web.grafana-url", &f.links.Grafana}, {"web.runbook-url", &f.links.Runbooks}, {"web.cluster-url", &f.links.Cluster},
	} {
		*base.address = hostport.Bracketed(*base.address)
		parsed, err := url.Parse(*base.address)
		switch {
		case *base.address == "", base.address == &f.links.Runbooks && *base.address == ownRunbooks:
		case hostport.HasUser(*base.address):
			return usagef("--%s=%s has a user name or a password, which every reader of the page would see: remove it", base.flag, hostport.Redacted(*base.address))
		case err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "":
			return usagef("--%s=%s is not a base URL such as https://grafana.example.com", base.flag, hostport.Redacted(*base.address))
		}
	}
	return nil
}

// addLogFlags adds --log.level and --log.format as named by Prometheus.
func addLogFlags(command flagSet, config *promslog.Config) {
	config.Level, config.Format = promslog.NewLevel(), promslog.NewFormat()
	command.Flag(promslogflag.LevelFlagName, promslogflag.LevelFlagHelp).Default("info").
		HintOptions(promslog.LevelFlagOptions...).SetValue(config.Level)
	command.Flag(promslogflag.FormatFlagName, promslogflag.FormatFlagHelp).Default("logfmt").
		HintOptions(promslog.FormatFlagOptions...).SetValue(config.Format)
}

// logger escapes control characters for terminals; in JSON these are more than
// slog escapes. Devices, drivers, users and files can cause any number of lines, so that
// their number is bounded. It also receives the logs of client-go, which has only one
// logger for the whole process.
func (f *webFlags) logger() *slog.Logger {
	config := *f.log
	config.Writer = terminal.JSONWriter(cmp.Or[io.Writer](config.Writer, os.Stderr))
	log := slog.New(ratelog.Bound(promslog.New(&config).Handler()))
	klog.SetSlogLogger(slog.New(ratelog.Limit(log.Handler(), "client-go")).With("component", "client-go"))
	return log
}

// discardLogs discards the logs of this process: failures are in the report.
func discardLogs() *slog.Logger {
	log := slog.New(slog.DiscardHandler)
	klog.SetSlogLogger(log)
	return log
}

// agentFlags configure what the node role reads and for how long it keeps it.
type agentFlags struct {
	access       node.GPUAccess
	interval     time.Duration
	slowInterval time.Duration
	grace        time.Duration
	idle         float64
	restartAfter time.Duration
	maxSeries    int
	healthHold   time.Duration
	throttle     float64
	processes    bool
	release      devicerelease.Options
	releaseFile  string
	serials      bool
	podLabels    []string
	workloads    []string // keys by field, such as name=example.com/run
	extensions   []string // of drivers, by the names of their metrics after dra_device_ext_
	prices       string
	dcgm         string
	exported     filterFlags
}

// accessModes are those of docs/access.md.
func accessModes() []string {
	return []string{"none", "dcgm", "exporter", "runtimeClass", "claim", "cdi"}
}

func addAgentFlags(command flagSet) *agentFlags {
	f := &agentFlags{}
	command.Flag("device.interval", "Time between two reads of the fast quantities (utilization, memory, power, …) while claims or pods have devices. Otherwise a third of the time between scrapes, at most 5s.").Default("1s").DurationVar(&f.interval)
	command.Flag("device.slow-interval", "Time between two reads of the slow quantities, and between two searches for new devices.").Default("30s").DurationVar(&f.slowInterval)
	command.Flag("ledger.grace", "How long counters and info series of a claim remain after it; at least twice the scrape interval.").Default("5m").DurationVar(&f.grace)
	command.Flag("access.mode", "How the pod has access to NVIDIA's GPUs: set by the manifests, for dra_exporter_access_mode_info and check.").HintOptions(accessModes()...).EnumVar(&f.access.Mode, accessModes()...)
	command.Flag("access.reason", "Why the access mode was chosen: set by the chart.").Default("set").StringVar(&f.access.Reason)
	command.Flag("idle.threshold", "Utilization ratio below which a claim counts as idle.").Default("0.01").Float64Var(&f.idle)
	command.Flag("source.restart-after", "Fail the liveness probe if a read has hung for this long. 0 disables that, and that the process ends when a driver was replaced and only another process can open its library.").Default("10m").DurationVar(&f.restartAfter)
	command.Flag("metrics.max-series", "Maximum number of series of one family; dropped series are counted. 0 disables the limit.").Default("20000").IntVar(&f.maxSeries)
	command.Flag("health.hold", "How long a device must be without a fault before it is healthy again.").Default("5m").DurationVar(&f.healthHold)
	command.Flag("health.throttle-ratio", "Share of a minute for which a device may be throttled because of heat or the power supply; more counts as a fault. 0 disables.").Default("0.25").Float64Var(&f.throttle)
	command.Flag("device.serial", "Show the serial numbers of boards and chassis.").Default("true").BoolVar(&f.serials)
	command.Flag("device.processes", "Split the use of shared devices by process, if the node's processes are visible (hostPID).").Default("true").BoolVar(&f.processes)
	command.Flag("device.release-file", "Release the GPUs of this node while this file exists, so that a driver can be replaced or a GPU reset; see docs/release.md.").PlaceHolder("FILE").StringVar(&f.releaseFile)
	command.Flag("device.release-label", "Label of this node that releases its GPUs while it has another value than true. Repeatable; empty: none.").PlaceHolder("KEY").Default(dra.ReleaseLabels()...).StringsVar(&f.release.Labels)
	command.Flag("device.release-for-passthrough", "Release the GPUs of this node until a GPU that a claim gets for a virtual machine has left its driver.").Default("true").BoolVar(&f.release.Passthrough)
	command.Flag("device.release-when-idle", "Release the GPUs of this node while no claim holds one, and read them once a minute.").BoolVar(&f.release.Idle)
	command.Flag("labels.pod", "Label of pods to show on dra_claim_consumer_info, as label_<name>. Repeatable.").StringsVar(&f.podLabels)
	addWorkloadFlag(command, &f.workloads)
	command.Flag("exporter.extensions", "Export a quantity of a driver's own as dra_device_ext_NAME. That of a counter ends with _total. Repeatable.").PlaceHolder("NAME").StringsVar(&f.extensions)
	command.Flag("cost.prices", "YAML file with prices of devices per hour; see docs/cost.md.").StringVar(&f.prices)
	addDCGMFlag(command, &f.dcgm)
	f.exported.add(command)
	return f
}

// addWorkloadFlag adds a flag that both roles have.
func addWorkloadFlag(command flagSet, keys *[]string) {
	command.Flag("labels.workload", "Label or annotation of pods that names their workload, as name=KEY, or a part of it: kind, role, replica, rank, size or queue; see docs/workloads.md. Repeatable.").PlaceHolder("FIELD=KEY").StringsVar(keys)
}

// workloadsBy returns what determines the workloads of pods. The message of an error
// names the flag.
func workloadsBy(keys []string) (*decode.Workloads, error) {
	workloads, err := decode.NewWorkloads(keys...)
	if err != nil {
		return nil, usagef("--labels.workload: %w", err)
	}
	return workloads, nil
}

// addDCGMFlag adds a flag that the demo also has.
func addDCGMFlag(command flagSet, mode *string) {
	command.Flag("metrics.dcgm", "Also export the metrics of dcgm-exporter under its names. copy: the value of the whole device for each pod; split: the pod's part if it is known.").PlaceHolder("copy|split").EnumVar(mode, dcgmnames.Copy.String(), dcgmnames.Split.String())
}

// check refuses invalid values. The message names the flag.
func (f *agentFlags) check() error {
	switch {
	case f.interval < 100*time.Millisecond:
		return usagef("--device.interval=%s is too short: the minimum is 100ms", f.interval)
	case f.slowInterval < f.interval:
		return usagef("--device.slow-interval=%s is shorter than --device.interval=%s", f.slowInterval, f.interval)
	case f.grace < 0:
		return usagef("--ledger.grace=%s is negative", f.grace)
	case f.idle < 0 || f.idle > 1:
		return usagef("--idle.threshold=%v is not a ratio from 0 to 1", f.idle)
	case f.maxSeries < 0:
		return usagef("--metrics.max-series=%d is negative", f.maxSeries)
	case f.healthHold < 0:
		return usagef("--health.hold=%s is negative", f.healthHold)
	case f.throttle < 0 || f.throttle > 1:
		return usagef("--health.throttle-ratio=%v is not a ratio from 0 to 1", f.throttle)
	}
	f.release.Labels = slices.DeleteFunc(f.release.Labels, func(key string) bool { return key == "" })
	for _, key := range f.release.Labels {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return usagef("--device.release-label=%s: not a valid name of a node label (use one flag for each label): %s", key, problems[0])
		}
	}
	for _, key := range f.podLabels {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return usagef("--labels.pod=%s: not a valid name of a pod label (use one flag for each label): %s", key, problems[0])
		}
	}
	if _, err := workloadsBy(f.workloads); err != nil {
		return err
	}
	for i, name := range f.extensions {
		if _, err := device.ParseExtension(name); err != nil {
			return usagef("--exporter.extensions: %w", err)
		}
		if slices.Contains(f.extensions[:i], name) {
			return usagef("--exporter.extensions: %s is named twice", name)
		}
	}
	if len(f.extensions) > maxExtensions {
		return usagef("--exporter.extensions: %d names are more than %d", len(f.extensions), maxExtensions)
	}
	_, err := f.filter()
	return err
}

// maxExtensions is how many extensions can be exported, each with a series of each
// device.
const maxExtensions = 64

// filter returns the filter of the node role. An extension that is named is exported
// at every level.
func (f *agentFlags) filter(more ...string) (*metric.Filter, error) {
	exported := f.exported
	for _, name := range f.extensions {
		more = append(more, metric.DeviceExtensionPrefix+name)
	}
	exported.include = append(slices.Clone(exported.include), more...)
	return exported.filter(append(nodeFamilies(), more...))
}

// config returns the reducer's part of the flags.
func (f *agentFlags) config(name string) (node.Config, error) {
	if err := node.CheckPodLabels(f.podLabels); err != nil {
		return node.Config{}, usagef("--labels.pod: %w", err)
	}
	config := node.Config{
		Node: name, Version: buildVersion(), Access: f.access, Interval: f.interval, Grace: f.grace,
		IdleThreshold: f.idle, MaxSeries: f.maxSeries,
		HealthHold: f.healthHold, ThrottleRatio: f.throttle, PodLabels: f.podLabels, Extensions: f.extensions,
		EachDevice: f.exported.isFull(),
	}
	if f.prices == "" {
		return config, nil
	}
	var err error
	if config.Prices, err = price.Load(f.prices); err != nil {
		return node.Config{}, fmt.Errorf("--cost.prices: %w", err)
	}
	return config, nil
}

// files reads the files that flags name, so that a wrong one is reported before what
// is missing, such as the address of an API server.
func (f *agentFlags) files(serve *webFlags) error {
	if _, err := f.config(""); err != nil {
		return err
	}
	return web.CheckFile(serve.toolkit)
}

// derive returns the function that adds rows under dcgm-exporter's names, if
// they are enabled.
func (f *agentFlags) derive(config node.Config) (func(node.Snapshot) []metric.Row, error) {
	if f.dcgm == "" {
		return nil, nil
	}
	mode, err := dcgmnames.ParseMode(f.dcgm)
	if err != nil {
		return nil, usagef("--metrics.dcgm: %w", err)
	}
	translator := dcgmnames.New(dcgmnames.Options{Mode: mode, Interval: f.interval, Staleness: config.Staleness()})
	return func(s node.Snapshot) []metric.Row { return translator.Rows(s.At.Elapsed, s.Model) }, nil
}

// accessFlags configure who may read the pages, besides the web configuration.
type accessFlags struct {
	kubernetes bool
	audiences  []string
}

func (f *accessFlags) add(command flagSet) {
	command.Flag("web.kubernetes-auth", "Authenticate and authorize requests with TokenReview and SubjectAccessReview; see docs/security.md.").BoolVar(&f.kubernetes)
	command.Flag("web.kubernetes-audience", "Required audience of tokens, with --web.kubernetes-auth. Default: the audience of the API server. Repeatable.").PlaceHolder("AUDIENCE").StringsVar(&f.audiences)
}

// check refuses invalid values. The message names the flag.
func (f *accessFlags) check(config *rest.Config) error {
	switch {
	case !f.kubernetes && len(f.audiences) > 0:
		return usagef("--web.kubernetes-audience needs --web.kubernetes-auth")
	case f.kubernetes && config == nil:
		return usagef("--web.kubernetes-auth needs the API server: remove --kubernetes.disable or this flag")
	default:
		return nil
	}
}

// addPushFlags adds the most common settings of pushing by OTLP; the standard
// OTEL_* variables have the others.
func addPushFlags(command flagSet) *otlpsettings.Flags {
	f := &otlpsettings.Flags{}
	command.Flag("otlp.endpoint", "Also push to this OpenTelemetry collector, such as http://collector:4317. OTEL_EXPORTER_OTLP_ENDPOINT sets it too; see docs/opentelemetry.md.").PlaceHolder("URL").StringVar(&f.Endpoint)
	command.Flag("otlp.protocol", "Protocol of the push. Default: OTEL_EXPORTER_OTLP_PROTOCOL, otherwise grpc for port 4317 and http/protobuf for other ports.").PlaceHolder("grpc|http/protobuf").StringVar(&f.Protocol)
	command.Flag("otlp.interval", "Time between two pushes of metrics. Default: OTEL_METRIC_EXPORT_INTERVAL, otherwise 60s.").PlaceHolder("60s").DurationVar(&f.Interval)
	command.Flag("otlp.naming", "Names of the pushed metrics: prometheus, as on the page, or semconv, OpenTelemetry's semantic conventions.").PlaceHolder("prometheus|semconv").StringVar(&f.Naming)
	command.Flag("otlp.cluster-name", "Name of this cluster, pushed as the resource attribute k8s.cluster.name.").PlaceHolder("NAME").StringVar(&f.ClusterName)
	return f
}

// pushSettings reads flags and environment; the error names the setting that is
// wrong.
func pushSettings(flags *otlpsettings.Flags) (otlpsettings.Settings, error) {
	settings, err := otlpsettings.Load(*flags, os.LookupEnv)
	if err != nil {
		return otlpsettings.Settings{}, usagef("prepare to push by OTLP: %w", err)
	}
	return settings, nil
}
