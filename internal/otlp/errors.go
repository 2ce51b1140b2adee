package otlp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

const (
	// responseBytes is the longest response to a successful export, in bytes. It
	// is no round number, so that gRPC's error about a response that is too large
	// differs from a collector's, which has a limit of its own.
	responseBytes = 64<<10 - 1
	// errorTextBytes is how much of an error a log line has, in bytes: collectors
	// respond with whole pages.
	errorTextBytes = 512
	// messageBytes is how much is read of a collector's error response.
	messageBytes = 4 << 10
)

// responseRefusal is an HTTP response by which a collector did not accept an export. The
// SDK's exporters turn responses into strings; as an error of the transport it
// reaches the caller, in a *url.Error, with its status.
type responseRefusal struct {
	Status     int
	RetryAfter time.Duration // 0: not requested
	Message    string        // the collector's message, on one line; may be empty
}

// Error has the status and the collector's message.
func (r *responseRefusal) Error() string {
	text := fmt.Sprintf("%d %s", r.Status, cmp.Or(http.StatusText(r.Status), "unknown status"))
	if r.Status/100 == 2 {
		text += ", and a web page, which is not the answer of a collector"
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}

// PartialSuccess is the response of a collector that rejected some points, or
// returned a warning. It is named like the types of the SDK's exporters for the
// same, which partialSuccess recognizes by name.
type PartialSuccess struct {
	ErrorMessage  string
	RejectedItems int64
}

// Error has the collector's message.
func (p PartialSuccess) Error() string {
	return fmt.Sprintf("the collector rejects %d data points: %s", p.RejectedItems, oneLine(p.ErrorMessage))
}

func responseError(response *collectorpb.ExportMetricsServiceResponse) error {
	partial := response.GetPartialSuccess()
	if partial.GetRejectedDataPoints() == 0 && partial.GetErrorMessage() == "" {
		return nil
	}
	return PartialSuccess{ErrorMessage: partial.GetErrorMessage(), RejectedItems: partial.GetRejectedDataPoints()}
}

// partialSuccess reports whether the collector accepted the export except for
// some items (data points or spans), how many, and its message; 0 items is a
// warning only. The SDK's type for this is internal to each of its exporters, so
// it is recognized by its name and its fields.
func partialSuccess(err error) (rejected int64, message string, ok bool) {
	if err == nil {
		return 0, "", false
	}
	if value := reflect.ValueOf(err); value.Kind() == reflect.Struct && value.Type().Name() == "PartialSuccess" {
		items, text := value.FieldByName("RejectedItems"), value.FieldByName("ErrorMessage")
		if items.IsValid() && items.CanInt() && text.IsValid() && text.Kind() == reflect.String {
			return items.Int(), text.String(), true
		}
	}
	switch wrapping := err.(type) { //nolint:errorlint // the walk that errors.As would do, had the type a name here
	case interface{ Unwrap() error }:
		return partialSuccess(wrapping.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range wrapping.Unwrap() {
			if rejected, message, ok := partialSuccess(inner); ok {
				return rejected, message, true
			}
		}
	}
	return 0, "", false
}

// retryable reports whether an export that failed with this error may succeed
// later: the collector was not reached, did not respond in time, or responded
// with a status that OTLP's specification lists as retryable.
//
// Unlike in the specification, RESOURCE_EXHAUSTED is retryable without RetryInfo
// too: collectors and gateways that limit rates omit it. A request that is too
// large is not.
func retryable(err error) bool {
	var refused *responseRefusal
	if errors.As(err, &refused) {
		switch refused.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	if st, ok := grpcStatus(err); ok {
		switch st.Code() {
		case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
			return true
		case codes.ResourceExhausted:
			return !tooLarge(err) && !responseTooLarge(st)
		}
		return false
	}
	var transport *url.Error
	var network net.Error
	return errors.As(err, &transport) || errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// timedOut reports whether an attempt ended because the deadline of ctx has
// passed. With gRPC, the collector may notice that first.
func timedOut(ctx context.Context, err error) bool {
	st, ok := grpcStatus(err)
	return ctx.Err() != nil || ok && (st.Code() == codes.DeadlineExceeded || st.Code() == codes.Canceled)
}

// untrusted reports whether the server's certificate was refused, which does not
// change within one export.
func untrusted(err error) bool {
	var refused *tls.CertificateVerificationError
	return errors.As(err, &refused)
}

// tooLarge reports whether the collector would accept a smaller request. gRPC
// has no code of its own for this. The text is that of grpc-go on either side;
// the texts of the Java and C++ servers begin in the same way.
func tooLarge(err error) bool {
	var refused *responseRefusal
	if errors.As(err, &refused) {
		return refused.Status == http.StatusRequestEntityTooLarge
	}
	st, ok := grpcStatus(err)
	return ok && st.Code() == codes.ResourceExhausted && !responseTooLarge(st) && strings.Contains(strings.ToLower(st.Message()), "larger than max")
}

// responseTooLarge reports whether the collector's response exceeded our own
// limit, for which gRPC has the same code and nearly the same text.
func responseTooLarge(st *status.Status) bool {
	return strings.HasPrefix(st.Message(), "grpc: ") && strings.Contains(st.Message(), "larger than max") &&
		strings.HasSuffix(strings.TrimSuffix(st.Message(), ")"), " "+strconv.Itoa(responseBytes))
}

// retryAfter is how long the collector asks not to be called: Retry-After of
// HTTP, RetryInfo of gRPC. 0: not requested.
func retryAfter(err error) time.Duration {
	var refused *responseRefusal
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	st, ok := grpcStatus(err)
	if !ok {
		return 0
	}
	for _, detail := range st.Details() {
		if info, ok := detail.(interface{ GetRetryDelay() *durationpb.Duration }); ok {
			return max(info.GetRetryDelay().AsDuration(), 0)
		}
	}
	return 0
}

// grpcStatus is the status that the error wraps.
func grpcStatus(err error) (*status.Status, bool) {
	var carrier interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &carrier) {
		return nil, false
	}
	return carrier.GRPCStatus(), true
}

// exportError is the error of an export with text for a log: one line, no
// secrets.
type exportError struct {
	text string
	err  error
}

func (e *exportError) Error() string { return e.text }

// Unwrap returns the error of the transport.
func (e *exportError) Unwrap() error { return e.err }

// explain adds advice to the error of an export. ctx is that of the export, late
// the text if its deadline was exceeded. certificateRequested: the collector has
// requested a client certificate since the last successful export.
func explain(ctx context.Context, err error, late string, signal settings.SignalSettings, certificateRequested bool) error {
	text := truncate(printable(err.Error()), errorTextBytes)
	if advice := advise(err, signal, certificateRequested); advice != "" {
		text += ": " + advice
	} else if st, ok := grpcStatus(err); ok && st.Code() == codes.DeadlineExceeded ||
		// A collector by gRPC may notice that first. Timeouts of parts, such as that
		// of connecting, are the same error.
		ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		text += ": " + late
	}
	return &exportError{text: text, err: err}
}

// symptom is a text in an error and advice for its cause. Neither gRPC nor
// net/http have types for these.
type symptom struct {
	text   string
	advice string
}

// advise returns the advice of the first symptom in the error.
func advise(err error, signal settings.SignalSettings, certificateRequested bool) string {
	list := symptoms(signal)
	if certificateRequested {
		list = append(certificateSymptoms(signal), list...)
	}
	text := strings.ToLower(err.Error())
	for _, candidate := range list {
		if strings.Contains(text, candidate.text) {
			return candidate.advice
		}
	}
	return ""
}

// symptoms are the errors of a client and a collector with different protocols,
// as Go's TLS, HTTP and gRPC write them, in lower case.
func symptoms(signal settings.SignalSettings) []symptom {
	const (
		authority  = "set the collector's certificate authority in OTEL_EXPORTER_OTLP_CERTIFICATE"
		plaintext  = "the collector does not use TLS at this port: use http:// for plaintext"
		encrypted  = "if the collector uses TLS at this port, use https://"
		adviceHTTP = "if the collector uses HTTP at this port, set http/protobuf, or use the port of gRPC, usually 4317"
		adviceGRPC = "if the collector uses gRPC at this port, set grpc, or use the port of HTTP, usually 4318"
		other      = "if the collector has no receiver for this signal, disable it with OTEL_METRICS_EXPORTER=none or OTEL_TRACES_EXPORTER=none"
		keys       = "the collector denies access: set its keys in OTEL_EXPORTER_OTLP_HEADERS"
	)
	list := []symptom{
		{"certificate signed by unknown authority", authority},
		{"server gave http response to https client", plaintext},
		{"first record does not look like a tls handshake", plaintext},
	}
	if signal.Protocol == settings.ProtocolGRPC {
		list = append(list,
			symptom{"looked like an http/1.1 header", adviceHTTP},
			symptom{"unexpected http status code", adviceHTTP},
			symptom{"unexpected content-type", adviceHTTP},
			symptom{"missing selected alpn property", adviceHTTP},
			symptom{"code = unimplemented", other},
			symptom{"code = unauthenticated", keys},
			symptom{"code = permissiondenied", keys})
	} else {
		list = append(list,
			symptom{`malformed http response "\x00\x00`, adviceGRPC},
			symptom{"readlooppeekfaillocked", adviceGRPC}, // gRPC's first frame comes unrequested
			symptom{"no application protocol", adviceGRPC},
			symptom{"415 unsupported media type", adviceGRPC},
			symptom{"401 unauthorized", keys},
			symptom{"403 forbidden", keys},
			symptom{"404 not found", "check the path: collectors listen at /v1/metrics and /v1/traces; or " + other},
			// The server sent something that is not HTTP during the request.
			symptom{"use of closed network connection", adviceGRPC})
	}
	if signal.Protocol == settings.ProtocolHTTP && strings.HasSuffix(signal.Endpoint, ":"+settings.PortGRPC) {
		list = append(list, symptom{": eof", adviceGRPC}, symptom{"server closed idle connection", adviceGRPC})
	}
	if signal.Insecure {
		list = append(list,
			symptom{"http request to an https server", encrypted},
			symptom{"plain http request was sent to https port", encrypted},
			symptom{`malformed http response "\x15\x03`, encrypted},
			symptom{"error reading server preface", encrypted})
	}
	return list
}

// certificateSymptoms are the ways a connection ends if the collector refuses
// the client's certificate, or got none. The TLS alert may or may not arrive.
func certificateSymptoms(signal settings.SignalSettings) []symptom {
	advice := "the collector requires a client certificate: set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY"
	if signal.TLS != nil && signal.TLS.GetClientCertificate != nil {
		advice = "check that the collector trusts the authority of the client certificate"
	}
	var list []symptom
	for _, text := range []string{"remote error: tls:", "broken pipe", "connection reset by peer", "use of closed network connection", "eof", "error reading server preface"} {
		list = append(list, symptom{text, advice})
	}
	return list
}

// printable makes external text valid UTF-8 on one line without control
// characters.
func printable(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0x85
	}), " ")
}

// oneLine is printable text of at most 200 bytes, for a log line. Only the
// beginning of the text is read.
func oneLine(text string) string {
	return truncate(printable(text[:min(len(text), messageBytes)]), 200)
}

// truncate returns the text, or as much of its beginning as fits into limit
// bytes with an ellipsis. It does not split characters.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + ellipsis
}

// clean makes external text valid for protobuf: one string that is not valid
// UTF-8 would fail the whole export.
func clean(text string, limit int) string {
	return truncate(strings.ToValidUTF8(text, "\uFFFD"), limit)
}
