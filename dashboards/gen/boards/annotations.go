package boards

import "github.com/grafana/grafana-foundation-sdk/go/common"

// marks select what is marked on a board's graphs: the devices whose Xids, and the
// exporters whose starts and versions. What is not selected is of all clusters chosen.
type marks struct{ devices, exporters string }

// annotations are the marks as Grafana imports them. The SDK's type lacks the fields
// of Prometheus' annotations.
type annotations struct {
	List []annotation `json:"list"`
}

type annotation struct {
	Name       string               `json:"name"`
	Datasource common.DataSourceRef `json:"datasource"`
	Enable     bool                 `json:"enable"`
	IconColor  string               `json:"iconColor"`
	Expr       string               `json:"expr"`
	Step       string               `json:"step"` // the least
	Title      string               `json:"titleFormat"`
	Text       string               `json:"textFormat"`
	// ValueIsTime: the series' value is when it happened, in milliseconds.
	ValueIsTime bool `json:"useValueForTime"`
}

// newXids are the codes of nodes that had none of them in the five minutes before: one
// mark for an episode, not one for each step of it.
func newXids(devices string) string {
	const rule = `device:dra_device_xid_errors:increase5m{`
	return `sum by (cluster, node, xid) (last_over_time(` + rule + devices + `}[$__rate_interval])) > 0
unless on (cluster, node, xid) sum by (cluster, node, xid) (last_over_time(` + rule + devices + `}[$__rate_interval] offset 5m)) > 0`
}

// annotations are the same on each board. Windows are not shorter than a step, so
// that nothing between two steps is missed.
func (m marks) annotations() []annotation {
	devices, exporters := m.devices, m.exporters
	if devices == "" {
		devices = "@fleet"
	}
	if exporters == "" {
		exporters = "@fleet"
	}
	const version = `group by (cluster, version) (last_over_time(dra_exporter_build_info`
	all := []annotation{
		{Name: "Restarts", IconColor: neutral, ValueIsTime: true,
			Title: "Exporter started", Text: "{{instance}} {{cluster}}",
			Expr: `1000 * max by (cluster, instance) (last_over_time(job_instance:dra_exporter_started:last5m{` + exporters + `}[$__rate_interval]))`},
		// A version that appears where exporters ran before.
		{Name: "Rollouts", IconColor: "purple",
			Title: "Rollout of {{version}}", Text: "exporters {{cluster}}",
			Expr: version + `{` + exporters + `}[$__rate_interval]))
unless on (cluster, version) ` + version + `{` + exporters + `}[$__rate_interval] offset $__rate_interval))
and on (cluster) group by (cluster) (last_over_time(dra_exporter_build_info{` + exporters + `}[$__rate_interval] offset $__rate_interval))`},
		{Name: "Xids", IconColor: critical,
			Title: "Xid {{xid}}", Text: "{{node}} {{cluster}}",
			Expr: newXids(devices)},
	}
	for i := range all {
		all[i].Datasource, all[i].Enable, all[i].Step = source(), true, minStep
		all[i].Expr = promql(all[i].Expr)
	}
	return all
}
