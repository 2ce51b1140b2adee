package apiserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns a client of the pods that requests the media type.
func connect(t *testing.T, server *Server, media string) *podClient {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, resourcev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config := server.Config()
	config.ContentType, config.AcceptContentTypes = media, media
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return &podClient{rest: client, codec: runtime.NewParameterCodec(scheme)}
}

type podClient struct {
	rest  rest.Interface
	codec runtime.ParameterCodec
}

func (c *podClient) list(t *testing.T, options metav1.ListOptions) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	return list, c.rest.Get().Resource("pods").VersionedParams(&options, c.codec).Do(t.Context()).Into(list)
}

func (c *podClient) watch(t *testing.T, options metav1.ListOptions) watch.Interface {
	t.Helper()
	options.Watch = true
	opened, err := c.rest.Get().Resource("pods").VersionedParams(&options, c.codec).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Stop)
	return opened
}

func next(t *testing.T, from watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-from.ResultChan():
		if !open {
			t.Fatal("the watch has ended")
		}
		return event
	case <-time.After(30 * time.Second):
		t.Fatal("no event came")
		return watch.Event{}
	}
}

// expect takes the next event and compares its type and the object's name.
func expect(t *testing.T, from watch.Interface, kind watch.EventType, name string) metav1.Object {
	t.Helper()
	event := next(t, from)
	object, ok := event.Object.(metav1.Object)
	if !ok || event.Type != kind || object.GetName() != name {
		t.Fatalf("got %s %v, want %s %s", event.Type, event.Object, kind, name)
	}
	return object
}

func start(t *testing.T, options Options) *Server {
	t.Helper()
	server, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}

func put(t *testing.T, server *Server, objects ...Object) {
	t.Helper()
	if err := server.Put(objects...); err != nil {
		t.Fatal(err)
	}
}

func TestServesListsAndWatchesInBothEncodings(t *testing.T) {
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(media, func(t *testing.T) {
			server := start(t, Options{})
			put(t, server, pod("here", "a"), pod("there", "b"))
			client := connect(t, server, media)
			list, err := client.list(t, metav1.ListOptions{FieldSelector: "spec.nodeName=a"})
			if err != nil || len(list.Items) != 1 || list.Items[0].Name != "here" || list.Items[0].UID == "" {
				t.Fatalf("list: %v, %v", list.Items, err)
			}
			from := client.watch(t, metav1.ListOptions{FieldSelector: "spec.nodeName=a", ResourceVersion: list.ResourceVersion})
			put(t, server, pod("here", "a"), pod("there", "b"), pod("new", "a"))
			expect(t, from, watch.Modified, "here")
			expect(t, from, watch.Added, "new")
			put(t, server, pod("there", "a"), pod("new", "b"))
			expect(t, from, watch.Added, "there")
			expect(t, from, watch.Deleted, "new")
			if err := server.Delete(pod("here", "")); err != nil {
				t.Fatal(err)
			}
			expect(t, from, watch.Deleted, "here")
		})
	}
}

func TestStreamsListsAndMarksTheirEnd(t *testing.T) {
	server := start(t, Options{BookmarkEvery: 10 * time.Millisecond})
	put(t, server, pod("one", "a"), pod("two", "a"))
	yes := true
	from := connect(t, server, runtime.ContentTypeProtobuf).watch(t, metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	expect(t, from, watch.Added, "one")
	expect(t, from, watch.Added, "two")
	if mark := expect(t, from, watch.Bookmark, ""); mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || mark.GetResourceVersion() != "3" {
		t.Errorf("the end of the list is marked by %v", mark)
	}
	if later := expect(t, from, watch.Bookmark, ""); len(later.GetAnnotations()) != 0 {
		t.Errorf("a later bookmark says %v", later.GetAnnotations())
	}
}

func TestRefusesVersionsThatAreTooOld(t *testing.T) {
	server := start(t, Options{History: 2})
	put(t, server, pod("one", "a"), pod("two", "a"), pod("three", "a"), pod("four", "a"))
	client := connect(t, server, runtime.ContentTypeJSON)
	options := metav1.ListOptions{Watch: true, ResourceVersion: "2"}
	_, err := client.rest.Get().Resource("pods").VersionedParams(&options, client.codec).Watch(t.Context())
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from version 2 of 5, with two changes kept, fails with %v", err)
	}
	from := client.watch(t, metav1.ListOptions{ResourceVersion: "3"})
	expect(t, from, watch.Added, "three")
	expect(t, from, watch.Added, "four")
	server.Expire()
	put(t, server, pod("five", "a"))
	event := next(t, from)
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("after the history is gone the watch gets %v", event)
	}
}

func TestKeepsObjectsOverARestart(t *testing.T) {
	server := start(t, Options{})
	put(t, server, pod("one", "a"))
	client := connect(t, server, runtime.ContentTypeJSON)
	from := client.watch(t, metav1.ListOptions{ResourceVersion: "2"})
	server.Stop()
	select {
	case _, open := <-from.ResultChan():
		for open {
			_, open = <-from.ResultChan()
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a watch survives the server")
	}
	if _, err := client.list(t, metav1.ListOptions{}); err == nil {
		t.Error("a stopped server answers")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if list, err := client.list(t, metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("after a restart: %v, %v", list.Items, err)
	}
}

func TestRefusesWhatTheInterceptorRefuses(t *testing.T) {
	status := 0
	server := start(t, Options{Intercept: func(Request) int { return status }})
	client := connect(t, server, runtime.ContentTypeProtobuf)
	cases := map[int]func(error) bool{
		http.StatusForbidden:           apierrors.IsForbidden,
		http.StatusInternalServerError: apierrors.IsInternalError,
		http.StatusNotFound: func(err error) bool {
			var status *apierrors.StatusError
			return errors.As(err, &status) && apierrors.IsNotFound(err) && status.ErrStatus.Details.Name == ""
		},
	}
	for code, fits := range cases {
		status = code
		if _, err := client.list(t, metav1.ListOptions{}); !fits(err) {
			t.Errorf("status %d arrives as %v", code, err)
		}
	}
}

func TestRefusesUnknownObjectsAndFields(t *testing.T) {
	server := start(t, Options{})
	if err := server.Put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "web"}}); err == nil {
		t.Error("a kind that is not served is accepted")
	}
	if err := server.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}}); err == nil {
		t.Error("a pod without a namespace is accepted")
	}
	client := connect(t, server, runtime.ContentTypeJSON)
	if _, err := client.list(t, metav1.ListOptions{FieldSelector: "spec.color=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown field gives %v", err)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	cancel()
	client := connect(t, server, runtime.ContentTypeJSON)
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, err := client.list(t, metav1.ListOptions{}); err != nil && strings.Contains(err.Error(), "refused") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server outlives its context")
		}
	}
}

// Events are selected by their object, as the cluster role does it.
func TestSelectsEvents(t *testing.T) {
	server := start(t, Options{})
	event := func(name, reason, kind string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Reason: reason,
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: "p"},
		}
	}
	put(t, server, event("one", "Failed", "Pod"), event("two", "Failed", "Node"), event("three", "Pulled", "Pod"))
	client := connect(t, server, runtime.ContentTypeProtobuf)
	for selector, want := range map[string]string{
		"reason=Failed": "one two", "reason=Failed,involvedObject.kind=Pod": "one", "reason=Other": "", "reason!=Failed": "three",
	} {
		list := &corev1.EventList{}
		options := metav1.ListOptions{FieldSelector: selector}
		if err := client.rest.Get().Resource("events").VersionedParams(&options, client.codec).Do(t.Context()).Into(list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, event := range list.Items {
			names = append(names, event.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s selects %q, want %q", selector, got, want)
		}
	}
}

// What is not served is answered as by a server that does not know it.
func TestServesNoPodGroups(t *testing.T) {
	client := connect(t, start(t, Options{}), runtime.ContentTypeProtobuf)
	err := client.rest.Get().AbsPath("/apis/scheduling.k8s.io/v1alpha1/podgroups").Do(t.Context()).Error()
	if !apierrors.IsNotFound(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		t.Errorf("podgroups are answered with %v", err)
	}
}

func TestServesTheOtherKinds(t *testing.T) {
	server := start(t, Options{Gangs: true})
	name := metav1.ObjectMeta{Name: "x"}
	named := metav1.ObjectMeta{Namespace: "lab", Name: "x"}
	put(t, server, &corev1.Node{ObjectMeta: name}, &resourcev1.DeviceClass{ObjectMeta: name}, &resourcev1.ResourceSlice{ObjectMeta: name},
		&resourcev1.DeviceTaintRule{ObjectMeta: name}, &corev1.Event{ObjectMeta: named},
		&resourcev1.ResourceClaim{ObjectMeta: named}, &resourcev1.ResourceClaimTemplate{ObjectMeta: named},
		&schedulingv1beta1.PodGroup{ObjectMeta: named}, &customresource.Workload{ObjectMeta: named}, &customresource.ComputeDomain{ObjectMeta: named})
	for _, path := range []string{
		"/version", "/api", "/apis", "/api/v1", "/apis/resource.k8s.io", "/apis/resource.k8s.io/v1", "/api/v1/nodes/x",
		"/apis/resource.k8s.io/v1/devicetaintrules/x", "/api/v1/namespaces/lab/events/x", "/apis/resource.k8s.io/v1/deviceclasses/x", "/apis/resource.k8s.io/v1/resourceslices/x",
		"/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/x", "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaimtemplates/x",
		"/apis/scheduling.k8s.io", "/apis/scheduling.k8s.io/v1beta1/namespaces/lab/podgroups/x", "/apis/kueue.x-k8s.io/v1beta2/namespaces/lab/workloads/x",
		"/apis/resource.nvidia.com/v1beta1/namespaces/lab/computedomains/x",
	} {
		client := connect(t, server, runtime.ContentTypeJSON)
		if _, err := client.rest.Get().AbsPath(path).DoRaw(t.Context()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
