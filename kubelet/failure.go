package kubelet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

var (
	errRenewal     = errors.New("the watch is reopened")
	errSyncTimeout = errors.New("not all pods were reported in time")
	errTooMany     = fmt.Errorf("the watch has more than %d pods", maxPods)
)

// explain adds the reason, the socket and a remedy to the error of a List.
// dialFailure is the error of the connection, if there is one.
func explain(err, dialFailure error, socket string, timeout time.Duration) error {
	reason, remedy := diagnose(status.Convert(err), timeout)
	if dialFailure != nil && status.Code(err) == codes.Unavailable {
		err = dialFailure
		reason, remedy = diagnoseDial(dialFailure)
	}
	if reason == source.ReasonTimeout {
		return lateAnswer(socket, timeout) // gRPC has several texts for this
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf("list pod resources over %s: %s: %w", socket, remedy, err)}
}

// lateAnswer is the failure of a List without a response after that time.
func lateAnswer(socket string, age time.Duration) error {
	return &source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf("list pod resources over %s: %s", socket, noAnswer(age))}
}

func noAnswer(age time.Duration) string {
	return fmt.Sprintf("no answer within %s; check in its log whether the kubelet hangs", age)
}

// diagnose returns the reason and the remedy of an error of the kubelet or gRPC.
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

// exhausted distinguishes the two causes of ResourceExhausted: gRPC's limit of
// message sizes and the kubelet's rate limiter.
func exhausted(message string) string {
	if strings.Contains(message, "larger than max") {
		return fmt.Sprintf("the answer is larger than the %d MiB that are accepted; "+
			"run fewer pods on this node or give each of them fewer devices", maxAnswer>>20)
	}
	return "the kubelet limits the rate of requests of all its clients together; " +
		"the exporter sends fewer requests now; look for another client of this socket that sends too many"
}

// diagnoseDial returns the reason and the remedy of an error of the connection.
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

// explainPods adds the reason, the socket and a remedy to the error of a watch.
// dialFailure is the error of the connection, if there is one.
func explainPods(err, dialFailure error, socket string, timeout time.Duration) error {
	reason, remedy := diagnosePods(err, timeout)
	if dialFailure != nil && (status.Code(err) == codes.Unavailable || errors.Is(err, errSyncTimeout)) {
		err = dialFailure
		reason, remedy = diagnosePodsDial(dialFailure)
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf("watch the kubelet's pods over %s: %s: %w", socket, remedy, err)}
}

// diagnosePods returns the reason and the remedy of the error of a watch.
func diagnosePods(err error, timeout time.Duration) (source.Reason, string) {
	switch {
	case errors.Is(err, errSyncTimeout):
		return source.ReasonTimeout, fmt.Sprintf("no complete answer within %s; check in its log whether the kubelet hangs", timeout)
	case errors.Is(err, errTooMany):
		return source.ReasonResourceExhausted, "it is reopened, and the previous state is kept"
	case errors.Is(err, io.EOF):
		return source.ReasonUnavailable, "the kubelet ended the watch; it is reopened"
	}
	refusal := status.Convert(err)
	switch refusal.Code() {
	case codes.FailedPrecondition:
		return source.ReasonUnavailable, "the kubelet is starting and has not loaded its pods yet; the exporter retries"
	case codes.Unimplemented:
		return source.ReasonUnsupported, "the server on the socket does not serve the Pods API v1alpha1; " + podsRemedy
	case codes.ResourceExhausted:
		return source.ReasonResourceExhausted, podsExhausted(refusal.Message())
	case codes.PermissionDenied, codes.Unauthenticated:
		return source.ReasonPermission, "the kubelet refuses this client"
	case codes.Unavailable, codes.Canceled:
		return source.ReasonUnavailable, "the connection broke; the exporter retries"
	case codes.Internal:
		return source.ReasonInvalid, "the answer cannot be read; the exporter retries"
	default:
		return source.ReasonOther, "the kubelet could not answer; see its log"
	}
}

// podsRemedy is the remedy if there is no Pods API.
const podsRemedy = "Kubernetes 1.37 or newer is needed on the node, with the feature gate PodsAPI enabled, and --kubelet.pods-api must name the kubelet's own socket; " +
	"otherwise remove that flag, so that the agent lists and watches pods of the API server"

// podsExhausted distinguishes the causes of ResourceExhausted.
func podsExhausted(message string) string {
	if strings.Contains(message, "larger than max") {
		return fmt.Sprintf("a pod is larger than the %d MiB that are accepted", maxAnswer>>20)
	}
	return "the kubelet ended the watch, because events were not read fast enough; " +
		"it is reopened; if this persists, give the agent more CPU time"
}

// diagnosePodsDial is diagnoseDial for the Pods API.
func diagnosePodsDial(failure error) (source.Reason, string) {
	if errors.Is(failure, fs.ErrNotExist) {
		return source.ReasonNotFound, "there is no such socket; mount the kubelet's pods-api directory: " + podsRemedy + "; the exporter retries"
	}
	return diagnoseDial(failure)
}
