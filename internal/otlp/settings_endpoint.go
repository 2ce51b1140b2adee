package otlp

import (
	"errors"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	portGRPC   = "4317" // of OTLP over gRPC, by the specification
	portHTTP   = "4318" // of OTLP over HTTP
	unixScheme = "unix://"
)

// endpoint is what an endpoint's value says.
type endpoint struct {
	host     string // with the port, if one is named; of a unix socket the whole URL
	port     string
	path     string // not escaped; of a unix socket empty
	insecure bool
	unix     bool
}

// place is where a signal goes by the flag, its own variable or the variable
// for all signals. base reports whether it is a base URL, to which the signal's
// path is appended: only the signal's own is used as it stands.
func (r *reader) place(flags Flags, kind signalKind) (g given, base bool) {
	g = given{name: "--otlp.endpoint", value: strings.TrimSpace(flags.Endpoint)}
	if g.is() {
		return g, true
	}
	if g = r.variable(exporterPrefix + string(kind) + "_ENDPOINT"); g.is() {
		return g, false
	}
	return r.variable(exporterPrefix + "ENDPOINT"), true
}

// placed reports whether the signal has an endpoint.
func (r *reader) placed(flags Flags, kind signalKind) bool {
	g, _ := r.place(flags, kind)
	return g.is()
}

// endpoint reads http://host:port/path, https://…, unix:///path or host:port.
// The latter is TLS unless insecure is said; where a scheme is named, that
// counts.
func (r *reader) endpoint(g given, insecure bool) endpoint {
	if strings.Contains(g.value, "@") {
		r.refuseSecret(g, "no user name, password or @ in a URL: use %sHEADERS", exporterPrefix)
		return endpoint{}
	}
	if shown := bare(g.value); shown != g.value {
		r.refuse(given{g.name, shown + "…"}, "no query and no fragment; set keys in %sHEADERS", exporterPrefix)
		return endpoint{}
	}
	scheme, rest, found := strings.Cut(g.value, "://")
	switch {
	case !found && strings.HasPrefix(strings.ToLower(g.value), "unix:"), strings.EqualFold(scheme, "unix") && !path.IsAbs(rest):
		r.refuse(g, "use the full path of a socket: unix:///run/otel/collector.sock")
		return endpoint{}
	case !found && insecure:
		return r.parse(g, "http://"+g.value)
	case !found:
		return r.parse(g, "https://"+g.value)
	case strings.EqualFold(scheme, "unix"):
		if strings.ContainsFunc(rest, func(c rune) bool { return c == '%' || control(c) || c == utf8.RuneError }) {
			r.refuse(g, "no percent signs and no control characters in a socket's path")
		}
		return endpoint{host: unixScheme + rest, insecure: true, unix: true}
	}
	return r.parse(g, g.value)
}

// bare is an endpoint without query and fragment, which may hold keys.
func bare(value string) string {
	if at := strings.IndexAny(value, "?#"); at >= 0 {
		return value[:at]
	}
	return value
}

// parse reads a URL that has a scheme, and neither user, query nor fragment.
func (r *reader) parse(g given, text string) endpoint {
	parsed, err := url.Parse(text)
	if err != nil {
		// The text that did not parse stands before it already.
		if wrapper := (*url.Error)(nil); errors.As(err, &wrapper) {
			err = wrapper.Err
		}
		r.refuse(g, "no URL: %v", err)
		return endpoint{}
	}
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		r.refuse(g, "unknown scheme %q: use http:// for plaintext, https:// for TLS, or unix:// before a path", parsed.Scheme)
	case parsed.Hostname() == "":
		r.refuse(g, "no host: use https://host:%s, or :%s for gRPC", portHTTP, portGRPC)
	case strings.HasSuffix(parsed.Host, ":") || parsed.Port() != "" && !port(parsed.Port()):
		r.refuse(g, "invalid port: use 1 to 65535, usually %s for HTTP and %s for gRPC", portHTTP, portGRPC)
	case strings.ContainsFunc(parsed.Host, unusual):
		r.refuse(g, "a host's name has letters, digits, dots and dashes only")
	case strings.ContainsFunc(parsed.Path, control):
		r.refuse(g, "control characters in the path")
	}
	return endpoint{host: parsed.Host, port: parsed.Port(), path: parsed.Path, insecure: parsed.Scheme == "http"}
}

func port(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return err == nil && number > 0
}

// unusual are characters that the exporters would trip over: of a host only
// letters, digits, those of addresses and underscores are left.
func unusual(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]", r)
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// path is where a signal goes on an HTTP server.
func (r *reader) path(g given, where endpoint, kind signalKind, base bool) string {
	if where.unix {
		r.refuse(g, "a socket supports only gRPC here: set the protocol to grpc")
		return ""
	}
	if !base {
		return "/" + strings.TrimPrefix(where.path, "/")
	}
	prefix := strings.TrimRight(where.path, "/")
	for _, known := range []signalKind{metricsSignal, tracesSignal} {
		if strings.HasSuffix(prefix, known.path()) {
			r.refuse(g, "%s is appended automatically: remove it", kind.path())
		}
	}
	return "/" + strings.TrimLeft(prefix+kind.path(), "/")
}

// target is what gRPC dials: it knows no paths, and would take 443 as the port
// of plaintext too.
func (r *reader) target(g given, where endpoint) string {
	switch {
	case where.unix:
		return where.host
	case where.path != "" && where.path != "/":
		r.refuse(g, "gRPC has no path: remove %s, or set the protocol to %s", where.path, protocolHTTP)
	case where.port != "":
	case where.insecure:
		return where.host + ":80"
	default:
		return where.host + ":443"
	}
	return where.host
}
