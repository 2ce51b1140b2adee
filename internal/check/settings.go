package check

import (
	"context"
	"net"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/node"
)

// CheckedSettings are the files and servers of flags, and whether they can be used.
type CheckedSettings struct {
	FlagsError error // a value that the exporter refuses to start with

	Access node.GPUAccess // of the node role; an empty mode is unknown

	Prices      string // path of the price list; empty: none
	PricesError error

	WebConfig      string // path of --web.config.file; empty: none
	WebConfigError error

	PushError    error // of flags and OTEL_ variables
	PushWithheld bool  // an endpoint is named, and nothing is pushed
	Pushes       []PushEndpoint
}

// PushEndpoint is where a signal goes.
type PushEndpoint struct {
	Signals   string // metrics, traces, or both
	Endpoint  string
	DialError error
}

// PushedSignal is what is pushed to an endpoint: HOST, HOST:PORT or unix:///PATH.
type PushedSignal struct {
	Name     string
	Endpoint string
	Insecure bool // without TLS
}

// DialPushes opens and closes a connection to each endpoint, once for signals in a
// row that have the same one. Nothing is pushed.
func DialPushes(ctx context.Context, signals []PushedSignal) []PushEndpoint {
	var pushes []PushEndpoint
	for _, signal := range signals {
		if last := len(pushes) - 1; last >= 0 && pushes[last].Endpoint == signal.Endpoint {
			pushes[last].Signals += " and " + signal.Name
			continue
		}
		pushes = append(pushes, PushEndpoint{Signals: signal.Name, Endpoint: signal.Endpoint, DialError: signal.dial(ctx)})
	}
	return pushes
}

func (s PushedSignal) dial(ctx context.Context) error {
	network, address := "tcp", s.Endpoint
	if path, isSocket := strings.CutPrefix(address, "unix://"); isSocket {
		network, address = "unix", path
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		port := "443"
		if s.Insecure {
			port = "80"
		}
		address = net.JoinHostPort(strings.Trim(address, "[]"), port)
	}
	connection, err := (&net.Dialer{Timeout: DialTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// SettingsFindings reports on files and addresses, and on flags that are wrong.
func SettingsFindings(s CheckedSettings) []Finding {
	section := area{"settings", "docs/check.md#settings"}
	var findings []Finding
	if s.FlagsError != nil {
		findings = append(findings, section.failure("Correct the flag: the exporter does not start with it.", "flags", "%v", s.FlagsError))
	}
	if s.Access.Mode != "" {
		findings = append(findings, section.ok("access", "mode %s, reason %s", s.Access.Mode, s.Access.Reason))
	}
	if s.Prices != "" {
		if s.PricesError != nil {
			findings = append(findings, about("docs/cost.md", section.failure("Correct the file: the exporter does not start with it.", "price list", "%v", s.PricesError)))
		} else {
			findings = append(findings, section.ok("price list", "%s", s.Prices))
		}
	}
	if s.WebConfig != "" {
		if s.WebConfigError != nil {
			findings = append(findings, section.failure("Correct the file, or its certificate and key: the exporter does not start with it.", "web configuration", "%v", s.WebConfigError))
		} else {
			findings = append(findings, section.ok("web configuration", "%s", s.WebConfig))
		}
	}
	return append(findings, s.pushes()...)
}

func (s CheckedSettings) pushes() []Finding {
	section := area{"OTLP", "docs/opentelemetry.md"}
	switch {
	case s.PushError != nil:
		return []Finding{section.failure("Correct the flag or the variable: the exporter does not start with it.", "settings", "%v", s.PushError)}
	case s.PushWithheld:
		return []Finding{section.warning("Unset OTEL_SDK_DISABLED or OTEL_METRICS_EXPORTER=none, unless this is intended.", "settings", "an endpoint is set, and variables disable the push")}
	}
	var findings []Finding
	for _, push := range s.Pushes {
		if push.DialError != nil {
			findings = append(findings, section.failure("Check that the collector runs, and that this pod can reach it. A NetworkPolicy that limits egress must allow it.", push.Signals, "no answer from %s: %v", push.Endpoint, push.DialError))
			continue
		}
		findings = append(findings, section.ok(push.Signals, "%s accepts connections; dra_exporter_otlp_up has the result of the pushes", push.Endpoint))
	}
	return findings
}

// sharingFindings reports whether shared devices are split by processes. state is a
// reason of dra_exporter_process_attribution; empty: unknown. Not splitting is a
// choice, so that it is no warning.
func sharingFindings(state string) []Finding {
	section := area{"sharing", "docs/sharing.md"}
	if state == "ok" {
		return []Finding{section.ok("processes", "shared devices are split by the processes of each claim")}
	}
	cause, ok := map[string]struct{ text, remedy string }{
		"disabled":      {"--no-device.processes", "Remove the flag to split them."},
		"pid_namespace": {"this program cannot see the node's processes", "Set hostPID: true where devices are shared: node.hostPID in the chart, the component process-attribution in Kustomize."},
		"no_procfs":     {"procfs cannot be read", "Mount the node's procfs, or set --path.procfs."},
		"no_pods":       {"the pods of the API server are unknown, and with them their UIDs", "Check the lines about the API server."},
		"unsupported":   {"no device source here lists processes", "NVML does, for NVIDIA GPUs; DCGM and the others do not."},
	}[state]
	if !ok {
		return nil
	}
	finding := about(section.page, section.skipped("processes", "%s", "shared devices are not split: "+cause.text))
	finding.Remedy = cause.remedy
	return []Finding{finding}
}
