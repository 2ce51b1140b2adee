package otlp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// passing reports whether an export that ended with this error may end
// otherwise the next time: the collector was not reached, did not answer in
// time, or answered with a status that OTLP's specification has tried again.
//
// RESOURCE_EXHAUSTED is passing without RetryInfo too, unlike there: collectors
// and gateways that limit rates leave it out. What is too large is not.
func passing(err error) bool {
	var refusal *answer
	if errors.As(err, &refusal) {
		return refusal.passing()
	}
	if said, ok := grpcStatus(err); ok {
		switch said.Code() {
		case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
			return true
		case codes.ResourceExhausted:
			return !tooLarge(err) && !longAnswer(said)
		}
		return false
	}
	var transport *url.Error
	var network net.Error
	return errors.As(err, &transport) || errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// tooLarge reports whether the collector would take less at a time. gRPC has
// no code of its own for it: the words are those of grpc-go on either side,
// and the Java and C++ servers' begin alike.
func tooLarge(err error) bool {
	var refusal *answer
	if errors.As(err, &refusal) {
		return refusal.Status == http.StatusRequestEntityTooLarge
	}
	said, ok := grpcStatus(err)
	return ok && said.Code() == codes.ResourceExhausted && !longAnswer(said) && strings.Contains(strings.ToLower(said.Message()), "larger than max")
}

// longAnswer reports whether it is the collector's answer that was too large for
// us, which gRPC says with the same code and nearly the same words.
func longAnswer(said *status.Status) bool {
	return strings.HasPrefix(said.Message(), "grpc: ") && strings.Contains(said.Message(), "larger than max") &&
		strings.HasSuffix(strings.TrimSuffix(said.Message(), ")"), " "+strconv.Itoa(answerBytes))
}

// retryAfter is for how long the collector asks to be left alone: Retry-After
// of HTTP, RetryInfo of gRPC. 0: it does not say.
func retryAfter(err error) time.Duration {
	var refusal *answer
	if errors.As(err, &refusal) {
		return refusal.RetryAfter
	}
	said, ok := grpcStatus(err)
	if !ok {
		return 0
	}
	for _, detail := range said.Details() {
		if info, ok := detail.(interface{ GetRetryDelay() *durationpb.Duration }); ok {
			return max(info.GetRetryDelay().AsDuration(), 0)
		}
	}
	return 0
}

// grpcStatus is the status that the error carries, however deep.
func grpcStatus(err error) (*status.Status, bool) {
	var carrier interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &carrier) {
		return nil, false
	}
	return carrier.GRPCStatus(), true
}

// partial reports whether the collector has taken the export but for some
// items (data points or spans), how many, and what it says to it; none of them
// may be only a word of warning. The SDK's type for this is internal to each
// of its exporters, so it is known by its name and its fields.
func partial(err error) (rejected int64, message string, ok bool) {
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
		return partial(wrapping.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range wrapping.Unwrap() {
			if rejected, message, ok := partial(inner); ok {
				return rejected, message, true
			}
		}
	}
	return 0, "", false
}
