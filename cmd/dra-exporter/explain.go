package main

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/alecthomas/kingpin/v2"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/internal/explain"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// explainFlags are named as in kubectl.
type explainFlags struct {
	kubectlFlags
	output  outputFlag
	verbose bool
	timeout time.Duration
	name    string // NAMESPACE/NAME, or NAME
	kind    string // of a job's workload; empty: any
}

// pluginPrefix is what the binary's name begins with as a plugin of kubectl:
// as kubectl-dra_explain it is run by "kubectl dra-explain claim NAME".
const pluginPrefix = "kubectl-dra_"

// arguments returns the arguments of a command line without the program. Called
// as one of kubectl's plugins, the program runs that command.
func arguments(commandLine []string) []string {
	program := strings.TrimSuffix(filepath.Base(commandLine[0]), ".exe")
	command, isPlugin := strings.CutPrefix(program, pluginPrefix)
	if isPlugin && (command == "explain" || command == "top" || command == "topology" || command == "fit") {
		return append([]string{command}, commandLine[1:]...)
	}
	return commandLine[1:]
}

// addExplain adds the subcommand that explains pending claims and pods to a
// user with a kubeconfig.
func addExplain(c *commands, stdout, stderr io.Writer) {
	command := c.app.Command("explain", "Explain why a claim, a pod or a workload is pending, and what would help.").HelpLong(`  dra-exporter explain pod team-a/train-0          # the reason, the evidence, the remedies
  dra-exporter explain claim gpus -n team-a -v     # everything that is known
  dra-exporter explain workload team-a/train       # all its pods
  dra-exporter explain pod team-a/train-0 -o json  # for programs
  kubectl dra-explain pod train-0                  # as a plugin, kubectl-dra_explain`)
	flags := &explainFlags{}
	flags.addTo(command)
	command.Flag("namespace", "Namespace of a NAME without one. Default: the namespace of the context.").Short('n').StringVar(&flags.namespace)
	flags.output.addTo(command)
	command.Flag("verbose", "Print everything that is known, not only the answer.").Short('v').BoolVar(&flags.verbose)
	command.Flag("timeout", "Time limit for reading the cluster, and for the diagnosis after that.").Default("30s").DurationVar(&flags.timeout)
	addExplained(c, command, clusterread.KindClaim, "Explain a ResourceClaim.", flags, stdout, stderr).
		Alias("claims").Alias("resourceclaim").Alias("resourceclaims").
		HelpLong("  dra-exporter explain claim team-a/gpus\n  dra-exporter explain claim gpus -n team-a -v")
	addExplained(c, command, clusterread.KindPod, "Explain all claims of a pod.", flags, stdout, stderr).
		Alias("pods").Alias("po").
		HelpLong("  dra-exporter explain pod team-a/train-0\n  dra-exporter explain pod train-0 -n team-a -v")
	addExplained(c, command, clusterread.KindWorkload, "Explain all pods of a workload: a Job, a JobSet, a Deployment or any other.", flags, stdout, stderr).
		Alias("workloads").
		HelpLong("  dra-exporter explain workload team-a/train\n  dra-exporter explain workload train -n team-a --workload-kind=JobSet -v").
		Flag("workload-kind", "Kind of the workload, if several have the name, for example JobSet.").StringVar(&flags.kind)
}

func addExplained(c *commands, parent *kingpin.CmdClause, kind clusterread.Kind, help string, flags *explainFlags, stdout, stderr io.Writer) *kingpin.CmdClause {
	command := parent.Command(string(kind), help)
	command.Arg("NAME", "NAMESPACE/NAME, or NAME in the namespace of the context.").Required().StringVar(&flags.name)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runExplain(ctx, kind, flags, stdout, stderr) }
	return command
}

// runExplain fails if the object does not exist, or if that is unknown.
func runExplain(ctx context.Context, kind clusterread.Kind, flags *explainFlags, stdout, stderr io.Writer) error {
	if flags.timeout <= 0 {
		return usagef("--timeout=%s is too short to read a cluster", flags.timeout)
	}
	// A wrong name is reported before a missing kubeconfig.
	if _, err := clusterread.ParseSubject(kind, flags.name, cmp.Or(flags.namespace, "default"), flags.namespace != ""); err != nil {
		return usageError{err}
	}
	config, namespace, err := flags.connection()
	if err != nil {
		return err
	}
	subject, err := clusterread.ParseSubject(kind, flags.name, namespace, flags.namespace != "")
	if err != nil {
		return err
	}
	subject.WorkloadKind = flags.kind
	reader := clusterread.Reader{Config: config, Clock: clock.System(), Log: discardLogs(), Stderr: stderr, Timeout: flags.timeout, Server: serverVersion(ctx, config)}
	facts, err := reader.Facts(ctx, subject)
	if err != nil {
		return err
	}
	report, err := explain.Explain(*facts, subject)
	if err != nil {
		return err
	}
	render := report.Brief
	if flags.verbose {
		render = report.Text
	}
	return flags.output.write(stdout, "report", report, func() string { return render(terminal.Styled(stdout)) })
}

// serverVersion returns the version of the API server; empty: it is unknown.
func serverVersion(ctx context.Context, config *rest.Config) string {
	probe, err := check.NewProbe(config)
	if err != nil {
		return ""
	}
	defer probe.Close()
	return probe.Version(ctx)
}
