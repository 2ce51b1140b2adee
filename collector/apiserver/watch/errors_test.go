package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// TestConnectionClosedWithoutAnswer has a server that closes all connections,
// which client-go reports as an empty watch.
func TestConnectionClosedWithoutAnswer(t *testing.T) {
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
	client, err := NewClient(&rest.Config{Host: "http://" + listener.Addr().String()}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	from := &CollectionReader{Client: client, Resource: "pods", Versions: []Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.PodList{} }}}}
	alive := false
	w := testWatcher(func(now bool) { alive = now }, from.watch)
	defer w.stop()
	if _, err := w.tryWatch(t.Context(), metav1.ListOptions{ResourceVersion: "7"}); !errors.Is(err, errConnectionEnded) {
		t.Errorf("the watch fails with %v", err)
	}
	if alive {
		t.Error("an unanswered watch is alive")
	}
}

func TestReasonOfAFailure(t *testing.T) {
	slices := schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceslices"}
	answer := func(status int, resource schema.GroupResource) error {
		return apierrors.NewGenericServerResponse(status, "get", resource, "", "", 0, true)
	}
	// The response of a kube-apiserver for a resource that it does not serve in
	// a group that it does.
	nameless := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
	for _, c := range []struct {
		err  error
		want source.Reason
	}{
		{nil, source.ReasonNone},
		{checkServed(resourcev1.SchemeGroupVersion, answer(http.StatusNotFound, slices)), source.ReasonUnsupported},
		{checkServed(resourcev1.SchemeGroupVersion, nameless), source.ReasonUnsupported},
		{checkServed(resourcev1.SchemeGroupVersion, apierrors.NewNotFound(slices, "x")), source.ReasonNotFound},
		{checkServed(resourcev1beta2.SchemeGroupVersion, nameless), source.ReasonNotFound},
		{checkServed(corev1.SchemeGroupVersion, answer(http.StatusNotFound, schema.GroupResource{Resource: "pods"})), source.ReasonNotFound},
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
		if got := source.ReasonOf(Failure(err)); got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got, c.want)
		}
	}
}
