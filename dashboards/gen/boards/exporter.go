package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	// noAgent and noExporter are why panels of the exporters are empty.
	noAgent    = "no selected agent"
	noExporter = "no selected exporter"
	// process are the labels of one exporter.
	process = "cluster, job, instance"
)

// exporter is what the exporters say of themselves: who runs, what it cannot
// read, and what it costs. Rows of an exporter about itself have no node: node is
// the target's instance, which the shipped monitors make the node's name, and
// "cluster" for the cluster role.
func exporter() Board {
	return Board{
		UID:         uidExporter,
		Title:       "DRA / Exporter",
		description: "Which exporters run, which sources they cannot read and why, what they could not match or export, and their resource use. Node is the target's instance: the node's name, or cluster for the cluster role.",
		variables:   exporterVariables(),
		marks:       marks{devices: "@nodes", exporters: "@exporters"},
		rows: []row{
			{panels: slices.Concat(exporterNumbers(), amissPanels())},
			{title: "Sources", panels: sourcePanels()},
			{title: "Missing data and failed pushes", panels: append(missingPanels(), pushes())},
			{title: "Resource use and versions", panels: costPanels()},
			{title: "Reads", folded: true, panels: readDetails()},
			{title: "Corrections and diagnoses", folded: true, panels: slices.Concat(correctedDetails(), diagnosisPanels())},
			{title: "Access and pushes", folded: true, panels: slices.Concat(gpuPanels(), pushDetails(), accessPanels())},
			{title: "Duration and size of pages", folded: true, panels: costDetails()},
		},
	}
}

// exporterVariables are the choices of the board.
func exporterVariables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dataSource(), cluster(),
		job(),
		several("node", "Node", `label_values(dra_exporter_build_info{@fleet, job=~"$job"}, instance)`),
	}
}

// job has the jobs under which exporters are scraped: dra-exporter with the
// shipped monitors. All would not do: it would take the processes of all jobs.
func job() cog.Builder[dashboard.VariableModel] {
	return one("job", "Job", `label_values(dra_exporter_build_info{@fleet}, job)`).Multi(true)
}

func exporterNumbers() []panel {
	return []panel{
		number(4, about{
			title: "Running exporters", unit: units.Short,
			reads: "node: one on each node with devices. cluster: one is enough.",
			empty: noExporter,
		},
			at(`count(group by (`+process+`) (dra_exporter_hardware_resets_total{@exporters}))`).LegendFormat("node"),
			at(`count(group by (`+process+`) (dra_exporter_clock_anomalies_total{@exporters}))`).LegendFormat("cluster")).
			ColorScheme(always(neutral)),
		number(4, about{
			title: "Exporters down", unit: units.Short,
			reads: "Targets whose last scrape failed, listed below (alert DRAExporterDown).",
			empty: "no target of this job",
		}, at(`sum(up{@exporters} == bool 0)`)).Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Nodes without agent", unit: units.Short,
			reads: "The use of their published devices is unknown. Not filtered by job.",
			empty: "no recording rules, or " + noSlices,
		}, at(`sum(node:dra_exporter_missing:bool{@nodes}) or 0 * group(source:dra_exporter_source_up:count{@fleet}) * group(
  dra_exporter_source_up{@fleet, source="resourceslices"} == 1 and on (cluster, job, instance) dra_exporter_clock_anomalies_total{@fleet}
)`)).
			Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Sources that are down", unit: units.Short,
			reads: "Their values are absent, never 0. Reasons are below.",
			empty: noExporter,
		}, at(`sum(max by (`+process+`, source) (dra_exporter_source_up{@exporters}) == bool 0)`)).
			Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Oldest sample", unit: units.Seconds,
			reads: "Of the worst agent. Some seconds are normal; the alert DRAExporterStale fires after two minutes.",
			empty: noAgent,
		}, at(`max(time() - dra_exporter_sample_timestamp_seconds{@exporters})`)).
			Thresholds(steps(good, step{60, warning}, step{120, critical})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Unmatched devices", unit: units.Short,
			reads: "Allocated without known hardware, or hardware that its driver does not publish: claims lack values. A few are normal while a driver starts.",
			empty: noAgent,
		}, at(`sum(max by (`+process+`, driver, side) (dra_exporter_unmatched_devices{@exporters}))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
	}
}

func amissPanels() []panel {
	const source = "cluster, instance, source"
	why := `max by (` + source + `, reason) (dra_exporter_source_error_info{@exporters})`
	upOf := `max by (` + source + `) (dra_exporter_source_up{@exporters})`
	return []panel{
		listing(24, 8, about{
			title: "Sources that are down or impaired", unit: units.Short,
			reads: "down: no values; impaired: a part of them. The exporter's page has details. The alert DRAExporterSourceDown fires after 10 minutes.",
			empty: "all sources are up, or " + noExporter, none: noneSeen,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "instance", title: "Node", links: []link{instanceNode()}},
			{label: "source", title: "Source"},
			{label: "reason", title: "Reason"},
		},
			column{title: "State", more: append(tinted(steps(warning, step{1, critical})), property("mappings", words(named{"1", "down", critical}, named{"0", "impaired", warning}))),
				expr: why + ` * on (` + source + `) group_left () (` + upOf + ` == bool 0)`},
			column{title: "Last successful read", unit: units.DateTimeFromNow,
				expr: why + ` * on (` + source + `) group_left () (1000 * max by (` + source + `) (dra_exporter_source_last_success_timestamp_seconds{@exporters}))`},
		),
		listing(12, 6, about{
			title: "Exporters that do not answer", unit: units.Short,
			reads: "The process does not run, or its page took longer than the scrape's timeout.",
			none:  noneSeen,
			empty: "all answer, or no target of this job and node",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "job", title: "Job"},
			{label: "instance", title: "Node", links: []link{instanceNode()}},
		}, column{title: "State", more: append(tinted(steps(critical)), property("mappings", words(named{"0", "down", critical}))), expr: `max by (` + process + `) (up{@exporters}) == 0`}),
		listing(12, 6, about{
			title: "Nodes with devices and without an agent", unit: units.Short,
			reads: "Check that the DaemonSet tolerates the node's taints, and that the agent starts. Not filtered by job.",
			none:  noneSeen,
			empty: "none, no recording rules, or " + noClusterRole,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "node", title: "Node", links: []link{toNode()}}},
			column{title: "State", more: append(tinted(steps(critical)), property("mappings", words(named{"1", "no agent", critical}))), expr: `max by (cluster, node) (node:dra_exporter_missing:bool{@nodes}) == 1`}),
	}
}

// instanceNode leads to the node that an instance is named after.
func instanceNode() link {
	return link{title: "Node", uid: uidNode, fields: map[string]string{"node": "instance"}}
}
