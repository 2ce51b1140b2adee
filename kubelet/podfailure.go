package kubelet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// explainPods returns the error of the end of a watch, with its reason, the
// socket and the remedy. dialFailure is why the socket could not be reached,
// nil if it could.
func explainPods(err, dialFailure error, socket string, patience time.Duration) error {
	reason, remedy := diagnosePods(err, patience)
	if dialFailure != nil && (status.Code(err) == codes.Unavailable || errors.Is(err, errPatience)) {
		err = dialFailure
		reason, remedy = diagnosePodsDial(dialFailure)
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf("watch the kubelet's pods over %s: %s: %w", socket, remedy, err)}
}

// diagnosePods returns the reason and the text of the end of a watch.
func diagnosePods(err error, patience time.Duration) (source.Reason, string) {
	switch {
	case errors.Is(err, errPatience):
		return source.ReasonTimeout, fmt.Sprintf("no complete answer within %s; check in its log whether the kubelet hangs", patience)
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

// podsExhausted distinguishes the meanings of ResourceExhausted.
func podsExhausted(message string) string {
	if strings.Contains(message, "larger than max") {
		return fmt.Sprintf("a pod is larger than the %d MiB that are accepted", maxAnswer>>20)
	}
	return "the kubelet ended the watch, because events were not read fast enough; " +
		"it is reopened; if this persists, give the agent more CPU time"
}

// diagnosePodsDial returns why the socket could not be reached.
func diagnosePodsDial(failure error) (source.Reason, string) {
	if errors.Is(failure, fs.ErrNotExist) {
		return source.ReasonNotFound, "there is no such socket; mount the kubelet's pods-api directory: " + podsRemedy + "; the exporter retries"
	}
	return diagnoseDial(failure)
}
