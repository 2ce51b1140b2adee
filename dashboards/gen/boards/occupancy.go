package boards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// What a device's band says while no claim, or more than one, holds it.
const (
	stateFree   = "free"
	statePlugin = "device plugin"
)

// held is each claim that holds a device of the node.
const held = `max by (cluster, node, uuid, namespace, resourceclaim) (dra_claim_held{@node} == 1)`

// occupancyQuery has at each moment exactly one series for each band: the labels
// device and uuid identify a band, the label state is what is written in it. A
// band is a device, or a device and a namespace while several claims hold that
// device.
//
// Devices that are cut into partitions have no band of their own, unless a claim
// holds them as a whole.
func occupancyQuery() string {
	const (
		device = `cluster, node, uuid`
		space  = `cluster, node, uuid, namespace`
	)
	parents := `label_replace(max by (cluster, node, parent_uuid) (dra_device_info{@node, parent_uuid!=""}), "uuid", "$1", "parent_uuid", "(.+)")`
	unclaimed := func(expr string) string { return expr + ` unless on (` + device + `) ` + held }
	devices := withDevice("@node",
		onlyOne(device, `"/", "namespace", "resourceclaim"`)+"\nor "+
			many(device)+"\nor "+
			label("state", `"`+statePlugin+`"`, `"uuid", ".*"`, unclaimed(`max by (`+device+`) (dra_device_holders{@node, kind!="claim"}) > 0`))+"\nor "+
			label("state", `"`+stateFree+`"`, `"uuid", ".*"`, unclaimed(`sum by (`+device+`) (dra_device_holders{@node}) == 0`)+` unless on (`+device+`) `+parents))
	namespaces := withDevice("@node", `(
`+onlyOne(space, `"", "resourceclaim"`)+`
or `+many(space)+`
) and on (`+device+`) count by (`+device+`) (`+held+`) > 1`)
	return fmt.Sprintf(`max by (cluster, uuid, device, state) (
%s
or
label_join(%s, "device", " › ", "device", "namespace")
)`, devices, namespaces)
}

// onlyOne writes the claim into the state where one claim alone holds what the
// labels identify.
func onlyOne(by, name string) string {
	return `label_join(` + held + ` and on (` + by + `) count by (` + by + `) (` + held + `) == 1, "state", ` + name + `)`
}

// many writes the number of claims into the state where there are several.
func many(by string) string {
	return label("state", `"$1 claims"`, `"state", "(.+)"`, `count_values by (`+by+`) ("state", count by (`+by+`) (`+held+`) > 1)`)
}

func label(name, value, from, expr string) string {
	return `label_replace(` + expr + `, "` + name + `", ` + value + `, ` + from + `)`
}

// occupancy makes a band of each series' device. The answer is one table of
// moments, bands and states; without its column of values it is cut by band, so
// that each piece has the time and one column of words, which is what Grafana
// draws as a band.
func occupancy() panel {
	return states(24, about{
		title: "Claims by device over time", unit: units.Short,
		reads: "Several claims show their number, and a band for each namespace. Grey is free, a gap has no data; colours only distinguish neighbours. Admin access does not count.",
		empty: needsNode,
	}, over(occupancyQuery(), "{{device}}").Format(prometheus.PromQueryFormatTable)).
		Height(14).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Value": true}, "indexByName": map[string]int{}, "renameByName": map[string]string{},
		}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "partitionByValues", Options: map[string]any{
			"fields": []string{"cluster", "device", "uuid"}, "keepFields": false, "naming": map[string]any{"asLabels": true},
		}}).
		OverrideByFieldType("string", []dashboard.DynamicConfigValue{property("displayName", "${__field.labels.device}")}).
		ColorScheme(always(neutral)).
		Mappings(claimColours()).
		Legend(common.NewVizLegendOptionsBuilder().
			DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).
			ShowLegend(false))
}

// claimColours give a claim one of a few colours by the last letter of its name,
// which is random in the names that Kubernetes makes. None of them is one that
// means something elsewhere.
func claimColours() []dashboard.ValueMapping {
	all := words(named{stateFree, stateFree, "rgba(128, 128, 128, 0.2)"}, named{statePlugin, statePlugin, "semi-dark-yellow"})
	for _, c := range []struct{ last, colour string }{
		{`\d claims`, "dark-purple"},
		{`[aeiou0-5]`, "semi-dark-blue"},
		{`[bcdfg]`, "light-blue"},
		{`[hjklm]`, "dark-blue"},
		{`[npqrs]`, "semi-dark-purple"},
		{`[tvwxyz]`, "light-purple"},
		{`[6-9]`, "super-light-blue"},
	} {
		all = append(all, dashboard.ValueMapping{RegexMap: &dashboard.RegexMap{
			Type: dashboard.MappingTypeRegexToText,
			Options: dashboard.DashboardRegexMapOptions{
				Pattern: "/" + c.last + "$/",
				Result:  dashboard.ValueMappingResult{Color: cog.ToPtr(c.colour)},
			},
		}})
	}
	return all
}

// holdersNow is what each claim does with its device now.
func holdersNow() *table.PanelBuilder {
	of := func(metric string) string {
		return onNode(`max by (cluster, node, uuid, namespace, resourceclaim) (`+metric+`)`, "namespace", "resourceclaim")
	}
	keys := append(claimKeys(), nodeDeviceKeys()...)
	return listing(24, 10, about{
		title: "Claims on devices now", unit: units.Short,
		reads: "Not split: shared by claims; values are of the whole device.",
		none:  noneSeen,
		empty: "no claim holds a device, or " + needsNode,
	}, keys,
		column{title: "Claims on it", expr: of(`dra_claim_held{@node}
* on (cluster, node, uuid) group_left () (` + holders("@node") + `)`)},
		column{title: "Utilization", unit: units.PercentUnit, expr: of(`dra_claim_utilization_ratio{@node}`), more: gauge(steps(neutral))},
		column{title: "Memory used", unit: units.BytesIEC, expr: of(`dra_claim_memory_used_bytes{@node}`)},
		column{title: "Memory given", unit: units.BytesIEC, expr: of(`dra_claim_memory_allocated_bytes{@node}`)},
		column{title: "Split", expr: of(`dra_claim_utilization_ratio{@node, attribution="shared"} * 0`), more: append(tinted(steps(unknown)),
			property("mappings", words(named{"0", "not split", unknown})))},
	).SortBy(byColumn("Device", false))
}

func pluginPods() panel {
	return listing(24, 4, about{
		title: "Pods with device plugins", unit: units.Short,
		reads: "Not visible in ResourceSlices. An empty utilization cannot be split.",
		none:  noneSeen,
		empty: "no pod uses a device plugin, or " + needsNode,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "namespace", title: "Namespace"},
		{label: "pod", title: "Pod"},
		{label: "resource", title: "Resource"},
		{label: "device", title: "Device"},
		{label: "uuid", title: "UUID", hidden: true},
	},
		column{title: "Containers", expr: onNode(`count by (cluster, node, uuid, namespace, pod, resource) (
  max by (cluster, node, uuid, namespace, pod, container, resource) (dra_device_plugin_consumer_info{@node})
)`, "namespace", "pod", "resource")},
		column{title: "Utilization", unit: units.PercentUnit, expr: onNode(`max by (cluster, node, uuid, namespace, pod, resource) (dra_device_plugin_consumer_info{@node})
* on (cluster, node, uuid, namespace, pod) group_left ()
max by (cluster, node, uuid, namespace, pod) (pod_device:dra_pod_utilization_ratio:attributed{@node})`, "namespace", "pod", "resource"), more: gauge(steps(neutral))},
	)
}
