package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// failure gives an error of a request its reason.
func failure(err error) error {
	if err == nil {
		return nil
	}
	if isUnsupported(err) {
		err = fmt.Errorf("this API server does not serve resource.k8s.io/v1: Kubernetes 1.34 or newer, with dynamic resource allocation enabled, is needed: %w", err)
	}
	return &source.Failure{Reason: reasonOf(err), Err: err}
}

func reasonOf(err error) source.Reason {
	var network net.Error
	switch {
	case isBeyondLimit(err):
		return source.ReasonResourceExhausted
	case isUnsupported(err):
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
	group string
	err   error
}

func (e *unservedError) Error() string { return e.err.Error() }
func (e *unservedError) Unwrap() error { return e.err }

// about finds out whether an answer speaks of the collection: where the
// group is served and the collection is not, it is a Status that names
// nothing; where the group is not, it is no Status at all.
func about(group string, err error) error {
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

// isUnsupported tells an API server without resource.k8s.io/v1 from one that
// has no such object.
func isUnsupported(err error) bool {
	var unserved *unservedError
	return errors.As(err, &unserved) && unserved.group == resourcev1.SchemeGroupVersion.String()
}

// isUnserved says the same of a collection of any group.
func isUnserved(err error) bool {
	var unserved *unservedError
	return errors.As(err, &unserved)
}

// isExpired says that a resource version is too old to go on from, which
// happens in the normal course of things: the next list starts anew.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// isLasting says that only somebody's action will mend the error, so asking
// often is of no use.
func isLasting(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || errors.Is(err, errNotServed) || isBeyondLimit(err)
}
