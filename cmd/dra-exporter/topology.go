package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/top"
	"github.com/dra-exporter/dra-exporter/internal/topology"
)

// topologyFlags select the agents, and whose devices to show.
type topologyFlags struct {
	exporterFlags
	output outputFlag
	name   string // of a node; NAMESPACE/NAME, or NAME, of others
	kind   string // of a job's workload; empty: any
}

// addTopology adds the subcommand that shows how near devices are to each other.
func addTopology(c *commands, stdout, stderr io.Writer) {
	command := c.app.Command("topology", "Show how near devices are to each other: NVLink, PCIe and NUMA.").HelpLong(`  dra-exporter topology node node-a                    # all devices of a node, with their claims
  dra-exporter topology pod team-a/train-0             # those of a pod
  dra-exporter topology workload team-a/train          # those of a workload, on all of its nodes
  dra-exporter topology node --url localhost:9420      # one agent`)
	flags := &topologyFlags{}
	flags.addTo(command)
	flags.output.addTo(command)
	node := addTopologyCommand(c, command, clusterread.KindNode, "Show the devices of a node, or of all nodes.", flags, stdout, stderr).
		Alias("nodes").HelpLong("  dra-exporter topology node node-a\n  dra-exporter topology node --url localhost:9420")
	node.Arg("NAME", "Name of the node. Default: all nodes.").StringVar(&flags.name)
	pod := addTopologyCommand(c, command, clusterread.KindPod, "Show the devices of a pod's claims.", flags, stdout, stderr).
		Alias("pods").Alias("po").HelpLong("  dra-exporter topology pod team-a/train-0\n  dra-exporter topology pod train-0 -n team-a")
	workload := addTopologyCommand(c, command, clusterread.KindWorkload, "Show the devices of a workload: a Job, a JobSet, a Deployment or any other.", flags, stdout, stderr).
		Alias("workloads").HelpLong("  dra-exporter topology workload team-a/train\n  dra-exporter topology workload train -n team-a --workload-kind=JobSet")
	workload.Flag("workload-kind", "Kind of the workload, if several have the name, for example JobSet.").StringVar(&flags.kind)
	for _, command := range []*kingpin.CmdClause{pod, workload} {
		command.Flag("namespace", "Namespace of a NAME without one. Default: the namespace of the context.").Short('n').StringVar(&flags.namespace)
		command.Arg("NAME", "NAMESPACE/NAME, or NAME in the namespace of the context.").Required().StringVar(&flags.name)
	}
}

func addTopologyCommand(c *commands, parent *kingpin.CmdClause, kind clusterread.Kind, help string, flags *topologyFlags, stdout, stderr io.Writer) *kingpin.CmdClause {
	command := parent.Command(string(kind), help)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runTopology(ctx, kind, flags, stdout, stderr) }
	return command
}

// subject returns whose devices to show.
func (f *topologyFlags) subject(kind clusterread.Kind) (clusterread.Subject, error) {
	if kind == clusterread.KindNode {
		return clusterread.Subject{Kind: kind, Name: f.name}, nil
	}
	parse := func(namespace string) (clusterread.Subject, error) {
		subject, err := clusterread.ParseSubject(kind, f.name, namespace, f.namespace != "")
		subject.WorkloadKind = f.kind
		return subject, err
	}
	// A wrong name is reported before a missing kubeconfig.
	if subject, err := parse(cmp.Or(f.namespace, "default")); err != nil || len(f.urls) > 0 {
		if err != nil {
			return subject, usageError{err}
		}
		return subject, nil
	}
	_, namespace, err := f.connection()
	if err != nil {
		return clusterread.Subject{}, fmt.Errorf("%w; or set --url to read agents directly", err)
	}
	return parse(namespace)
}

// runTopology fails if no device of the subject is known.
func runTopology(ctx context.Context, kind clusterread.Kind, flags *topologyFlags, stdout, stderr io.Writer) error {
	if err := flags.check(); err != nil {
		return err
	}
	subject, err := flags.subject(kind)
	if err != nil {
		return err
	}
	client := &top.Client{Clock: clock.System(), Timeout: flags.timeout, Parallel: parallel, Devices: true}
	var wanted top.Wanted
	if kind == clusterread.KindNode && subject.Name != "" {
		wanted.Nodes = []string{subject.Name}
	}
	list, err := flags.connect(client, wanted)
	if err != nil {
		return err
	}
	listing, err := listAgents(ctx, list, len(flags.urls) > 0, stderr)
	if err != nil {
		return err
	}
	listing.Cluster = nil // only node agents know where devices are
	fleet, err := readAgents(ctx, client, listing, stderr)
	if err != nil {
		return err
	}
	reading := fleet.Reading(client.Clock().Wall, wanted)
	if reading.Answered == 0 {
		return withAdvice(fleet.Failure(), len(flags.urls) > 0)
	}
	document, err := topology.Of(reading, subject)
	if err != nil {
		return err
	}
	return flags.output.write(stdout, "topology", document, document.Text)
}
