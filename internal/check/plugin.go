package check

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device/plugin"
)

// Plugin reports how a driver's device metrics comply with their specification.
// path is that of the socket.
func Plugin(path string, x plugin.Examination) []Finding {
	in := area{"device metrics of " + x.Driver, "docs/plugins.md"}
	const specification = "plugin/devicemetrics/v1alpha1/devicemetrics.proto"
	if x.Failed != nil {
		return []Finding{in.failure("Start the server, and name its socket: unix:///FOLDER/<driver>.sock. The account that runs the check must be able to connect to it.", path, "%v", x.Failed)}
	}
	var findings []Finding
	for _, v := range x.Violations {
		findings = append(findings, about(specification, in.failure("The specification: “"+v.Rule+"”", path, "%s", v.Text)))
	}
	if len(x.Violations) == 0 {
		findings = append(findings,
			in.ok("description", "%s", counted(x.Devices, "device", "devices")),
			in.ok("reports", "%s on two streams, at most %s apart", counted(x.Reports, "report", "reports"), x.Longest.Round(time.Millisecond)),
			in.ok("readings", "%s in the newest report", counted(x.Readings, "reading", "readings")))
	}
	for _, note := range x.Notes {
		findings = append(findings, in.warning("Look at what the server sends.", "note", "%s", note))
	}
	if len(x.Violations) == 0 && x.Devices > 0 && x.Readings == 0 {
		findings = append(findings, in.warning("Report at least one quantity.", "readings", "no device has a reading"))
	}
	return findings
}
