package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// explain returns the error of a failed List, with its reason, the socket and
// the remedy. dialFailure is why the socket could not be reached, nil if it
// could.
func explain(err, dialFailure error, socket string, timeout time.Duration) error {
	reason, remedy := diagnose(status.Convert(err), timeout)
	if dialFailure != nil && status.Code(err) == codes.Unavailable {
		err = dialFailure
		reason, remedy = diagnoseDial(dialFailure)
	}
	if reason == source.ReasonTimeout {
		return lateAnswer(socket, timeout) // gRPC has several errors for this
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf("list pod resources over %s: %s: %w", socket, remedy, err)}
}

// lateAnswer is the failure of a List that has had no answer for some time.
func lateAnswer(socket string, after time.Duration) error {
	return &source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf("list pod resources over %s: %s", socket, noAnswer(after))}
}

func noAnswer(after time.Duration) string {
	return fmt.Sprintf("no answer within %s; check in its log whether the kubelet hangs", after)
}

// diagnose returns the reason and the text of the kubelet's, or gRPC's,
// refusal.
func diagnose(refusal *status.Status, timeout time.Duration) (source.Reason, string) {
	switch refusal.Code() {
	case codes.DeadlineExceeded:
		return source.ReasonTimeout, noAnswer(timeout)
	case codes.ResourceExhausted:
		return source.ReasonResourceExhausted, exhausted(refusal.Message())
	case codes.PermissionDenied, codes.Unauthenticated:
		return source.ReasonPermission, "the kubelet refuses this client"
	case codes.Unimplemented:
		return source.ReasonUnsupported, "the server on the socket does not serve PodResources v1; " +
			"Kubernetes 1.34 or newer is needed, and --kubelet.pod-resources-socket must name the kubelet's own socket"
	case codes.Unavailable:
		return source.ReasonUnavailable, "the connection broke; the exporter retries"
	case codes.Internal:
		if _, limit, found := strings.Cut(refusal.Message(), moreThan); found {
			return source.ReasonResourceExhausted, fmt.Sprintf("%s the limit of%s; run fewer pods on this node or give each of them fewer devices", moreThan, limit)
		}
		return source.ReasonInvalid, "the answer cannot be read; the exporter retries"
	default:
		return source.ReasonOther, "the kubelet could not answer; see its log"
	}
}

// exhausted distinguishes the two meanings of ResourceExhausted, for which
// gRPC's message sizes and the kubelet's rate limiter share the one code.
func exhausted(message string) string {
	if strings.Contains(message, "larger than max") {
		return fmt.Sprintf("the answer is larger than the %d MiB that are accepted; "+
			"run fewer pods on this node or give each of them fewer devices", maxAnswer>>20)
	}
	return "the kubelet limits the rate of requests of all its clients together; " +
		"the exporter sends fewer requests now; look for another client of this socket that sends too many"
}

// diagnoseDial returns why the socket could not be reached.
func diagnoseDial(failure error) (source.Reason, string) {
	switch {
	case errors.Is(failure, fs.ErrNotExist):
		return source.ReasonNotFound, "there is no such socket; " +
			"mount the kubelet's pod-resources directory, or set --kubelet.pod-resources-socket; the exporter retries"
	case errors.Is(failure, fs.ErrPermission):
		return source.ReasonPermission, "no permission to open the socket; " +
			"run as root, or as a user that may write to it"
	case errors.Is(failure, syscall.EINVAL):
		return source.ReasonInvalid, "this cannot be a socket's path; " +
			"it may have no more than 107 bytes"
	default:
		return source.ReasonUnavailable, "no answer on the socket; " +
			"start the kubelet; the exporter retries"
	}
}
