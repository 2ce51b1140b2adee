// Package boards has the dashboards, one file each, and what they share: how a
// query, a variable, a link, a table is made, and which colour means what.
//
// A dashboard is a list of rows, a row a list of panels. A panel is made by the
// function of its kind (number, timeline, listing …) from what it is about and
// its queries, and may then be refined by Grafana's own builders:
//
//	timeline(12, about{
//		title: "Utilization by namespace", unit: units.PercentUnit,
//		reads: "Mean over devices that claims hold and do not share.",
//		empty: "no claim holds a device, or no recording rules.",
//	}, over(`sum by (namespace) (namespace_class:dra_claim_utilization_ratio:sum{@claims}) / …`, "{{namespace}}"))
package boards
