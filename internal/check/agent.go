package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/devicerelease"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Agent is the answers of one running exporter.
type Agent struct {
	URL     string // without credentials
	Asked   string // the same, with what is secret in it
	Address string // address of the URL's name, if it has several
	Ready   error  // nil: /-/ready reports that it is ready
	Page    Page
	Error   error     // of the page: it is not there, or is no exporter's
	At      time.Time // when the page was requested
}

const (
	// staleSample is how old the newest readings of a page may be: they are read
	// each second, and hidden after ten.
	staleSample = time.Minute
	agentPage   = "docs/check.md#running-exporters"
)

// name distinguishes the agent from others.
func (a Agent) name() string {
	role := "exporter"
	if a.Error == nil && !a.Page.Node {
		role = "cluster role"
	}
	return cmp.Or(a.Page.NodeName, a.Address, role)
}

// Agents reports on running exporters, those of one URL under one heading: how they
// are, and whether all are of one version.
func Agents(agents []Agent) []Finding {
	var findings []Finding
	versions := map[string]int{}
	for _, agent := range agents {
		findings = append(findings, agent.findings()...)
		if agent.Error == nil {
			versions[agent.Page.Version]++
		}
	}
	if len(versions) > 1 {
		counts := words.Names(slices.Sorted(maps.Keys(versions)), func(version string) string { return fmt.Sprintf("%s (%d)", version, versions[version]) })
		findings = append(findings, area{"versions", agentPage}.warning(
			"Wait for the rollout to end: `kubectl rollout status` of the DaemonSet and of the Deployment.",
			"versions", "several versions run at once: %s", strings.Join(counts, ", ")))
	}
	return findings
}

func (a Agent) findings() []Finding {
	section := area{a.URL, agentPage}
	if a.Error != nil {
		return []Finding{section.failure(
			"Use the exporter's port (9420 of the node role, 9421 of the cluster role), and check that its pod runs and a NetworkPolicy admits you. For TLS or a password, set --http.config.file.",
			a.name(), "cannot be read: %v", a.Error)}
	}
	findings := []Finding{section.ok(a.name(), "%s", a.summary())}
	if a.Ready != nil {
		findings[0] = section.failure("Wait until each source has been read once; then check the exporter's log.", a.name(), "is not ready: %v", a.Ready)
	}
	for _, source := range a.Page.Sources {
		findings = append(findings, a.source(section, source)...)
	}
	findings = append(findings, a.sample(section)...)
	findings = append(findings, a.unmatched(section)...)
	return append(findings, a.losses(section)...)
}

func (a Agent) summary() string {
	up := 0
	for _, source := range a.Page.Sources {
		if source.Up {
			up++
		}
	}
	text := fmt.Sprintf("version %s, %d of %s up", a.Page.Version, up, words.Count(len(a.Page.Sources), "source", "sources"))
	if a.Page.Node {
		text += fmt.Sprintf(", %s, %d held by claims", words.Count(a.Page.Devices, "device", "devices"), a.Page.Held)
	}
	return text
}

func (a Agent) source(section area, source PageSource) []Finding {
	why := strings.Join(source.Reasons, ", ")
	subject := a.name() + ": " + source.Name
	remedy := "The exporter's page and its log have the error; run `/dra-exporter check` in its pod with `kubectl exec`."
	_, readsDevices := vendors.SourceByName(source.Name)
	switch {
	case !source.Up && a.Page.Node && a.Page.Devices == 0 && readsDevices: // not every node has such hardware
		return []Finding{section.warning("On a node without such hardware, ignore this; otherwise see docs/access.md.",
			subject, "the source is down (%s), and no device is known on this node", cmp.Or(why, "no reason given"))}
	case !source.Up:
		return []Finding{byRunbook("DRAExporterSourceDown", section.failure(remedy, subject, "the source is down (%s)", cmp.Or(why, "no reason given")))}
	case why != "":
		return []Finding{section.warning(remedy, subject, "the source is up, but incomplete (%s)", why)}
	default:
		return nil
	}
}

func (a Agent) sample(section area) []Finding {
	if a.Page.SampledAt.IsZero() {
		return nil
	}
	age := a.At.Sub(a.Page.SampledAt).Round(time.Second)
	switch {
	case a.Page.Released != "":
		return released(section, a.name(), a.Page.Released)
	case age > staleSample:
		return []Finding{byRunbook("DRAExporterStale", section.failure("A read hangs, or the device sources are down: check the lines about sources, and the log.", a.name(), "the newest readings are %s old", age))}
	case age < -staleSample:
		return []Finding{section.warning("Synchronize the clocks (NTP): otherwise rates and ages are wrong.", a.name(), "the newest readings are from %s in the future: the node's clock and this clock differ", -age)}
	default:
		return nil
	}
}

// released is the finding that the GPUs of a node are released. While nothing holds one,
// that is as configured.
func released(section area, name, reason string) []Finding {
	if reason == string(devicerelease.ReasonIdle) {
		return nil
	}
	return []Finding{section.warning("When the work on the node has ended, remove the reason: docs/release.md.", name, "the GPUs of the node are released (%s), and the agent does not read them", reason)}
}

func (a Agent) unmatched(section area) []Finding {
	var findings []Finding
	if n := a.Page.Unmatched["published"]; n > 0 {
		findings = append(findings, byRunbook("DRAExporterUnmatchedDevices", section.warning(
			"Claims hold them without hardware values: run `/dra-exporter check` in the agent's pod for details; docs/access.md describes the access to hardware.",
			a.name(), "%s that claims hold, without known hardware", words.Count(int(n), "device", "devices"))))
	}
	if n := a.Page.Unmatched["hardware"]; n > 0 {
		findings = append(findings, section.warning(
			"Check whether the driver is configured to leave them out; otherwise run `/dra-exporter check` in the agent's pod.",
			a.name(), "%s that the vendor's driver here does not publish", words.Count(int(n), "device", "devices")))
	}
	return findings
}

// losses are series and pushes that do not arrive.
func (a Agent) losses(section area) []Finding {
	var findings []Finding
	for _, family := range slices.Sorted(maps.Keys(a.Page.Dropped)) {
		findings = append(findings, byRunbook("DRAExporterSeriesDropped", section.warning("Raise --metrics.max-series, or shorten --ledger.grace.",
			a.name(), "series of %s exceed the limit and are dropped", family)))
	}
	for _, signal := range slices.Sorted(maps.Keys(a.Page.Pushes)) {
		if !a.Page.Pushes[signal] {
			findings = append(findings, about("docs/opentelemetry.md", section.failure("Check the collector's answer in the exporter's log, and the endpoint in --otlp.endpoint or OTEL_EXPORTER_OTLP_ENDPOINT.",
				a.name(), "the collector did not accept the last push of %s", signal)))
		}
	}
	return findings
}
