package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
)

// longestText is as much of an error as a log line takes: collectors answer
// with whole pages.
const longestText = 512

// failure is an export's error as a person reads it.
type failure struct {
	text string
	err  error
}

// Error is one line without secrets.
func (f *failure) Error() string { return f.text }

// Unwrap lets errors.As find what the exporter returned.
func (f *failure) Unwrap() error { return f.err }

// explain adds what to do to an error that does not say it. ctx is that of
// the export, and late what to say if its time was not enough; asked is whether
// the collector has asked for a client's certificate since the last export that
// it took. nil stays nil.
func explain(ctx context.Context, err error, late string, signal Signal, asked *atomic.Bool) error {
	if err == nil {
		asked.Store(false) // it likes what it got: what ends the connection later is something else
		return nil
	}
	text := cut(words(err), longestText)
	if advice := advise(err, signal, asked.Load()); advice != "" {
		text += ": " + advice
	} else if overdue(ctx, err) {
		text += ": " + late
	}
	return &failure{text: text, err: err}
}

// overdue reports whether the error is no more than the end of the time that
// there was. A collector by gRPC may notice that first. Timeouts of parts, such as
// that of connecting, are known by the same error.
func overdue(ctx context.Context, err error) bool {
	said, ok := grpcStatus(err)
	return ok && said.Code() == codes.DeadlineExceeded || ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded)
}

// words are an error's text on one line.
func words(err error) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(err.Error(), "\uFFFD"), func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0x85
	}), " ")
}

// sign is a text in an error and what it means. Neither gRPC nor net/http have
// types for these.
type sign struct {
	text   string
	advice string
}

// advise is the advice of the first sign that the error shows.
func advise(err error, signal Signal, asked bool) string {
	list := everySign(signal)
	if asked {
		list = append(askedSigns(signal), list...)
	}
	text := strings.ToLower(err.Error())
	for _, candidate := range list {
		if strings.Contains(text, candidate.text) {
			return candidate.advice
		}
	}
	return ""
}

// everySign is what goes wrong between a client and a collector that speak
// differently, in the words of Go's TLS, HTTP and gRPC, in lower case.
func everySign(signal Signal) []sign {
	const (
		authority  = "set the collector's certificate authority in OTEL_EXPORTER_OTLP_CERTIFICATE"
		plaintext  = "the collector does not use TLS at this port: use http:// for plaintext"
		encrypted  = "if the collector uses TLS at this port, use https://"
		speaksHTTP = "if the collector uses HTTP at this port, set http/protobuf, or use the port of gRPC, usually 4317"
		speaksGRPC = "if the collector uses gRPC at this port, set grpc, or use the port of HTTP, usually 4318"
		other      = "if the collector has no receiver for this signal, disable it with OTEL_METRICS_EXPORTER=none or OTEL_TRACES_EXPORTER=none"
		keys       = "the collector denies access: set its keys in OTEL_EXPORTER_OTLP_HEADERS"
	)
	list := []sign{
		{"certificate signed by unknown authority", authority},
		{"server gave http response to https client", plaintext},
		{"first record does not look like a tls handshake", plaintext},
	}
	if signal.Protocol == protocolGRPC {
		list = append(list,
			sign{"looked like an http/1.1 header", speaksHTTP},
			sign{"unexpected http status code", speaksHTTP},
			sign{"unexpected content-type", speaksHTTP},
			sign{"missing selected alpn property", speaksHTTP},
			sign{"code = unimplemented", other},
			sign{"code = unauthenticated", keys},
			sign{"code = permissiondenied", keys})
	} else {
		list = append(list,
			sign{`malformed http response "\x00\x00`, speaksGRPC},
			sign{"readlooppeekfaillocked", speaksGRPC}, // gRPC's first frame comes unasked
			sign{"no application protocol", speaksGRPC},
			sign{"415 unsupported media type", speaksGRPC},
			sign{"401 unauthorized", keys},
			sign{"403 forbidden", keys},
			sign{"404 not found", "check the path: collectors listen at /v1/metrics and /v1/traces; or " + other},
			// It said something that was no HTTP while it was written to.
			sign{"use of closed network connection", speaksGRPC})
	}
	if signal.Protocol == protocolHTTP && strings.HasSuffix(signal.Endpoint, ":"+portGRPC) {
		list = append(list, sign{": eof", speaksGRPC}, sign{"server closed idle connection", speaksGRPC})
	}
	if signal.Insecure {
		list = append(list,
			sign{"http request to an https server", encrypted},
			sign{"plain http request was sent to https port", encrypted},
			sign{`malformed http response "\x15\x03`, encrypted},
			sign{"error reading server preface", encrypted})
	}
	return list
}

// askedSigns is how a connection ends where the collector has asked for a
// client's certificate and does not like what it got. The alert arrives or
// does not.
func askedSigns(signal Signal) []sign {
	advice := "the collector requires a client certificate: set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY"
	if signal.TLS != nil && signal.TLS.GetClientCertificate != nil {
		advice = "check that the collector trusts the authority of the client certificate"
	}
	var list []sign
	for _, text := range []string{"remote error: tls:", "broken pipe", "connection reset by peer", "use of closed network connection", "eof", "error reading server preface"} {
		list = append(list, sign{text, advice})
	}
	return list
}

// untrusted reports whether a server's certificate was refused: that does not
// pass within an export.
func untrusted(err error) bool {
	var refused *tls.CertificateVerificationError
	return errors.As(err, &refused)
}
