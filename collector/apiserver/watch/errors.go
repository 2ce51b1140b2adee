package watch

import (
	"context"
	"errors"
	"fmt"
	"net"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

var (
	// errConnectionEnded replaces the empty watch that client-go returns if the
	// connection ended or timed out before the answer.
	errConnectionEnded = errors.New("the connection to the API server ended or timed out")
	errNoList          = errors.New("the answer is not the list that was asked for")
	errStreamEnded     = errors.New("the stream ended before its list did")

	// errNotServed means that the API server has a collection in no version
	// that can be read.
	errNotServed = errors.New("the API server does not serve it")
)

// Failure adds the reason to an error of a request; nil stays nil.
func Failure(err error) error {
	if err == nil {
		return nil
	}
	if IsUnsupported(err) {
		err = fmt.Errorf("this API server does not serve resource.k8s.io/v1: Kubernetes 1.34 or newer, with dynamic resource allocation enabled, is needed: %w", err)
	}
	return &source.Failure{Reason: classifyError(err), Err: err}
}

func classifyError(err error) source.Reason {
	var network net.Error
	switch {
	case isLimitExceeded(err):
		return source.ReasonResourceExhausted
	case IsUnsupported(err):
		return source.ReasonUnsupported
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return source.ReasonPermission
	case apierrors.IsNotFound(err):
		return source.ReasonNotFound
	case errors.Is(err, errNoList):
		return source.ReasonInvalid
	case apierrors.IsTooManyRequests(err):
		return source.ReasonResourceExhausted
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return source.ReasonTimeout
	case apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err), errors.Is(err, errConnectionEnded):
		return source.ReasonUnavailable
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err):
		return source.ReasonUnavailable
	case errors.As(err, &network) && network.Timeout():
		return source.ReasonTimeout
	case errors.As(err, &network):
		return source.ReasonUnavailable
	default:
		return source.ReasonOther
	}
}

// unservedError is the answer of an API server that has no such collection.
type unservedError struct {
	group schema.GroupVersion
	err   error
}

func (e *unservedError) Error() string { return e.err.Error() }
func (e *unservedError) Unwrap() error { return e.err }

// checkServed returns an unservedError if the answer means that there is no
// such collection, and the error itself otherwise. If the group is served and
// the collection is not, the answer is a Status without a name; if the group is
// not served, the answer is not a Status.
func checkServed(group schema.GroupVersion, err error) error {
	var answer apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &answer) {
		return err
	}
	details := answer.Status().Details
	if details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return &unservedError{group, err}
	}
	return err
}

// IsUnsupported reports whether the API server does not serve
// resource.k8s.io/v1, rather than not having an object.
func IsUnsupported(err error) bool {
	var unserved *unservedError
	return errors.As(err, &unserved) && unserved.group == resourcev1.SchemeGroupVersion
}

// isUnserved reports the same of a collection of any group.
func isUnserved(err error) bool {
	var unserved *unservedError
	return errors.As(err, &unserved)
}

// isExpired reports whether a resource version is too old to continue from,
// which is not a failure: the next list has a new one.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// IsPermanent reports whether the error lasts until the cluster or the
// configuration is changed, so that frequent retries are useless.
func IsPermanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || errors.Is(err, errNotServed) || isLimitExceeded(err)
}

// finalError hides an error from the retries of the reflector, which would
// reconnect without end to an API server that refuses connections, without
// reporting it and without regard to its context.
type finalError struct{ cause error }

func (e *finalError) Error() string { return e.cause.Error() }

// requestError is the error of a request, which the reflector wraps in errors
// of its own.
type requestError struct{ cause error }

func (e *requestError) Error() string { return e.cause.Error() }
func (e *requestError) Unwrap() error { return e.cause }

// wrapError wraps an error that is returned to the reflector.
func wrapError(err error) error {
	switch {
	case err == nil:
		return nil
	case utilnet.IsConnectionRefused(err), apierrors.IsTooManyRequests(err):
		return &finalError{cause: err}
	default:
		return &requestError{cause: err}
	}
}

// unwrapError returns the error that was passed to wrapError, without the text
// that the reflector has added.
func unwrapError(err error) error {
	var final *finalError
	var request *requestError
	switch {
	case errors.As(err, &final):
		return final.cause
	case errors.As(err, &request):
		return request.cause
	default:
		return err
	}
}
