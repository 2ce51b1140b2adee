package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestExplain(t *testing.T) {
	refused := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", errno)}
	}
	unreachable := status.Error(codes.Unavailable, "connection error")
	for _, test := range []struct {
		err, dial error
		reason    source.Reason
		remedy    string
	}{
		{unreachable, refused(syscall.ENOENT), source.ReasonNotFound, "pod-resources directory"},
		{unreachable, refused(syscall.EACCES), source.ReasonPermission, "run as root"},
		{unreachable, refused(syscall.ECONNREFUSED), source.ReasonUnavailable, "start the kubelet"},
		{unreachable, refused(syscall.EINVAL), source.ReasonInvalid, "107 bytes"},
		{unreachable, nil, source.ReasonUnavailable, "connection broke"},
		{status.FromContextError(context.DeadlineExceeded).Err(), nil, source.ReasonTimeout, "within 5s"},
		{status.Error(codes.DeadlineExceeded, ""), refused(syscall.ENOENT), source.ReasonTimeout, "within 5s"},
		{status.Error(codes.ResourceExhausted, "rejected by rate limit"), nil, source.ReasonResourceExhausted, "sends too many"},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (2 vs. 1)"), nil, source.ReasonResourceExhausted, "fewer pods"},
		{status.Error(codes.PermissionDenied, ""), nil, source.ReasonPermission, "refuses"},
		{status.Error(codes.Unimplemented, ""), nil, source.ReasonUnsupported, "1.34"},
		{status.Error(codes.Internal, "grpc: failed to unmarshal the received message: the answer has more than 10000 pods"), nil, source.ReasonResourceExhausted, "the answer has more than the limit of 10000 pods"},
		{status.Error(codes.Internal, ""), nil, source.ReasonInvalid, "cannot be read"},
		{status.Error(codes.Unknown, ""), nil, source.ReasonOther, "see its log"},
		{errors.New("no status"), nil, source.ReasonOther, "see its log"},
	} {
		t.Run(fmt.Sprint(test.err, test.dial), func(t *testing.T) {
			err := explain(test.err, test.dial, "/run/kubelet.sock", 5*time.Second)
			if got := source.ReasonOf(err); got != test.reason {
				t.Errorf("got reason %q, want %q", got, test.reason)
			}
			if text := err.Error(); !strings.Contains(text, test.remedy) || !strings.Contains(text, "/run/kubelet.sock") {
				t.Errorf("got %q, want the socket and %q", text, test.remedy)
			}
			if test.reason == source.ReasonNotFound && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v hides its cause", err)
			}
		})
	}
}
