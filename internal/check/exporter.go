package check

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device/exporter"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Exporter reports how the page of a driver complies with its specification. url is that
// of the page.
func Exporter(url string, x exporter.Examination) []Finding {
	const specification = "docs/plugins.md"
	section := area{"metrics of " + x.Driver, specification}
	if x.Failed != nil {
		return []Finding{section.failure("Start the server, and name its page: unix:///FOLDER/<driver>.sock. The account that runs the check must be able to connect to it.", url, "%v", x.Failed)}
	}
	var findings []Finding
	for _, violation := range x.Violations {
		findings = append(findings, section.failure("The specification: “"+violation.Rule+"”", url, "%s", violation.Text))
	}
	if len(x.Violations) == 0 {
		findings = append(findings,
			section.ok("page", "read %s, in at most %s", words.Count(x.Reads, "time", "times"), x.Slowest.Round(time.Millisecond)),
			section.ok("devices", "%s", words.Count(x.Devices, "device", "devices")),
			section.ok("values", "%s", words.Count(x.Readings, "value", "values")))
	}
	for _, note := range x.Notes {
		findings = append(findings, section.warning("Look at what the server sends.", "note", "%s", note))
	}
	if len(x.Violations) == 0 && x.Readings == 0 {
		findings = append(findings, section.warning("Report at least one quantity.", "values", "no device has a value"))
	}
	return findings
}
