package otlp

import (
	"strings"
	"time"
)

const exporterPrefix = "OTEL_EXPORTER_OTLP_"

// signalKind is a signal as the names of its variables have it:
// OTEL_EXPORTER_OTLP_<kind>_…, OTEL_<kind>_EXPORTER.
type signalKind string

const (
	metricsSignal signalKind = "METRICS"
	tracesSignal  signalKind = "TRACES"
)

// path is what is appended to a base URL.
func (k signalKind) path() string { return "/v1/" + strings.ToLower(string(k)) }

// exportTimeout is the specification's default for one export.
const exportTimeout = 10 * time.Second

// exported reads OTEL_METRICS_EXPORTER or OTEL_TRACES_EXPORTER, a list. Of
// Prometheus, in the list of metrics, there is nothing to switch on: the page
// is always there.
func (r *reader) exported(kind signalKind) bool {
	g := r.variable("OTEL_" + string(kind) + "_EXPORTER")
	if !g.is() {
		return true
	}
	pushed, none := false, false
	names := strings.Split(g.value, ",")
	for _, name := range names {
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "otlp":
			pushed = true
		case name == "none":
			none = true
		case name == "prometheus" && kind == metricsSignal:
		default:
			r.refuse(g, "exporter %q is not supported; use otlp or none", name)
		}
	}
	if none && len(names) > 1 {
		r.refuse(g, "none cannot be combined")
	}
	return pushed
}

// signal reads everything about how one signal leaves.
func (r *reader) signal(flags Flags, kind signalKind) Signal {
	place, base := r.place(flags, kind)
	insecure := r.truth(r.option(kind, "INSECURE"))
	where := r.endpoint(place, insecure)
	signal := Signal{
		On:       true,
		Protocol: r.protocol(flags, kind, where),
		Endpoint: where.host,
		Insecure: where.insecure,
		Gzip:     r.choice(r.option(kind, "COMPRESSION"), "none", "gzip") == "gzip",
		Timeout:  r.milliseconds(r.option(kind, "TIMEOUT"), time.Millisecond, exportTimeout),
	}
	if signal.Protocol == protocolGRPC {
		signal.Endpoint = r.target(place, where)
	} else {
		signal.Path = r.path(place, where, kind, base)
	}
	signal.Headers = r.headers(r.option(kind, "HEADERS"), signal.Protocol)
	if !signal.Insecure {
		signal.TLS = r.tls(kind)
	}
	return signal
}

// protocolFlag refuses a wrong --otlp.protocol also where nothing is on.
func (r *reader) protocolFlag(flags Flags) given {
	g := given{name: "--otlp.protocol", value: strings.TrimSpace(flags.Protocol)}
	r.spoken(g)
	return g
}

// protocol is what the flag or the variables say, or what the endpoint tells:
// 4317 is gRPC's port by the specification, and HTTP here knows no sockets of
// files.
func (r *reader) protocol(flags Flags, kind signalKind, where endpoint) string {
	g := r.protocolFlag(flags)
	if !g.is() {
		g = r.option(kind, "PROTOCOL")
	}
	switch {
	case g.is():
		return r.spoken(g)
	case where.unix || where.port == portGRPC:
		return protocolGRPC
	}
	return protocolHTTP
}

func (r *reader) spoken(g given) string {
	if strings.EqualFold(g.value, "http/json") {
		r.refuse(g, "JSON is not supported; use %s or %s", protocolHTTP, protocolGRPC)
		return protocolHTTP
	}
	return r.choice(g, protocolHTTP, protocolGRPC)
}
