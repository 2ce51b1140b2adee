package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestAListIsFreshOnlyOnceAWatchGoesOnFromIt(t *testing.T) {
	alive := false
	w := &watched{
		resource: "pods",
		tracker:  source.NewTracker("pods", slog.New(slog.DiscardHandler), clock.System(), nil),
		now:      clock.System(),
		turned:   func(now bool) { alive = now },
		watch:    func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
	defer w.stop()
	try := func(options metav1.ListOptions) {
		opened, err := w.tryWatch(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(opened.Stop)
	}
	w.beginList()
	w.replaced()
	if alive {
		t.Error("a list alone is taken for fresh")
	}
	if try(metav1.ListOptions{ResourceVersion: "7"}); !alive {
		t.Error("a list with a watch is not taken for fresh")
	}
	w.fail(errConnectionEnded)
	yes := true
	if try(metav1.ListOptions{SendInitialEvents: &yes}); alive {
		t.Error("a stream is taken for fresh before its list is over")
	}
	if w.replaced(); !alive {
		t.Error("a stream is not taken for fresh when its list is over")
	}
}

// TestAConnectionThatEndsUnansweredIsAFailure has a server that hangs up on
// everybody, which client-go makes an empty watch of.
func TestAConnectionThatEndsUnansweredIsAFailure(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Read(make([]byte, 1)) // else the client takes it for idle, and tries again
			_ = connection.Close()
		}
	}()
	defer func() { _ = listener.Close(); <-ended }()
	node, err := New(Options{
		Config: &rest.Config{Host: "http://" + listener.Addr().String()}, Node: "node-a",
		Clock: clock.System(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer node.client.close()
	defer node.podWatch.stop()
	if _, err := node.podWatch.tryWatch(t.Context(), metav1.ListOptions{ResourceVersion: "7"}); !errors.Is(err, errConnectionEnded) {
		t.Errorf("the watch fails with %v", err)
	}
	if node.Latest().PodsFresh {
		t.Error("pods that nobody told are fresh")
	}
}

func TestFindsTheReasonOfAFailure(t *testing.T) {
	slices := schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceslices"}
	answer := func(status int, resource schema.GroupResource) error {
		return apierrors.NewGenericServerResponse(status, "get", resource, "", "", 0, true)
	}
	// What a kube-apiserver says of a resource that it does not serve in a
	// group that it does.
	nameless := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
	for _, c := range []struct {
		err  error
		want source.Reason
	}{
		{nil, source.ReasonNone},
		{about("resource.k8s.io/v1", answer(http.StatusNotFound, slices)), source.ReasonUnsupported},
		{about("resource.k8s.io/v1", nameless), source.ReasonUnsupported},
		{about("resource.k8s.io/v1", apierrors.NewNotFound(slices, "x")), source.ReasonNotFound},
		{about("resource.k8s.io/v1beta2", nameless), source.ReasonNotFound},
		{about("v1", answer(http.StatusNotFound, schema.GroupResource{Resource: "pods"})), source.ReasonNotFound},
		{apierrors.NewNotFound(slices, "x"), source.ReasonNotFound},
		{answer(http.StatusForbidden, slices), source.ReasonPermission},
		{answer(http.StatusUnauthorized, slices), source.ReasonPermission},
		{answer(http.StatusTooManyRequests, slices), source.ReasonResourceExhausted},
		{answer(http.StatusGatewayTimeout, slices), source.ReasonTimeout},
		{answer(http.StatusInternalServerError, slices), source.ReasonUnavailable},
		{answer(http.StatusServiceUnavailable, slices), source.ReasonUnavailable},
		{syscall.ECONNREFUSED, source.ReasonUnavailable},
		{&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, source.ReasonUnavailable},
		{&net.DNSError{IsTimeout: true}, source.ReasonTimeout},
		{context.DeadlineExceeded, source.ReasonTimeout},
		{errConnectionEnded, source.ReasonUnavailable},
		{errNoList, source.ReasonInvalid},
		{errors.New("odd"), source.ReasonOther},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("list: %w", err)
		}
		if got := source.ReasonOf(failure(err)); got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got, c.want)
		}
	}
}
