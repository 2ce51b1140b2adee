package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
)

const exporterPrefix = "OTEL_EXPORTER_OTLP_"

// exportTimeout is the specification's default for one export.
const exportTimeout = 10 * time.Second

// signalKind is a signal as the names of its variables have it:
// OTEL_EXPORTER_OTLP_<kind>_…, OTEL_<kind>_EXPORTER.
type signalKind string

const (
	metricsSignal signalKind = "METRICS"
	tracesSignal  signalKind = "TRACES"
)

// path is appended to a base URL.
func (k signalKind) path() string { return "/v1/" + strings.ToLower(string(k)) }

// signalLoader reads how one signal is exported.
type signalLoader struct {
	*reader
	kind          signalKind
	protocolFlag  input
	endpointInput input // the flag, the signal's own variable or the variable for all signals
	isBase        bool  // endpointInput is a base URL, to which the signal's path is appended
}

func (l *loader) signal(kind signalKind) signalLoader {
	s := signalLoader{reader: l.reader, kind: kind, isBase: true,
		protocolFlag:  input{"--otlp.protocol", strings.TrimSpace(l.flags.Protocol)},
		endpointInput: input{"--otlp.endpoint", strings.TrimSpace(l.flags.Endpoint)}}
	if s.endpointInput.isSet() {
		return s
	}
	s.endpointInput = l.variable(exporterPrefix + string(kind) + "_ENDPOINT")
	if s.isBase = !s.endpointInput.isSet(); s.isBase {
		s.endpointInput = l.variable(exporterPrefix + "ENDPOINT")
	}
	return s
}

// option reads the signal's own OTEL_EXPORTER_OTLP_<SIGNAL>_<NAME>, or else the
// variable for all signals.
func (s signalLoader) option(name string) input {
	if setting := s.variable(exporterPrefix + string(s.kind) + "_" + name); setting.isSet() {
		return setting
	}
	return s.variable(exporterPrefix + name)
}

// exported reports whether the signal has an endpoint and is selected by
// OTEL_METRICS_EXPORTER or OTEL_TRACES_EXPORTER, a list. "prometheus" in the
// list of metrics has no effect: /metrics is always served.
func (s signalLoader) exported() bool {
	if !s.endpointInput.isSet() {
		return false
	}
	setting := s.variable("OTEL_" + string(s.kind) + "_EXPORTER")
	if !setting.isSet() {
		return true
	}
	otlp, none := false, false
	names := strings.Split(setting.value, ",")
	for _, name := range names {
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "otlp":
			otlp = true
		case name == "none":
			none = true
		case name == "prometheus" && s.kind == metricsSignal:
		default:
			s.refuse(setting, "exporter %q is not supported; use otlp or none", name)
		}
	}
	if none && len(names) > 1 {
		s.refuse(setting, "none cannot be combined")
	}
	return otlp
}

func (s signalLoader) load() SignalSettings {
	insecure := s.boolean(s.option("INSECURE"))
	endpoint := s.endpoint(insecure)
	signal := SignalSettings{
		On:       true,
		Protocol: s.protocol(endpoint),
		Endpoint: endpoint.host,
		Insecure: endpoint.insecure,
		Gzip:     s.choice(s.option("COMPRESSION"), "none", "gzip") == "gzip",
		Timeout:  s.milliseconds(s.option("TIMEOUT"), time.Millisecond, exportTimeout),
	}
	if signal.Protocol == ProtocolGRPC {
		signal.Endpoint = s.grpcTarget(endpoint)
	} else {
		signal.Path = s.urlPath(endpoint)
	}
	signal.Headers = s.headers(s.option("HEADERS"), signal.Protocol)
	if !signal.Insecure {
		signal.TLS = s.tls()
	}
	return signal
}

// protocol is set by the flag or a variable. Otherwise the endpoint decides:
// 4317 is gRPC's port by the specification, and HTTP over unix sockets is not
// supported here.
func (s signalLoader) protocol(e endpoint) string {
	setting := s.protocolFlag
	if !setting.isSet() {
		setting = s.option("PROTOCOL")
	}
	switch {
	case setting.isSet():
		return s.protocolName(setting)
	case e.unix || e.port == PortGRPC:
		return ProtocolGRPC
	}
	return ProtocolHTTP
}

func (r *reader) protocolName(setting input) string {
	if strings.EqualFold(setting.value, "http/json") {
		r.refuse(setting, "JSON is not supported; use %s or %s", ProtocolHTTP, ProtocolGRPC)
		return ProtocolHTTP
	}
	return r.choice(setting, ProtocolHTTP, ProtocolGRPC)
}

// endpoint is a decoded endpoint.
type endpoint struct {
	host     string // with the port, if there is one; of a unix socket the whole URL
	port     string
	path     string // not escaped; of a unix socket empty
	insecure bool
	unix     bool
}

// endpoint decodes http://host:port/path, https://…, unix:///path or host:port.
// host:port is TLS unless insecure is set; otherwise the scheme decides.
func (s signalLoader) endpoint(insecure bool) endpoint {
	setting := s.endpointInput
	if strings.Contains(setting.value, "@") {
		s.refuseSecret(setting, "no user name, password or @ in a URL: use %sHEADERS", exporterPrefix)
		return endpoint{}
	}
	// Query and fragment may contain keys.
	if at := strings.IndexAny(setting.value, "?#"); at >= 0 {
		s.refuse(input{setting.name, setting.value[:at] + "…"}, "no query and no fragment; set keys in %sHEADERS", exporterPrefix)
		return endpoint{}
	}
	scheme, rest, found := strings.Cut(setting.value, "://")
	switch {
	case !found && strings.HasPrefix(strings.ToLower(setting.value), "unix:"), strings.EqualFold(scheme, "unix") && !path.IsAbs(rest):
		s.refuse(setting, "use the full path of a socket: unix:///run/otel/collector.sock")
		return endpoint{}
	case !found && insecure:
		return s.parseURL("http://" + setting.value)
	case !found:
		return s.parseURL("https://" + setting.value)
	case strings.EqualFold(scheme, "unix"):
		if strings.ContainsFunc(rest, func(c rune) bool { return c == '%' || isControl(c) || c == utf8.RuneError }) {
			s.refuse(setting, "no percent signs and no control characters in a socket's path")
		}
		return endpoint{host: UnixScheme + rest, insecure: true, unix: true}
	}
	return s.parseURL(setting.value)
}

// parseURL decodes a URL that has a scheme, and neither user, query nor
// fragment.
func (s signalLoader) parseURL(text string) endpoint {
	setting := s.endpointInput
	parsed, err := url.Parse(hostport.Bracketed(text))
	if err != nil {
		// The error's own prefix repeats the text.
		if wrapper := (*url.Error)(nil); errors.As(err, &wrapper) {
			err = wrapper.Err
		}
		s.refuse(setting, "no URL: %v", err)
		return endpoint{}
	}
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		s.refuse(setting, "unknown scheme %q: use http:// for plaintext, https:// for TLS, or unix:// before a path", parsed.Scheme)
	case parsed.Hostname() == "":
		s.refuse(setting, "no host: use https://host:%s, or :%s for gRPC", portHTTP, PortGRPC)
	case strings.HasSuffix(parsed.Host, ":") || parsed.Port() != "" && !isPort(parsed.Port()):
		s.refuse(setting, "invalid port: use 1 to 65535, usually %s for HTTP and %s for gRPC", portHTTP, PortGRPC)
	case strings.ContainsFunc(parsed.Host, notInHost):
		s.refuse(setting, "a host's name has letters, digits, dots and dashes only")
	case strings.ContainsFunc(parsed.Path, isControl):
		s.refuse(setting, "control characters in the path")
	}
	return endpoint{host: parsed.Host, port: parsed.Port(), path: parsed.Path, insecure: parsed.Scheme == "http"}
}

func isPort(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return err == nil && number > 0
}

// notInHost reports characters that the exporters cannot handle in a host: only
// letters, digits, those of addresses and underscores are left.
func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]", r)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// urlPath is the signal's path on an HTTP server.
func (s signalLoader) urlPath(e endpoint) string {
	if e.unix {
		s.refuse(s.endpointInput, "a socket supports only gRPC here: set the protocol to grpc")
		return ""
	}
	if !s.isBase {
		return "/" + strings.TrimPrefix(e.path, "/")
	}
	prefix := strings.TrimRight(e.path, "/")
	for _, known := range []signalKind{metricsSignal, tracesSignal} {
		if strings.HasSuffix(prefix, known.path()) {
			s.refuse(s.endpointInput, "%s is appended automatically: remove it", s.kind.path())
		}
	}
	return "/" + strings.TrimLeft(prefix+s.kind.path(), "/")
}

// grpcTarget is what gRPC dials: it has no paths, and its default port would be
// 443 for plaintext too.
func (s signalLoader) grpcTarget(e endpoint) string {
	switch {
	case e.unix:
		return e.host
	case e.path != "" && e.path != "/":
		s.refuse(s.endpointInput, "gRPC has no path: remove %s, or set the protocol to %s", e.path, ProtocolHTTP)
	case e.port != "":
	case e.insecure:
		return e.host + ":80"
	default:
		return e.host + ":443"
	}
	return e.host
}

// headers reads the headers of each export, with keys in lower case; the last
// of equal keys applies. Values are secrets, and so may be what stands in place
// of a key by mistake.
func (s signalLoader) headers(setting input, protocol string) map[string]string {
	list := s.list(setting)
	if len(list) == 0 {
		return nil
	}
	headers := make(map[string]string, len(list))
	for _, header := range list {
		key := strings.ToLower(header.key)
		switch {
		case strings.ContainsFunc(key, notInToken), protocol == ProtocolGRPC && strings.ContainsFunc(key, notInMetadata):
			s.refuseSecret(setting, "the key of entry %d has characters that a header cannot have", header.position)
		case strings.ContainsFunc(header.value, notInHeader):
			s.refuseSecret(setting, "the value of entry %d has characters that a header cannot have", header.position)
		case isReserved(key):
			s.refuseSecret(setting, "%s (entry %d) is set by the protocol: remove it", key, header.position)
		}
		headers[key] = header.value
	}
	return headers
}

// notInToken reports characters that are not allowed in a header's key (RFC
// 9110, token).
func notInToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// notInMetadata reports characters of a token that gRPC's metadata cannot have.
func notInMetadata(r rune) bool { return strings.ContainsRune("!#$%&'*+^`|~", r) }

func notInHeader(r rune) bool { return r < ' ' || r >= 0x7f }

// isReserved reports headers about the request's encoding or routing; to set
// them would break the request.
func isReserved(key string) bool {
	switch key {
	case "host", "connection", "te", "trailer", "transfer-encoding", "upgrade", "expect", "user-agent", "accept-encoding":
		return true
	}
	return strings.HasPrefix(key, "content-") || strings.HasPrefix(key, "grpc-")
}

// tls reads the certificates of the signal. The server's authority is read once;
// the client's certificate is read again for each handshake, because platforms
// rotate it.
func (s signalLoader) tls() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.authorities(s.option("CERTIFICATE"))}
	certificate, key := s.option("CLIENT_CERTIFICATE"), s.option("CLIENT_KEY")
	switch {
	case !certificate.isSet() && !key.isSet():
		return config
	case !key.isSet():
		s.refuse(certificate, "a certificate without its key: set %s too", key.name)
		return config
	case !certificate.isSet():
		s.refuse(key, "a key without its certificate: set %s too", certificate.name)
		return config
	}
	files := &keyPair{certificate: certificate.value, key: key.value}
	if err := files.read(); err != nil {
		s.refuse(certificate, "with %s=%q: %v", key.name, key.value, err)
	}
	config.GetClientCertificate = files.get
	return config
}

// authorities reads the authorities that may have signed the server's
// certificate. nil, the system's, if no file is named.
func (s signalLoader) authorities(setting input) *x509.CertPool {
	if !setting.isSet() {
		return nil
	}
	pem, err := hostfile.Read(setting.value, maxPEM)
	if err != nil {
		s.refuse(setting, "%v", err)
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		s.refuse(setting, "no certificate in PEM (-----BEGIN CERTIFICATE-----) in this file")
	}
	return pool
}

// maxPEM is the size of a file of certificates or keys, in bytes. That of all public
// authorities has a fifth of it.
const maxPEM = 1 << 20

// keyPair is a client's certificate in two files that may be replaced at any
// time. It is safe for concurrent use.
type keyPair struct {
	certificate, key string // paths

	mutex sync.Mutex
	last  *tls.Certificate
}

func (k *keyPair) read() error {
	certificate, err := hostfile.Read(k.certificate, maxPEM)
	if err != nil {
		return err
	}
	key, err := hostfile.Read(k.key, maxPEM)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	k.last = &pair
	return nil
}

// get is tls.Config.GetClientCertificate. While the files cannot be used,
// perhaps because only one of them was replaced yet, it returns the certificate
// that was read last; the server refuses it if it has expired.
func (k *keyPair) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if err := k.read(); err != nil && k.last == nil {
		return nil, err
	}
	return k.last, nil
}
