package boards

import (
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// needsNodes is why panels of devices are empty, where nothing else is.
const needsNodes = "no selected agent"

// withDevice gives each series of a device its name, as the label device: under which
// its driver publishes it, else the beginning of its UUID. The expression has one series
// at most for each cluster, node, uuid and whatever labels it has besides. A
// device that is published twice has one of its names.
func withDevice(selection, expr string) string {
	return `(` + expr + `)
* on (cluster, node, uuid) group_left (device)
(
  topk by (cluster, node, uuid) (1, max by (cluster, node, uuid, device) (dra_device_published_info{` + selection + `}))
  or on (cluster, node, uuid)
  ` + shortUUID(`max by (cluster, node, uuid) (dra_device_info{`+selection+`})`) + `
)`
}

// shortUUID gives each series the beginning of its UUID as the label device.
func shortUUID(expr string) string {
	return `label_replace(` + expr + `, "device", "$1$2", "uuid",
    "(?:.*/)?(?:((?:GPU-|MIG-)?[0-9a-f]{8})-[0-9a-f-]{27}|(.+))")`
}

// deviceKeys are the columns that say which device a row is about.
func deviceKeys(more ...key) []key {
	return append([]key{
		{label: "cluster", title: "Cluster"},
		{label: "node", title: "Node", links: []link{toNode()}},
		{label: "device", title: "Device"},
		{label: "uuid", title: "UUID", hidden: true},
	}, more...)
}

// claimKeys are the columns that say which claim a row is about.
func claimKeys() []key {
	return []key{
		{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
		{label: "resourceclaim", title: "Claim", links: []link{toClaim()}},
	}
}

// holders is how many claims hold each device or a partition of it.
func holders(selection string) string {
	own := `max by (cluster, node, uuid, parent_uuid) (dra_device_holders{` + selection + `, kind="claim"})`
	parts := `max by (cluster, node, uuid, parent_uuid) (dra_device_holders{` + selection + `, kind="claim", parent_uuid!=""})`
	return `sum by (cluster, node, uuid) (
  sum by (cluster, node, uuid) (` + own + `)
  or label_replace(sum by (cluster, node, parent_uuid) (` + parts + `), "uuid", "$1", "parent_uuid", "(.+)")
)`
}

// healthBy is the health of each device as one reporter gives it. Where two agents
// differ during a rollout, the worse value counts.
func healthBy(selection, by string) string {
	return `min by (cluster, node, uuid) (dra_device_healthy{` + selection + `, by="` + by + `"})`
}

// healthWords shows 0 and 1 as words.
func healthWords() []dashboard.DynamicConfigValue {
	return append(tinted(steps(critical, step{1, good})),
		property("mappings", words(named{"0", "unhealthy", critical}, named{"1", "healthy", good})))
}

// unhealthyBy is of each device the sum of the sources that report it as unhealthy:
// 1 for hardware, 2 for driver, 4 for kubelet; 0 where all that report it agree that
// it is healthy.
func unhealthyBy(source func(by string) string) string {
	return `sum by (cluster, node, uuid) (
  label_replace(1 - ` + source("hardware") + `, "by", "hardware", "uuid", ".*")
  or label_replace(2 - 2 * ` + source("driver") + `, "by", "driver", "uuid", ".*")
  or label_replace(4 - 4 * ` + source("kubelet") + `, "by", "kubelet", "uuid", ".*")
)`
}

// unhealthyWords shows such sums as words.
func unhealthyWords() []dashboard.DynamicConfigValue {
	all := []named{{"0", "healthy", good}}
	sources := []string{"hardware", "driver", "kubelet"}
	for sum := 1; sum < 1<<len(sources); sum++ {
		var reporters []string
		for i, source := range sources {
			if sum&(1<<i) != 0 {
				reporters = append(reporters, source)
			}
		}
		all = append(all, named{strconv.Itoa(sum), "unhealthy: " + strings.Join(reporters, ", "), critical})
	}
	return append(tinted(steps(good, step{1, critical})), property("mappings", words(all...)))
}

// asText writes a column's values in the colours of its mappings.
func asText() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("custom.cellOptions", map[string]any{"type": "color-text"})}
}

// each is a question of now that has several answers, which a panel of numbers
// shows side by side.
func each(expr, legend string) query {
	return at(expr).Format(prometheus.PromQueryFormatTimeSeries).LegendFormat(legend)
}
