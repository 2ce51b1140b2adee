package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// toHealth leads to the health of the claim's node.
func toHealth() cog.Builder[dashboard.DashboardLink] {
	return dashboard.NewDashboardLinkBuilder("Device health of the node").
		Url(link{uid: uidHealth}.url(nil) + "&${node:queryparam}")
}

// concerning names the devices that concern the claim, of an expression by device.
func concerning(expr string) string {
	return withDevice("@node", expr+"\nand on (cluster, node, uuid) "+concerns)
}

// worded is a state timeline of numbers that stand for words.
func worded(panel *statetimeline.PanelBuilder, all ...named) *statetimeline.PanelBuilder {
	return panel.Mappings(words(all...)).
		ColorScheme(byThresholds()).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{}))
}

func claimHealth() []panel {
	const partitions = " Partitions also show their whole device."
	return []panel{
		worded(states(12, about{
			title: "Health of each device", unit: units.Short,
			reads: "By hardware, driver (taints) and kubelet. If they differ for minutes, one is delayed or wrong." + partitions,
			empty: "not reported, or " + needsClaim,
		}, over(concerning(`min by (cluster, node, uuid, by) (dra_device_healthy{@node})`), "{{device}}: {{by}}")),
			named{"0", "unhealthy", critical}, named{"1", "healthy", good}).
			Links([]cog.Builder[dashboard.DashboardLink]{toHealth()}),
		worded(states(12, about{
			title: "Health signals and taints of its devices", unit: units.Short,
			reads: "While present; see docs/health.md." + partitions,
			none:  noneSeen,
			empty: "there is none, or " + needsClaim,
		},
			over(concerning(`max by (cluster, node, uuid, signal) (
  dra_device_health_signal_info{@node, severity="critical"} * 2
  or dra_device_health_signal_info{@node}
)`), "{{device}}: {{signal}}"),
			over(concerning(`max by (cluster, node, uuid, key, value, effect) (dra_device_taint_info{@node}) * 3`), "{{device}}: {{key}}={{value}}:{{effect}}")),
			named{"1", "warning", warning}, named{"2", "critical", critical}, named{"3", "tainted", warning}),
		listing(24, 4, about{
			title: "Xids of its devices", unit: units.Short,
			reads: "Also from before the claim held the devices: compare the time." + partitions,
			none:  noneSeen,
			empty: "none since the agent's start, no NVIDIA source, or " + needsClaim,
		}, deviceKeys(key{label: "xid", title: "Xid"}),
			column{title: "Last seen", unit: units.DateTimeFromNow, expr: concerning(`max by (cluster, node, uuid, xid) (dra_device_xid_last_timestamp_seconds{@node}) * 1000`)},
			column{title: "At", unit: units.DatetimeISO, expr: concerning(`max by (cluster, node, uuid, xid) (dra_device_xid_last_timestamp_seconds{@node}) * 1000`)},
			column{title: "In the range", more: whole(), expr: concerning(`(sum by (cluster, node, uuid, xid) (sum_over_time(device:dra_device_xid_errors:increase5m{@node}[$__range]))
and on (cluster, node, uuid, xid) dra_device_xid_last_timestamp_seconds{@node}
or 0 * max by (cluster, node, uuid, xid) (dra_device_xid_last_timestamp_seconds{@node}))`)},
		).OverrideByName("Xid", append(asText(), property("mappings", xidMappings()))),
	}
}
